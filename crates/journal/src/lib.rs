//! What the engine was told and what it decided, in files; and the proof that it decides so again.
//!
//! A journal is a folder of segments. Each starts with all that the engine remembered, so that each
//! can be replayed alone. The scheduler's thread only encodes; a thread of the journal's own
//! compresses and writes.

mod difference;
mod frame;
mod journal;
mod record;
mod replay;
mod segment;
mod writer;

pub use difference::Difference;
pub use frame::Damage;
pub use journal::{Health, Journal, Limits};
pub use record::{Configuration, Cycle, Header, Record};
pub use replay::{Played, Progress, ReplayError, Summary, replay};
pub use segment::{ReadError, Records, Segment, Torn};
