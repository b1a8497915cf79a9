//! Rules between pods, looked at pair by pair: host ports and required anti-affinity.

use muster_api::core::{Labels, PodTerm, Port};
use muster_engine::Engine;
use muster_engine::ids::{NodeId, PodId, Symbol};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::model::shapes::Shape;

use super::facts;
use crate::violation::{Invariant, Violation};

/// No other pod on the node uses the pod's host ports, and no pod excludes another. A nominated
/// pod comes when those that leave are gone.
pub fn check(engine: &Engine, pod: PodId, node: NodeId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let Some(plugin) = facts::plugin(engine, "predicates", |on| on.filter) else { return Ok(()) };
    let comes_later = facts::is_nominated(cluster, pod);
    let leaves = |pod: PodId| matches!(cluster.pods.state[pod], PodState::Releasing(_));
    let others =
        cluster.pods.live().filter(|&other| other != pod && !(comes_later && leaves(other)));
    for other in others {
        let Some(there) = cluster.pods.state[other].node() else { continue };
        let pair = || (cluster.pods.name(pod), cluster.pods.name(other));
        let occupies = cluster.pods.state[other].occupies();
        let ports = facts::flag(plugin, "predicate.NodePortsEnable", true);
        if ports && there == node && occupies && share_a_port(cluster, pod, other) {
            let (pod, other) = pair();
            return Invariant::PodsAgree.fails(format!("{pod} and {other} use the same host port"));
        }
        if facts::flag(plugin, "predicate.PodAffinityEnable", true)
            && (excludes(cluster, (pod, node), (other, there))
                || excludes(cluster, (other, there), (pod, node)))
        {
            let (pod, other) = pair();
            return Invariant::PodsAgree
                .fails(format!("{pod} goes where anti-affinity keeps it apart from {other}"));
        }
    }
    Ok(())
}

fn shape(cluster: &Cluster, pod: PodId) -> &Shape {
    &cluster.shapes[cluster.pods.shape[pod]]
}

fn share_a_port(cluster: &Cluster, pod: PodId, other: PodId) -> bool {
    let any = |ip: &str| ["", "0.0.0.0", "::"].contains(&ip);
    let clash = |a: &Port, b: &Port| {
        let same_address = a.host_ip == b.host_ip || any(&a.host_ip) || any(&b.host_ip);
        a.host_port == b.host_port && a.protocol == b.protocol && same_address
    };
    let ports = &shape(cluster, other).ports;
    shape(cluster, pod).ports.iter().any(|own| ports.iter().any(|port| clash(own, port)))
}

/// Whether a rule of one pod keeps another out of the part of the cluster that it is in.
fn excludes(cluster: &Cluster, (pod, node): (PodId, NodeId), other: (PodId, NodeId)) -> bool {
    let affinity = shape(cluster, pod).spec.affinity.as_ref();
    let terms = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let label = |node: NodeId, key: &str| cluster.nodes.fact[node].labels.get(key);
    let near = |key: &str| {
        let here = label(node, key);
        here.is_some() && here == label(other.1, key)
    };
    terms.is_some_and(|terms| {
        let mut terms = terms.required.iter();
        terms.any(|term| near(&term.topology_key) && selects(cluster, pod, term, other.0))
    })
}

/// Whether a term of a pod is about another pod.
fn selects(cluster: &Cluster, pod: PodId, term: &PodTerm, other: PodId) -> bool {
    let (own, labels) = (labels(cluster, pod), labels(cluster, other));
    let space = cluster.pods.space[other];
    let named = term.namespaces.iter().any(|name| **name == *cluster.space_name(space));
    let described = term
        .namespace_selector
        .as_ref()
        .is_some_and(|selector| selector.matches(&texts(cluster, &cluster.spaces[space].tags)));
    let silent = term.namespaces.is_empty() && term.namespace_selector.is_none();
    let here = named || described || silent && space == cluster.pods.space[pod];
    let matches = |key: &String, equal: bool| {
        own.get(key).is_none_or(|value| (labels.get(key) == Some(value)) == equal)
    };
    here && term.label_selector.as_ref().is_some_and(|selector| selector.matches(&labels))
        && term.match_label_keys.iter().all(|key| matches(key, true))
        && term.mismatch_label_keys.iter().all(|key| matches(key, false))
}

fn labels(cluster: &Cluster, pod: PodId) -> Labels {
    texts(cluster, &cluster.pods.fact[pod].labels)
}

fn texts(cluster: &Cluster, tags: &[(Symbol, Symbol)]) -> Labels {
    let text = |symbol: Symbol| cluster.names.text(symbol).to_string();
    tags.iter().map(|&(key, value)| (text(key), text(value))).collect()
}
