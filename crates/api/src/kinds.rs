//! The one table of kinds: every kind of object that scheduling needs, with what reading, checking
//! and writing must know of it. All other lists of kinds come from here.

/// Kinds that are part of Kubernetes.
pub mod kubernetes {
    mod budget;
    mod claim;
    mod namespace;
    mod node;
    mod pod;
    mod priority_class;
    mod quota;
    mod volume;

    pub use budget::*;
    pub use claim::*;
    pub use namespace::*;
    pub use node::*;
    pub use pod::*;
    pub use priority_class::*;
    pub use quota::*;
    pub use volume::*;
}

/// Volcano's kinds.
pub mod volcano {
    mod hypernode;
    mod podgroup;
    mod queue;

    pub use hypernode::*;
    pub use podgroup::*;
    pub use queue::*;
}

use serde::Deserialize;
use serde_json::Value;

use crate::core::{
    Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota,
};
use crate::validate::{self, Problem};
use crate::{HyperNode, PodGroup, Queue, Time};
use muster_yaml::{Yaml, YamlError};

/// What there is to know of a kind.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub api_version: &'static str,
    /// As in paths.
    pub plural: &'static str,
    pub scope: Scope,
    decode: fn(&Yaml) -> Result<Object, YamlError>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    Namespaced,
}

/// A type whose objects are of one kind.
pub trait Resource {
    const KIND: &'static Kind;

    fn meta(&self) -> &Meta;
}

macro_rules! kinds {
    ($($kind:ident, $api_version:literal, $plural:literal, $scope:ident, $problems:expr;)*) => {
        /// An object that scheduling needs.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Object {
            $($kind($kind),)*
        }

        /// Every kind that scheduling needs.
        pub static KINDS: &[&Kind] = &[$($kind::KIND),*];

        $(
            impl Resource for $kind {
                const KIND: &'static Kind = &Kind {
                    name: stringify!($kind),
                    api_version: $api_version,
                    plural: $plural,
                    scope: Scope::$scope,
                    decode: |tree| $kind::deserialize(tree).map(Object::$kind),
                };

                fn meta(&self) -> &Meta {
                    &self.metadata
                }
            }

            impl From<$kind> for Object {
                fn from(object: $kind) -> Object {
                    Object::$kind(object)
                }
            }
        )*

        impl Object {
            /// Its row in the table of kinds.
            pub(crate) fn row(&self) -> &'static Kind {
                match self {
                    $(Object::$kind(_) => $kind::KIND,)*
                }
            }

            pub fn meta(&self) -> &Meta {
                match self {
                    $(Object::$kind(object) => &object.metadata,)*
                }
            }

            pub fn meta_mut(&mut self) -> &mut Meta {
                match self {
                    $(Object::$kind(object) => &mut object.metadata,)*
                }
            }

            /// What must be changed before the object can be used.
            pub fn problems(&self) -> Vec<Problem> {
                match self {
                    $(Object::$kind(object) => ($problems)(object),)*
                }
            }

            /// The fields of the object, without its kind.
            pub(crate) fn fields(&self) -> serde_json::Result<Value> {
                match self {
                    $(Object::$kind(object) => serde_json::to_value(object),)*
                }
            }
        }
    };
}

kinds! {
    HyperNode, "topology.volcano.sh/v1alpha1", "hypernodes", Cluster, validate::validate_hyper_node;
    Namespace, "v1", "namespaces", Cluster, validate::validate_meta;
    Node, "v1", "nodes", Cluster, validate::validate_node;
    PersistentVolume, "v1", "persistentvolumes", Cluster, validate::validate_volume;
    PersistentVolumeClaim, "v1", "persistentvolumeclaims", Namespaced, validate::validate_meta;
    Pod, "v1", "pods", Namespaced, validate::validate_pod;
    PodDisruptionBudget, "policy/v1", "poddisruptionbudgets", Namespaced, validate::validate_budget;
    PodGroup, "scheduling.volcano.sh/v1beta1", "podgroups", Namespaced, validate::validate_pod_group;
    PriorityClass, "scheduling.k8s.io/v1", "priorityclasses", Cluster, validate::validate_priority_class;
    Queue, "scheduling.volcano.sh/v1beta1", "queues", Cluster, validate::validate_queue;
    ResourceQuota, "v1", "resourcequotas", Namespaced, validate::validate_quota;
}

impl Kind {
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().copied().find(|kind| kind.name == name)
    }

    /// Where an API server lists all objects of the kind, in all namespaces.
    pub fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}/{}", self.api_version, self.plural)
    }

    /// Decodes the object and gives it a namespace if its kind has one.
    pub(crate) fn decode(&self, tree: &Yaml) -> Result<Object, YamlError> {
        let mut object = (self.decode)(tree)?;
        // As with kubectl, an object of a namespaced kind without a namespace is in "default", and
        // one of another kind is in none, whatever it says.
        let namespace = &mut object.meta_mut().namespace;
        match self.scope {
            Scope::Cluster => namespace.clear(),
            Scope::Namespaced if namespace.is_empty() => "default".clone_into(namespace),
            Scope::Namespaced => {}
        }
        Ok(object)
    }
}

impl Object {
    pub fn kind(&self) -> &'static str {
        self.row().name
    }

    /// `namespace/name`, or the bare name of an object without a namespace.
    pub fn key(&self) -> String {
        self.meta().key()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.get(key).map(String::as_str)
    }

    /// Gives it an age where it has none.
    pub fn date(&mut self, created: Time) {
        self.meta_mut().creation_timestamp.get_or_insert(created);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_decodes_to_itself_even_if_empty() {
        for kind in KINDS {
            let is_namespaced = kind.scope == Scope::Namespaced;
            for (metadata, key) in [
                ("{name: a, namespace: b}", if is_namespaced { "b/a" } else { "a" }),
                ("{name: a}", if is_namespaced { "default/a" } else { "a" }),
            ] {
                let tree = muster_yaml::parse(&format!("metadata: {metadata}\n")).unwrap();
                let object = kind.decode(&tree).unwrap();
                assert_eq!((object.kind(), &*object.key()), (kind.name, key));
            }
        }
    }

    #[test]
    fn paths_are_those_of_the_api_server() {
        assert_eq!(Pod::KIND.path(), "/api/v1/pods");
        assert_eq!(PodGroup::KIND.path(), "/apis/scheduling.volcano.sh/v1beta1/podgroups");
    }
}
