//! The scheduler as a pure state machine: events and the clock in, plans out. No I/O, no clock, no
//! randomness.

mod actions;
mod base;
pub mod config;
mod decision;
mod engine;
mod eviction;
pub mod model;
mod nomination;
mod order;
mod placement;
mod plugins;
mod policy;
mod report;
mod settings;
pub mod shares;

pub use actions::stalegangeviction::{Fate, Staleness};
pub use base::ids;
pub use base::resources::{Amounts, Dimensions, Share, Sparse};
pub use config::lists::{Argument, PLUGINS, VOLCANO_ONLY};
pub use decision::plan::{
    Bind, CardNote, Cause, Eviction, FastPath, GroupNote, Method, Plan, Search, Work,
};
pub use decision::reason::{Bar, Histogram, Lack, Limit, Near, Reason, Shown, Stage, Why};
pub use engine::Engine;
pub use engine::checkpoint::Checkpoint;
pub use eviction::bundles::{Bundle, Needed};
pub use eviction::trace;
pub use model::event::Event;
pub use model::txn::{Mark, Move, Txn};
pub use order::session::{ACTIONS, Action};
pub use placement::search;
pub use policy::answers::{
    Claim, Plugin, Policy, Purpose, Question, Reach, Room, Seat, Switches, Vote,
};
pub use report::{status, words as explain};
