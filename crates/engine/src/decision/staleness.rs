//! What becomes of a gang that is below its minimum.

use muster_api::Time;

use crate::decision::cause::Cause;

/// What becomes of a stale gang, for `explain`.
#[derive(Copy, Clone, Debug)]
pub struct Staleness {
    pub since: Time,
    /// The cause that its pods would be evicted with.
    pub cause: Cause,
    pub fate: Fate,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Not evicted: the action is not configured.
    NotWatched,
    /// Its grace period has no end.
    ForEver,
    /// A rule keeps it, for now.
    Kept(&'static str),
    /// It is evicted then, unless it is complete before.
    Leaves(Time),
}
