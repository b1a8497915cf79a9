//! Volcano's controllers as a state machine: events and time go in, writes and the next wake-up
//! come out. No I/O, no clock, no client, no randomness: on a cluster, in the simulator and in tests
//! the same code decides.
//!
//! An object of which a write is under way is left alone until the answer has come. So every
//! decision sees what the ones before it have done, whatever the order in which events arrive.

mod command;
mod controllers;
pub mod event;
mod flow;
mod job;
mod known;
mod names;
mod plugins;
pub mod write;

pub use controllers::{Controllers, Plan};
pub use event::{Event, Part, PodPhase, Refusal, SeenPod};
pub use write::{Dependents, Keys, Level, Target, What, Write, WriteId};
