//! What all controllers look up: objects that several of them need.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::Queue;
use muster_api::core::PriorityClass;
use muster_api::kinds::{Kind, Object};

#[derive(Debug, Default)]
pub struct Known {
    pub queues: BTreeMap<String, Queue>,
    classes: BTreeMap<String, PriorityClass>,
    pub claims: BTreeSet<String>,
}

impl Known {
    pub fn apply(&mut self, object: &Object) {
        match object {
            Object::Queue(queue) => {
                self.queues.insert(queue.metadata.name.clone(), (**queue).clone());
            }
            Object::PriorityClass(class) => {
                self.classes.insert(class.metadata.name.clone(), (**class).clone());
            }
            Object::PersistentVolumeClaim(claim) => {
                self.claims.insert(claim.metadata.key());
            }
            _ => {}
        }
    }

    pub fn forget(&mut self, kind: Kind, key: &str) {
        match kind {
            Kind::Queue => drop(self.queues.remove(key)),
            Kind::PriorityClass => drop(self.classes.remove(key)),
            Kind::PersistentVolumeClaim => drop(self.claims.remove(key)),
            _ => {}
        }
    }

    /// The value of a priority class; of the default class if none is named.
    pub fn priority(&self, class: &str) -> i32 {
        let class = match class {
            "" => self.classes.values().find(|class| class.global_default),
            name => self.classes.get(name),
        };
        class.map_or(0, |class| class.value)
    }
}
