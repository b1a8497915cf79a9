//! The definitions that teach an API server our custom resources, as close to Volcano's as the
//! derived ones can be brought, so that either project's objects fit the other's definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
    ValidationRule,
};
use kube::CustomResourceExt;

use crate::{HyperNode, PodGroup, Queue};

/// The fields that the API server fills in. The derive gives every optional field a default; many
/// of those would break a rule of their own schema, and a status must not look as if someone had
/// written it.
const DEFAULTS: [&str; 7] = [
    "PodGroup.spec.queue",
    "PodGroup.spec.networkTopology.mode",
    "PodGroup.spec.subGroupPolicy.networkTopology.mode",
    "PodGroup.spec.subGroupPolicy.subGroupSize",
    "PodGroup.spec.subGroupPolicy.minSubGroups",
    "Queue.spec.weight",
    "Queue.spec.dequeueStrategy",
];

/// Every custom resource that the scheduler reads.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut group = plain(PodGroup::crd());
    let mut queue = plain(Queue::crd());
    for crd in [&mut group, &mut queue] {
        // Everything in these specs is optional, and so are they.
        spec(crd).default = Some(JSON(serde_json::json!({})));
    }
    root(&mut queue).x_kubernetes_validations = Some(vec![ValidationRule {
        rule: "!has(self.spec.parent) || self.spec.parent != self.metadata.name".to_owned(),
        message: Some("a queue cannot be its own parent".to_owned()),
        ..ValidationRule::default()
    }]);
    vec![plain(HyperNode::crd()), group, queue]
}

/// The definition without what the derive adds beyond Volcano's.
fn plain(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let kind = crd.spec.names.kind.clone();
    simplify(root(&mut crd), &kind);
    crd
}

fn root(crd: &mut CustomResourceDefinition) -> &mut JSONSchemaProps {
    let schema = crd.spec.versions[0].schema.as_mut();
    schema
        .and_then(|schema| schema.open_api_v3_schema.as_mut())
        .expect("a derived definition has a schema")
}

fn spec(crd: &mut CustomResourceDefinition) -> &mut JSONSchemaProps {
    let properties = root(crd).properties.as_mut();
    properties
        .and_then(|properties| properties.get_mut("spec"))
        .expect("a derived definition has a spec")
}

