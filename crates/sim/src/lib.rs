//! An embedded cluster with a virtual clock: runs the engine on manifests, generated load and
//! faults.

pub mod chaos;
pub mod curves;
pub mod difference;
pub mod generate;
pub mod invariants;
pub mod report;
mod simulation;
mod world;

pub use report::Report;
pub use simulation::{Options, Progress, STEP_MS, Simulation, Until};
pub use world::World;
