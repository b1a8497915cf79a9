//! The plugins and the actions, in two lists. The configuration, `muster check`, the documentation and
//! its tests read the same lists.

use crate::actions::{
    allocate, backfill, consolidate, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle,
    stalegangeviction,
};
use crate::order::session::Action;
use crate::plugins::{
    binpack, capacity, cdp, conformance, deviceshare, drf, gang, minruntime,
    network_topology_aware, nodegroup, nodeorder, overcommit, pdb, predicates, priority,
    proportion, propose, resourcequota, sla, tdm,
};
use crate::policy::plugin::Entry;

pub static PLUGINS: &[&Entry] = &[
    &binpack::ENTRY,
    &capacity::ENTRY,
    &cdp::ENTRY,
    &conformance::ENTRY,
    &deviceshare::ENTRY,
    &drf::ENTRY,
    &gang::ENTRY,
    &minruntime::ENTRY,
    &network_topology_aware::ENTRY,
    &nodegroup::ENTRY,
    &nodeorder::ENTRY,
    &overcommit::ENTRY,
    &pdb::ENTRY,
    &predicates::ENTRY,
    &priority::ENTRY,
    &propose::ENTRY,
    &proportion::ENTRY,
    &resourcequota::ENTRY,
    &sla::ENTRY,
    &tdm::ENTRY,
];

/// Volcano's plugins that Muster doesn't have (yet): naming one is a warning, not an error.
pub static VOLCANO_ONLY: &[&str] = &[
    "extender",
    "fairshare",
    "numa-aware",
    "rescheduling",
    "resource-strategy-fit",
    "task-topology",
    "usage",
];

/// The plugin of that name.
pub fn plugin(name: &str) -> Option<&'static Entry> {
    PLUGINS.iter().copied().find(|entry| entry.name == name)
}

/// The action of that name.
pub fn action(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().copied().find(|action| action.name == name)
}

pub static ACTIONS: &[&Action] = &[
    &allocate::ACTION,
    &backfill::ACTION,
    &consolidate::ACTION,
    &enqueue::ACTION,
    &gangpreempt::ACTION,
    &gangreclaim::ACTION,
    &preempt::ACTION,
    &reclaim::ACTION,
    &shuffle::ACTION,
    &stalegangeviction::ACTION,
];
