//! The places that a gang was promised, and who is still in its way there.

use muster_api::core::Pod;
use muster_engine::ids::{GangId, NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_sim::World;
use muster_sim::report::Eviction;
use serde::Serialize;

/// What Kubernetes grants a pod that says nothing of it.
const GRACE_SECONDS: i64 = 30;

/// What the engine doesn't keep: the objects, and who was asked to leave.
#[derive(Copy, Clone)]
pub struct Objects<'o> {
    pub world: &'o World,
    pub evictions: &'o [Eviction],
}

#[derive(Serialize)]
pub struct PromiseFacts {
    pub pod: String,
    pub node: String,
    /// Others were asked to leave for it; nothing if nobody here can know.
    pub evicted: Option<bool>,
    pub leaving: Vec<Leaving>,
}

/// A pod on its way out of a node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    pub pod: String,
    /// Nothing for a pod of another scheduler.
    pub gang: Option<String>,
    /// Its object says that it is being deleted.
    pub deleted: bool,
    /// When it will be gone at the latest, as its object says, and how much time it has to end.
    pub until: Option<String>,
    pub grace_seconds: Option<i64>,
}

/// The promises of a gang, in the order of its pods. What only objects tell is there if there are any.
pub fn facts(cluster: &Cluster, gang: GangId, objects: Option<Objects>) -> Vec<PromiseFacts> {
    let promise = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Nominated(node) => Some(fact(cluster, gang, pod, node, objects)),
        _ => None,
    };
    cluster.gangs[gang].pods.iter().filter_map(promise).collect()
}

fn fact(cluster: &Cluster, gang: GangId, pod: PodId, node: NodeId, objects: Option<Objects>) -> PromiseFacts {
    let (name, place) = (cluster.pods.name(pod), &*cluster.nodes.name[node]);
    let object = |pod: PodId| objects?.world.pods.get(&**cluster.pods.name(pod));
    let evicted = objects.map(|objects| {
        let asked = objects.evictions.iter().any(|eviction| {
            eviction.node == place && eviction.claimant.as_deref() == Some(&*cluster.gangs[gang].key)
        });
        asked || object(pod).is_some_and(says_evicted)
    });
    let leaves = |pod: &&PodId| matches!(cluster.pods.state[**pod], PodState::Releasing(_));
    let mut leaving: Vec<Leaving> = cluster.nodes.seats[node]
        .iter()
        .filter(leaves)
        .map(|&pod| leaving_fact(cluster, pod, object(pod)))
        .collect();
    leaving.sort_by(|a, b| a.pod.cmp(&b.pod));
    PromiseFacts { pod: name.to_string(), node: place.to_owned(), evicted, leaving }
}

/// As the one who promised it wrote on the pod.
fn says_evicted(pod: &Pod) -> bool {
    pod.metadata.annotations.get(EVICTION_OCCURRED).is_some_and(|text| text == "true")
        || pod.status.nominated_node_name.as_ref().is_some_and(|node| !node.is_empty())
}

/// Others were asked to leave for a promised place.
const EVICTION_OCCURRED: &str = "volcano.sh/eviction-occurred";

fn leaving_fact(cluster: &Cluster, pod: PodId, object: Option<&Pod>) -> Leaving {
    let gang = cluster.pods.gang[pod];
    Leaving {
        pod: cluster.pods.name(pod).to_string(),
        gang: gang.map(|gang| cluster.gangs[gang].key.to_string()),
        deleted: cluster.pods.fact[pod].leaves,
        until: object.and_then(|pod| pod.metadata.deletion_timestamp).map(|time| time.to_string()),
        grace_seconds: object.map(|pod| pod.spec.termination_grace_period_seconds.unwrap_or(GRACE_SECONDS)),
    }
}
