//! Where the fields that several kinds share hold names, and of which class. Every struct is
//! destructured field by field, here and in the files of the kinds: code for a new field does not
//! compile until it says whether the field holds a name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Class;
use crate::core::{Condition, LabelSelector, Labels, Meta, NodeSelector, NodeTerm, Requirement};
use crate::{Portion, Reserved, ResourceList, Termination, Time, cards, keys, parse_duration};

/// Labels whose values describe the machine, not its owner.
const HARDWARE: [&str; 6] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.product",
];

/// Calls `visit` with every name, which it may change, and removes free text.
pub struct Walk<'w> {
    /// Labels that are compared as numbers.
    pub compared: &'w BTreeSet<String>,
    pub visit: &'w mut dyn FnMut(Class, &mut String),
}

impl Walk<'_> {
    pub fn name(&mut self, class: Class, name: &mut String) {
        if !name.is_empty() {
            (self.visit)(class, name);
        }
    }

    pub fn names<'n>(&mut self, class: Class, names: impl IntoIterator<Item = &'n mut String>) {
        names.into_iter().for_each(|name| self.name(class, name));
    }

    pub fn meta(&mut self, class: Class, meta: &mut Meta) {
        let Meta {
            name,
            namespace,
            uid,
            resource_version,
            labels,
            annotations,
            creation_timestamp: _,
            deletion_timestamp: _,
            owner_references,
        } = meta;
        self.name(class, name);
        self.name(Class::Namespace, namespace);
        // The embedded cluster derives one from the name.
        uid.clear();
        *resource_version = None;
        // Scheduling doesn't read them.
        owner_references.clear();
        self.labels(labels);
        self.annotations(annotations);
    }

    pub fn labels(&mut self, labels: &mut Labels) {
        for (mut key, mut value) in std::mem::take(labels) {
            self.value(&key, &mut value);
            self.name(Class::Key, &mut key);
            labels.insert(key, value);
        }
    }

    /// The value of a label or a taint. The class depends on the key, so that selectors get the
    /// same pseudonym.
    pub fn value(&mut self, key: &str, value: &mut String) {
        let class = match key {
            "kubernetes.io/hostname" | keys::PIPELINED_NODE => Class::Node,
            "kubernetes.io/metadata.name" => Class::Namespace,
            keys::QUEUE_NAME => Class::Queue,
            keys::TASK_SPEC => Class::Role,
            key if keys::GROUP_NAME.contains(&key) => Class::Work,
            key if HARDWARE.contains(&key) => return,
            keys::TASK_INDEX | keys::TASK_PRIORITY if value.parse::<i32>().is_ok() => return,
            keys::REVOCABLE_ZONE if value == "*" => return,
            keys::SIMULATED_TERMINATION if Termination::parse(value).is_ok() => return,
            keys::SIMULATED_EVICTION_REFUSALS if value.parse::<u32>().is_ok() => return,
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
                keys::SIMULATED_EXIT if crate::simulated::exit_error(value).is_none() => {}
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
        // What can't be parsed can't be renamed.
        let written = limits.ok().and_then(|limits| serde_json::to_string(&limits).ok());
        *text = written.unwrap_or_else(|| "unreadable".to_owned());
    }

    fn reservations(&mut self, text: &mut String) {
        // An annotation that can't be parsed reserves nothing.
        let mut places = Reserved::read(text).unwrap_or_default();
        for Reserved { node, role, subgroup, requests: _, until: _, pods, gang_size: _ } in
            &mut places
        {
            self.name(Class::Node, node);
            self.names(Class::Role, role);
            self.names(Class::Value, subgroup);
            // The objects have no uids any more, so these would match nothing.
            pods.iter_mut().zip(1..).for_each(|(uid, number)| *uid = format!("gone-{number}"));
        }
        *text = Reserved::write(&places);
    }

    pub fn selector(&mut self, selector: &mut LabelSelector) {
        let LabelSelector { match_labels, match_expressions } = selector;
        self.labels(match_labels);
        match_expressions.iter_mut().for_each(|requirement| self.requirement(requirement));
    }

    fn requirement(&mut self, requirement: &mut Requirement) {
        let Requirement { key, operator: _, values } = requirement;
        values.iter_mut().for_each(|value| self.value(key, value));
        self.name(Class::Key, key);
    }

    pub fn condition(&mut self, condition: &mut Condition) {
        let Condition { kind, status: _, reason, message, last_transition_time: _ } = condition;
        self.condition_fields(kind, reason, message);
    }

    pub fn condition_fields(
        &mut self,
        kind: &mut String,
        reason: &mut String,
        message: &mut String,
    ) {
        if kind.contains('/') {
            self.name(Class::Key, kind);
        }
        tidy(reason, message);
    }

    /// Part by part, since `nginx` means `docker.io/library/nginx:latest`.
    pub fn image(&mut self, image: &mut String) {
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

    pub fn node_selector(&mut self, selector: &mut NodeSelector) {
        let NodeSelector { node_selector_terms } = selector;
        node_selector_terms.iter_mut().for_each(|term| self.node_term(term));
    }

    pub fn node_term(&mut self, term: &mut NodeTerm) {
        let NodeTerm { match_expressions, match_fields } = term;
        match_expressions.iter_mut().for_each(|requirement| self.requirement(requirement));
        // The name is the only field that can be selected by.
        self.names(
            Class::Node,
            match_fields.iter_mut().flat_map(|requirement| &mut requirement.values),
        );
    }
}

/// Messages contain names. A reason is one word, unless it was written by hand.
pub fn tidy(reason: &mut String, message: &mut String) {
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
        keys::SIMULATED_FINALIZER,
        keys::STALENESS_GRACE_PERIOD,
    ];
    keys.contains(&key) || crate::keys::SLA_WAITING_TIME.contains(&key)
}
