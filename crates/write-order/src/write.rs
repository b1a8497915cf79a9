//! A write on a pod or PodGroup: the nomination of a pod or the end of one, and what else the
//! scheduler remembers on objects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use muster_api::keys::{EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS, RESERVATIONS};
use muster_engine::plan::GroupNote;

/// The annotations of a nomination.
pub(crate) const NOMINATION: [&str; 3] = [EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS];

/// An object, by `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ObjectName {
    Pod(String),
    PodGroup(String),
}

impl ObjectName {
    pub fn key(&self) -> &str {
        match self {
            ObjectName::Pod(key) | ObjectName::PodGroup(key) => key,
        }
    }
}

/// What an object should say: each key with its value, or without one if it must not be there. It
/// may have other keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    pub annotations: BTreeMap<Cow<'static, str>, Option<String>>,
    /// A pod's `nominatedNodeName`.
    pub nominated_node: Option<String>,
}

#[derive(Clone, Debug)]
pub struct AnnotationWrite {
    pub object: ObjectName,
    pub uid: String,
    pub desired: Desired,
    /// How often it was tried.
    pub attempts: u32,
}

impl Desired {
    /// `cards` are annotations of a pod that shares cards.
    pub fn nomination(node: &str, evicted: bool, cards: &[(&'static str, String)]) -> Desired {
        let cards = cards.iter().map(|(key, text)| (*key, Some(text.clone())));
        let ours = [
            (PIPELINED_STATUS, Some("true".to_owned())),
            (PIPELINED_NODE, Some(node.to_owned())),
            (EVICTION_OCCURRED, evicted.then(|| "true".to_owned())),
        ];
        let annotations = ours.into_iter().chain(cards);
        let annotations = annotations.map(|(key, text)| (Cow::Borrowed(key), text)).collect();
        // Cluster autoscalers ignore pods with a nominated node. Without evictions they should not.
        Desired { annotations, nominated_node: evicted.then(|| node.to_owned()) }
    }

    /// No nomination; `cards` are keys that are removed with it.
    pub fn no_nomination(cards: impl Iterator<Item = &'static str>) -> Desired {
        let keys = NOMINATION.into_iter().chain(cards);
        Desired {
            annotations: keys.map(|key| (Cow::Borrowed(key), None)).collect(),
            nominated_node: None,
        }
    }

    /// Writes it among the annotations of an object.
    pub fn put_on(&self, annotations: &mut BTreeMap<String, String>) {
        for (key, text) in &self.annotations {
            match text {
                Some(text) => drop(annotations.insert(key.to_string(), text.clone())),
                None => drop(annotations.remove(&**key)),
            }
        }
    }

    /// Nominates a pod or reserves room for a gang, rather than ending that.
    pub fn keeps_room(&self) -> bool {
        let says = |key| matches!(self.annotations.get(key), Some(Some(_)));
        says(PIPELINED_STATUS) || says(RESERVATIONS)
    }
}

impl AnnotationWrite {
    pub fn pod(pod: &str, uid: &str, desired: Desired) -> AnnotationWrite {
        let object = ObjectName::Pod(pod.to_owned());
        AnnotationWrite { object, uid: uid.to_owned(), desired, attempts: 0 }
    }

    pub fn group(note: &GroupNote) -> AnnotationWrite {
        let annotations = note.annotations.iter().cloned().collect();
        AnnotationWrite {
            object: ObjectName::PodGroup(note.gang.to_string()),
            uid: note.uid.to_string(),
            desired: Desired { annotations, nominated_node: None },
            attempts: 0,
        }
    }

    /// Replaces an older write on the same object. What is written on a PodGroup is only what
    /// changed, so that it takes over the rest.
    pub(crate) fn replace(&mut self, older: AnnotationWrite) {
        if matches!(self.object, ObjectName::PodGroup(_)) && self.uid == older.uid {
            for (key, text) in older.desired.annotations {
                self.desired.annotations.entry(key).or_insert(text);
            }
        }
    }
}
