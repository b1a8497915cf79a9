//! Whether a node takes a pod, by Kubernetes' rules, beside the pods that are there.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, Node, Pod, Spread, Term};

/// Pods and the nodes they are on.
pub type Pairs<'c> = [(&'c Pod, &'c str)];

/// Why a node does not take a pod whatever else is there.
pub fn node_refuses(node: &Node, pod: &Pod) -> Option<String> {
    if let Some((key, value)) = pod.node_selector.iter().find(|pair| !has(node, pair)) {
        return Some(format!("{} wants nodes with {key}={value}", pod.key()));
    }
    let taint = node.taint.as_ref().filter(|taint| Some(*taint) != pod.tolerates.as_ref());
    taint.map(|taint| format!("{} does not tolerate the taint own={taint}", pod.key()))
}

fn has(node: &Node, (key, value): &(&String, &String)) -> bool {
    node.labels.get(*key) == Some(*value)
}

fn domain<'c>(cluster: &'c Cluster, node: &str, key: &str) -> Option<&'c str> {
    cluster.node(node)?.labels.get(key).map(String::as_str)
}

/// Why a pod may not be on a node beside these: anti-affinity of one of them.
pub fn anti_affinity(cluster: &Cluster, pod: &Pod, node: &str, others: &Pairs) -> Option<String> {
    let near = |term: &Term, other: &str| {
        let own = domain(cluster, node, &term.key);
        own.is_some() && own == domain(cluster, other, &term.key)
    };
    let clash = others.iter().filter(|(other, _)| other.key() != pod.key()).find(|(other, at)| {
        let refuses = |one: &Pod, another: &Pod| {
            one.namespace == another.namespace
                && one
                    .anti_affinity
                    .iter()
                    .any(|term| another.has_label(&term.label) && near(term, at))
        };
        refuses(pod, other) || refuses(other, pod)
    });
    clash
        .map(|(other, at)| format!("{} and {} (on {at}) refuse each other", pod.key(), other.key()))
}

/// Which pods it wants near it and does not have there. A pod that wants pods like itself may be the
/// first.
pub fn affinity(cluster: &Cluster, pod: &Pod, node: &str, others: &Pairs) -> Option<String> {
    let others = || others.iter().filter(|(other, _)| other.key() != pod.key());
    let lonely = pod.affinity.iter().find(|term| {
        let matches =
            |other: &Pod| other.namespace == pod.namespace && other.has_label(&term.label);
        let own = domain(cluster, node, &term.key);
        let near = |at: &str| own.is_some() && own == domain(cluster, at, &term.key);
        let met = others().any(|(other, at)| matches(other) && near(at));
        let first = matches(pod) && !others().any(|(other, _)| matches(other));
        !(met || first && own.is_some())
    });
    lonely.map(|term| format!("no pod with {}={} is near it", term.label.0, term.label.1))
}

/// By how much a pod on a node breaks its spread constraint beside these.
pub fn spread(cluster: &Cluster, pod: &Pod, node: &str, others: &Pairs) -> Option<String> {
    let rule = pod.spread.as_ref()?;
    let mut counts = eligible_domains(cluster, pod, rule);
    let own = domain(cluster, node, &rule.key)?;
    for (other, at) in others.iter().filter(|(other, _)| other.key() != pod.key()) {
        let counted = other.namespace == pod.namespace && other.has_label(&rule.label);
        let eligible = cluster.node(at).is_some_and(|node| selects(node, pod));
        if counted
            && eligible
            && let Some(count) = domain(cluster, at, &rule.key)
        {
            counts.entry(count).and_modify(|count| *count += 1);
        }
    }
    let least = counts.values().min().copied().unwrap_or(0);
    let with_it = counts.get(own).copied().unwrap_or(0) + i64::from(pod.has_label(&rule.label));
    (with_it - least > rule.max_skew).then(|| {
        format!("{}: {own} would have {with_it} and another {} {least}", pod.key(), rule.key)
    })
}

fn selects(node: &Node, pod: &Pod) -> bool {
    pod.node_selector.iter().all(|pair| has(node, &pair))
}

/// The domains that count for a spread constraint, all at zero.
fn eligible_domains<'c>(cluster: &'c Cluster, pod: &Pod, rule: &Spread) -> BTreeMap<&'c str, i64> {
    let nodes = cluster.nodes.iter().filter(|node| selects(node, pod));
    nodes.filter_map(|node| Some((node.labels.get(&rule.key)?.as_str(), 0))).collect()
}
