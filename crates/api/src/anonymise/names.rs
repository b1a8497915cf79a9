//! Where an object has names, and of which class. Every struct is taken apart field by field, so
//! that a field that is added to one doesn't compile until someone has said here whether it holds a
//! name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Class;
use crate::core::{
    Affinity, Condition, Container, LabelSelector, Labels, Meta, Node, NodeSelector, NodeSpec,
    NodeStatus, NodeTerm, PersistentVolume, PersistentVolumeClaim, Pod, PodAffinity,
    PodDisruptionBudget, PodSpec, PodStatus, PodTerm, Requirement, ResourceQuota, SpreadConstraint,
    Taint, Toleration,
};
use crate::manifest::Object;
use crate::{
    HyperNode, HyperNodeCondition, HyperNodeSpec, MemberKind, NetworkTopologySpec,
    NodeGroupAffinity, PodGroup, PodGroupSpec, PodGroupStatus, Portion, Queue, QueueSpec,
    QueueStatus, Reserved, ResourceList, SubGroupPolicy, Time, cards, keys, parse_duration,
};

/// Labels whose values say what a machine is, not whose.
const HARDWARE: [&str; 6] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.product",
];

/// Shows every name to `visit`, which may change it, and takes away what is free text.
pub struct Walk<'w> {
    /// Labels that are compared as numbers.
    pub compared: &'w BTreeSet<String>,
    pub visit: &'w mut dyn FnMut(Class, &mut String),
}

