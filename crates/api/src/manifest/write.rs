//! Writes objects as YAML that [`read`](super::read) reads: one document each, on one line what
//! fits on one line, and without empty fields.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::Object;

/// Lines are no longer than this where that is possible.
const WIDTH: usize = 110;

/// These come first, so that a reader sees at once what the object is.
const FIRST: [&str; 6] = ["apiVersion", "kind", "metadata", "name", "namespace", "type"];

/// Writes the objects by kind and name, whatever their order.
pub fn write<'o>(
    objects: impl IntoIterator<Item = &'o Object>,
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    for object in sorted(objects) {
        let mut text = String::from("---\n");
        entries(&document(object)?, 0, &mut text);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The objects by kind and name.
pub fn sorted<'o>(objects: impl IntoIterator<Item = &'o Object>) -> Vec<&'o Object> {
    let mut sorted: Vec<(&str, String, &Object)> =
        objects.into_iter().map(|object| (object.kind().name(), object.key(), object)).collect();
    sorted.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    sorted.into_iter().map(|(_, _, object)| object).collect()
}

/// The object as the API server would return it, with its kind.
pub fn document(object: &Object) -> io::Result<Map<String, Value>> {
    let Value::Object(mut map) = object.fields()? else { unreachable!("every kind is a map") };
    let kind = object.kind();
    map.insert("apiVersion".to_owned(), kind.api_version().into());
    map.insert("kind".to_owned(), kind.name().into());
    if let Some(status) = map.get_mut("status") {
        drop_zeros(status);
    }
    map.retain(|_, value| !value.is_null());
    Ok(map)
}

/// Custom kinds write zeros and empty texts in their status, which mean nothing there.
fn drop_zeros(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| *value != "" && *value != 0);
            map.values_mut().for_each(drop_zeros);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_zeros),
        _ => {}
    }
}

