//! Builds the tree from events: resolves plain scalars, aliases and merge keys, and enforces the
//! limits.

use std::collections::HashMap;

use super::events::{Event, Events, Positioned, YamlEvents};
use super::json::{self, JsonEvents};
use super::scalar::resolve;
use super::{ALIAS_NODES, DEPTH, Key, NODES, Value, Yaml, YamlError};

/// A broken JSON text larger than this is not tried as YAML, which would need many times its size
/// in memory.
const JSON_AS_YAML_BYTES: usize = 1 << 20;
/// Maps up to this size are searched for duplicate keys entry by entry, which is faster than
/// hashing.
const FEW_KEYS: usize = 16;

/// Takes the items of a list one at a time, with the kind of the list.
pub type ItemSink<'s> = dyn FnMut(&str, Yaml) + 's;

/// Reads one document whose first line has the given number. With a sink, the items of a Kubernetes
/// list go there instead of into the tree, so that only one of them is held at a time.
pub fn read(
    text: &str,
    first_line: u32,
    sink: Option<&mut ItemSink<'_>>,
) -> Result<Yaml, YamlError> {
    match is_json(text, first_line) {
        Ok(true) => Builder::new(JsonEvents::new(text, first_line)).document(text, sink),
        Ok(false) => Builder::new(YamlEvents::new(text, first_line)).document(text, sink),
        Err(broken) if text.len() > JSON_AS_YAML_BYTES => Err(broken),
        // YAML allows what JSON does not, for example a trailing comma. If the text is neither, it
        // was meant as JSON.
        Err(broken) => {
            Builder::new(YamlEvents::new(text, first_line)).document(text, sink).map_err(|_| broken)
        }
    }
}

/// Whether to read the text as JSON, or why that fails although the text looks like it.
fn is_json(text: &str, first_line: u32) -> Result<bool, YamlError> {
    let looks_like_it = text
        .trim_start()
        .strip_prefix('{')
        .is_some_and(|rest| rest.trim_start().starts_with(['"', '}']));
    if looks_like_it { json::check(text, first_line).map(|()| true) } else { Ok(false) }
}

/// The text of a scalar entry of the outermost map, without building a tree.
fn root_text<'a>(mut events: impl Events<'a>, name: &str) -> Option<String> {
    let mut depth = 0;
    let mut is_key = false;
    loop {
        match events.next().ok()?.event {
            Event::MapStart(_) | Event::SeqStart(_) => {
                depth += 1;
                is_key = true;
            }
            Event::MapEnd | Event::SeqEnd => {
                depth -= 1;
                is_key = true;
            }
            Event::Scalar { text, .. } if depth == 1 && is_key && text == name => {
                return match events.next().ok()?.event {
                    Event::Scalar { text, .. } => Some(text.into_owned()),
                    _ => None,
                };
            }
            Event::Scalar { .. } | Event::Alias(_) if depth == 1 => is_key = !is_key,
            Event::Scalar { .. } | Event::Alias(_) => {}
            Event::End => return None,
        }
    }
}

/// The kind of the document, wherever it is in the text.
fn root_kind(text: &str) -> Option<String> {
    match is_json(text, 1) {
        Ok(true) => root_text(JsonEvents::new(text, 1), "kind"),
        _ => root_text(YamlEvents::new(text, 1), "kind"),
    }
}

struct Builder<E> {
    events: E,
    /// Each anchored value and its weight.
    anchors: HashMap<usize, (Yaml, usize)>,
    alias_weight: usize,
    /// How many values the document, or the item of a list, has so far.
    nodes: usize,
}

impl<'a, E: Events<'a>> Builder<E> {
    fn new(events: E) -> Builder<E> {
        Builder { events, anchors: HashMap::new(), alias_weight: 0, nodes: 0 }
    }

    fn document(mut self, text: &str, sink: Option<&mut ItemSink<'_>>) -> Result<Yaml, YamlError> {
        let first = self.events.next()?;
        let (line, column) = (first.line, first.column);
        let root = match (first.event, sink) {
            (Event::End, _) => return Ok(Yaml { line, column, value: Value::Null }),
            (Event::MapStart(_), Some(sink)) => {
                let mut list = List { text, sink, kind: None };
                Yaml { line, column, value: Value::Map(self.map(1, Some(&mut list))?) }
            }
            (event, _) => self.node(Positioned { line, column, event }, 0)?,
        };
        for _ in 0..2 {
            let after = self.events.next()?;
            if !matches!(after.event, Event::End) {
                return Err(error_at(
                    after.line,
                    after.column,
                    "a second document begins here; remove it, or put --- before it",
                ));
            }
        }
        Ok(root)
    }

