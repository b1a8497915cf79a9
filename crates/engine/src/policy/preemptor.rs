//! The gang that wants room, and how it takes room from others.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Method, Mode, Purpose};

/// Who wants room that others have.
#[derive(Copy, Clone, Debug)]
pub struct Preemptor {
    pub mode: Mode,
    pub purpose: Purpose,
    pub gang: GangId,
    pub pod: PodId,
    pub now: Time,
    /// How the pods leave that it takes.
    pub method: Method,
}

impl Preemptor {
    /// Whole gangs are taken rather than pod by pod: what a gang needs is then no rule, but a
    /// price.
    pub fn by_gang(&self) -> bool {
        self.mode != Mode::Task
    }

    /// Queues are measured by their fair shares rather than by what they deserve.
    pub fn by_fair_share(&self) -> bool {
        self.mode == Mode::Scenario
    }
}
