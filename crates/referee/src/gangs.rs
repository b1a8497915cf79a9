//! When a gang has what it needs.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, Gang, Pod, Seconds, Topology};

/// What a gang lacks with these pods, if anything.
pub fn lacks(gang: Option<&Gang>, pods: &[&Pod]) -> Option<String> {
    let Some(gang) = gang else {
        return pods.is_empty().then(|| "has 0 of 1 pod".to_owned());
    };
    if pods.len() < gang.min_member {
        return Some(format!("has {} of {} pods", pods.len(), gang.min_member));
    }
    for (role, &least) in enforced_roles(gang) {
        let have = pods.iter().filter(|pod| role_of(pod) == role.as_str()).count();
        if have < least {
            return Some(format!("has {have} of {least} pods of role {role}"));
        }
    }
    let rule = gang.subgroups.as_ref()?;
    let whole = subgroups(pods).values().filter(|pods| pods.len() >= rule.size).count();
    (whole < rule.minimum).then(|| format!("has {whole} of {} subgroups", rule.minimum))
}

pub const ROLE: &str = "volcano.sh/task-spec";

fn role_of(pod: &Pod) -> &str {
    pod.labels.get(ROLE).map_or("", String::as_str)
}

/// The minimums of roles hold only while `minMember` is at least their sum.
fn enforced_roles(gang: &Gang) -> impl Iterator<Item = (&String, &usize)> {
    let hold = gang.min_member >= gang.roles.values().sum();
    gang.roles.iter().filter(move |_| hold)
}

/// The pods of each subgroup, by its label; pods without the label belong to none.
pub fn subgroups<'c>(pods: &[&'c Pod]) -> BTreeMap<&'c str, Vec<&'c Pod>> {
    let mut parts: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for &pod in pods {
        if let Some(part) = pod.labels.get("part") {
            parts.entry(part).or_default().push(pod);
        }
    }
    parts
}

/// When the gang got what it needs: the start of the pod that completed it.
pub fn complete_since(gang: Option<&Gang>, mut starts: Vec<(&Pod, Seconds)>) -> Option<Seconds> {
    starts.sort_by_key(|(_, since)| *since);
    let mut pods = Vec::new();
    starts.into_iter().find_map(|(pod, since)| {
        pods.push(pod);
        lacks(gang, &pods).is_none().then_some(since)
    })
}

/// Whether one domain that a hard rule allows holds all these nodes. Without HyperNodes the cluster is
/// one domain.
pub fn near_enough(cluster: &Cluster, rule: Topology, nodes: &[&str]) -> bool {
    let allowed = |tier: u32| !rule.hard || tier <= rule.highest_tier;
    let holds = |domain| {
        let below = cluster.nodes_below(domain);
        nodes.iter().all(|node| below.contains(node))
    };
    !rule.hard
        || nodes.is_empty()
        || cluster.hypernodes.is_empty()
        || cluster.hypernodes.iter().any(|domain| allowed(domain.tier) && holds(domain))
}
