//! The kinds of objects that scheduling needs, each with its apiVersion, decoder and validation.

use k8s_openapi::apimachinery::pkg::apis::meta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::core::{
    Meta, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodDisruptionBudget,
    PriorityClass, ResourceQuota,
};
use crate::validate::{self, Problem};
use crate::{HyperNode, PodGroup, Queue, Time};
use muster_yaml::{Yaml, YamlError};

/// An object that scheduling needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Node(Node),
    Pod(Pod),
    PodGroup(PodGroup),
    Queue(Queue),
    HyperNode(HyperNode),
    PriorityClass(PriorityClass),
    PodDisruptionBudget(PodDisruptionBudget),
    Namespace(Namespace),
    ResourceQuota(ResourceQuota),
    PersistentVolume(PersistentVolume),
    PersistentVolumeClaim(PersistentVolumeClaim),
}

/// What the reader must know about a kind.
pub(super) struct Kind {
    pub name: &'static str,
    pub api_version: &'static str,
    namespaced: bool,
    decode: fn(&Yaml) -> Result<Object, YamlError>,
}

static KINDS: [Kind; 11] = [
    Kind {
        name: "HyperNode",
        api_version: "topology.volcano.sh/v1alpha1",
        namespaced: false,
        decode: |tree| {
            let Custom { metadata, spec, status } = Custom::deserialize(tree)?;
            Ok(Object::HyperNode(HyperNode { metadata, spec, status }))
        },
    },
    Kind {
        name: "Namespace",
        api_version: "v1",
        namespaced: false,
        decode: |tree| Namespace::deserialize(tree).map(Object::Namespace),
    },
    Kind {
        name: "Node",
        api_version: "v1",
        namespaced: false,
        decode: |tree| Node::deserialize(tree).map(Object::Node),
    },
    Kind {
        name: "PersistentVolume",
        api_version: "v1",
        namespaced: false,
        decode: |tree| PersistentVolume::deserialize(tree).map(Object::PersistentVolume),
    },
    Kind {
        name: "PersistentVolumeClaim",
        api_version: "v1",
        namespaced: true,
        decode: |tree| PersistentVolumeClaim::deserialize(tree).map(Object::PersistentVolumeClaim),
    },
    Kind {
        name: "Pod",
        api_version: "v1",
        namespaced: true,
        decode: |tree| Pod::deserialize(tree).map(Object::Pod),
    },
    Kind {
        name: "PodDisruptionBudget",
        api_version: "policy/v1",
        namespaced: true,
        decode: |tree| PodDisruptionBudget::deserialize(tree).map(Object::PodDisruptionBudget),
    },
    Kind {
        name: "PodGroup",
        api_version: "scheduling.volcano.sh/v1beta1",
        namespaced: true,
        decode: |tree| {
            let Custom { metadata, spec, status } = Custom::deserialize(tree)?;
            Ok(Object::PodGroup(PodGroup { metadata, spec, status }))
        },
    },
    Kind {
        name: "PriorityClass",
        api_version: "scheduling.k8s.io/v1",
        namespaced: false,
        decode: |tree| PriorityClass::deserialize(tree).map(Object::PriorityClass),
    },
    Kind {
        name: "Queue",
        api_version: "scheduling.volcano.sh/v1beta1",
        namespaced: false,
        decode: |tree| {
            let Custom { metadata, spec, status } = Custom::deserialize(tree)?;
            Ok(Object::Queue(Queue { metadata, spec, status }))
        },
    },
    Kind {
        name: "ResourceQuota",
        api_version: "v1",
        namespaced: true,
        decode: |tree| ResourceQuota::deserialize(tree).map(Object::ResourceQuota),
    },
];

/// A custom resource. Unlike the derived types it lets the spec be left out, as API servers do.
#[derive(Deserialize)]
#[serde(default, bound = "S: Default + Deserialize<'de>, T: Deserialize<'de>")]
struct Custom<S, T> {
    metadata: ObjectMeta,
    spec: S,
    status: Option<T>,
}

impl<S: Default, T> Default for Custom<S, T> {
    fn default() -> Custom<S, T> {
        Custom { metadata: ObjectMeta::default(), spec: S::default(), status: None }
    }
}

impl Kind {
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Decodes the object and gives it a namespace if its kind has one.
    pub fn decode(&self, tree: &Yaml) -> Result<Object, YamlError> {
        let mut object = (self.decode)(tree)?;
        object.set_namespace(self.namespaced);
        Ok(object)
    }
}