    fn node(&mut self, start: Positioned<'_>, depth: usize) -> Result<Yaml, YamlError> {
        let Positioned { line, column, event } = start;
        if depth >= DEPTH {
            return Err(error_at(
                line,
                column,
                format!("values are nested more than {DEPTH} deep"),
            ));
        }
        self.nodes += 1;
        if self.nodes > NODES {
            return Err(error_at(
                line,
                column,
                format!("there are more than {NODES} values in one object"),
            ));
        }
        let (value, anchor) = match event {
            Event::Scalar { text, plain: true, anchor } => (resolve(text), anchor),
            Event::Scalar { text, plain: false, anchor } => {
                (Value::String(text.into_owned()), anchor)
            }
            Event::SeqStart(anchor) => (Value::Seq(self.items(depth + 1)?), anchor),
            Event::MapStart(anchor) => (Value::Map(self.map(depth + 1, None)?), anchor),
            Event::Alias(anchor) => return self.alias(anchor, line, column),
            Event::SeqEnd | Event::MapEnd | Event::End => {
                return Err(error_at(line, column, "a value is missing here"));
            }
        };
        let node = Yaml { line, column, value };
        if anchor != 0 {
            let weight = weight(&node);
            self.spend(weight, line, column)?;
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        Ok(node)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Yaml>, YamlError> {
        let mut items = Vec::new();
        loop {
            let next = self.events.next()?;
            if matches!(next.event, Event::SeqEnd) {
                return Ok(items);
            }
            items.push(self.node(next, depth)?);
        }
    }

    fn map(
        &mut self,
        depth: usize,
        mut list: Option<&mut List<'_, '_>>,
    ) -> Result<Vec<(Key, Yaml)>, YamlError> {
        let mut entries: Vec<(Key, Yaml)> = Vec::new();
        let mut merged = Vec::new();
        loop {
            let Positioned { line, column, event } = self.events.next()?;
            let (name, plain) = match event {
                Event::MapEnd => break,
                Event::Scalar { text, plain, .. } => (text.into_owned(), plain),
                Event::Alias(anchor) => match self.alias(anchor, line, column)?.value {
                    Value::String(name) => (name, false),
                    _ => return Err(error_at(line, column, "a key must be a string")),
                },
                _ => {
                    return Err(error_at(
                        line,
                        column,
                        "a key must be a string, not a list or a mapping",
                    ));
                }
            };
            let start = self.events.next()?;
            if name == "<<" && plain {
                let source = self.node(start, depth)?;
                merged.extend(merge_entries(source)?);
                continue;
            }
            let key = Key { line, column, name };
            let is_list = matches!(start.event, Event::SeqStart(_));
            let items_of = list
                .as_deref_mut()
                .filter(|_| is_list)
                .and_then(|list| list.beginning_at(&key, &entries));
            let value = match items_of {
                Some(list) => self.stream(start, list)?,
                None => self.node(start, depth)?,
            };
            entries.push((key, value));
        }
        refuse_duplicates(&entries)?;
        // Entries of the map itself take precedence over merged ones, and earlier merged ones over
        // later ones.
        for (key, value) in merged {
            if entries.iter().all(|(present, _)| present.name != key.name) {
                entries.push((key, value));
            }
        }
        Ok(entries)
    }

    /// Passes on the items of a Kubernetes list instead of keeping them.
    fn stream(
        &mut self,
        start: Positioned<'_>,
        list: &mut List<'_, '_>,
    ) -> Result<Yaml, YamlError> {
        loop {
            let next = self.events.next()?;
            if matches!(next.event, Event::SeqEnd) {
                return Ok(Yaml {
                    line: start.line,
                    column: start.column,
                    value: Value::Seq(Vec::new()),
                });
            }
            self.nodes = 0;
            let item = self.node(next, 2)?;
            (list.sink)(list.kind.as_deref().unwrap_or_default(), item);
        }
    }

    fn alias(&mut self, anchor: usize, line: u32, column: u32) -> Result<Yaml, YamlError> {
        let Some((node, weight)) = self.anchors.get(&anchor) else {
            return Err(error_at(
                line,
                column,
                "the alias stands inside the value that it refers to",
            ));
        };
        let (node, weight) = (node.clone(), *weight);
        self.spend(weight, line, column)?;
        Ok(node)
    }

    fn spend(&mut self, weight: usize, line: u32, column: u32) -> Result<(), YamlError> {
        self.alias_weight += weight;
        if self.alias_weight > ALIAS_NODES {
            return Err(error_at(
                line,
                column,
                format!("aliases expand to more than {ALIAS_NODES} nodes"),
            ));
        }
        Ok(())
    }
}

/// A document that may turn out to be a Kubernetes list.
struct List<'t, 's> {
    text: &'t str,
    sink: &'t mut ItemSink<'s>,
    /// Set once its items begin.
    kind: Option<String>,
}

impl List<'_, '_> {
    /// The list, if its items begin with this key. The kind is usually among the entries before it;
    /// kubectl puts it after the items.
    fn beginning_at(&mut self, key: &Key, before: &[(Key, Yaml)]) -> Option<&mut Self> {
        if key.name != "items" {
            return None;
        }
        self.kind = match before.iter().find(|(key, _)| key.name == "kind") {
            Some((_, kind)) => kind.as_str().map(str::to_owned),
            None => root_kind(self.text),
        };
        self.kind.as_ref().is_some_and(|kind| kind.ends_with("List")).then_some(self)
    }
}

fn error_at(line: u32, column: u32, message: impl Into<String>) -> YamlError {
    YamlError { line, column, path: String::new(), message: message.into() }
}

/// How much an alias to the value costs: its nodes, and long strings by their length.
fn weight(node: &Yaml) -> usize {
    1 + match &node.value {
        Value::String(text) => text.len() / 32,
        Value::Seq(items) => items.iter().map(weight).sum(),
        Value::Map(entries) => {
            entries.iter().map(|(key, value)| key.name.len() / 32 + weight(value)).sum()
        }
        _ => 0,
    }
}

/// The entries that a merge key adds; of several maps, the first that has a key takes precedence.
fn merge_entries(source: Yaml) -> Result<Vec<(Key, Yaml)>, YamlError> {
    let wrong = |line, column| {
        error_at(line, column, "the merge key << needs a mapping or a list of mappings")
    };
    match source.value {
        Value::Map(entries) => Ok(entries),
        Value::Seq(items) => {
            let mut all = Vec::new();
            for item in items {
                match item.value {
                    Value::Map(entries) => all.extend(entries),
                    _ => return Err(wrong(item.line, item.column)),
                }
            }
            Ok(all)
        }
        _ => Err(wrong(source.line, source.column)),
    }
}

fn refuse_duplicates(entries: &[(Key, Yaml)]) -> Result<(), YamlError> {
    let refuse = |first: &Key, second: &Key| {
        let message =
            format!("the key {:?} is given twice, first on line {}", second.name, first.line);
        Err(error_at(second.line, second.column, message))
    };
    if entries.len() <= FEW_KEYS {
        for (index, (second, _)) in entries.iter().enumerate() {
            if let Some((first, _)) =
                entries[..index].iter().find(|(first, _)| first.name == second.name)
            {
                return refuse(first, second);
            }
        }
    } else {
        let mut seen = HashMap::with_capacity(entries.len());
        for (key, _) in entries {
            if let Some(first) = seen.insert(key.name.as_str(), key) {
                return refuse(first, key);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::super::parse;
    use super::*;

    /// The tree without its positions.
    fn shape(node: &Yaml) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(number) => (*number).into(),
            Value::Float(number) => (*number).into(),
            Value::String(text) => text.as_str().into(),
            Value::Seq(items) => items.iter().map(shape).collect(),
            Value::Map(entries) => serde_json::Value::Object(
                entries.iter().map(|(key, value)| (key.name.clone(), shape(value))).collect(),
            ),
        }
    }

    fn refused(text: &str) -> (u32, String) {
        let error = parse(text).expect_err(text);
        (error.line, error.message)
    }

    #[test]
    fn merge_keys_add_missing_entries() {
        let tree = parse(
            "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nuse:\n  <<: [*base, *other]\n  a: 9\n",
        );
        let expected = serde_json::json!({"a": 9, "b": 2, "c": 4});
        assert_eq!(shape(tree.unwrap().entry("use").unwrap()), expected);
        assert!(refused("a:\n  <<: 5\n").1.contains("needs a mapping"));
    }

    #[test]
    fn an_alias_bomb_is_rejected() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let aliases = format!("*a{}, ", level - 1).repeat(10);
            writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        assert_eq!(refused(&bomb).1, "aliases expand to more than 100000 nodes");
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(1_000_000), "*a, ".repeat(1_000));
        assert_eq!(refused(&long).1, "aliases expand to more than 100000 nodes");
    }

    #[test]
    fn an_alias_to_itself_is_rejected() {
        assert!(refused("a: &a\n  b: *a\n").1.contains("alias"));
        assert!(parse("a: *missing\n").is_err());
    }

    #[test]
    fn a_duplicate_key_is_rejected_with_both_lines() {
        let expected = (3, "the key \"a\" is given twice, first on line 1".to_owned());
        assert_eq!(refused("a: 1\nb: 2\na: 3\n"), expected);
        assert_eq!(refused("{\"a\": 1,\n\"b\": 2,\n\"a\": 3}"), expected);
        let mut many = String::new();
        for index in 0..1_000 {
            writeln!(many, "k{index}: 1").unwrap();
        }
        assert_eq!(
            refused(&(many + "k7: 2")),
            (1001, "the key \"k7\" is given twice, first on line 8".to_owned())
        );
    }

    #[test]
    fn deep_nesting_is_rejected_without_a_crash() {
        for text in
            ["[".repeat(20_000), "- ".repeat(20_000), "{\"a\":".repeat(20_000), "? ".repeat(20_000)]
        {
            assert!(parse(&text).is_err());
        }
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&deep(DEPTH - 1)).is_ok());
        assert!(refused(&deep(DEPTH + 1)).1.contains("nested more than 128 deep"));
    }

    #[test]
    fn documents_that_would_exhaust_memory_are_rejected() {
        let flow = format!("[{}", "a,".repeat(3 << 20));
        assert!(refused(&flow).1.contains("longer than 4 MiB"));
        let scalar = format!("a: {}", "x".repeat(5 << 20));
        assert!(refused(&scalar).1.contains("longer than 4 MiB"));
        let block = "- a\n".repeat(NODES + 1);
        assert!(refused(&block).1.contains("more than 2000000 values"));
    }

    #[test]
    fn keys_are_text() {
        let tree = parse("1: a\ntrue: b\n").unwrap();
        assert_eq!(shape(&tree), serde_json::json!({"1": "a", "true": "b"}));
        assert!(refused("? [a]\n: b\n").1.contains("a key must be a string"));
    }

    #[test]
    fn an_empty_document_is_null() {
        for text in ["", "# only a comment\n", "---\n", "---\n...\n"] {
            assert_eq!(parse(text).unwrap().value, Value::Null, "{text:?}");
        }
    }

    #[test]
    fn items_of_a_list_are_passed_on_one_by_one() {
        for text in [
            "kind: PodList\nitems:\n- a: 1\n- b: 2\n",
            "items:\n- a: 1\n- b: 2\nmetadata: {kind: no}\nkind: PodList\n",
            "{\"items\": [{\"a\": 1},\n{\"b\": 2}], \"kind\": \"PodList\"}",
        ] {
            let mut items = Vec::new();
            let root =
                read(text, 1, Some(&mut |kind, item| items.push((kind.to_owned(), shape(&item)))))
                    .unwrap();
            let expected = [serde_json::json!({"a": 1}), serde_json::json!({"b": 2})];
            assert_eq!(items, expected.map(|item| ("PodList".to_owned(), item)), "{text}");
            assert_eq!(root.entry("kind").unwrap().as_str(), Some("PodList"));
        }
        let mut items = 0;
        read("kind: Pod\nitems: [1]\n", 1, Some(&mut |_, _| items += 1)).unwrap();
        assert_eq!(items, 0);
    }

    #[test]
    fn json_with_a_trailing_comma_is_read_as_yaml() {
        assert_eq!(shape(&parse("{\"a\": 1,}").unwrap()), serde_json::json!({"a": 1}));
        assert!(refused("{\"a\": 1").1.starts_with("the JSON is broken here"));
    }
}