fn simplify(schema: &mut JSONSchemaProps, path: &str) {
    schema.nullable = None;
    if !DEFAULTS.contains(&path) {
        schema.default = None;
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        simplify(property, &format!("{path}.{name}"));
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        simplify(items, path);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        simplify(values, path);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Every schema in the definition, with its path.
    fn schemas(crd: &CustomResourceDefinition) -> Vec<(String, Value)> {
        fn walk(path: String, schema: Value, all: &mut Vec<(String, Value)>) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                walk(format!("{path}.{name}"), property.clone(), all);
            }
            for inner in ["items", "additionalProperties"] {
                if schema[inner].is_object() {
                    walk(format!("{path}.{inner}"), schema[inner].clone(), all);
                }
            }
            all.push((path, schema));
        }
        let crd = serde_json::to_value(crd).unwrap();
        let mut all = Vec::new();
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
        walk(kind, crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone(), &mut all);
        all
    }

    fn schema(path: &str) -> Value {
        let found = crds().iter().flat_map(schemas).find(|(name, _)| name == path);
        found.unwrap_or_else(|| panic!("no {path}")).1
    }

    #[test]
    fn every_schema_is_structural() {
        for (path, schema) in crds().iter().flat_map(schemas) {
            let int_or_string = schema["x-kubernetes-int-or-string"] == true;
            assert_ne!(
                schema["type"].is_string(),
                int_or_string,
                "{path} has a type or is int-or-string"
            );
            for key in
                ["$ref", "anyOf", "oneOf", "allOf", "not", "nullable", "definitions", "uniqueItems"]
            {
                assert!(schema.get(key).is_none(), "{path} has {key}");
            }
            let maps =
                schema.get("properties").is_some() && schema.get("additionalProperties").is_some();
            assert!(!maps, "{path} is a map and an object");
            let items = schema["type"] == "array";
            assert_eq!(schema.get("items").is_some(), items, "{path} has items only as a list");
        }
    }

    #[test]
    fn only_the_documented_fields_have_defaults() {
        let defaults: BTreeSet<(String, String)> = crds()
            .iter()
            .flat_map(schemas)
            .filter(|(_, schema)| schema.get("default").is_some())
            .map(|(path, schema)| (path, schema["default"].to_string()))
            .collect();
        let expected = [
            ("PodGroup.spec", "{}"),
            ("PodGroup.spec.networkTopology.mode", "\"hard\""),
            ("PodGroup.spec.queue", "\"default\""),
            ("PodGroup.spec.subGroupPolicy.items.minSubGroups", "0"),
            ("PodGroup.spec.subGroupPolicy.items.networkTopology.mode", "\"hard\""),
            ("PodGroup.spec.subGroupPolicy.items.subGroupSize", "1"),
            ("Queue.spec", "{}"),
            ("Queue.spec.dequeueStrategy", "\"traverse\""),
            ("Queue.spec.weight", "1"),
        ];
        assert_eq!(
            defaults,
            expected.map(|(path, value)| (path.to_owned(), value.to_owned())).into()
        );
    }

    #[test]
    fn limits_and_rules_are_in_the_schema() {
        for (path, key, value) in [
            ("Queue.spec.weight", "minimum", "1.0"),
            ("Queue.spec.weight", "maximum", "65535.0"),
            ("Queue.spec.priority", "minimum", "0.0"),
            ("Queue.spec.type", "maxLength", "253"),
            ("Queue.spec.parent", "maxLength", "253"),
            ("Queue.spec.dequeueStrategy", "enum", "[\"fifo\",\"traverse\"]"),
            ("PodGroup.spec.minMember", "minimum", "0.0"),
            ("PodGroup.spec.networkTopology.highestTierAllowed", "minimum", "0.0"),
            ("PodGroup.spec.subGroupPolicy.items.subGroupSize", "minimum", "1.0"),
            ("HyperNode.spec", "required", "[\"members\",\"tier\"]"),
            ("HyperNode.spec.tier", "minimum", "0.0"),
            ("HyperNode.spec.members", "minItems", "1"),
            ("HyperNode.spec.members.items.type", "enum", "[\"Node\",\"HyperNode\"]"),
            ("HyperNode.spec.members.items.selector.regexMatch.pattern", "minLength", "1"),
        ] {
            assert_eq!(schema(path)[key].to_string(), value, "{path} {key}");
        }
        for (path, rules) in [
            ("Queue", 1),
            ("Queue.spec", 3),
            ("PodGroup.spec.networkTopology", 1),
            ("PodGroup.spec.subGroupPolicy.items.networkTopology", 1),
            ("HyperNode.spec.members.items.selector", 1),
        ] {
            let found = schema(path)["x-kubernetes-validations"].as_array().map_or(0, Vec::len);
            assert_eq!(found, rules, "{path}");
        }
    }

    #[test]
    fn names_and_scopes_are_volcanos_and_every_kind_has_a_status_subresource() {
        let summary: Vec<String> = crds()
            .iter()
            .map(|crd| {
                let version = &crd.spec.versions[0];
                let status = if version.subresources.is_some() { "with" } else { "without" };
                let short = crd.spec.names.short_names.clone().unwrap_or_default().join(",");
                let name = crd.metadata.name.as_deref().unwrap_or_default();
                format!("{name} {} {} {short} {status} status", version.name, crd.spec.scope)
            })
            .collect();
        assert_eq!(
            summary,
            [
                "hypernodes.topology.volcano.sh v1alpha1 Cluster hn with status",
                "podgroups.scheduling.volcano.sh v1beta1 Namespaced pg,podgroup-v1beta1 with status",
                "queues.scheduling.volcano.sh v1beta1 Cluster q,queue-v1beta1 with status",
            ]
        );
    }
}
