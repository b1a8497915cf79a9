//! Why a pod is evicted.

use crate::base::ids::{NodeId, QueueId, Symbol};
use crate::decision::choice::NextChoice;

/// Why a pod is evicted. `report/words/evictions.rs` makes the text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its gang, subgroup or role has been below its minimum for too long.
    Stale { subgroup: bool, role: Option<Symbol>, lacks: u32, minimum: u32, for_ms: i64 },
    /// A gang of its queue with a higher priority needs the room.
    Outranked { priority: i32, preemptor: i32, next: Option<NextChoice> },
    /// A pod of its own gang with a higher priority needs the room.
    OutrankedWithin { priority: i32 },
    /// It is evicted with others of its gang: surplus pods, all pods of a broken gang, or the rest
    /// of a gang, which breaks it. The return (ROI) is in parts per million, if it was computed.
    Bundle { whole: bool, broken: bool, pods: u32, roi: Option<i64>, next: Option<NextChoice> },
    /// Its successor has room reserved on another node; this room is for the preemptor.
    Moved { to: NodeId },
    /// Its queue has more than it deserves, and another less.
    Reclaimed { from: QueueId, to: QueueId, next: Option<NextChoice> },
    /// The zone of its node is closed to it now.
    ZoneClosed,
}
