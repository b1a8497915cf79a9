//! What becomes of a gang that holds places for less than its minimum.

use muster_api::Time;

use crate::decision::cause::Cause;

/// What becomes of a stale gang, for `explain` and pages.
#[derive(Copy, Clone, Debug)]
pub struct Staleness {
    pub since: Time,
    /// Why its pods are evicted.
    pub cause: Cause,
    pub fate: Fate,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Not evicted: the action is not configured.
    NotWatched,
    /// Its grace has no end.
    ForEver,
    /// Something keeps it, as long as it does.
    Kept(&'static str),
    /// It leaves then, unless it is completed before.
    Leaves(Time),
}
