//! Fields that are not read because they are misspelt. The API server drops them without an error.
//! We drop them too, but report them.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::PlacedProblem;
use muster_yaml::{Value, Yaml};

/// The fields of an object that its kind doesn't have, each with the most similar name that it has.
pub(super) fn unknown_fields(kind: &str, tree: &Yaml) -> Vec<PlacedProblem> {
    let mut found = Vec::new();
    check(tree, kind, String::new(), &mut found);
    found
}

/// Fields by name, each with its own type if it has fields itself.
type Fields = HashMap<&'static str, Option<&'static str>>;

/// The fields of a type, if they are known: they are for kinds that people write by hand.
fn fields(type_name: &str) -> Option<&'static Fields> {
    static TYPES: OnceLock<HashMap<&str, Fields>> = OnceLock::new();
    let types = TYPES.get_or_init(|| {
        let lines = include_str!("../../fields.txt").lines().filter(|line| !line.starts_with('#'));
        let of_type = |line: &'static str| {
            let mut words = line.split(' ');
            let name = words.next()?;
            let field = |word: &'static str| match word.split_once(':') {
                Some((field, inner)) => (field, Some(inner)),
                None => (word, None),
            };
            Some((name, words.map(field).collect()))
        };
        lines.filter_map(of_type).collect()
    });
    types.get(type_name)
}

/// Looks for fields that a type doesn't have; a type in brackets is a list.
fn check(tree: &Yaml, type_name: &str, path: String, found: &mut Vec<PlacedProblem>) {
    let of_items = type_name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match (&tree.value, of_items) {
        (Value::Seq(items), Some(type_name)) => {
            for (index, item) in items.iter().enumerate() {
                check(item, type_name, format!("{path}[{index}]"), found);
            }
        }
        (Value::Map(entries), None) => {
            let Some(fields) = fields(type_name) else { return };
            for (key, value) in entries {
                let path =
                    if path.is_empty() { key.name.clone() } else { format!("{path}.{}", key.name) };
                match fields.get(&*key.name) {
                    Some(Some(inner)) => check(value, inner, path, found),
                    Some(None) => {}
                    None => {
                        let message = unknown(&key.name, fields);
                        found.push(PlacedProblem { line: key.line, path, message });
                    }
                }
            }
        }
        _ => {}
    }
}

fn unknown(name: &str, fields: &Fields) -> String {
    let near = fields.keys().map(|field| (strsim::damerau_levenshtein(field, name), field));
    match near.min().filter(|(distance, _)| *distance <= 2) {
        Some((_, field)) => format!("is not read: did you mean {field}?"),
        None => "is not read: there is no such field".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(kind: &str, text: &str) -> Vec<String> {
        let tree = muster_yaml::parse(text).expect("a good document");
        unknown_fields(kind, &tree)
            .into_iter()
            .map(|field| format!("{}: {} {}", field.line, field.path, field.message))
            .collect()
    }

    #[test]
    fn misspelt_fields_are_reported_with_the_most_similar_one() {
        let text = "apiVersion: v1\nkind: PodGroup\nmetadata: {name: g}\nspec:\n  minMembers: 4\n  queue: q\n";
        assert_eq!(
            problems("PodGroup", text),
            ["5: spec.minMembers is not read: did you mean minMember?"]
        );
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, anotations: {a: b}}\nspec:\n  containers:\n  - name: c\n    resource: {}\n";
        assert_eq!(
            problems("Pod", text),
            [
                "3: metadata.anotations is not read: did you mean annotations?",
                "7: spec.containers[0].resource is not read: did you mean resources?",
            ]
        );
    }

    #[test]
    fn free_maps_and_existing_fields_are_accepted() {
        let text = "
metadata: {name: p, labels: {any: thing}, annotations: {what: ever}}
spec:
  nodeSelector: {my: label}
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}
  containers: [{name: c, image: i, resources: {requests: {cpu: 1, example.com/x: 2}, limits: {}}, ports: [{hostPort: 1, hostIP: x}]}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b}}}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
status: {phase: Running, startTime: null, nominatedNodeName: n}";
        assert_eq!(problems("Pod", text), [""; 0]);
        let text = "spec: {weight: 1, capability: {cpu: 1}, guarantee: {resource: {cpu: 1}}, affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [a]}}}\nstatus: {state: Open}";
        assert_eq!(problems("Queue", text), [""; 0]);
    }
}
