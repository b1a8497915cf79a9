//! Which room a placement may use.

/// Which room a placement may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// Free now, with no nomination for it: the pod can be bound.
    Idle,
    /// Free once terminating pods are gone: the pod can be nominated.
    FutureIdle,
    /// Free now, even if other pods are nominated to it: the pod ends before they need it.
    Backfill,
}
