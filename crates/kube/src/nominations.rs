//! Compares what pods should say about their nominations with what they say, and writes only the
//! differences. A pod is compared after a plan or an event that may have made its annotations
//! wrong. So the next leader repairs whatever a crash left behind, and nothing is written twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_api::core::Pod;
use muster_api::keys::{
    EVICTION_OCCURRED, GPU_INDEX, PIPELINED_NODE, PIPELINED_STATUS, RESERVATIONS, VGPU_IDS,
};
use muster_api::kinds::{Kind, Object};
use muster_engine::ids::PodId;
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::{Event, Plan};
use tokio::sync::mpsc::UnboundedSender;

use crate::writes::{NominationWrite, Write};

/// The annotations of a nomination.
const KEYS: [&str; 3] = [EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS];
/// Which card is kept for a pod that shares cards; written with its nomination.
const CARDS: [&str; 2] = [GPU_INDEX, VGPU_IDS];

/// What a pod should say: each key with its value, or `None` if it must be absent. Keys of other
/// writers are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NominationPatch {
    pub annotations: BTreeMap<&'static str, Option<String>>,
    pub nominated: Option<String>,
}

/// What a pod's object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Says {
    annotations: BTreeMap<&'static str, String>,
    nominated: Option<String>,
}

#[derive(Default)]
pub struct Nominations {
    /// By `namespace/name`; most pods have none of our keys and are not here.
    said: HashMap<String, Says>,
    /// What we have sent and not seen yet, with the pod's uid.
    asked: HashMap<String, (String, NominationPatch)>,
    /// Pods whose annotations may be wrong.
    doubtful: BTreeSet<String>,
}

impl NominationPatch {
    /// `cards` are the annotations of a pod that shares cards.
    pub fn nomination(
        node: &str,
        evicted: bool,
        cards: &[(&'static str, String)],
    ) -> NominationPatch {
        let mut annotations: BTreeMap<&'static str, Option<String>> = BTreeMap::from([
            (PIPELINED_STATUS, Some("true".to_owned())),
            (PIPELINED_NODE, Some(node.to_owned())),
            (EVICTION_OCCURRED, evicted.then(|| "true".to_owned())),
        ]);
        annotations.extend(cards.iter().map(|(key, text)| (*key, Some(text.clone()))));
        // Cluster autoscalers ignore pods with a nominated node. They should only do so if
        // evictions will make the room.
        NominationPatch { annotations, nominated: evicted.then(|| node.to_owned()) }
    }

    /// No nomination; `cards` are keys to remove with it.
    pub fn removal(cards: impl Iterator<Item = &'static str>) -> NominationPatch {
        NominationPatch {
            annotations: KEYS.into_iter().chain(cards).map(|key| (key, None)).collect(),
            nominated: None,
        }
    }

    /// Whether it nominates the pod, or reserves room for a gang's pods, rather than ending either.
    pub fn keeps_room(&self) -> bool {
        let says = |key| matches!(self.annotations.get(key), Some(Some(_)));
        says(PIPELINED_STATUS) || says(RESERVATIONS)
    }
}

impl Says {
    fn of(pod: &Pod) -> Says {
        let noted = |key: &'static str| Some((key, pod.metadata.annotations.get(key)?.clone()));
        Says {
            annotations: KEYS.into_iter().chain(CARDS).filter_map(noted).collect(),
            nominated: pod.status.nominated_node_name.clone().filter(|node| !node.is_empty()),
        }
    }

    /// Whether the object says all of it. A nominated node that is not in it may be another
    /// writer's hint and is left alone.
    fn fulfils(&self, patch: &NominationPatch) -> bool {
        let same =
            |(key, text): (&&str, &Option<String>)| self.annotations.get(key) == text.as_ref();
        patch.annotations.iter().all(same)
            && (patch.nominated.is_none() || patch.nominated == self.nominated)
    }

    fn cards(&self) -> impl Iterator<Item = &'static str> {
        CARDS.into_iter().filter(|key| self.annotations.contains_key(key))
    }
}