/// The entries of a map, one per line, or on several lines if one line is too long.
fn entries(map: &Map<String, Value>, indent: usize, text: &mut String) {
    for (at, (key, value)) in in_order(map).into_iter().enumerate() {
        if at > 0 {
            text.push_str(&" ".repeat(indent));
        }
        scalar(key, text);
        text.push(':');
        let start = text.len() - text.rfind('\n').map_or(0, |end| end + 1);
        let line = flow(value);
        match value {
            Value::Object(map) if start + 1 + line.len() > WIDTH && !map.is_empty() => {
                text.push('\n');
                text.push_str(&" ".repeat(indent + 2));
                entries(map, indent + 2, text);
            }
            Value::Array(items) if start + 1 + line.len() > WIDTH && !items.is_empty() => {
                text.push('\n');
                list(items, indent, text);
            }
            _ => {
                text.push(' ');
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
}

fn list(items: &[Value], indent: usize, text: &mut String) {
    for item in items {
        text.push_str(&" ".repeat(indent));
        text.push_str("- ");
        let line = flow(item);
        match item {
            Value::Object(map) if indent + 2 + line.len() > WIDTH && !map.is_empty() => {
                entries(map, indent + 2, text);
            }
            _ => {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
}

fn in_order(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<(&String, &Value)> = map.iter().collect();
    let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    entries.sort_by(|a, b| (place(a.0), a.0).cmp(&(place(b.0), b.0)));
    entries
}

/// The value on one line.
fn flow(value: &Value) -> String {
    let mut text = String::new();
    flow_into(value, &mut text);
    text
}

fn flow_into(value: &Value, text: &mut String) {
    let mut separator = "";
    match value {
        Value::Object(map) => {
            text.push('{');
            for (key, value) in in_order(map) {
                text.push_str(std::mem::replace(&mut separator, ", "));
                scalar(key, text);
                text.push_str(": ");
                flow_into(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                text.push_str(std::mem::replace(&mut separator, ", "));
                flow_into(item, text);
            }
            text.push(']');
        }
        Value::String(string) => scalar(string, text),
        other => text.push_str(&other.to_string()),
    }
}

/// A text, in quotes unless every reader of YAML reads it as a text without them.
fn scalar(string: &str, text: &mut String) {
    match is_plain(string) {
        true => text.push_str(string),
        // JSON's quotes and escapes are valid in YAML.
        false => text.push_str(&Value::from(string).to_string()),
    }
}

fn is_plain(string: &str) -> bool {
    const OTHER_MEANING: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let bytes = string.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./".contains(byte);
    let word = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.iter().all(inner)
        && !OTHER_MEANING.contains(&string.to_ascii_lowercase().as_str());
    word || is_amount(string)
}

/// A number with a unit, as quantities are written.
fn is_amount(string: &str) -> bool {
    let number = string.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &string[number.len()..];
    !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && ["m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "Pi"].contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::super::{Found, read};
    use super::*;

    /// The objects of a manifest, good or not.
    fn objects(text: &str) -> Vec<Object> {
        let mut objects = Vec::new();
        read("test", text.as_bytes(), &mut |found| match found {
            Found::Object { object, unknown, .. } if unknown.is_empty() => objects.push(object),
            other => panic!("{other:?}"),
        });
        objects
    }

    fn written(objects: &[Object]) -> String {
        let mut text = Vec::new();
        write(objects, &mut text).expect("writing to memory can't fail");
        String::from_utf8(text).expect("it is text")
    }

    const POD: &str = r#"---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: "on", labels: {"1": "", two: "2", yes-no: "yes"}}
spec:
  affinity:
    nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {labelSelector: {}, namespaceSelector: {}, topologyKey: zone}
      - {labelSelector: {matchExpressions: [{key: a, operator: In, values: ["", "2026"]}]}, topologyKey: z}
      - labelSelector:
          matchExpressions:
          - key: a
            operator: In
            values: [aaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccccccccccccccc, dddddd]
        topologyKey: z
  containers: [{name: main, image: "pause:3.10", resources: {requests: {cpu: 500m, memory: "8"}}}]
  tolerations: [{}, {operator: Exists}]
status: {phase: Running, startTime: "2026-11-15T00:00:00Z"}
"#;

    #[test]
    fn written_objects_are_read_back_unchanged() {
        let others = "
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minResources: {}, minTaskMember: {'': 2}}, status: {phase: Inqueue, running: 3}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q}, spec: {weight: 3, capability: {}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: c}, value: 5, globalDefault: true}
---
{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {name: h}, spec: {tier: 1, members: [{type: Node, selector: {labelMatch: {}}}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {minAvailable: 50%, selector: {}}}";
        for text in [POD, others] {
            let before = objects(text);
            let text = written(&before);
            let mut after = objects(&text);
            after.sort_by_key(|object| before.iter().position(|other| other.key() == object.key()));
            assert_eq!(after, before, "{text}");
        }
    }

    #[test]
    fn lines_are_filled_up_to_the_limit() {
        assert_eq!(written(&objects(POD)), POD);
        assert!(POD.lines().all(|line| line.len() <= WIDTH));
    }

    #[test]
    fn objects_are_ordered_by_kind_and_name() {
        let node =
            |name| format!("---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}\n");
        let text = written(&objects(&format!("{POD}{}{}", node("b"), node("a"))));
        let names: Vec<&str> = text.lines().filter(|line| line.starts_with("metadata: ")).collect();
        assert_eq!(names[..2], ["metadata: {name: a}", "metadata: {name: b}"]);
    }

    #[test]
    fn only_unambiguous_texts_are_written_without_quotes() {
        let plain = ["ring", "nvidia.com/gpu", "500m", "64Gi", "a-1", "v1", "a"];
        let quoted =
            ["", "y", "on", "No", "null", "1", "1e3", "0x1f", "1_0", "a b", "a:b", "-x", "~", "é"];
        for text in plain {
            assert!(is_plain(text), "{text}");
        }
        for text in quoted {
            assert!(!is_plain(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_read_as_it_was(key in "\\PC{0,12}", value in "(?s).{0,40}") {
            let mut node = crate::core::Node::default();
            node.metadata.name = "n1".to_owned();
            node.metadata.labels.insert(key, value);
            let before = [Object::from(node)];
            proptest::prop_assert_eq!(objects(&written(&before)), before);
        }
    }
}
