//! What can happen to the cluster, as the engine is told. Objects come whole; the same one may come twice, an
//! older version after a newer one, and a pod before its node, queue or PodGroup.

use muster_api::core::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PriorityClass, ResourceQuota,
};
use muster_api::{PodGroup, Queue, Time};

#[derive(Clone, Debug)]
pub enum Event {
    Node(Box<Node>),
    NodeGone(String),
    Pod(Box<Pod>),
    /// Keys are `namespace/name`; a uid that isn't the current one's belongs to the past and changes nothing.
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
    /// The cluster refused a bind of ours, or we know that it never arrived.
    BindFailed {
        key: String,
        uid: String,
        cause: String,
        at: Time,
    },
}
