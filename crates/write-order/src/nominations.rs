//! What pods should say of their nominations, and what they say already. Only differences are
//! written: for pods that a plan or an event has made doubtful, what the engine knows is compared
//! with what the object says. So the next leader cleans up whatever a crash has left behind, and
//! nothing is written twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_api::core::Pod;
use muster_api::keys::{EVICTION_OCCURRED, GPU_INDEX, PIPELINED_NODE, PIPELINED_STATUS, VGPU_IDS};
use muster_api::kinds::{Kind, Object};
use muster_engine::plan::Placement;
use muster_engine::{Engine, Event, KnownPod, Plan, Standing};

use crate::write::{AnnotationWrite, Desired, NOMINATION};

/// Which card is kept for a pod that shares cards; written with its nomination.
const CARDS: [&str; 2] = [GPU_INDEX, VGPU_IDS];

/// What a bind writes on a nominated pod: the API server sets the annotations of a Binding together
/// with the node, and can remove none.
const ENDED: [(&str, &str); 3] =
    [(EVICTION_OCCURRED, "false"), (PIPELINED_NODE, ""), (PIPELINED_STATUS, "false")];

/// What a pod's object says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Observed {
    annotations: BTreeMap<&'static str, String>,
    nominated_node: Option<String>,
}

#[derive(Default)]
pub struct Nominations {
    /// By `namespace/name`; most pods say nothing and are not here.
    said: HashMap<String, Observed>,
    /// What was asked for and has not been seen yet, with the pod's uid.
    asked: HashMap<String, (String, Desired)>,
    /// Pods whose bind ends their nomination, with their uid, until they are seen bound.
    ending: HashMap<String, String>,
    /// Pods that may have to say something else.
    doubtful: BTreeSet<String>,
}

impl Observed {
    fn of(pod: &Pod) -> Observed {
        let noted = |key: &'static str| Some((key, pod.metadata.annotations.get(key)?.clone()));
        let ended = noted(PIPELINED_STATUS).is_some_and(|(_, status)| status == "false");
        let nomination = NOMINATION.into_iter().filter(|_| !ended);
        Observed {
            annotations: nomination.chain(CARDS).filter_map(noted).collect(),
            nominated_node: pod.status.nominated_node_name.clone().filter(|node| !node.is_empty()),
        }
    }

    /// It says all that is desired. A nominated node where none is desired may be the hint of another
    /// program and is left alone.
    fn fulfils(&self, desired: &Desired) -> bool {
        let same = |(key, text): (&Cow<str>, &Option<String>)| {
            self.annotations.get(&**key) == text.as_ref()
        };
        desired.annotations.iter().all(same)
            && (desired.nominated_node.is_none() || desired.nominated_node == self.nominated_node)
    }

    fn cards(&self) -> impl Iterator<Item = &'static str> {
        CARDS.into_iter().filter(|key| self.annotations.contains_key(key))
    }
}

impl Nominations {
    /// Takes note of what the cluster says, before the engine does.
    pub fn hear(&mut self, engine: &Engine, event: &Event) {
        match event {
            // What an old version says would hide what the object says now.
            Event::Object(Object::Pod(pod)) if engine.knows_newer(pod) => {}
            Event::Object(Object::Pod(pod)) => self.hear_pod(pod),
            Event::Gone { kind: Kind::Pod, key, .. } => {
                self.said.remove(key);
                self.asked.remove(key);
                self.ending.remove(key);
            }
            Event::NominationRefused { key, .. } => {
                self.asked.remove(key);
                self.doubtful.insert(key.clone());
            }
            Event::Bound { key, .. } | Event::BindFailed { key, .. } => {
                // A nomination that was still to be written gave way to the bind.
                self.asked.remove(key);
                if matches!(event, Event::BindFailed { .. }) {
                    self.ending.remove(key);
                }
                self.doubtful.insert(key.clone());
            }
            _ => {}
        }
    }

