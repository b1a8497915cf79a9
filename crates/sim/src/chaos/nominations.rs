//! What pods should say of their nominations, and what they say already, as on Kubernetes
//! (`crates/kube/src/nominations.rs`): for pods that a plan or an event has made doubtful, the
//! model is compared with the object, and only a difference is written.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::core::Pod;
use muster_api::keys::{EVICTION_OCCURRED, PIPELINED_NODE};
use muster_api::kinds::{Kind, Object};
use muster_engine::{Engine, Event, Plan, Standing};

/// The node of a nomination, and whether others were asked to leave for it.
pub type Nomination = Option<(String, bool)>;

#[derive(Default)]
pub struct Nominations {
    /// By `namespace/name`; most pods say nothing and are not here.
    said: BTreeMap<String, (String, bool)>,
    /// What was asked for and has not been seen yet, with the pod's uid.
    asked: BTreeMap<String, (String, Nomination)>,
    /// Pods that may have to say something else.
    doubtful: BTreeSet<String>,
}

/// What a pod is to say.
pub struct Difference {
    pub key: String,
    pub uid: String,
    pub nomination: Nomination,
}

impl Nominations {
    /// Takes note of what the scheduler is told.
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
        let (key, annotations) = (pod.metadata.key(), &pod.metadata.annotations);
        let evicted = annotations.contains_key(EVICTION_OCCURRED);
        let says = annotations.get(PIPELINED_NODE).map(|node| (node.clone(), evicted));
        let asked = self.asked.get(&key);
        if asked.is_some_and(|(uid, asked)| *uid != pod.metadata.uid || *asked == says) {
            self.asked.remove(&key);
        }
        let before = self.said.remove(&key);
        if before.is_some() || says.is_some() {
            self.doubtful.insert(key.clone());
        }
        self.said.extend(says.map(|says| (key, says)));
    }

    /// What is not said yet, and has not been asked for.
    pub fn compare(&mut self, engine: &Engine, plan: &Plan) -> Vec<Difference> {
        let mut doubtful = std::mem::take(&mut self.doubtful);
        let planned = plan.nominations.iter().map(|place| &place.pod).chain(&plan.withdrawn);
        doubtful.extend(planned.map(ToString::to_string));
        let mut found = Vec::new();
        for key in doubtful {
            let Some(known) = engine.pod(&key).filter(|known| known.gang.is_some()) else {
                continue;
            };
            let nomination = match known.standing {
                // Its bind will say it.
                Standing::Binding => continue,
                Standing::Nominated { node, needs_evictions } => {
                    Some((node.to_string(), needs_evictions))
                }
                _ => None,
            };
            let told = match self.asked.get(&key) {
                Some((_, asked)) => *asked == nomination,
                None => self.said.get(&key) == nomination.as_ref(),
            };
            if !told {
                let uid = known.uid.to_string();
                self.asked.insert(key.clone(), (uid.clone(), nomination.clone()));
                found.push(Difference { key, uid, nomination });
            }
        }
        found
    }
}
