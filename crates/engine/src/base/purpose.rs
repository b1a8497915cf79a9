//! Why room is taken from others, by which unit, and how the pods leave.

use serde::{Deserialize, Serialize};

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Pod by pod.
    #[default]
    Task,
    /// By bundles of gangs.
    Gang,
    /// By bundles in the order of queues, with victims moved to other nodes where there is room.
    Scenario,
}

impl Mode {
    pub const NAMES: [(&str, Mode); 3] =
        [("task", Mode::Task), ("gang", Mode::Gang), ("scenario", Mode::Scenario)];

    pub fn named(text: &str) -> Option<Mode> {
        Mode::NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, mode)| mode)
    }

    pub fn name(self) -> &'static str {
        Mode::NAMES.into_iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

/// How a pod is asked to leave.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Through the Eviction API, which keeps PodDisruptionBudgets.
    #[default]
    Evict,
    /// Its object is deleted, and PodDisruptionBudgets are kept as far as that costs nothing else.
    Delete,
}

/// From which pods room is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Purpose {
    /// From gangs of the same queue that matter less.
    Preempt,
    /// From pods of the same gang that matter less.
    Within,
    /// From queues that have more than they deserve.
    Reclaim,
    /// From gangs of any queue whose pods find a place elsewhere.
    Consolidate,
}
