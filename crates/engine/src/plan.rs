//! What one cycle decided. Ids stand for the engine's pods, nodes and gangs until the next event is applied.

use muster_api::Time;

use crate::ids::{GangId, NodeId, PodId};
use crate::model::pods::PodState;
use crate::txn::Move;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the decisions.
    pub binds: Vec<Bind>,
    /// Places that were promised in this cycle, with or without an eviction.
    pub nominations: Vec<Bind>,
    /// Gangs whose phase or condition changed.
    pub updates: Vec<GangId>,
    /// Call again then, even if nothing happens.
    pub wake: Option<Time>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub pod: PodId,
    pub node: NodeId,
}

impl Plan {
    pub(crate) fn record(&mut self, moves: &[Move]) {
        for step in moves {
            match step.to {
                PodState::Allocated(node) => self.binds.push(Bind { pod: step.pod, node }),
                PodState::Nominated(node) => self.nominations.push(Bind { pod: step.pod, node }),
                _ => {}
            }
        }
    }

    pub(crate) fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |known| known.min(time)));
    }

    /// Decides nothing.
    pub fn is_empty(&self) -> bool {
        self.binds.is_empty() && self.nominations.is_empty() && self.updates.is_empty()
    }
}
