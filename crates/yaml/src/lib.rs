//! YAML and JSON as a tree in which every value knows its position in the text, so that each
//! message about a value can name a line.
//!
//! Plain scalars follow YAML 1.2 (yes, no, on and off are strings). The tree is never deeper than
//! [`DEPTH`], never has more than [`NODES`] values and aliases never add more than [`ALIAS_NODES`]
//! of them, so that no text can exhaust the machine.
//!
//! ```
//! let queue = muster_yaml::parse("spec:\n  deserved:\n    cpu: \"4\"\n").expect("YAML");
//! assert_eq!(queue.get("spec.deserved.cpu").and_then(|cpu| cpu.as_str()), Some("4"));
//! assert_eq!(queue.line_of("spec.deserved.cpu"), 3);
//! ```

mod build;
mod decode;
mod events;
mod json;
mod scalar;

use std::fmt;

pub use build::{ItemSink, read};

/// How deep values may be nested. Real manifests need about 20.
pub const DEPTH: usize = 128;
/// How many values one document, or one item of a list, may have. Real objects have about a
/// hundred.
pub const NODES: usize = 2_000_000;
/// How many values aliases and merge keys may add to one document.
pub const ALIAS_NODES: usize = 100_000;

/// A value and where it starts, both counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Yaml {
    pub line: u32,
    pub column: u32,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Seq(Vec<Yaml>),
    /// In the order of the text, each key once.
    Map(Vec<(Key, Yaml)>),
}

/// The key of a map entry and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub line: u32,
    pub column: u32,
    pub name: String,
}

/// What is wrong with a document, and where.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct YamlError {
    pub line: u32,
    pub column: u32,
    /// The field, for example `spec.containers[0].image`; empty if the text itself is broken.
    pub path: String,
    pub message: String,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// Reads one document, YAML or JSON. A text without a document is null.
pub fn parse(text: &str) -> Result<Yaml, YamlError> {
    read(text, 1, None)
}

impl Yaml {
    /// The entry of a map.
    pub fn entry(&self, name: &str) -> Option<&Yaml> {
        match &self.value {
            Value::Map(entries) => {
                entries.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value at a path such as `spec.members[2].selector` or
    /// `metadata.labels[app.kubernetes.io/name]`.
    pub fn get(&self, path: &str) -> Option<&Yaml> {
        let (found, rest) = self.descend(path);
        rest.is_empty().then_some(found.value)
    }

    /// The line of the value at a path, or of the innermost existing value around it.
    pub fn line_of(&self, path: &str) -> u32 {
        self.descend(path).0.line
    }

    /// Follows the path as far as it exists; returns the last value and the rest of the path.
    fn descend<'a, 'p>(&'a self, path: &'p str) -> (Place<'a>, &'p str) {
        let mut place = Place { line: self.line, value: self };
        let mut rest = path;
        while !rest.is_empty() {
            match place.step(rest) {
                Some((next, after)) => (place, rest) = (next, after),
                None => break,
            }
        }
        (place, rest)
    }

    /// What the value is, to follow the word "found".
    pub fn description(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("the boolean {value}"),
            Value::Int(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::String(text) if text.chars().count() > 40 => {
                format!("the string {:?}…", text.chars().take(40).collect::<String>())
            }
            Value::String(text) => format!("the string {text:?}"),
            Value::Seq(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// A value, and the line where a reader would look for it: that of its key if it has one.
struct Place<'a> {
    line: u32,
    value: &'a Yaml,
}

impl<'a> Place<'a> {
    fn step<'p>(&self, path: &'p str) -> Option<(Place<'a>, &'p str)> {
        match &self.value.value {
            Value::Map(entries) => {
                let (name, rest) = match path.strip_prefix('[') {
                    Some(inner) => inner.split_once(']')?,
                    None => {
                        let path = path.strip_prefix('.').unwrap_or(path);
                        path.split_at(path.find(['.', '[']).unwrap_or(path.len()))
                    }
                };
                let (key, value) = entries.iter().find(|(key, _)| key.name == name)?;
                Some((Place { line: key.line, value }, rest))
            }
            Value::Seq(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                let value = items.get(index.parse::<usize>().ok()?)?;
                Some((Place { line: value.line, value }, rest))
            }
            _ => None,
        }
    }
}

/// Puts a key or an index in front of a path. Keys that contain characters with a meaning in paths
/// are put in brackets.
pub(crate) fn prefixed(key: &str, path: &str) -> String {
    let plain = !key.is_empty() && !key.contains(['.', '[', ']', '/', ' ']);
    let key = if plain { key.to_owned() } else { format!("[{key}]") };
    if path.is_empty() || path.starts_with('[') {
        format!("{key}{path}")
    } else {
        format!("{key}.{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
metadata:
  labels:
    app.kubernetes.io/name: web
spec:
  members:
  - name: a
  - name: b
    selector: {exact: x}
";

    #[test]
    fn a_path_leads_to_its_line() {
        let tree = parse(TEXT).unwrap();
        for (path, line) in [
            ("metadata", 1),
            ("metadata.labels[app.kubernetes.io/name]", 3),
            ("spec.members", 5),
            ("spec.members[1].name", 7),
            ("spec.members[1].selector.exact", 8),
        ] {
            assert_eq!(tree.line_of(path), line, "{path}");
            assert!(tree.get(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_missing_path_leads_to_the_innermost_existing_value() {
        let tree = parse(TEXT).unwrap();
        for (path, line) in [
            ("", 1),
            ("status", 1),
            ("spec.members[1].missing", 7),
            ("spec.members[9]", 5),
            ("spec.members[x]", 5),
            ("spec.members[", 5),
            ("metadata.labels[no", 2),
        ] {
            assert_eq!(tree.line_of(path), line, "{path}");
        }
        assert_eq!(tree.get("spec.members[9]"), None);
    }
}
