//! Why a node may not have a pod, however much room it has: the rules of Kubernetes and of the
//! configured plugins, read from the objects one node at a time.

use muster_api::Time;
use muster_api::core::Taint;
use muster_api::keys::{NODEGROUP_NAME, REVOCABLE_ZONE};
use muster_engine::ids::{NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::nodes::Node;
use muster_engine::model::shapes::Shape;
use muster_engine::{ConfiguredPlugin, Engine};

use super::facts;

pub fn refusal(engine: &Engine, pod: PodId, node: NodeId) -> Option<&'static str> {
    let cluster = engine.cluster();
    let fact = &cluster.nodes.fact[node];
    if !(fact.live && fact.ready) {
        return Some("is not ready");
    }
    let filters = |name: &str| facts::plugin(engine, name, |on| on.filter);
    let shape = &cluster.shapes[cluster.pods.shape[pod]];
    let predicates = filters("predicates").and_then(|plugin| {
        let taint = refuses_by_taint(plugin, shape, fact);
        taint.or_else(|| refuses_by_selectors(plugin, cluster, shape, node))
    });
    let group =
        || filters("nodegroup").and_then(|plugin| outside_group(plugin, cluster, pod, fact));
    let zone =
        || filters("tdm").and_then(|plugin| zone_is_closed(plugin, cluster.now, shape, fact));
    predicates.or_else(group).or_else(zone)
}

fn refuses_by_taint(plugin: &ConfiguredPlugin, shape: &Shape, fact: &Node) -> Option<&'static str> {
    let tolerated = |taint: &Taint| shape.spec.tolerations.iter().any(|t| t.tolerates(taint));
    let cordon = Taint {
        key: "node.kubernetes.io/unschedulable".to_owned(),
        value: String::new(),
        effect: "NoSchedule".to_owned(),
    };
    if fact.cordoned && !tolerated(&cordon) {
        return Some("is cordoned");
    }
    let hard = |taint: &&Taint| ["NoSchedule", "NoExecute"].contains(&&*taint.effect);
    let looks = facts::flag(plugin, "predicate.TaintTolerationEnable", true);
    let mut taints = fact.taints.iter().filter(hard);
    (looks && taints.any(|taint| !tolerated(taint))).then_some("has a taint")
}

fn refuses_by_selectors(
    plugin: &ConfiguredPlugin,
    cluster: &Cluster,
    shape: &Shape,
    node: NodeId,
) -> Option<&'static str> {
    let (labels, name) = (&cluster.nodes.fact[node].labels, &cluster.nodes.name[node]);
    if facts::flag(plugin, "predicate.NodeAffinityEnable", true) {
        for (key, value) in &shape.spec.node_selector {
            if labels.get(key) != Some(value) {
                return Some("has not the selected labels");
            }
        }
        let affinity = shape.spec.affinity.as_ref().and_then(|rules| rules.node_affinity.as_ref());
        let required = affinity.and_then(|affinity| affinity.required.as_ref());
        if required.is_some_and(|required| !required.matches(labels, name)) {
            return Some("is not what the affinity demands");
        }
    }
    if facts::flag(plugin, "predicate.VolumeBindingEnable", true) {
        for claim in &shape.claims {
            let Some(bound) = cluster.claims.get(claim) else {
                return Some("lacks a volume claim");
            };
            let volume = bound.as_ref().and_then(|volume| cluster.volumes.get(volume)?.as_ref());
            if volume.is_some_and(|reachable| !reachable.matches(labels, name)) {
                return Some("does not reach a volume");
            }
        }
    }
    None
}

/// Queues that name groups of nodes use those, others the nodes without a group.
fn outside_group(
    plugin: &ConfiguredPlugin,
    cluster: &Cluster,
    pod: PodId,
    fact: &Node,
) -> Option<&'static str> {
    let queue = cluster.gangs[cluster.pods.gang[pod]?].queue;
    let mut line = facts::queue_and_above(cluster, queue).into_iter();
    let groups = line.find_map(|queue| cluster.queues[queue].node_groups.as_ref());
    let allowed = match (groups, fact.labels.get(NODEGROUP_NAME)) {
        (None, None) => !facts::flag(plugin, "strict", true),
        (None, Some(_)) | (Some(_), None) => false,
        (Some(groups), Some(group)) => {
            let named = groups.required.contains(group) || groups.preferred.contains(group);
            let excluded = groups.anti_required.contains(group);
            groups.anti_preferred.contains(group) || named && !excluded
        }
    };
    (!allowed).then_some("is in a group of nodes that is not for the queue")
}

/// Nodes of a zone take revocable pods while the window of the zone is open.
fn zone_is_closed(
    plugin: &ConfiguredPlugin,
    now: Time,
    shape: &Shape,
    fact: &Node,
) -> Option<&'static str> {
    let zone = fact.labels.get(REVOCABLE_ZONE).filter(|zone| !zone.is_empty())?;
    if !shape.revocable {
        return Some("is for revocable pods only");
    }
    let window = plugin.arguments.get(&format!("tdm.revocable-zone.{zone}"));
    let ahead = plugin.arguments.get("tdm.time-zone").map_or(0, |text| minutes_ahead(text));
    let minute = (now.0.div_euclid(60_000) + ahead).rem_euclid(24 * 60);
    let is_open = window.and_then(|window| window.split_once('-')).is_some_and(|(start, end)| {
        let (start, end) = (minute_of_day(start), minute_of_day(end));
        // Walks from the start to the end, over midnight if need be. Equal ends are a whole day.
        let length = (end - start - 1).rem_euclid(24 * 60) + 1;
        (0..length).any(|passed| (start + passed) % (24 * 60) == minute)
    });
    (!is_open).then_some("is in a zone whose window is closed")
}

fn minutes_ahead(zone: &str) -> i64 {
    match zone.split_at_checked(1) {
        Some(("+", ahead)) => minute_of_day(ahead),
        Some(("-", behind)) => -minute_of_day(behind),
        _ => 0,
    }
}

/// The minute of "HH:MM", which the configuration has checked.
fn minute_of_day(text: &str) -> i64 {
    let (hours, minutes) = text.trim().split_once(':').unwrap_or_default();
    let number = |text: &str| text.parse::<i64>().unwrap_or_default();
    number(hours) * 60 + number(minutes)
}
