//! The nominations of a gang, and which pods must still leave their nodes.

use muster_api::core::Pod;
use muster_engine::ids::{GangId, NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use serde::Serialize;

/// Finds the object of a pod by its key.
pub type FindPod<'o> = &'o dyn Fn(&str) -> Option<&'o Pod>;

#[derive(Serialize)]
pub struct NominationFacts {
    pub pod: String,
    pub node: String,
    /// When it was made, or first seen by this process.
    pub since: Option<String>,
    /// Whether pods were evicted for it.
    pub evicted: bool,
    pub leaving: Vec<Leaving>,
}

/// A pod that is leaving a node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    pub pod: String,
    /// None for a pod of another scheduler.
    pub gang: Option<String>,
    /// Whether its object says that it is being deleted.
    pub deleted: bool,
    /// When it will be gone at the latest, as its object says, and its grace period.
    pub until: Option<String>,
    pub grace_seconds: Option<i64>,
}

/// The nominations of a gang, in the order of its pods. What only objects tell is there if they are
/// found.
pub fn facts(cluster: &Cluster, gang: GangId, find: FindPod) -> Vec<NominationFacts> {
    let nomination = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Nominated(node) => Some(fact(cluster, pod, node, find)),
        _ => None,
    };
    cluster.gangs[gang].pods.iter().filter_map(nomination).collect()
}

fn fact(cluster: &Cluster, pod: PodId, node: NodeId, find: FindPod) -> NominationFacts {
    let object = |pod: PodId| find(cluster.pods.name(pod));
    let nomination = cluster.nomination_ledger.get(&pod);
    let leaves = |pod: &&PodId| matches!(cluster.pods.state[**pod], PodState::Releasing(_));
    let mut leaving: Vec<Leaving> = cluster.nodes.pods_on[node]
        .iter()
        .filter(leaves)
        .map(|&pod| leaving_fact(cluster, pod, object(pod)))
        .collect();
    leaving.sort_by(|a, b| a.pod.cmp(&b.pod));
    NominationFacts {
        pod: cluster.pods.name(pod).to_string(),
        node: cluster.nodes.name[node].to_string(),
        since: nomination.map(|nomination| nomination.since.to_string()),
        evicted: nomination.is_some_and(|nomination| nomination.needs_evictions),
        leaving,
    }
}

fn leaving_fact(cluster: &Cluster, pod: PodId, object: Option<&Pod>) -> Leaving {
    let gang = cluster.pods.gang[pod];
    Leaving {
        pod: cluster.pods.name(pod).to_string(),
        gang: gang.map(|gang| cluster.gangs[gang].key.to_string()),
        deleted: cluster.pods.fact[pod].leaves,
        until: object.and_then(|pod| pod.metadata.deletion_timestamp).map(|time| time.to_string()),
        grace_seconds: object.map(|pod| pod.spec.grace_seconds()),
    }
}
