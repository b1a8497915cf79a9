//! What the model knows of a pod or gang, by names.

use std::sync::Arc;

use muster_api::Time;
use muster_api::core::Pod;

use crate::engine::Engine;
use crate::model::apply::{stale, version_of};
use crate::model::gangs::{Gang, Origin};
use crate::model::pods::PodState;
use crate::report::words;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KnownPod<'e> {
    pub uid: &'e Arc<str>,
    pub created: Time,
    /// None if another scheduler is responsible for the pod.
    pub gang: Option<KnownGang<'e>>,
    pub standing: Standing<'e>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KnownGang<'e> {
    /// `namespace/name` of the PodGroup, or of the pod that is a gang of one.
    pub key: &'e Arc<str>,
    pub uid: &'e Arc<str>,
    pub origin: Origin,
}

/// How far a pod is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Standing<'e> {
    /// It waits, or a scheduling gate stands.
    Waiting,
    Nominated {
        node: &'e Arc<str>,
        /// Pods were evicted from the node for it.
        needs_evictions: bool,
    },
    /// Its bind is decided and not confirmed.
    Binding,
    /// Bound, terminating or over.
    Placed,
}

impl Engine {
    /// By `namespace/name`.
    pub fn pod(&self, key: &str) -> Option<KnownPod<'_>> {
        let cluster = &self.cluster;
        let pod = cluster.pods.find(key)?;
        let standing = match cluster.pods.state[pod] {
            PodState::Gated | PodState::Pending => Standing::Waiting,
            PodState::Nominated(node) => {
                let known = cluster.nomination_ledger.get(&pod);
                let needs_evictions = known.is_some_and(|nomination| nomination.needs_evictions);
                Standing::Nominated { node: &cluster.nodes.name[node], needs_evictions }
            }
            PodState::Allocated(_) => Standing::Binding,
            _ => Standing::Placed,
        };
        let fact = &cluster.pods.fact[pod];
        let gang = cluster.pods.gang[pod].map(|gang| KnownGang::of(&cluster.gangs[gang]));
        Some(KnownPod { uid: &fact.uid, created: fact.created, gang, standing })
    }

    /// Whether the engine knows a newer version of a pod's object.
    pub fn knows_newer(&self, pod: &Pod) -> bool {
        let known = self.cluster.pods.find(&pod.metadata.key());
        known.is_some_and(|id| stale(version_of(&pod.metadata), self.cluster.pods.fact[id].version))
    }

    /// The gang of a PodGroup, by `namespace/name`.
    pub fn gang(&self, key: &str) -> Option<KnownGang<'_>> {
        let gang = self.cluster.gangs.find(key)?;
        Some(KnownGang::of(&self.cluster.gangs[gang]))
    }

    /// What the last cycle tried to make room for gangs, in lines, in the order of the tries.
    pub fn searches(&self) -> impl Iterator<Item = (&Arc<str>, Vec<String>)> {
        let (cluster, decisions) = (&self.cluster, &self.decisions);
        decisions.searches.iter().map(move |search| {
            (&cluster.gangs[search.gang].key, words::search(cluster, decisions, search))
        })
    }
}

impl<'e> KnownGang<'e> {
    fn of(gang: &'e Gang) -> KnownGang<'e> {
        KnownGang { key: &gang.key, uid: &gang.uid, origin: gang.origin }
    }
}
