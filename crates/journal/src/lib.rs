//! Records in files what the engine was told and what it decided, and proves that it decides the
//! same again.
//!
//! A journal is a folder of segments. Each starts with everything that the engine remembered, so
//! that each can be replayed alone. The scheduler's thread only encodes; a thread of the journal
//! compresses and writes.
//!
//! ```no_run
//! let summary = muster_journal::replay("journal".as_ref(), 0, |_| {}, |_| {})?;
//! println!("{} cycles were decided as before", summary.cycles);
//! # Ok::<(), muster_journal::ReplayError>(())
//! ```

pub mod codec;
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
