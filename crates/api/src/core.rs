//! The fields of core Kubernetes objects that scheduling needs, and no others: what is not here is
//! never decoded, so a pod costs a fraction of the full type in memory. What has its default value
//! is not written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::keys::TASK_INDEX;

pub use crate::kinds::kubernetes::*;

pub type Labels = BTreeMap<String, String>;

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    /// Empty for objects without a namespace; the reader fills in "default" where one is needed.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "is_default")]
    pub owner_references: Vec<OwnerReference>,
}

/// An object that another one belongs to and goes with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    #[serde(skip_serializing_if = "is_default")]
    pub api_version: String,
    #[serde(skip_serializing_if = "is_default")]
    pub kind: String,
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub uid: String,
    /// Whether it is the one that made the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl Meta {
    /// `namespace/name`, or the bare name of an object without a namespace.
    pub fn key(&self) -> String {
        let mut key = String::with_capacity(self.namespace.len() + 1 + self.name.len());
        if !self.namespace.is_empty() {
            key.push_str(&self.namespace);
            key.push('/');
        }
        key.push_str(&self.name);
        key
    }

    /// The object that made this one.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// The value of an annotation, else of the label with the same key.
    pub fn annotation_or_label(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).or_else(|| self.labels.get(key)).map(String::as_str)
    }

    /// The index of a pod in its gang: the label or annotation, else the number at the end of its
    /// name (7 for `worker-7`).
    pub fn task_index(&self) -> u32 {
        let said = self.annotation_or_label(TASK_INDEX).and_then(|text| text.parse::<i32>().ok());
        let named = || self.name.rsplit_once('-').and_then(|(_, last)| last.parse().ok());
        said.map(|index| index.max(0) as u32).or_else(named).unwrap_or(0)
    }
}

/// A condition of a Node or a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    #[serde(skip_serializing_if = "is_default")]
    pub kind: String,
    #[serde(skip_serializing_if = "is_default")]
    pub status: String,
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// Any of them.
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector_terms: Vec<NodeTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeTerm {
    /// All of them; a term with nothing in it matches no node.
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
    #[serde(skip_serializing_if = "is_default")]
    pub match_fields: Vec<Requirement>,
}

/// One condition on a label: In, NotIn, Exists, DoesNotExist, and for nodes Gt and Lt.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    #[serde(skip_serializing_if = "is_default")]
    pub key: String,
    #[serde(skip_serializing_if = "is_default")]
    pub operator: String,
    #[serde(skip_serializing_if = "is_default")]
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(skip_serializing_if = "is_default")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
}
