//! The Node: what scheduling reads of it.

use serde::{Deserialize, Serialize};

use crate::ResourceList;
use crate::core::{Condition, Meta, is_default};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: NodeSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: NodeStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    #[serde(skip_serializing_if = "is_default")]
    pub unschedulable: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    #[serde(skip_serializing_if = "is_default")]
    pub key: String,
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
    #[serde(skip_serializing_if = "is_default")]
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Stands in for `allocatable` where only it is given.
    #[serde(skip_serializing_if = "is_default")]
    pub capacity: ResourceList,
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable: ResourceList,
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "is_default")]
    pub images: Vec<Image>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    #[serde(skip_serializing_if = "is_default")]
    pub names: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub size_bytes: i64,
}
