//! The plugins, in one list. The configuration, `muster check`, the documentation and its tests
//! read the same list.

use crate::plugins::{
    binpack, capacity, cdp, conformance, deviceshare, drf, gang, minruntime,
    network_topology_aware, nodegroup, nodeorder, overcommit, pdb, predicates, priority,
    proportion, propose, resourcequota, sla, tdm,
};
use crate::policy::answers::{Plugin, Question, Switches};
use crate::settings::args::Args;

pub struct Entry {
    pub name: &'static str,
    pub summary: &'static str,
    pub arguments: &'static [Argument],
    /// Where it differs from Volcano's plugin of the same name, on purpose.
    pub differs: &'static str,
    /// The questions that it is asked; an answer to any other would never be heard.
    pub answers: &'static [Question],
    /// Takes its arguments; what is left over was misspelt.
    pub build: fn(&mut Args, &Switches) -> Box<dyn Plugin>,
}

pub struct Argument {
    pub name: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
}

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