/// The metadata of either form.
pub(super) enum AnyMeta<'a> {
    Core(&'a mut Meta),
    Custom(&'a mut ObjectMeta),
}

impl Object {
    pub fn kind(&self) -> &'static str {
        match self {
            Object::Node(_) => "Node",
            Object::Pod(_) => "Pod",
            Object::PodGroup(_) => "PodGroup",
            Object::Queue(_) => "Queue",
            Object::HyperNode(_) => "HyperNode",
            Object::PriorityClass(_) => "PriorityClass",
            Object::PodDisruptionBudget(_) => "PodDisruptionBudget",
            Object::Namespace(_) => "Namespace",
            Object::ResourceQuota(_) => "ResourceQuota",
            Object::PersistentVolume(_) => "PersistentVolume",
            Object::PersistentVolumeClaim(_) => "PersistentVolumeClaim",
        }
    }

    /// `namespace/name`, or the bare name of an object without a namespace.
    pub fn key(&self) -> String {
        match self {
            Object::Node(node) => node.metadata.key(),
            Object::Pod(pod) => pod.metadata.key(),
            Object::PodGroup(group) => Meta::from(&group.metadata).key(),
            Object::Queue(queue) => Meta::from(&queue.metadata).key(),
            Object::HyperNode(hyper_node) => Meta::from(&hyper_node.metadata).key(),
            Object::PriorityClass(class) => class.metadata.key(),
            Object::PodDisruptionBudget(budget) => budget.metadata.key(),
            Object::Namespace(namespace) => namespace.metadata.key(),
            Object::ResourceQuota(quota) => quota.metadata.key(),
            Object::PersistentVolume(volume) => volume.metadata.key(),
            Object::PersistentVolumeClaim(claim) => claim.metadata.key(),
        }
    }

    /// What must be changed before the object can be used.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Object::Node(node) => validate::validate_node(node),
            Object::Pod(pod) => validate::validate_pod(pod),
            Object::PodGroup(group) => validate::validate_pod_group(group),
            Object::Queue(queue) => validate::validate_queue(queue),
            Object::HyperNode(hyper_node) => validate::validate_hyper_node(hyper_node),
            Object::PriorityClass(class) => validate::validate_priority_class(class),
            Object::PodDisruptionBudget(budget) => validate::validate_budget(budget),
            Object::Namespace(namespace) => validate::validate_meta(&namespace.metadata),
            Object::ResourceQuota(quota) => validate::validate_quota(quota),
            Object::PersistentVolume(volume) => validate::validate_volume(volume),
            Object::PersistentVolumeClaim(claim) => validate::validate_meta(&claim.metadata),
        }
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let annotations = match self {
            Object::Node(node) => &node.metadata.annotations,
            Object::Pod(pod) => &pod.metadata.annotations,
            Object::PodGroup(group) => group.metadata.annotations.as_ref()?,
            Object::Queue(queue) => queue.metadata.annotations.as_ref()?,
            Object::HyperNode(hyper_node) => hyper_node.metadata.annotations.as_ref()?,
            Object::PriorityClass(class) => &class.metadata.annotations,
            Object::PodDisruptionBudget(budget) => &budget.metadata.annotations,
            Object::Namespace(namespace) => &namespace.metadata.annotations,
            Object::ResourceQuota(quota) => &quota.metadata.annotations,
            Object::PersistentVolume(volume) => &volume.metadata.annotations,
            Object::PersistentVolumeClaim(claim) => &claim.metadata.annotations,
        };
        annotations.get(key).map(String::as_str)
    }

    pub(super) fn meta(&mut self) -> AnyMeta<'_> {
        match self {
            Object::Node(node) => AnyMeta::Core(&mut node.metadata),
            Object::Pod(pod) => AnyMeta::Core(&mut pod.metadata),
            Object::PodGroup(group) => AnyMeta::Custom(&mut group.metadata),
            Object::Queue(queue) => AnyMeta::Custom(&mut queue.metadata),
            Object::HyperNode(hyper_node) => AnyMeta::Custom(&mut hyper_node.metadata),
            Object::PriorityClass(class) => AnyMeta::Core(&mut class.metadata),
            Object::PodDisruptionBudget(budget) => AnyMeta::Core(&mut budget.metadata),
            Object::Namespace(namespace) => AnyMeta::Core(&mut namespace.metadata),
            Object::ResourceQuota(quota) => AnyMeta::Core(&mut quota.metadata),
            Object::PersistentVolume(volume) => AnyMeta::Core(&mut volume.metadata),
            Object::PersistentVolumeClaim(claim) => AnyMeta::Core(&mut claim.metadata),
        }
    }

    /// Gives it an age where it has none.
    pub fn date(&mut self, created: Time) {
        match self.meta() {
            AnyMeta::Core(meta) => drop(meta.creation_timestamp.get_or_insert(created)),
            AnyMeta::Custom(meta) => {
                let time = jiff::Timestamp::from_millisecond(created.0).ok();
                meta.creation_timestamp =
                    meta.creation_timestamp.take().or(time.map(meta::v1::Time));
            }
        }
    }

    /// An object of a namespaced kind without a namespace is in "default", as with kubectl; one of
    /// another kind is in none, whatever it says.
    fn set_namespace(&mut self, namespaced: bool) {
        let corrected = |given: &str| match (namespaced, given) {
            (false, _) => String::new(),
            (true, "") => "default".to_owned(),
            (true, given) => given.to_owned(),
        };
        match self.meta() {
            AnyMeta::Core(meta) => meta.namespace = corrected(&meta.namespace),
            AnyMeta::Custom(meta) => {
                let namespace = corrected(meta.namespace.as_deref().unwrap_or_default());
                meta.namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_decodes_to_itself_even_if_empty() {
        for kind in &KINDS {
            let mut tree = muster_yaml::parse("metadata: {name: a, namespace: b}\n").unwrap();
            assert_eq!(kind.decode(&tree).unwrap().kind(), kind.name);
            assert_eq!(
                kind.decode(&tree).unwrap().key(),
                if kind.namespaced { "b/a" } else { "a" }
            );
            tree = muster_yaml::parse("metadata: {name: a}\n").unwrap();
            assert_eq!(
                kind.decode(&tree).unwrap().key(),
                if kind.namespaced { "default/a" } else { "a" }
            );
        }
    }
}
