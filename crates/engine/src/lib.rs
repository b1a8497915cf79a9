//! The scheduler as a pure state machine: events and the clock in, plans out. No I/O, no clock, no randomness.

mod actions;
mod admission;
mod checkpoint;
mod claims;
pub mod config;
mod engine;
mod event;
pub mod explain;
mod fairshare;
pub mod ids;
mod line;
pub mod model;
mod names;
mod nominations;
mod placement;
mod plan;
pub mod plugins;
mod policy;
mod ranking;
mod reason;
mod resources;
pub mod search;
pub mod status;
pub mod trace;
mod txn;
mod victims;

pub use actions::{ACTIONS, Action, NOT_BUILT};
pub use checkpoint::Checkpoint;
pub use engine::Engine;
pub use event::Event;
pub use plan::{Bind, CardNote, Cause, Eviction, FastPath, Method, Plan};
pub use policy::{Claim, Plugin, Policy, Purpose, Question, Reach, Room, Switches, Vote};
pub use reason::{Bar, Histogram, Lack, Limit, Near, Reason, Shown, Stage, Why};
pub use resources::{Amounts, Dimensions, Share, Sparse};
pub use txn::{Mark, Move, Txn};
