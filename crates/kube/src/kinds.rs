//! The kinds that are watched: where each is found, and how it becomes an object that the engine
//! knows.

use muster_api::core::{
    Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota,
};
use muster_api::manifest::Object;
use muster_api::{HyperNode, PodGroup, Queue};
use muster_engine::Event;
use serde::de::DeserializeOwned;

/// A kind of object that scheduling needs. It is decoded into its small struct straight from the
/// wire, so what is not needed is never kept.
pub trait Watched: Clone + DeserializeOwned + Send + Sync + 'static {
    const KIND: &'static str;
    /// Where all of them are listed, in all namespaces.
    const PATH: &'static str;
    /// Needed to schedule at all: a server that doesn't have the kind is waited for.
    const REQUIRED: bool = true;

    fn id(&self) -> Id;
    fn object(self) -> Object;
    fn gone(id: Id) -> Event;
}

/// Which object, and which version of it.
#[derive(Clone, Debug)]
pub struct Id {
    pub key: String,
    pub uid: String,
    pub version: String,
}

impl From<&Meta> for Id {
    fn from(meta: &Meta) -> Id {
        let version = meta.resource_version.clone().unwrap_or_default();
        Id { key: meta.key(), uid: meta.uid.clone(), version }
    }
}

macro_rules! watched {
    ($($kind:ident $path:literal $(optional $optional:literal)? |$id:ident| $gone:expr;)*) => {$(
        impl Watched for $kind {
            const KIND: &'static str = stringify!($kind);
            const PATH: &'static str = $path;
            $(const REQUIRED: bool = !$optional;)?

            fn id(&self) -> Id {
                Id::from(&self.metadata)
            }

            fn object(self) -> Object {
                Object::from(self)
            }

            fn gone($id: Id) -> Event {
                $gone
            }
        }
    )*};
}

watched! {
    Pod "/api/v1/pods" |id| Event::PodGone { key: id.key, uid: id.uid };
    Node "/api/v1/nodes" |id| Event::NodeGone(id.key);
    PodGroup "/apis/scheduling.volcano.sh/v1beta1/podgroups" |id| Event::PodGroupGone { key: id.key, uid: id.uid };
    Queue "/apis/scheduling.volcano.sh/v1beta1/queues" |id| Event::QueueGone(id.key);
    HyperNode "/apis/topology.volcano.sh/v1alpha1/hypernodes" optional true |id| Event::HyperNodeGone(id.key);
    PriorityClass "/apis/scheduling.k8s.io/v1/priorityclasses" |id| Event::PriorityClassGone(id.key);
    PodDisruptionBudget "/apis/policy/v1/poddisruptionbudgets" |id| Event::PodDisruptionBudgetGone(id.key);
    ResourceQuota "/api/v1/resourcequotas" |id| Event::ResourceQuotaGone(id.key);
    Namespace "/api/v1/namespaces" |id| Event::NamespaceGone(id.key);
    PersistentVolumeClaim "/api/v1/persistentvolumeclaims" |id| Event::PersistentVolumeClaimGone(id.key);
    PersistentVolume "/api/v1/persistentvolumes" |id| Event::PersistentVolumeGone(id.key);
}