    /// Whether a pod says that it is nominated, or was asked to.
    pub fn nominates(&self, pod: &str) -> bool {
        self.asked.get(pod).is_some_and(|(_, desired)| desired.keeps_room())
            || self
                .said
                .get(pod)
                .is_some_and(|says| says.annotations.contains_key(PIPELINED_STATUS))
    }

    /// Annotations for the bind of a pod, which end its nomination without a write of their own.
    pub fn end_with_bind(
        &mut self,
        place: &Placement,
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let nominated = self.nominates(&place.pod);
        if nominated {
            self.ending.insert(place.pod.to_string(), place.uid.to_string());
        }
        let ended = ENDED.into_iter().filter(move |_| nominated);
        ended.map(|(key, text)| (key, text.to_owned()))
    }

    fn hear_pod(&mut self, pod: &Pod) {
        let (key, says) = (pod.metadata.key(), Observed::of(pod));
        // Now it is seen what came of its bind.
        if pod.spec.node_name.is_some()
            || self.ending.get(&key).is_some_and(|uid| *uid != pod.metadata.uid)
        {
            self.ending.remove(&key);
        }
        if let Some((uid, desired)) = self.asked.get(&key)
            && (*uid != pod.metadata.uid || says.fulfils(desired))
        {
            self.asked.remove(&key);
        }
        if says == Observed::default() {
            if self.said.remove(&key).is_some() {
                self.doubtful.insert(key);
            }
        } else {
            self.doubtful.insert(key.clone());
            self.said.insert(key, says);
        }
    }

    /// What is to be written: what objects don't say yet, and has not been asked for.
    pub fn compare(&mut self, engine: &Engine, plan: &Plan) -> Vec<AnnotationWrite> {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        let planned = plan.nominations.iter().map(|place| &place.pod);
        let noted = plan.card_notes.iter().map(|note| &note.pod);
        // Whether others were evicted for a nomination may have changed.
        let preempting = plan.eviction_groups.iter().flat_map(|group| &group.nominated);
        let changed = planned.chain(noted).chain(preempting).chain(&plan.withdrawn);
        doubtful.extend(changed.map(ToString::to_string));
        let withdrawn: BTreeSet<&str> = plan.withdrawn.iter().map(|pod| &**pod).collect();
        let mut found = Vec::new();
        for key in doubtful {
            let Some(known) = engine.pod(&key) else { continue };
            let Some(desired) = self.desired(known, plan, &key) else { continue };
            let hint = withdrawn.contains(&*key)
                && self.said.get(&key).is_some_and(|says| says.nominated_node.is_some());
            if self.is_told(&key, &desired) && !hint {
                continue;
            }
            found.push(AnnotationWrite::pod(&key, known.uid, desired.clone()));
            self.asked.insert(key, (known.uid.to_string(), desired));
        }
        found
    }

    /// What a pod should say; nothing if another scheduler is responsible, nor while it is bound
    /// or its bind says it.
    fn desired(&self, known: KnownPod, plan: &Plan, key: &str) -> Option<Desired> {
        known.gang?;
        match known.standing {
            Standing::Nominated { node, needs_evictions } => {
                Some(Desired::nomination(node, needs_evictions, plan.card_note(key)))
            }
            Standing::Binding => None,
            // No card is kept for it any more; a bound pod has its card.
            Standing::Waiting => {
                let cards = self.said.get(key).into_iter().flat_map(Observed::cards);
                Some(Desired::no_nomination(cards))
            }
            Standing::Placed if self.ending.contains_key(key) => None,
            Standing::Placed => Some(Desired::no_nomination(std::iter::empty())),
        }
    }

    fn is_told(&self, key: &str, desired: &Desired) -> bool {
        match (self.asked.get(key), self.said.get(key)) {
            (Some((_, asked)), _) => asked == desired,
            (None, Some(says)) => says.fulfils(desired),
            (None, None) => !desired.keeps_room(),
        }
    }
}

#[cfg(test)]
mod tests;
