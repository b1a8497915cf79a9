//! The gang that wants room, and how it takes room from others.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Method, Mode, Purpose};

/// The gang for which room is made, and the pod of it that is to be placed.
#[derive(Copy, Clone, Debug)]
pub struct Preemptor {
    pub mode: Mode,
    pub purpose: Purpose,
    pub gang: GangId,
    pub pod: PodId,
    pub now: Time,
    /// How pods are evicted for it.
    pub method: Method,
}

impl Preemptor {
    /// Gangs are evicted whole rather than pod by pod: breaking a gang is then not forbidden but
    /// costs something.
    pub fn by_gang(&self) -> bool {
        self.mode != Mode::Task
    }

    /// Queues are measured by their fair shares rather than by what they deserve.
    pub fn by_fair_share(&self) -> bool {
        self.mode == Mode::Scenario
    }
}
