//! An embedded cluster with a virtual clock: runs the engine on manifests, generated load and
//! faults.
//!
//! ```
//! use muster_api::Time;
//! use muster_engine::{Engine, config::Config};
//! use muster_sim::{Options, Simulation, Until, World};
//!
//! let engine = Engine::new(Config::builtin(), vec!["volcano".to_owned()]);
//! let options = Options {
//!     until: Until::Stable,
//!     recreate: true,
//!     events: false,
//!     arrivals: false,
//!     check: true,
//! };
//! let mut simulation = Simulation::new(World::at(Time(0)), engine, options);
//! simulation.run(|_| {}).expect("all invariants hold");
//! assert_eq!(simulation.report.cycles[0].binds, 0);
//! ```

pub mod chaos;
pub mod curves;
pub mod difference;
pub mod generate;
pub mod invariants;
mod manager;
pub mod report;
mod simulation;
mod violation;
mod world;

pub use manager::Change;
pub use report::Report;
pub use simulation::{Options, Progress, STEP_MS, Simulation, Until};
pub use violation::{Invariant, Violation};
pub use world::{Departure, Refusal, World};
