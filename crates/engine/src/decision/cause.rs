//! Why a pod has to leave.

use crate::base::ids::{GangId, NodeId, QueueId, Symbol};

/// Why a pod has to leave. Text is made in `explain.rs`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its gang, or its subgroup, has lacked pods to its minimum for too long; or pods of a role.
    Stale { subgroup: bool, role: Option<Symbol>, lacks: u32, minimum: u32, for_ms: i64 },
    /// A gang of its queue with a higher priority needs the room.
    Outranked { priority: i32, preemptor: i32 },
    /// A pod of its own gang with a higher priority needs the room.
    OutrankedWithin { priority: i32 },
    /// It goes with others of its gang: what the gang can lose, all of one that is broken, or the
    /// rest of it, which breaks it. What that returns is in parts per million, if it was asked
    /// for; the next best gang that stays is named with what it would have returned.
    Bundle {
        whole: bool,
        broken: bool,
        pods: u32,
        roi: Option<i64>,
        against: Option<(GangId, i64)>,
    },
    /// Another place is kept for its successor, and its own is for others.
    Moved { to: NodeId },
    /// Its queue has more than it deserves, and another less.
    Reclaimed { from: QueueId, to: QueueId },
    /// The zone of its node is for others now.
    ZoneClosed,
}
