//! The Queue: a share of the cluster.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::Meta;
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, validate_queue};
use crate::{ResourceList, keys};

/// A share of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    pub metadata: Meta,
    pub spec: QueueSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<QueueStatus>,
}

impl Queue {
    pub fn new(name: &str, spec: QueueSpec) -> Queue {
        let metadata = Meta { name: name.to_owned(), ..Meta::default() };
        Queue { metadata, spec, status: None }
    }
}

/// What a queue may use, and what is kept for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
// CEL compares amounts that are written as strings; the few that are numbers are left to the
// scheduler.
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.deserved) || !has(self.capability) || self.deserved.all(r, \
            !(r in self.capability) || type(self.deserved[r]) != string || type(self.capability[r]) != string || \
            quantity(self.deserved[r]).compareTo(quantity(self.capability[r])) <= 0)",
        "message": "deserved must not exceed capability",
    },
    {
        "rule": "!has(self.guarantee) || !has(self.guarantee.resource) || !has(self.deserved) || \
            self.guarantee.resource.all(r, r in self.deserved)",
        "message": "a resource with a guarantee needs a deserved amount, if any is deserved",
    },
    {
        "rule": "!has(self.guarantee) || !has(self.guarantee.resource) || !has(self.deserved) || \
            self.guarantee.resource.all(r, !(r in self.deserved) || \
            type(self.guarantee.resource[r]) != string || type(self.deserved[r]) != string || \
            quantity(self.guarantee.resource[r]).compareTo(quantity(self.deserved[r])) <= 0)",
        "message": "guarantee must not exceed deserved",
    },
])))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueSpec {
    /// The part of the cluster, relative to the weights of the queues beside it.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
    pub weight: i32,
    /// The most that the queue may use; a resource that is not named is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub capability: Option<ResourceList>,
    /// Whether other queues may reclaim what this queue uses above its share; unset means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaimable: Option<bool>,
    /// Other clusters that work may be sent to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extend_clusters: Vec<ExtendCluster>,
    /// What is kept for the queue even when it is idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// Which groups of nodes the queue may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<QueueAffinity>,
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub type_: String,
    /// The queue that this one is part of; unset means root.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::object_name"))]
    pub parent: Option<String>,
    /// What the queue gets when others want it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub deserved: Option<ResourceList>,
    /// Queues with a higher number are served first and reclaimed from last.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub priority: i32,
    pub dequeue_strategy: DequeueStrategy,
}

impl Default for QueueSpec {
    fn default() -> QueueSpec {
        QueueSpec {
            weight: 1,
            capability: None,
            reclaimable: None,
            extend_clusters: Vec::new(),
            guarantee: None,
            affinity: None,
            type_: String::new(),
            parent: None,
            deserved: None,
            priority: 0,
            dequeue_strategy: DequeueStrategy::Traverse,
        }
    }
}

/// A cluster that work may be sent to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct ExtendCluster {
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub name: String,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub weight: i32,
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub capacity: ResourceList,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Guarantee {
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub resource: ResourceList,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueAffinity {
    /// Groups of nodes that the queue must or would like to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_affinity: Option<NodeGroupAffinity>,
    /// Groups of nodes that the queue must not or would not like to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_anti_affinity: Option<NodeGroupAffinity>,
}

/// Names of node groups, as in the label volcano.sh/nodegroup-name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct NodeGroupAffinity {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required: Vec<String>,
    #[serde(
        rename = "preferredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub preferred: Vec<String>,
}

/// What happens behind a gang that has to wait.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DequeueStrategy {
    /// The gangs behind it wait too.
    Fifo,
    /// The gangs behind it are tried.
    #[default]
    #[serde(alias = "")]
    Traverse,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct QueueStatus {
    pub state: QueueState,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub unknown: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub pending: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub running: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub inqueue: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub completed: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub allocated: ResourceList,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum QueueState {
    #[default]
    #[serde(alias = "")]
    Open,
    Closed,
    /// Accepts no new work; existing work continues.
    Closing,
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Reservation {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    #[serde(skip_serializing_if = "ResourceList::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub resource: ResourceList,
}

impl Contents for Queue {
    fn problems(&self) -> Vec<Problem> {
        validate_queue(self)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Queue { metadata, spec, status } = self;
        let QueueSpec {
            weight: _,
            capability: _,
            reclaimable: _,
            extend_clusters,
            guarantee: _,
            affinity,
            type_,
            parent,
            deserved: _,
            priority: _,
            dequeue_strategy: _,
        } = spec;
        walk.meta(Class::Queue, metadata);
        walk.names(Class::Cluster, extend_clusters.iter_mut().map(|cluster| &mut cluster.name));
        walk.name(Class::Value, type_);
        walk.names(Class::Queue, parent);
        let sides = affinity.iter_mut().flat_map(|affinity| {
            affinity.node_group_affinity.iter_mut().chain(&mut affinity.node_group_anti_affinity)
        });
        for NodeGroupAffinity { required, preferred } in sides {
            required
                .iter_mut()
                .chain(preferred)
                .for_each(|group| walk.value(keys::NODEGROUP_NAME, group));
        }
        if let Some(QueueStatus { reservation: Some(reservation), .. }) = status {
            walk.names(Class::Node, &mut reservation.nodes);
        }
    }
}
