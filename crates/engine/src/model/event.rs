//! What can happen to the cluster, as the engine is told. Objects come whole; the same one may come
//! twice, an older version after a newer one, and a pod before its node, queue or PodGroup.

use muster_api::core::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota,
};
use muster_api::manifest::Object;
use muster_api::{HyperNode, PodGroup, Queue, Time};
use serde::{Deserialize, Serialize};

use crate::model::usage::record::Record;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    Node(Box<Node>),
    NodeGone(String),
    Pod(Box<Pod>),
    /// Keys are `namespace/name`; a uid that isn't the current one's belongs to the past and
    /// changes nothing.
    PodGone {
        key: String,
        uid: String,
    },
    PodGroup(Box<PodGroup>),
    PodGroupGone {
        key: String,
        uid: String,
    },
    Queue(Box<Queue>),
    QueueGone(String),
    HyperNode(Box<HyperNode>),
    HyperNodeGone(String),
    PriorityClass(PriorityClass),
    PriorityClassGone(String),
    Namespace(Namespace),
    NamespaceGone(String),
    ResourceQuota(ResourceQuota),
    ResourceQuotaGone(String),
    PersistentVolume(PersistentVolume),
    PersistentVolumeGone(String),
    PersistentVolumeClaim(PersistentVolumeClaim),
    PersistentVolumeClaimGone(String),
    PodDisruptionBudget(Box<PodDisruptionBudget>),
    PodDisruptionBudgetGone(String),
    /// What queues used before this process began to count.
    Usage(Box<Record>),
    /// The cluster took a bind of ours.
    Bound {
        key: String,
        uid: String,
        node: String,
    },
    /// The cluster refused to write down a promise of ours.
    NominationRefused {
        key: String,
        uid: String,
        cause: String,
        at: Time,
    },
    /// The cluster refused an eviction of ours, for now.
    EvictionRefused {
        key: String,
        uid: String,
        cause: String,
        at: Time,
    },
    /// The cluster refused a bind of ours, or we know that it never arrived.
    BindFailed {
        key: String,
        uid: String,
        cause: String,
        at: Time,
    },
}

impl From<Object> for Event {
    fn from(object: Object) -> Event {
        match object {
            Object::Node(node) => Event::Node(node),
            Object::Pod(pod) => Event::Pod(pod),
            Object::PodGroup(group) => Event::PodGroup(group),
            Object::Queue(queue) => Event::Queue(queue),
            Object::HyperNode(domain) => Event::HyperNode(domain),
            Object::PriorityClass(class) => Event::PriorityClass(*class),
            Object::PodDisruptionBudget(budget) => Event::PodDisruptionBudget(budget),
            Object::Namespace(namespace) => Event::Namespace(*namespace),
            Object::ResourceQuota(quota) => Event::ResourceQuota(*quota),
            Object::PersistentVolume(volume) => Event::PersistentVolume(*volume),
            Object::PersistentVolumeClaim(claim) => Event::PersistentVolumeClaim(*claim),
            other => unreachable!("no event for {}", other.kind()),
        }
    }
}
