//! Fields that nobody reads because they are misspelt. The API server drops them without an error,
//! and so do we, but not without a word.

use std::sync::OnceLock;

use kube::CustomResourceExt;
use serde_json::Value as Json;

use super::PlacedProblem;
use crate::{HyperNode, PodGroup, Queue};
use muster_yaml::{Value, Yaml};

/// The fields of an object that its kind doesn't have, each with the nearest name that it has.
pub(super) fn unknown_fields(kind: &str, tree: &Yaml) -> Vec<PlacedProblem> {
    let mut found = Vec::new();
    if let Some(schema) = schema(kind) {
        walk(tree, schema, schema, String::new(), &mut found);
    }
    found
}

/// The schema of the kinds that people write by hand.
fn schema(kind: &str) -> Option<&'static Json> {
    static SCHEMAS: OnceLock<[(&str, Json); 5]> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        [
            ("HyperNode", of_definition(&HyperNode::crd())),
            ("Node", of_type::<k8s_openapi::api::core::v1::Node>()),
            ("Pod", of_type::<k8s_openapi::api::core::v1::Pod>()),
            ("PodGroup", of_definition(&PodGroup::crd())),
            ("Queue", of_definition(&Queue::crd())),
        ]
    });
    schemas.iter().find(|(name, _)| *name == kind).map(|(_, schema)| schema)
}

fn of_type<T: schemars::JsonSchema>() -> Json {
    schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

/// A definition leaves out what all objects have.
fn of_definition(definition: &impl serde::Serialize) -> Json {
    let definition = serde_json::to_value(definition).unwrap_or_default();
    let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    for common in ["apiVersion", "kind", "metadata"] {
        schema["properties"][common] = Json::Object(serde_json::Map::new());
    }
    schema
}

fn walk(tree: &Yaml, schema: &Json, root: &Json, path: String, found: &mut Vec<PlacedProblem>) {
    let schema = resolved(schema, root);
    match &tree.value {
        Value::Map(entries) => {
            let Some(properties) = schema.get("properties").and_then(Json::as_object) else {
                return;
            };
            for (key, value) in entries {
                let path =
                    if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
                match properties.get(&key.name) {
                    Some(property) => walk(value, property, root, path, found),
                    None => {
                        let near = properties
                            .keys()
                            .map(|name| (strsim::damerau_levenshtein(name, &key.name), name));
                        let near = near.min().filter(|(distance, _)| *distance <= 2);
                        let message = match near {
                            Some((_, name)) => format!("is not read: did you mean {name}?"),
                            None => "is not read: there is no such field".to_owned(),
                        };
                        found.push(PlacedProblem { line: key.line, path, message });
                    }
                }
            }
        }
        Value::Seq(items) => {
            let Some(of_items) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                walk(item, of_items, root, format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Follows references and the wrappers around them to the schema that lists fields or items.
fn resolved<'s>(mut schema: &'s Json, root: &'s Json) -> &'s Json {
    // A schema is wrapped a few times at most.
    for _ in 0..8 {
        let inner = match schema.get("$ref").and_then(Json::as_str) {
            Some(reference) => root.pointer(reference.trim_start_matches('#')),
            None => ["allOf", "anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.get(0)),
        };
        match inner {
            Some(inner) if schema.get("properties").is_none() => schema = inner,
            _ => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(kind: &str, text: &str) -> Vec<String> {
        let tree = muster_yaml::parse(text).expect("a good document");
        unknown_fields(kind, &tree)
            .into_iter()
            .map(|field| format!("{}: {} {}", field.line, field.path, field.message))
            .collect()
    }

    #[test]
    fn misspelt_fields_are_named_with_the_nearest_that_exists() {
        let text = "apiVersion: v1\nkind: PodGroup\nmetadata: {name: g}\nspec:\n  minMembers: 4\n  queue: q\n";
        assert_eq!(
            unknown("PodGroup", text),
            ["5: spec.minMembers is not read: did you mean minMember?"]
        );
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, anotations: {a: b}}\nspec:\n  containers:\n  - name: c\n    resource: {}\n";
        assert_eq!(
            unknown("Pod", text),
            [
                "3: metadata.anotations is not read: did you mean annotations?",
                "7: spec.containers[0].resource is not read: did you mean resources?",
            ]
        );
    }

    #[test]
    fn free_maps_and_all_real_fields_are_fine() {
        let text = "
metadata: {name: p, labels: {any: thing}, annotations: {what: ever}}
spec:
  nodeSelector: {my: label}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
  containers: [{name: c, image: i, resources: {requests: {cpu: 1, example.com/x: 2}, limits: {}}, ports: [{hostPort: 1, hostIP: x}]}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
status: {phase: Running, startTime: null, nominatedNodeName: n}";
        assert_eq!(unknown("Pod", text), [""; 0]);
        let text = "spec: {weight: 1, capability: {cpu: 1}, guarantee: {resource: {cpu: 1}}, affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}}\nstatus: {state: Open}";
        assert_eq!(unknown("Queue", text), [""; 0]);
    }
}
