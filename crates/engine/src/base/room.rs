//! Which room a placement may use.

/// Which room a placement may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// Free now and promised to nobody: the pod can be bound.
    Idle,
    /// Free once what is leaving has left: the pod can be promised a place.
    FutureIdle,
    /// Free now, even if it is promised: the pod is gone before the promise needs it.
    Backfill,
}
