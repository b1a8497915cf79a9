//! What a cycle counts for metrics: what became of nominations and what evictions took.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, ResourceId};

/// What became of nominations in a cycle, in pods.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct NominationCounters {
    /// Bound to the nominated node.
    pub hits: u32,
    /// Still waiting for it to become free.
    pub misses: u32,
    /// Released: the room was lost, or a stronger gang took it.
    pub voided: u32,
    /// Released because they have waited too long.
    pub expired: u32,
}

/// What was tried to make room for one gang by evictions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRecord {
    pub gang: GangId,
    /// The name of the action.
    pub action: &'static str,
    pub work: SearchCounters,
    /// Whether room was made.
    pub found: bool,
}

/// What the actions that take room for gangs have done in a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchCounters {
    /// Domains in which room was to be made by whole gangs.
    pub domains: u32,
    /// Sets of pods that were to leave, each larger than the one before or another one.
    pub scenarios: u32,
    /// Those of them that could not do, as amounts go, so that nothing was tried.
    pub filtered: u32,
    /// How often it was tried whether a pod or a gang has room when others have left.
    pub simulations: u32,
    /// More would have been tried, but for a limit.
    pub cut_short: bool,
    /// Pods that were to leave for a gang.
    pub selected: u32,
    /// Those of them that were not needed after all.
    pub reprieved: u32,
    /// Gangs that hold less than their minimum since then.
    pub broken: u32,
    /// For how many seconds those that leave, and all of the gangs that break, have held
    /// accelerators, by resource.
    pub wasted_seconds: BTreeMap<ResourceId, i64>,
}

impl SearchCounters {
    pub(crate) fn add(&mut self, more: &SearchCounters) {
        let SearchCounters {
            domains,
            scenarios,
            filtered,
            simulations,
            cut_short,
            selected,
            reprieved,
            broken,
            wasted_seconds,
        } = more;
        self.domains += domains;
        self.scenarios += scenarios;
        self.filtered += filtered;
        self.simulations += simulations;
        self.cut_short |= cut_short;
        self.selected += selected;
        self.reprieved += reprieved;
        self.broken += broken;
        for (&resource, seconds) in wasted_seconds {
            *self.wasted_seconds.entry(resource).or_default() += seconds;
        }
    }

    /// What was tried, without what would have come of it.
    pub(crate) fn in_vain(self) -> SearchCounters {
        SearchCounters { selected: 0, reprieved: 0, ..self }
    }
}
