//! The HyperNode: nodes, or smaller HyperNodes, with equal network between them.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::anonymise::{Class, Walk};
use crate::core::{LabelSelector, Meta};
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, validate_hyper_node};

/// Nodes, or smaller HyperNodes, with equal network between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HyperNode {
    pub metadata: Meta,
    pub spec: HyperNodeSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<HyperNodeStatus>,
}

impl HyperNode {
    pub fn new(name: &str, spec: HyperNodeSpec) -> HyperNode {
        let metadata = Meta { name: name.to_owned(), ..Meta::default() };
        HyperNode { metadata, spec, status: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(extend("required" = ["members", "tier"])))]
pub struct HyperNodeSpec {
    /// Tier 1 has the fastest network; a HyperNode of tier 2 is made of those of tier 1, and so
    /// on.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub tier: i32,
    /// A name for the tier, for example rack.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub tier_name: String,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub members: Vec<Member>,
}

/// Nodes or HyperNodes that are part of the HyperNode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("required" = ["selector", "type"])))]
pub struct Member {
    #[serde(rename = "type")]
    pub kind: MemberKind,
    #[serde(default)]
    pub selector: MemberSelector,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum MemberKind {
    #[default]
    Node,
    HyperNode,
}

/// Which members; exactly one of the three is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) == 1",
    "message": "set exactly one of exactMatch, regexMatch and labelMatch",
}])))]
pub struct MemberSelector {
    /// The member with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<ExactMatch>,
    /// Members whose name the pattern matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex_match: Option<RegexMatch>,
    /// Members with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::label_selector"))]
    pub label_match: Option<LabelSelector>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct ExactMatch {
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::object_name"))]
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct RegexMatch {
    /// In Go's syntax, matched anywhere in the name unless it is anchored.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub pattern: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HyperNodeStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "conditions"))]
    pub conditions: Vec<HyperNodeCondition>,
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub node_count: i64,
}

/// With all fields, so that conditions of other writers can be written back unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HyperNodeCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

#[cfg(feature = "schema")]
fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "type": { "type": "string" },
                "status": { "type": "string" },
                "reason": { "type": "string" },
                "message": { "type": "string" },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    })
}

impl Contents for HyperNode {
    fn problems(&self) -> Vec<Problem> {
        validate_hyper_node(self)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let HyperNode { metadata, spec, status } = self;
        let HyperNodeSpec { tier: _, tier_name, members } = spec;
        walk.meta(Class::Domain, metadata);
        walk.name(Class::Tier, tier_name);
        for member in members {
            let class = if member.kind == MemberKind::Node { Class::Node } else { Class::Domain };
            walk.names(class, member.selector.exact_match.iter_mut().map(|exact| &mut exact.name));
            member.selector.label_match.iter_mut().for_each(|selector| walk.selector(selector));
        }
        let conditions = status.iter_mut().flat_map(|status| &mut status.conditions);
        for condition in conditions {
            let HyperNodeCondition { kind, reason, message, .. } = condition;
            walk.condition_fields(kind, reason, message);
        }
    }
}
