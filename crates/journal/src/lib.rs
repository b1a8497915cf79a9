//! What the engine was told and what it decided, in files; and the proof that it decides so again.
//!
//! A journal is a folder of segments. Each starts with all that the engine remembered, so that each
//! can be replayed alone. The scheduler's thread only encodes; a thread of the journal's own
//! compresses and writes.
//!
//! ```no_run
//! let summary = muster_journal::replay("journal".as_ref(), 0, |_| {}, |_| {})?;
//! println!("{} cycles were decided as before", summary.cycles);
//! # Ok::<(), muster_journal::ReplayError>(())
//! ```

mod difference;
mod frame;
mod journal;
mod plan;
mod record;
mod replay;
mod segment;
mod writer;

pub use difference::Difference;
pub use journal::{Health, Journal, Limits};
pub use plan::{NamedPlan, Place, Update};
pub use record::{Configuration, Cycle, Header, Record};
pub use replay::{Played, Progress, ReplayError, Summary, replay};
pub use segment::{ReadError, Records, Segment};
