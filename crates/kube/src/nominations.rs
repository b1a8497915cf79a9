//! What pods should say of the places that they were promised, and what they say already. Only
//! differences are written: for pods that a plan or an event has made doubtful, what the model
//! knows is compared with what the object says. So whatever a crash has left behind is put right by
//! the next leader, and nothing is written twice.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use muster_api::core::Pod;
use muster_api::keys::{
    EVICTION_OCCURRED, GPU_INDEX, PIPELINED_NODE, PIPELINED_STATUS, RESERVATIONS, VGPU_IDS,
};
use muster_api::kinds::{Kind, Object};
use muster_engine::{Engine, Event, KnownPod, Plan, Standing};
use tokio::sync::mpsc::UnboundedSender;

use crate::writes::{NominationWrite, Write};

/// The annotations of a promise.
const KEYS: [&str; 3] = [EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS];
/// Which card is kept for a pod that shares cards; written with its promise.
const CARDS: [&str; 2] = [GPU_INDEX, VGPU_IDS];

/// What a pod should say: each key with its value, or without one if it must not be there. Keys of
/// others are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub annotations: BTreeMap<Cow<'static, str>, Option<String>>,
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
    /// By `namespace/name`; most pods say nothing and are not here.
    said: HashMap<String, Says>,
    /// What we have asked for and not seen yet, with the pod's uid.
    asked: HashMap<String, (String, Wish)>,
    /// Pods that may have to say something else.
    doubtful: BTreeSet<String>,
}

impl Wish {
    /// `cards` are what is to be written on a pod that shares cards.
    pub fn nomination(node: &str, evicted: bool, cards: &[(&'static str, String)]) -> Wish {
        let cards = cards.iter().map(|(key, text)| (*key, Some(text.clone())));
        let ours = [
            (PIPELINED_STATUS, Some("true".to_owned())),
            (PIPELINED_NODE, Some(node.to_owned())),
            (EVICTION_OCCURRED, evicted.then(|| "true".to_owned())),
        ];
        let annotations = ours.into_iter().chain(cards);
        let annotations = annotations.map(|(key, text)| (Cow::Borrowed(key), text)).collect();
        // Cluster autoscalers leave pods with a nominated node alone; where nobody leaves they
        // should not.
        Wish { annotations, nominated: evicted.then(|| node.to_owned()) }
    }

    /// No promise; `cards` are keys that go with it.
    pub fn nothing(cards: impl Iterator<Item = &'static str>) -> Wish {
        Wish {
            annotations: KEYS.into_iter().chain(cards).map(|key| (key.into(), None)).collect(),
            nominated: None,
        }
    }

    /// Promises something, or says what is kept for a gang's pods, rather than taking it back.
    pub fn nominations(&self) -> bool {
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

    /// All that is wished for is so. A nominated node where none is wished for may be another's
    /// hint and is left alone.
    fn fulfils(&self, wish: &Wish) -> bool {
        let same = |(key, text): (&Cow<str>, &Option<String>)| {
            self.annotations.get(&**key) == text.as_ref()
        };
        wish.annotations.iter().all(same)
            && (wish.nominated.is_none() || wish.nominated == self.nominated)
    }

    fn cards(&self) -> impl Iterator<Item = &'static str> {
        CARDS.into_iter().filter(|key| self.annotations.contains_key(key))
    }
}

impl Nominations {
    /// Takes note of what the cluster says.
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
        if let Some((uid, wish)) = self.asked.get(&key)
            && (*uid != pod.metadata.uid || says.fulfils(wish))
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

    /// Writes what is not said yet.
    pub fn tell(&mut self, engine: &Engine, plan: &Plan, writes: &UnboundedSender<Write>) {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        let planned = plan.nominations.iter().map(|place| &place.pod);
        let noted = plan.card_notes.iter().map(|note| &note.pod);
        // Whether others were evicted for a nomination may have changed.
        let preempting = plan.eviction_groups.iter().flat_map(|group| &group.nominated);
        let changed = planned.chain(noted).chain(preempting).chain(&plan.withdrawn);
        doubtful.extend(changed.map(ToString::to_string));
        let withdrawn: BTreeSet<&str> = plan.withdrawn.iter().map(|pod| &**pod).collect();
        for key in doubtful {
            let Some(known) = engine.pod(&key) else { continue };
            let Some(wish) = self.wish(known, plan, &key) else { continue };
            let hint = withdrawn.contains(&*key)
                && self.said.get(&key).is_some_and(|says| says.nominated.is_some());
            if self.is_told(&key, &wish) && !hint {
                continue;
            }
            let uid = known.uid.to_string();
            self.asked.insert(key.clone(), (uid.clone(), wish.clone()));
            let _ = writes.send(Write::NominationWrite(NominationWrite::new(key, uid, wish)));
        }
    }

    /// What a pod of ours should say; nothing of others' pods, nor while it is being bound.
    fn wish(&self, known: KnownPod, plan: &Plan, key: &str) -> Option<Wish> {
        known.gang?;
        match known.standing {
            Standing::Nominated { node, needs_evictions } => {
                Some(Wish::nomination(node, needs_evictions, plan.card_note(key)))
            }
            Standing::Binding => None,
            // A card that was kept for it is not any more; a bound pod's card is its own.
            Standing::Waiting => {
                let cards = self.said.get(key).into_iter().flat_map(Says::cards);
                Some(Wish::nothing(cards))
            }
            Standing::Placed => Some(Wish::nothing(std::iter::empty())),
        }
    }

    fn is_told(&self, key: &str, wish: &Wish) -> bool {
        match (self.asked.get(key), self.said.get(key)) {
            (Some((_, asked)), _) => asked == wish,
            (None, Some(says)) => says.fulfils(wish),
            (None, None) => !wish.nominations(),
        }
    }
}

#[cfg(test)]
mod tests;
