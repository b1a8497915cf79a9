//! The PodGroup: pods that start together or not at all.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk, tidy};
use crate::core::{LabelSelector, Meta};
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, validate_pod_group};
use crate::{Reserved, ResourceList, Time, keys, parse_duration};

/// Pods that start together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodGroup {
    pub metadata: Meta,
    pub spec: PodGroupSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PodGroupStatus>,
}

impl PodGroup {
    pub fn new(name: &str, spec: PodGroupSpec) -> PodGroup {
        let metadata = Meta { name: name.to_owned(), ..Meta::default() };
        PodGroup { metadata, spec, status: None }
    }
}

/// What a group of pods needs to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupSpec {
    /// How many pods must be placed before any of them starts; 0 lets each start alone.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub min_member: i32,
    /// How many pods of each role must be placed, by the value of the label volcano.sh/task-spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub min_task_member: BTreeMap<String, i32>,
    /// The queue whose share the group uses.
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::queue_name"))]
    pub queue: String,
    /// The PriorityClass of the group.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub priority_class_name: String,
    /// What must be free before the group may compete for a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::resources"))]
    pub min_resources: Option<ResourceList>,
    /// How close to each other the pods of the group must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
    /// Groups inside the group, with their own size and closeness.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 1000)))]
    pub sub_group_policy: Vec<SubGroupPolicy>,
}

impl Default for PodGroupSpec {
    fn default() -> PodGroupSpec {
        PodGroupSpec {
            min_member: 0,
            min_task_member: BTreeMap::new(),
            queue: keys::DEFAULT_QUEUE.to_owned(),
            priority_class_name: String::new(),
            min_resources: None,
            network_topology: None,
            sub_group_policy: Vec::new(),
        }
    }
}

/// How close to each other pods must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [{
    "rule": "!(has(self.highestTierAllowed) && has(self.highestTierName))",
    "message": "set highestTierAllowed or highestTierName, not both",
}])))]
pub struct NetworkTopologySpec {
    /// hard: no farther apart than the highest tier. soft: as close as possible.
    pub mode: NetworkTopologyMode,
    /// The highest tier of HyperNode that may hold the pods, by number.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "tier_number"))]
    pub highest_tier_allowed: Option<i32>,
    /// The highest tier of HyperNode that may hold the pods, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "tier_name"))]
    pub highest_tier_name: Option<String>,
}

impl PodGroupSpec {
    /// What is allowed but probably not intended.
    fn remarks(&self) -> Vec<String> {
        let roles: i32 =
            self.min_task_member.values().fold(0, |sum, minimum| sum.saturating_add(*minimum));
        let minimum = self.min_member;
        let roles = (minimum < roles).then(|| {
            format!(
                "minTaskMember adds up to {roles}, more than minMember {minimum}, so the roles' minimums don't hold"
            )
        });
        let keyless =
            self.sub_group_policy.iter().filter(|policy| policy.match_label_keys.is_empty());
        let keyless = keyless.map(|policy| {
            format!(
                "subGroupPolicy {} has no matchLabelKeys, so all its pods are one subgroup: name the label that tells subgroups apart",
                policy.name
            )
        });
        roles.into_iter().chain(keyless).collect()
    }
}

#[cfg(feature = "schema")]
fn tier_number(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer", "format": "int32", "minimum": 0 })
}

#[cfg(feature = "schema")]
fn tier_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "maxLength": 253 })
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NetworkTopologyMode {
    #[default]
    #[serde(alias = "")]
    Hard,
    Soft,
}

/// A rule that splits the pods of a group into groups inside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SubGroupPolicy {
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub name: String,
    /// How close to each other the pods of one subgroup must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
    /// How many pods of a subgroup must be placed before any of them starts.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub sub_group_size: i32,
    /// How many subgroups must be placed before the group starts.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub min_sub_groups: i32,
    /// The pods that this rule is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::label_selector"))]
    pub label_selector: Option<LabelSelector>,
    /// Pods with equal values of these labels are one subgroup.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::atomic_strings"))]
    pub match_label_keys: Vec<String>,
}

