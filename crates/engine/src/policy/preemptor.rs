//! The gang that needs room, and how it may evict pods.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Method, Mode, Purpose};

/// A gang that needs room which other pods use.
#[derive(Copy, Clone, Debug)]
pub struct Preemptor {
    pub mode: Mode,
    pub purpose: Purpose,
    pub gang: GangId,
    pub pod: PodId,
    pub now: Time,
    /// How its victims are evicted.
    pub method: Method,
}

impl Preemptor {
    /// Whole gangs are evicted rather than single pods: the minimum of a gang is then not a veto,
    /// but a cost.
    pub fn by_gang(&self) -> bool {
        self.mode != Mode::Task
    }

    /// Queues are measured by their fair shares rather than by what they deserve.
    pub fn by_fair_share(&self) -> bool {
        self.mode == Mode::Scenario
    }
}
