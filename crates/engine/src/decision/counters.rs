//! Counters of a cycle for metrics: what became of nominations, and the effort of evictions.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, ResourceId};

/// What became of nominations in a cycle, in pods.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct NominationCounters {
    /// Bound to the nominated node.
    pub hits: u32,
    /// Still waiting for it to become free.
    pub misses: u32,
    /// Released: the room was lost, or a gang of higher priority took it.
    pub voided: u32,
    /// Released because they have waited too long.
    pub expired: u32,
}

/// The search for victims for one gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRecord {
    pub gang: GangId,
    /// The name of the action.
    pub action: &'static str,
    pub work: SearchCounters,
    /// Whether it found any.
    pub found: bool,
}

/// The work of the actions that make room for gangs in a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchCounters {
    /// Domains in which evicting whole gangs was considered.
    pub domains: u32,
    /// Sets of victims that were considered.
    pub scenarios: u32,
    /// Those of them that free too little by sums alone, so placement was not simulated.
    pub filtered: u32,
    /// How often the placement of a pod or a gang after evictions was simulated.
    pub simulations: u32,
    /// A limit ended the search early.
    pub cut_short: bool,
    /// Pods that were victims at first.
    pub selected: u32,
    /// Those of them that were given back because they were not needed.
    pub reprieved: u32,
    /// Gangs that are below their minimum since then.
    pub broken: u32,
    /// For how many seconds victims, and all pods of gangs that break, have used accelerators, by
    /// resource.
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

    /// The effort of a search that found no victims in the end.
    pub(crate) fn without_victims(self) -> SearchCounters {
        SearchCounters { selected: 0, reprieved: 0, ..self }
    }
}