impl Walk<'_> {
    pub fn object(&mut self, object: &mut Object) {
        match object {
            Object::Node(node) => self.node(node),
            Object::Pod(pod) => self.pod(pod),
            Object::PodGroup(group) => self.pod_group(group),
            Object::Queue(queue) => self.queue(queue),
            Object::HyperNode(hyper_node) => self.hyper_node(hyper_node),
            Object::PriorityClass(class) => self.meta(Class::PriorityClass, &mut class.metadata),
            Object::PodDisruptionBudget(budget) => self.budget(budget),
            Object::Namespace(namespace) => self.meta(Class::Namespace, &mut namespace.metadata),
            Object::ResourceQuota(quota) => self.quota(quota),
            Object::PersistentVolume(volume) => self.volume(volume),
            Object::PersistentVolumeClaim(claim) => self.claim(claim),
        }
    }

    fn name(&mut self, class: Class, name: &mut String) {
        if !name.is_empty() {
            (self.visit)(class, name);
        }
    }

    fn names<'n>(&mut self, class: Class, names: impl IntoIterator<Item = &'n mut String>) {
        names.into_iter().for_each(|name| self.name(class, name));
    }

    fn meta(&mut self, class: Class, meta: &mut Meta) {
        let Meta {
            name,
            namespace,
            uid,
            resource_version,
            labels,
            annotations,
            creation_timestamp: _,
            deletion_timestamp: _,
        } = meta;
        self.name(class, name);
        self.name(Class::Namespace, namespace);
        // The embedded cluster makes one of the name.
        uid.clear();
        *resource_version = None;
        self.labels(labels);
        self.annotations(annotations);
    }

    fn labels(&mut self, labels: &mut Labels) {
        for (mut key, mut value) in std::mem::take(labels) {
            self.value(&key, &mut value);
            self.name(Class::Key, &mut key);
            labels.insert(key, value);
        }
    }

    /// The value of a label or a taint, by its key: what selects by it must say it in the same way.
    fn value(&mut self, key: &str, value: &mut String) {
        let class = match key {
            "kubernetes.io/hostname" | keys::PIPELINED_NODE => Class::Node,
            "kubernetes.io/metadata.name" => Class::Namespace,
            keys::QUEUE_NAME => Class::Queue,
            keys::TASK_SPEC => Class::Role,
            key if keys::GROUP_NAME.contains(&key) => Class::Work,
            key if HARDWARE.contains(&key) => return,
            keys::TASK_INDEX | keys::TASK_PRIORITY if value.parse::<i32>().is_ok() => return,
            keys::REVOCABLE_ZONE if value == "*" => return,
            keys::JDB_MIN_AVAILABLE | keys::JDB_MAX_UNAVAILABLE
                if Portion::parse(value).is_ok() =>
            {
                return;
            }
            key if TIMES.contains(&key) && Time::parse(value).is_ok() => return,
            key if takes_duration(key) && parse_duration(value).is_ok() => return,
            key if self.compared.contains(key) && value.parse::<i64>().is_ok() => return,
            _ => Class::Value,
        };
        self.name(class, value);
    }

    fn annotations(&mut self, annotations: &mut Labels) {
        annotations.retain(|key, _| keys::ANNOTATIONS.contains(&key.as_str()));
        for (key, value) in annotations {
            match key.as_str() {
                keys::HIERARCHY => {
                    let mut steps: Vec<String> = value.split('/').map(str::to_owned).collect();
                    self.names(Class::Queue, &mut steps);
                    *value = steps.join("/");
                }
                keys::HIERARCHY_WEIGHTS
                    if value.bytes().all(|byte| b"0123456789./".contains(&byte)) => {}
                keys::NODEGROUP_LIMITS => self.group_limits(value),
                keys::RESERVATIONS => self.reservations(value),
                keys::GPU_INDEX | keys::GPU_UNHEALTHY if cards::numbers(value).is_some() => {}
                keys::USE_GPU_TYPE | keys::NOUSE_GPU_TYPE => {}
                keys::USE_GPU_ID | keys::NOUSE_GPU_ID => {
                    let mut ids: Vec<String> =
                        value.split(',').map(|id| id.trim().to_owned()).collect();
                    self.names(Class::Value, &mut ids);
                    *value = ids.join(",");
                }
                keys::VGPU_REGISTER | keys::VGPU_IDS => {
                    *value = cards::rename(value, |id| self.name(Class::Value, id));
                }
                key => self.value(key, value),
            }
        }
    }

    fn group_limits(&mut self, text: &mut String) {
        let limits = muster_yaml::parse(text)
            .and_then(|tree| BTreeMap::<String, ResourceList>::deserialize(&tree));
        let limits = limits.map(|limits| {
            let renamed = limits.into_iter().map(|(mut group, amounts)| {
                self.value(keys::NODEGROUP_NAME, &mut group);
                (group, amounts)
            });
            renamed.collect::<BTreeMap<_, _>>()
        });
        // What nobody can read stays so.
        let written = limits.ok().and_then(|limits| serde_json::to_string(&limits).ok());
        *text = written.unwrap_or_else(|| "unreadable".to_owned());
    }

    fn reservations(&mut self, text: &mut String) {
        // What nobody can read keeps nothing.
        let mut places = Reserved::read(text).unwrap_or_default();
        for Reserved { node, role, subgroup, requests: _, until: _, pods, gang_size: _ } in
            &mut places
        {
            self.name(Class::Node, node);
            self.names(Class::Role, role);
            self.names(Class::Value, subgroup);
            // As uids they would tell nothing: objects have none any more.
            pods.iter_mut().zip(1..).for_each(|(uid, number)| *uid = format!("gone-{number}"));
        }
        *text = Reserved::write(&places);
    }

    fn selector(&mut self, selector: &mut LabelSelector) {
        let LabelSelector { match_labels, match_expressions } = selector;
        self.labels(match_labels);
        match_expressions.iter_mut().for_each(|requirement| self.requirement(requirement));
    }

    fn requirement(&mut self, requirement: &mut Requirement) {
        let Requirement { key, operator: _, values } = requirement;
        values.iter_mut().for_each(|value| self.value(key, value));
        self.name(Class::Key, key);
    }

    fn condition(&mut self, condition: &mut Condition) {
        let Condition { kind, status: _, reason, message, last_transition_time: _ } = condition;
        self.condition_fields(kind, reason, message);
    }

    fn condition_fields(&mut self, kind: &mut String, reason: &mut String, message: &mut String) {
        if kind.contains('/') {
            self.name(Class::Key, kind);
        }
        tidy(reason, message);
    }

    fn node(&mut self, node: &mut Node) {
        let Node { metadata, spec, status } = node;
        let NodeSpec { unschedulable: _, taints } = spec;
        let NodeStatus { capacity: _, allocatable: _, conditions, images } = status;
        self.meta(Class::Node, metadata);
        for Taint { key, value, effect: _ } in taints {
            self.value(key, value);
            self.name(Class::Key, key);
        }
        conditions.iter_mut().for_each(|condition| self.condition(condition));
        images.iter_mut().flat_map(|image| &mut image.names).for_each(|name| self.image(name));
    }

    /// Part by part, since `nginx` means `docker.io/library/nginx:latest`.
    fn image(&mut self, image: &mut String) {
        let (name, digest) = match image.split_once('@') {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (image.as_str(), None),
        };
        let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
        let last = parts.pop().unwrap_or_default();
        let mut last: Vec<String> = last.split(':').map(str::to_owned).collect();
        self.names(Class::Image, parts.iter_mut().chain(&mut last));
        parts.push(last.join(":"));
        *image = parts.join("/");
        if let Some(mut digest) = digest {
            self.name(Class::Image, &mut digest);
            *image = format!("{image}@{digest}");
        }
    }

    fn pod(&mut self, pod: &mut Pod) {
        let Pod { metadata, spec, status } = pod;
        let PodStatus { phase: _, start_time: _, nominated_node_name, conditions } = status;
        self.meta(Class::Work, metadata);
        self.pod_spec(spec);
        self.names(Class::Node, nominated_node_name);
        conditions.iter_mut().for_each(|condition| self.condition(condition));
    }

    fn pod_spec(&mut self, spec: &mut PodSpec) {
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
        } = spec;
        self.names(Class::Node, node_name);
        self.name(Class::Scheduler, scheduler_name);
        self.name(Class::PriorityClass, priority_class_name);
        containers
            .iter_mut()
            .chain(init_containers)
            .for_each(|container| self.container(container));
        self.labels(node_selector);
        affinity.iter_mut().for_each(|affinity| self.affinity(affinity));
        for Toleration { key, operator: _, value, effect: _ } in tolerations {
            self.value(key, value);
            self.name(Class::Key, key);
        }
        topology_spread_constraints.iter_mut().for_each(|constraint| self.spread(constraint));
        let claims =
            volumes.iter_mut().filter_map(|volume| volume.persistent_volume_claim.as_mut());
        self.names(Class::Claim, claims.map(|claim| &mut claim.claim_name));
        self.names(Class::Gate, scheduling_gates.iter_mut().map(|gate| &mut gate.name));
        self.names(Class::Claim, resource_claims.iter_mut().map(|claim| &mut claim.name));
    }

    fn container(&mut self, container: &mut Container) {
        let Container { name, image, resources: _, ports, restart_policy: _ } = container;
        self.name(Class::Container, name);
        self.image(image);
        self.names(Class::Address, ports.iter_mut().map(|port| &mut port.host_ip));
    }

    fn affinity(&mut self, affinity: &mut Affinity) {
        let Affinity { node_affinity, pod_affinity, pod_anti_affinity } = affinity;
        if let Some(nodes) = node_affinity {
            nodes.required.iter_mut().for_each(|required| self.node_selector(required));
            nodes
                .preferred
                .iter_mut()
                .for_each(|preferred| self.node_term(&mut preferred.preference));
        }
        for PodAffinity { required, preferred } in pod_affinity.iter_mut().chain(pod_anti_affinity)
        {
            required.iter_mut().for_each(|term| self.pod_term(term));
            preferred.iter_mut().for_each(|wish| self.pod_term(&mut wish.pod_affinity_term));
        }
    }

    fn node_selector(&mut self, selector: &mut NodeSelector) {
        let NodeSelector { node_selector_terms } = selector;
        node_selector_terms.iter_mut().for_each(|term| self.node_term(term));
    }

    fn node_term(&mut self, term: &mut NodeTerm) {
        let NodeTerm { match_expressions, match_fields } = term;
        match_expressions.iter_mut().for_each(|requirement| self.requirement(requirement));
        // The name is the only field that there is.
        self.names(
            Class::Node,
            match_fields.iter_mut().flat_map(|requirement| &mut requirement.values),
        );
    }

    fn pod_term(&mut self, term: &mut PodTerm) {
        let PodTerm {
            label_selector,
            topology_key,
            namespaces,
            namespace_selector,
            match_label_keys,
            mismatch_label_keys,
        } = term;
        label_selector
            .iter_mut()
            .chain(namespace_selector)
            .for_each(|selector| self.selector(selector));
        self.name(Class::Key, topology_key);
        self.names(Class::Namespace, namespaces);
        self.names(Class::Key, match_label_keys.iter_mut().chain(mismatch_label_keys));
    }

    fn spread(&mut self, constraint: &mut SpreadConstraint) {
        let SpreadConstraint {
            max_skew: _,
            topology_key,
            when_unsatisfiable: _,
            label_selector,
            min_domains: _,
            node_affinity_policy: _,
            node_taints_policy: _,
            match_label_keys,
        } = constraint;
        self.name(Class::Key, topology_key);
        label_selector.iter_mut().for_each(|selector| self.selector(selector));
        self.names(Class::Key, match_label_keys);
    }

    fn budget(&mut self, budget: &mut PodDisruptionBudget) {
        self.meta(Class::Budget, &mut budget.metadata);
        budget.spec.selector.iter_mut().for_each(|selector| self.selector(selector));
    }

    fn quota(&mut self, quota: &mut ResourceQuota) {
        self.meta(Class::Quota, &mut quota.metadata);
        // These name storage classes and custom resources, and count what isn't scheduled.
        let named =
            |key: &str| key.starts_with("count/") || key.contains(".storageclass.storage.k8s.io/");
        quota.spec.hard.retain(|key, _| !named(key));
    }

    fn volume(&mut self, volume: &mut PersistentVolume) {
        self.meta(Class::Volume, &mut volume.metadata);
        let affinity = volume.spec.node_affinity.iter_mut();
        affinity
            .flat_map(|affinity| &mut affinity.required)
            .for_each(|required| self.node_selector(required));
    }

    fn claim(&mut self, claim: &mut PersistentVolumeClaim) {
        self.meta(Class::Claim, &mut claim.metadata);
        self.name(Class::Volume, &mut claim.spec.volume_name);
    }

    fn pod_group(&mut self, group: &mut PodGroup) {
        let PodGroup { metadata, spec, status } = group;
        let PodGroupSpec {
            min_member: _,
            min_task_member,
            queue,
            priority_class_name,
            min_resources: _,
            network_topology,
            sub_group_policy,
        } = spec;
        self.meta(Class::Work, metadata);
        for (mut role, minimum) in std::mem::take(min_task_member) {
            self.name(Class::Role, &mut role);
            min_task_member.insert(role, minimum);
        }
        self.name(Class::Queue, queue);
        self.name(Class::PriorityClass, priority_class_name);
        network_topology.iter_mut().for_each(|topology| self.topology(topology));
        sub_group_policy.iter_mut().for_each(|policy| self.subgroup(policy));
        if let Some(PodGroupStatus { phase: _, conditions, running: _, succeeded: _, failed: _ }) =
            status
        {
            for condition in conditions {
                condition.transition_id.clear();
                tidy(&mut condition.reason, &mut condition.message);
            }
        }
    }

    fn topology(&mut self, topology: &mut NetworkTopologySpec) {
        let NetworkTopologySpec { mode: _, highest_tier_allowed: _, highest_tier_name } = topology;
        self.names(Class::Tier, highest_tier_name);
    }

    fn subgroup(&mut self, policy: &mut SubGroupPolicy) {
        let SubGroupPolicy {
            name,
            network_topology,
            sub_group_size: _,
            min_sub_groups: _,
            label_selector,
            match_label_keys,
        } = policy;
        self.name(Class::Subgroup, name);
        network_topology.iter_mut().for_each(|topology| self.topology(topology));
        label_selector.iter_mut().for_each(|selector| self.selector(selector));
        self.names(Class::Key, match_label_keys);
    }

    fn queue(&mut self, queue: &mut Queue) {
        let Queue { metadata, spec, status } = queue;
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
        self.meta(Class::Queue, metadata);
        self.names(Class::Cluster, extend_clusters.iter_mut().map(|cluster| &mut cluster.name));
        self.name(Class::Value, type_);
        self.names(Class::Queue, parent);
        let sides = affinity.iter_mut().flat_map(|affinity| {
            affinity.node_group_affinity.iter_mut().chain(&mut affinity.node_group_anti_affinity)
        });
        for NodeGroupAffinity { required, preferred } in sides {
            required
                .iter_mut()
                .chain(preferred)
                .for_each(|group| self.value(keys::NODEGROUP_NAME, group));
        }
        if let Some(QueueStatus { reservation: Some(reservation), .. }) = status {
            self.names(Class::Node, &mut reservation.nodes);
        }
    }

    fn hyper_node(&mut self, hyper_node: &mut HyperNode) {
        let HyperNode { metadata, spec, status } = hyper_node;
        let HyperNodeSpec { tier: _, tier_name, members } = spec;
        self.meta(Class::Domain, metadata);
        self.name(Class::Tier, tier_name);
        for member in members {
            let class = if member.kind == MemberKind::Node { Class::Node } else { Class::Domain };
            self.names(class, member.selector.exact_match.iter_mut().map(|exact| &mut exact.name));
            member.selector.label_match.iter_mut().for_each(|selector| self.selector(selector));
        }
        let conditions = status.iter_mut().flat_map(|status| &mut status.conditions);
        for condition in conditions {
            let HyperNodeCondition { kind, reason, message, .. } = condition;
            self.condition_fields(kind, reason, message);
        }
    }
}

/// Messages name names. A reason is a word, unless someone put something else there.
fn tidy(reason: &mut String, message: &mut String) {
    message.clear();
    if !reason.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        reason.clear();
    }
}

/// Annotations that hold a time.
const TIMES: [&str; 4] =
    [keys::EXPECTED_END_TIME, keys::KAI_STALE_SINCE, keys::LAST_CHECKPOINT_TIME, keys::STALE_SINCE];

fn takes_duration(key: &str) -> bool {
    let keys = [
        keys::COOLDOWN_TIME,
        keys::RUNNING_ESTIMATE,
        keys::SIMULATED_DURATION,
        keys::STALENESS_GRACE_PERIOD,
    ];
    keys.contains(&key) || crate::keys::SLA_WAITING_TIME.contains(&key)
}
