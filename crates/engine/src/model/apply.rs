//! Applies events to the model. Each handler may be called in any order and any number of times
//! with the same object.

pub mod budgets;
pub mod gangs;
pub mod nodes;
pub mod pod_groups;
pub mod pods;
pub mod priorities;
pub mod queues;

use muster_api::core::{self, Meta};
use muster_api::keys::{COOLDOWN_TIME, PREEMPTABLE, REVOCABLE_ZONE};
use muster_api::kinds::{Kind, Object};
use muster_api::parse_duration;

use crate::model::Cluster;
use crate::model::cluster;
use crate::model::event::Event;

impl Cluster {
    pub fn apply(&mut self, event: &Event) {
        self.generation += 1;
        self.events += 1;
        match event {
            Event::Object(object) => self.object(object),
            Event::Gone { kind, key, uid } => self.gone(*kind, key, uid),
            Event::Usage(record) => self.recorded_usage(record),
            Event::Bound { key, uid, node } => self.bound(key, uid, node),
            Event::BindFailed { key, uid, at, .. } => self.bind_failed(key, uid, *at),
            Event::NominationRefused { key, uid, at, .. } => self.nomination_refused(key, uid, *at),
            Event::EvictionRefused { key, uid, at, .. } => self.eviction_refused(key, uid, *at),
        }
    }

    fn object(&mut self, object: &Object) {
        match object {
            Object::PriorityClass(class) => self.priority_class(class),
            Object::Namespace(namespace) => self.namespace(&namespace.metadata),
            Object::ResourceQuota(quota) => self.quota(quota),
            Object::PersistentVolume(volume) => self.volume(volume),
            Object::PersistentVolumeClaim(claim) => self.claim(claim),
            Object::PodDisruptionBudget(budget) => self.budget(budget),
            Object::Queue(queue) => self.queue(queue),
            Object::HyperNode(domain) => self.hyper_nodes.put(domain),
            Object::Node(node) => self.node(node),
            Object::PodGroup(group) => self.pod_group(group),
            Object::Pod(pod) => self.pod(pod),
            // Only controllers read it.
            _ => {}
        }
    }

    fn gone(&mut self, kind: Kind, key: &str, uid: &str) {
        match kind {
            Kind::PriorityClass => self.priority_class_gone(key),
            Kind::Namespace => {
                self.namespace(&Meta { name: key.to_owned(), ..Meta::default() });
            }
            Kind::ResourceQuota => self.quota_gone(key),
            Kind::PersistentVolume => self.volume_gone(key),
            Kind::PersistentVolumeClaim => self.claim_gone(key),
            Kind::PodDisruptionBudget => self.budget_gone(key),
            Kind::Queue => self.queue_gone(key),
            Kind::HyperNode => self.hyper_nodes.remove(key),
            Kind::Node => self.node_gone(key),
            Kind::PodGroup => self.pod_group_gone(key, uid),
            Kind::Pod => self.pod_gone(key, uid),
            _ => {}
        }
    }

    fn priority_class(&mut self, class: &core::PriorityClass) {
        let name = self.names.intern(&class.metadata.name);
        let class = cluster::PriorityClass {
            value: class.value,
            global_default: class.global_default,
            never_preempts: class.preemption_policy.as_deref() == Some("Never"),
        };
        if self.priority_classes.insert(name, class.clone()).as_ref() != Some(&class) {
            self.outlook_changes += 1;
            self.reprioritize();
        }
    }

    fn priority_class_gone(&mut self, name: &str) {
        let name = self.names.intern(name);
        if self.priority_classes.remove(&name).is_some() {
            self.outlook_changes += 1;
            self.reprioritize();
        }
    }

    fn volume(&mut self, volume: &core::PersistentVolume) {
        let affinity = volume.spec.node_affinity.as_ref();
        let affinity = affinity.and_then(|affinity| affinity.required.clone());
        let old = self.volumes.insert(volume.metadata.name.clone(), affinity.clone());
        self.storage_changed(old != Some(affinity));
    }

    fn volume_gone(&mut self, name: &str) {
        let old = self.volumes.remove(name);
        self.storage_changed(old.is_some());
    }

    fn claim(&mut self, claim: &core::PersistentVolumeClaim) {
        let volume = Some(&claim.spec.volume_name).filter(|name| !name.is_empty()).cloned();
        let old = self.claims.insert(claim.metadata.key(), volume.clone());
        self.storage_changed(old != Some(volume));
    }

    fn claim_gone(&mut self, key: &str) {
        let old = self.claims.remove(key);
        self.storage_changed(old.is_some());
    }

    /// A volume or claim has come, perhaps unchanged.
    fn storage_changed(&mut self, otherwise: bool) {
        self.version += u64::from(otherwise);
        self.freed += u64::from(otherwise);
    }
}

/// Objects without a version (hand-written ones) are always the newest.
pub fn version_of(meta: &Meta) -> u64 {
    meta.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether a version is older than the one we know.
pub fn stale(version: u64, known: u64) -> bool {
    version != 0 && version < known
}

/// How long a pod is protected from eviction, in milliseconds. A value that cannot be read counts
/// as not set.
pub fn cooldown(meta: &Meta) -> Option<i64> {
    meta.annotation_or_label(COOLDOWN_TIME).and_then(|text| parse_duration(text).ok())
}

/// Whether an object is marked as revocable: its nodes may be taken back.
pub fn revocable(meta: &Meta) -> bool {
    let says = |text: Option<&str>, word: &str| text == Some(word);
    !says_false(meta)
        && (says(meta.annotations.get(REVOCABLE_ZONE).map(String::as_str), "*")
            || says(meta.annotation_or_label(PREEMPTABLE), "true"))
}

pub fn says_false(meta: &Meta) -> bool {
    [meta.annotations.get(PREEMPTABLE), meta.labels.get(PREEMPTABLE)]
        .iter()
        .flatten()
        .any(|text| text.as_str() == "false")
}