impl Nominations {
    /// Remembers what an object says.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Object(Object::Pod(pod)) => self.hear_pod(pod),
            Event::Gone { kind: Kind::Pod, key, .. } => {
                self.said.remove(key);
                self.asked.remove(key);
            }
            Event::NominationRefused { key, .. } => {
                self.asked.remove(key);
                self.doubtful.insert(key.clone());
            }
            Event::Bound { key, .. } | Event::BindFailed { key, .. } => {
                self.doubtful.insert(key.clone());
            }
            _ => {}
        }
    }

    fn hear_pod(&mut self, pod: &Pod) {
        let (key, says) = (pod.metadata.key(), Says::of(pod));
        if let Some((uid, patch)) = self.asked.get(&key)
            && (*uid != pod.metadata.uid || says.fulfils(patch))
        {
            self.asked.remove(&key);
        }
        if says == Says::default() {
            if self.said.remove(&key).is_some() {
                self.doubtful.insert(key);
            }
        } else {
            self.doubtful.insert(key.clone());
            self.said.insert(key, says);
        }
    }

    /// Writes what is not written yet.
    pub fn tell(&mut self, cluster: &Cluster, plan: &Plan, writes: &UnboundedSender<Write>) {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        let name = |pod: PodId| cluster.pods.name(pod).to_string();
        let preemptors: BTreeSet<_> =
            plan.evictions.iter().filter_map(|eviction| eviction.preemptor).collect();
        let claim =
            preemptors.into_iter().flat_map(|gang| cluster.gangs[gang].pods.iter().copied());
        let planned = plan.nominations.iter().map(|nomination| nomination.pod);
        let noted = plan.card_notes.iter().map(|note| note.pod);
        doubtful.extend(planned.chain(noted).chain(claim).map(name));
        let withdrawn: BTreeSet<String> = plan.withdrawn.iter().map(|&pod| name(pod)).collect();
        doubtful.extend(withdrawn.iter().cloned());
        for key in doubtful {
            let Some(pod) = cluster.pods.find(&key) else { continue };
            let Some(patch) = self.patch_for(cluster, plan, pod, &key) else { continue };
            let hint = withdrawn.contains(&key)
                && self.said.get(&key).is_some_and(|says| says.nominated.is_some());
            if self.is_told(&key, &patch) && !hint {
                continue;
            }
            let uid = cluster.pods.fact[pod].uid.to_string();
            self.asked.insert(key.clone(), (uid.clone(), patch.clone()));
            let _ = writes.send(Write::NominationWrite(NominationWrite::new(key, uid, patch)));
        }
    }

    /// What a pod of ours should say; nothing for pods of others, nor while the pod is being bound.
    fn patch_for(
        &self,
        cluster: &Cluster,
        plan: &Plan,
        pod: PodId,
        key: &str,
    ) -> Option<NominationPatch> {
        cluster.pods.gang[pod]?;
        match cluster.pods.state[pod] {
            PodState::Nominated(node) => {
                let evicted = cluster
                    .nomination_ledger
                    .get(&pod)
                    .is_some_and(|nomination| nomination.needs_evictions);
                Some(NominationPatch::nomination(
                    &cluster.nodes.name[node],
                    evicted,
                    plan.note_of(pod),
                ))
            }
            PodState::Allocated(_) => None,
            // No card is kept for it any more. The cards of a bound pod are its own.
            PodState::Pending | PodState::Gated => {
                let cards = self.said.get(key).into_iter().flat_map(Says::cards);
                Some(NominationPatch::removal(cards))
            }
            _ => Some(NominationPatch::removal(std::iter::empty())),
        }
    }

    fn is_told(&self, key: &str, patch: &NominationPatch) -> bool {
        match (self.asked.get(key), self.said.get(key)) {
            (Some((_, asked)), _) => asked == patch,
            (None, Some(says)) => says.fulfils(patch),
            (None, None) => !patch.keeps_room(),
        }
    }
}

#[cfg(test)]
mod tests;
