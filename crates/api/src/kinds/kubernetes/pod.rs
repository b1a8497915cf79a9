//! The Pod: what scheduling reads of it.

use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Condition, LabelSelector, Labels, Meta, NodeSelector, NodeTerm, is_default};
use crate::kinds::Contents;
use crate::validate::{Problem, validate_pod};
use crate::{ResourceList, Time};

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
#[serde(default)]
pub struct PreferredNodeTerm {
    #[serde(skip_serializing_if = "is_default")]
    pub weight: i32,
    #[serde(skip_serializing_if = "is_default")]
    pub preference: NodeTerm,
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

/// Without the volume's name: the API server invents one for each pod's token, and every pod would
/// look different.
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

/// The grace period of a pod that does not set one.
const DEFAULT_GRACE_SECONDS: i64 = 30;

impl PodSpec {
    /// How long the pod may take to terminate. As in Kubernetes, a negative number counts as 1.
    pub fn grace_seconds(&self) -> i64 {
        match self.termination_grace_period_seconds {
            None => DEFAULT_GRACE_SECONDS,
            Some(seconds) if seconds < 0 => 1,
            Some(seconds) => seconds,
        }
    }
}

impl Contents for Pod {
    fn problems(&self) -> Vec<Problem> {
        validate_pod(self)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Pod { metadata, spec, status } = self;
        let PodStatus { phase: _, start_time: _, nominated_node_name, conditions } = status;
        walk.meta(Class::Work, metadata);
        spec.visit_names(walk);
        walk.names(Class::Node, nominated_node_name);
        conditions.iter_mut().for_each(|condition| walk.condition(condition));
    }
}

impl PodSpec {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let PodSpec {
            node_name,
            scheduler_name,
            priority: _,
            priority_class_name,
            preemption_policy: _,
            containers,
            init_containers,
            overhead: _,
            resources: _,
            node_selector,
            affinity,
            tolerations,
            topology_spread_constraints,
            volumes,
            scheduling_gates,
            resource_claims,
            active_deadline_seconds: _,
            termination_grace_period_seconds: _,
        } = self;
        walk.names(Class::Node, node_name);
        walk.name(Class::Scheduler, scheduler_name);
        walk.name(Class::PriorityClass, priority_class_name);
        containers
            .iter_mut()
            .chain(init_containers)
            .for_each(|container| container.visit_names(walk));
        walk.labels(node_selector);
        affinity.iter_mut().for_each(|affinity| affinity.visit_names(walk));
        for Toleration { key, operator: _, value, effect: _ } in tolerations {
            walk.value(key, value);
            walk.name(Class::Key, key);
        }
        topology_spread_constraints.iter_mut().for_each(|constraint| constraint.visit_names(walk));
        let claims =
            volumes.iter_mut().filter_map(|volume| volume.persistent_volume_claim.as_mut());
        walk.names(Class::Claim, claims.map(|claim| &mut claim.claim_name));
        walk.names(Class::Gate, scheduling_gates.iter_mut().map(|gate| &mut gate.name));
        walk.names(Class::Claim, resource_claims.iter_mut().map(|claim| &mut claim.name));
    }
}

impl Container {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Container { name, image, resources: _, ports, restart_policy: _ } = self;
        walk.name(Class::Container, name);
        walk.image(image);
        walk.names(Class::Address, ports.iter_mut().map(|port| &mut port.host_ip));
    }
}

impl Affinity {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Affinity { node_affinity, pod_affinity, pod_anti_affinity } = self;
        if let Some(nodes) = node_affinity {
            nodes.required.iter_mut().for_each(|required| walk.node_selector(required));
            nodes
                .preferred
                .iter_mut()
                .for_each(|preferred| walk.node_term(&mut preferred.preference));
        }
        for PodAffinity { required, preferred } in pod_affinity.iter_mut().chain(pod_anti_affinity)
        {
            required.iter_mut().for_each(|term| term.visit_names(walk));
            preferred.iter_mut().for_each(|wish| wish.pod_affinity_term.visit_names(walk));
        }
    }
}

impl PodTerm {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let PodTerm {
            label_selector,
            topology_key,
            namespaces,
            namespace_selector,
            match_label_keys,
            mismatch_label_keys,
        } = self;
        label_selector
            .iter_mut()
            .chain(namespace_selector)
            .for_each(|selector| walk.selector(selector));
        walk.name(Class::Key, topology_key);
        walk.names(Class::Namespace, namespaces);
        walk.names(Class::Key, match_label_keys.iter_mut().chain(mismatch_label_keys));
    }
}

impl SpreadConstraint {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let SpreadConstraint {
            max_skew: _,
            topology_key,
            when_unsatisfiable: _,
            label_selector,
            min_domains: _,
            node_affinity_policy: _,
            node_taints_policy: _,
            match_label_keys,
        } = self;
        walk.name(Class::Key, topology_key);
        label_selector.iter_mut().for_each(|selector| walk.selector(selector));
        walk.names(Class::Key, match_label_keys);
    }
}
