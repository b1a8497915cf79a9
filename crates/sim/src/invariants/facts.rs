//! Plain facts that the invariants are computed from: what the configuration, the objects and the
//! states of pods say. Nothing here asks the code that decides.

use std::collections::BTreeSet;

use muster_api::parse_duration;
use muster_engine::ids::{DomainId, GangId, NodeId, PodId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::domains;
use muster_engine::model::gangs::Gang;
use muster_engine::model::pods::PodState;
use muster_engine::model::queues;
use muster_engine::model::subgroups::{Highest, TierLimit};
use muster_engine::{ConfiguredPlugin, Engine, Mode, Switches};

pub fn dimensions(cluster: &Cluster) -> impl Iterator<Item = ResourceId> + use<> {
    (0..cluster.dimensions.len()).map(ResourceId::from)
}

/// A plugin of the configuration, if this switch of it is on.
pub fn plugin<'e>(
    engine: &'e Engine,
    name: &str,
    is_on: impl Fn(&Switches) -> bool,
) -> Option<&'e ConfiguredPlugin> {
    let mut plugins = engine.config().policy.plugins.iter();
    plugins.find(|plugin| plugin.name == name && is_on(&plugin.switches))
}

pub fn flag(plugin: &ConfiguredPlugin, argument: &str, default: bool) -> bool {
    plugin.arguments.get(argument).and_then(|text| text.parse().ok()).unwrap_or(default)
}

pub fn duration_ms(plugin: &ConfiguredPlugin, argument: &str) -> Option<i64> {
    parse_duration(plugin.arguments.get(argument)?).ok()
}

/// Gangs start with their whole minimum or not at all.
pub fn enforces_minimum(engine: &Engine) -> bool {
    plugin(engine, "gang", |on| on.ready).is_some()
}

pub fn has_queue_tree(engine: &Engine) -> bool {
    plugin(engine, "capacity", |on| on.hierarchy).is_some()
}

pub fn is_by_scenario(engine: &Engine, action: &str) -> bool {
    let settings = engine.config().eviction_settings(action);
    settings.is_some_and(|settings| settings.mode == Mode::Scenario)
}

pub fn gangs_of(cluster: &Cluster, pods: impl Iterator<Item = PodId>) -> BTreeSet<GangId> {
    pods.filter_map(|pod| cluster.pods.gang[pod]).collect()
}

/// Counts for the minimum of its gang.
pub fn is_ready(cluster: &Cluster, pod: PodId) -> bool {
    use PodState::{Allocated, Running, Succeeded};
    matches!(cluster.pods.state[pod], Allocated(_) | Running(_) | Succeeded)
}

pub fn is_nominated(cluster: &Cluster, pod: PodId) -> bool {
    matches!(cluster.pods.state[pod], PodState::Nominated(_))
}

/// How many pods a gang lacks to its minimum and those of its roles, if it has these.
pub fn lacks(cluster: &Cluster, gang: &Gang, whole: bool, has: impl Fn(PodId) -> bool) -> u32 {
    let pods: Vec<PodId> = gang.pods.iter().copied().filter(|&pod| has(pod)).collect();
    let minimum = if whole { gang.minimum } else { 1 };
    let of_roles: u32 = gang.roles.iter().map(|role| role.minimum).sum();
    let mut in_roles = 0;
    // The minimums of roles hold only where the gang's own leaves room for them.
    if whole && gang.minimum >= of_roles {
        for (role, at) in gang.roles.iter().zip(0..) {
            let count = pods.iter().filter(|&&pod| cluster.pods.role[pod] == at).count() as u32;
            in_roles += role.minimum.saturating_sub(count);
        }
    }
    minimum.saturating_sub(pods.len() as u32).max(in_roles)
}

/// Whether a gang has its minimum, its roles' and its subgroups', if it has these pods.
pub fn has_minimum(cluster: &Cluster, gang: &Gang, has: impl Fn(PodId) -> bool) -> bool {
    let size = |at: u32| {
        let pods = gang.pods.iter().filter(|&&pod| cluster.pods.subgroup[pod] == at && has(pod));
        pods.count() as u32
    };
    let enough_subgroups = gang.rules().iter().zip(0..).all(|(rule, at)| {
        let groups = gang.subgroups().iter().zip(0..).filter(|(group, _)| group.rule == Some(at));
        groups.filter(|(_, place)| size(*place) >= rule.size).count() as u32 >= rule.minimum
    });
    enough_subgroups && lacks(cluster, gang, true, has) == 0
}

/// The queue and those above it, up to the root; only itself if its way up is broken.
pub fn queue_and_above(cluster: &Cluster, queue: QueueId) -> Vec<QueueId> {
    let mut line = vec![queue];
    let mut at = queue;
    while at != queues::ROOT {
        at = cluster.queues[at].parent.unwrap_or(queues::ROOT);
        if !cluster.queues[at].exists || line.contains(&at) {
            return vec![queue];
        }
        line.push(at);
    }
    line
}

/// The domain and those above it, up to the root.
pub fn domain_and_above(cluster: &Cluster, domain: DomainId) -> Vec<DomainId> {
    let mut line = vec![domain];
    while let Some(above) = cluster.domains[line[line.len() - 1]].parent {
        line.push(above);
    }
    line
}

/// Where the pods are, or will be, but for those that leave.
pub fn nodes_of(cluster: &Cluster, pods: &[PodId]) -> Vec<NodeId> {
    use PodState::{Allocated, Nominated, Running};
    let node = |&pod: &PodId| match cluster.pods.state[pod] {
        Allocated(node) | Running(node) | Nominated(node) => Some(node),
        _ => None,
    };
    pods.iter().filter_map(node).collect()
}

/// The lowest domain that holds all of these nodes.
pub fn common_domain(cluster: &Cluster, nodes: &[NodeId]) -> Option<DomainId> {
    let line = |&node: &NodeId| domain_and_above(cluster, cluster.domains.home(node));
    let lines: Vec<Vec<DomainId>> = nodes.iter().map(line).collect();
    let first = lines.first()?;
    first.iter().copied().find(|domain| lines.iter().all(|line| line.contains(domain)))
}

/// The highest tier that a hard limit allows; none if it names a tier that no HyperNode has.
pub fn highest_tier(cluster: &Cluster, limit: &TierLimit) -> Option<u32> {
    let tiers = || cluster.hyper_nodes.iter().map(|hyper_node| hyper_node.tier);
    match &limit.highest {
        Highest::Tier(tier) => Some(*tier),
        Highest::Any => tiers().max().or(Some(cluster.domains[domains::ROOT].tier)),
        Highest::Name(name) => {
            let in_tree = cluster.domains.ids().map(|domain| &cluster.domains[domain]);
            let mut in_tree = in_tree.filter(|domain| domain.tier_name.as_ref() == Some(name));
            let called =
                cluster.hyper_nodes.iter().filter(|of| of.tier_name.as_ref() == Some(name));
            in_tree.next().map(|domain| domain.tier).or(called.map(|of| of.tier).max())
        }
    }
}
