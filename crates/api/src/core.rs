//! The fields of core Kubernetes objects that scheduling needs, and no others: what is not here is
//! never decoded, so a pod costs a fraction of the full type in memory. What has its default value
//! is not written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::keys::TASK_INDEX;
use crate::{Quantity, ResourceList, Time};

pub type Labels = BTreeMap<String, String>;

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
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

    /// The value of an annotation, else of the label with the same key.
    pub fn annotation_or_label(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).or_else(|| self.labels.get(key)).map(String::as_str)
    }

    /// The place of a pod among those of its gang: as it says, else the number at the end of its
    /// name (7 for `worker-7`).
    pub fn task_index(&self) -> u32 {
        let said = self.annotation_or_label(TASK_INDEX).and_then(|text| text.parse::<i32>().ok());
        let named = || self.name.rsplit_once('-').and_then(|(_, last)| last.parse().ok());
        said.map(|index| index.max(0) as u32).or_else(named).unwrap_or(0)
    }
}

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
pub struct Pod {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PodSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: PodStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Empty means Kubernetes' own scheduler.
    #[serde(skip_serializing_if = "is_default")]
    pub scheduler_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    #[serde(skip_serializing_if = "is_default")]
    pub priority_class_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub containers: Vec<Container>,
    #[serde(skip_serializing_if = "is_default")]
    pub init_containers: Vec<Container>,
    #[serde(skip_serializing_if = "is_default")]
    pub overhead: ResourceList,
    /// Pod-level requests (Kubernetes 1.34 and later); they replace the containers' where set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    #[serde(skip_serializing_if = "is_default")]
    pub node_selector: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    #[serde(skip_serializing_if = "is_default")]
    pub tolerations: Vec<Toleration>,
    #[serde(skip_serializing_if = "is_default")]
    pub topology_spread_constraints: Vec<SpreadConstraint>,
    #[serde(skip_serializing_if = "is_default")]
    pub volumes: Vec<Volume>,
    #[serde(skip_serializing_if = "is_default")]
    pub scheduling_gates: Vec<Named>,
    #[serde(skip_serializing_if = "is_default")]
    pub resource_claims: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    #[serde(skip_serializing_if = "is_default")]
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominated_node_name: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<Condition>,
}

/// A list entry of which only the name matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub image: String,
    #[serde(skip_serializing_if = "is_default")]
    pub resources: Resources,
    #[serde(skip_serializing_if = "is_default")]
    pub ports: Vec<Port>,
    /// "Always" makes an init container a sidecar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    #[serde(skip_serializing_if = "is_default")]
    pub requests: ResourceList,
    #[serde(skip_serializing_if = "is_default")]
    pub limits: ResourceList,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    #[serde(skip_serializing_if = "is_default")]
    pub host_port: i32,
    #[serde(rename = "hostIP")]
    #[serde(skip_serializing_if = "is_default")]
    pub host_ip: String,
    /// Empty means TCP.
    #[serde(skip_serializing_if = "is_default")]
    pub protocol: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    #[serde(skip_serializing_if = "is_default")]
    pub key: String,
    /// Empty means Equal.
    #[serde(skip_serializing_if = "is_default")]
    pub operator: String,
    #[serde(skip_serializing_if = "is_default")]
    pub value: String,
    /// Empty means every effect.
    #[serde(skip_serializing_if = "is_default")]
    pub effect: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<NodeAffinity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_affinity: Option<PodAffinity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_anti_affinity: Option<PodAffinity>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    #[serde(
        rename = "requiredDuringSchedulingIgnoredDuringExecution",
        skip_serializing_if = "Option::is_none"
    )]
    pub required: Option<NodeSelector>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[serde(skip_serializing_if = "is_default")]
    pub preferred: Vec<PreferredNodeTerm>,
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PreferredNodeTerm {
    #[serde(skip_serializing_if = "is_default")]
    pub weight: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub preference: NodeTerm,
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    #[serde(skip_serializing_if = "is_default")]
    pub required: Vec<PodTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    #[serde(skip_serializing_if = "is_default")]
    pub preferred: Vec<PreferredPodTerm>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTerm {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    #[serde(skip_serializing_if = "is_default")]
    pub topology_key: String,
    #[serde(skip_serializing_if = "is_default")]
    pub namespaces: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    #[serde(skip_serializing_if = "is_default")]
    pub match_label_keys: Vec<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub mismatch_label_keys: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreferredPodTerm {
    #[serde(skip_serializing_if = "is_default")]
    pub weight: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub pod_affinity_term: PodTerm,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(skip_serializing_if = "is_default")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "is_default")]
    pub match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpreadConstraint {
    #[serde(skip_serializing_if = "is_default")]
    pub max_skew: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub topology_key: String,
    /// DoNotSchedule or ScheduleAnyway.
    #[serde(skip_serializing_if = "is_default")]
    pub when_unsatisfiable: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_domains: Option<i32>,
    /// Honor (default) or Ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity_policy: Option<String>,
    /// Honor or Ignore (default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_taints_policy: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub match_label_keys: Vec<String>,
}

/// Without its name: the API server makes one up for each pod's token, and pods would all look
/// different by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    #[serde(skip_serializing_if = "is_default")]
    pub claim_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PriorityClass {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub value: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub global_default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PodDisruptionBudgetSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: PodDisruptionBudgetStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetSpec {
    /// A number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<IntOrString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<IntOrString>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or a percentage like 50%")]
pub enum IntOrString {
    Int(i64),
    String(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruptions_allowed: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: ResourceQuotaSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuotaSpec {
    #[serde(skip_serializing_if = "is_default")]
    pub hard: BTreeMap<String, Quantity>,
    /// A quota with scopes says nothing about a whole namespace and is left out.
    #[serde(skip_serializing_if = "is_default")]
    pub scopes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolume {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PersistentVolumeSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<VolumeNodeAffinity>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<NodeSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaim {
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: Meta,
    #[serde(skip_serializing_if = "is_default")]
    pub spec: PersistentVolumeClaimSpec,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// Empty while no volume is bound to the claim.
    #[serde(skip_serializing_if = "is_default")]
    pub volume_name: String,
}