impl Default for SubGroupPolicy {
    fn default() -> SubGroupPolicy {
        SubGroupPolicy {
            name: String::new(),
            network_topology: None,
            sub_group_size: 1,
            min_sub_groups: 0,
            label_selector: None,
            match_label_keys: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupStatus {
    pub phase: PodGroupPhase,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodGroupCondition>,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub running: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub succeeded: i32,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub failed: i32,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum PodGroupPhase {
    /// Waits for room in its queue.
    #[default]
    #[serde(alias = "")]
    Pending,
    Running,
    /// Some pods run, others cannot be placed.
    Unknown,
    /// May compete for a place.
    Inqueue,
    Completed,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodGroupCondition {
    /// Unschedulable or Scheduled.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// The scheduling cycle that wrote the condition.
    #[serde(rename = "transitionID")]
    pub transition_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    pub reason: String,
    pub message: String,
}

impl Contents for PodGroup {
    fn remarks(&self) -> Vec<String> {
        let text = |key: &str| self.metadata.annotations.get(key);
        let unread = |key: &str, problem: Option<String>| {
            problem.map(|problem| format!("annotation {key} is ignored: {problem}"))
        };
        let grace = text(keys::STALENESS_GRACE_PERIOD).and_then(|text| parse_duration(text).err());
        let since = text(keys::STALE_SINCE).and_then(|text| Time::parse(text).err());
        let reserved = text(keys::RESERVATIONS).and_then(|text| Reserved::read(text).err());
        let unread = [
            unread(keys::STALENESS_GRACE_PERIOD, grace.map(|error| error.to_string())),
            unread(keys::STALE_SINCE, since.map(|error| error.to_string())),
            unread(keys::RESERVATIONS, reserved.map(|error| error.to_string())),
        ];
        self.spec.remarks().into_iter().chain(unread.into_iter().flatten()).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        validate_pod_group(self)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let PodGroup { metadata, spec, status } = self;
        let PodGroupSpec {
            min_member: _,
            min_task_member,
            queue,
            priority_class_name,
            min_resources: _,
            network_topology,
            sub_group_policy,
        } = spec;
        walk.meta(Class::Work, metadata);
        for (mut role, minimum) in std::mem::take(min_task_member) {
            walk.name(Class::Role, &mut role);
            min_task_member.insert(role, minimum);
        }
        walk.name(Class::Queue, queue);
        walk.name(Class::PriorityClass, priority_class_name);
        network_topology.iter_mut().for_each(|topology| topology.visit_names(walk));
        sub_group_policy.iter_mut().for_each(|policy| policy.visit_names(walk));
        if let Some(PodGroupStatus { phase: _, conditions, running: _, succeeded: _, failed: _ }) =
            status
        {
            for condition in conditions {
                condition.transition_id.clear();
                tidy(&mut condition.reason, &mut condition.message);
            }
        }
    }
}

impl NetworkTopologySpec {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let NetworkTopologySpec { mode: _, highest_tier_allowed: _, highest_tier_name } = self;
        walk.names(Class::Tier, highest_tier_name);
    }
}

impl SubGroupPolicy {
    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let SubGroupPolicy {
            name,
            network_topology,
            sub_group_size: _,
            min_sub_groups: _,
            label_selector,
            match_label_keys,
        } = self;
        walk.name(Class::Subgroup, name);
        network_topology.iter_mut().for_each(|topology| topology.visit_names(walk));
        label_selector.iter_mut().for_each(|selector| walk.selector(selector));
        walk.names(Class::Key, match_label_keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probable_mistakes_are_noted() {
        let keyed =
            SubGroupPolicy { match_label_keys: vec!["part".into()], ..SubGroupPolicy::default() };
        let bare = SubGroupPolicy { name: "pair".into(), ..SubGroupPolicy::default() };
        let mut spec = PodGroupSpec {
            min_member: 2,
            sub_group_policy: vec![keyed],
            ..PodGroupSpec::default()
        };
        spec.min_task_member.insert("worker".into(), 2);
        assert!(spec.remarks().is_empty(), "{:?}", spec.remarks());
        spec.min_member = 1;
        spec.sub_group_policy.push(bare);
        let remarks = spec.remarks();
        assert!(remarks[0].starts_with("minTaskMember adds up to 2"), "{remarks:?}");
        assert!(remarks[1].starts_with("subGroupPolicy pair has no matchLabelKeys"), "{remarks:?}");
        let mut group = PodGroup::new("ring", PodGroupSpec::default());
        let annotations =
            [(keys::STALENESS_GRACE_PERIOD, "soon"), (keys::STALE_SINCE, "2026-01-05T00:00:00Z")];
        let annotations = annotations.map(|(key, text)| (key.to_owned(), text.to_owned()));
        group.metadata.annotations = annotations.into();
        let remarks = group.remarks();
        assert_eq!(remarks.len(), 1, "{remarks:?}");
        assert!(
            remarks[0].contains("staleness-grace-period is ignored: \"soon\" is not a duration"),
            "{remarks:?}"
        );
    }
}
