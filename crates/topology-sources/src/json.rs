//! A list of nodes with their levels, from the leaf up: `[{"node": "n1", "levels": ["leaf1",
//! "spine1"]}]`.

use muster_yaml::{Value, Yaml};
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::error::{Origin, SourceError};
use crate::levels::level_names;
use crate::places::Place;

const FORM: &str = r#"[{"node": "n1", "levels": ["leaf1", "spine1"]}]"#;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonMistake {
    #[error("{reason}; write {FORM}")]
    NotJson { reason: String },
    /// It is JSON, but contains something that is not a tree of plain values.
    #[error("{reason}")]
    Unusual { reason: String },
    #[error("not a list; write {FORM}")]
    NotAList,
    #[error("the list is empty; write {FORM}")]
    Empty,
    #[error("{found} levels for {node} where the first node has {expected}; write as many")]
    Levels { found: usize, node: String, expected: usize },
    #[error("this is a port of UFM; read the file with --from ufm")]
    Port,
    #[error("there is no field {name}; write {FORM}")]
    UnknownField { name: String },
    #[error("node is missing or no name; write {FORM}")]
    NoNode,
    #[error("levels of node {node} is missing or no list; write {FORM}")]
    NoLevels { node: String },
    #[error("levels of node {node} must be names, the leaf first; write {FORM}")]
    BadLevels { node: String },
}

/// The names of the levels and the places of the nodes.
pub fn read(
    file: &str,
    text: &str,
    given: &[String],
) -> Result<(Vec<String>, Vec<Place>), Vec<SourceError>> {
    // Broken JSON is reported as such. The YAML reader below accepts more, but knows the lines of
    // its values.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
        vec![SourceError::of(file, JsonMistake::NotJson { reason: error.to_string() })]
    })?;
    let tree = muster_yaml::parse(text).map_err(|error| {
        let mistake = JsonMistake::Unusual { reason: error.to_string() };
        vec![SourceError::at(file, error.line as usize, mistake)]
    })?;
    let Value::Seq(entries) = &tree.value else {
        return Err(vec![SourceError::at(file, tree.line as usize, JsonMistake::NotAList)]);
    };
    if entries.is_empty() {
        return Err(vec![SourceError::of(file, JsonMistake::Empty)]);
    }
    let mut problems = Vec::new();
    let mut places = Vec::new();
    for entry in entries {
        match place(file, entry) {
            Ok(place) => places.push(place),
            Err(mistake) => {
                problems.push(SourceError::at(file, entry.line as usize, mistake));
            }
        }
    }
    let count = places.first().map_or(0, |place| place.values.len());
    for place in places.iter().filter(|place| place.values.len() != count) {
        let (found, node) = (place.values.len(), place.node.clone());
        let mistake = JsonMistake::Levels { found, node, expected: count };
        problems.push(SourceError::from_origin(place.origin.as_ref(), mistake));
    }
    match level_names(given, count) {
        Ok(names) if problems.is_empty() => Ok((names, places)),
        Err(mistake) if problems.is_empty() => Err(vec![SourceError::of(file, mistake)]),
        _ => Err(problems),
    }
}

fn place(file: &str, entry: &Yaml) -> Result<Place, JsonMistake> {
    if entry.entry("system_name").is_some() {
        return Err(JsonMistake::Port);
    }
    if let Value::Map(entries) = &entry.value
        && let Some((key, _)) =
            entries.iter().find(|(key, _)| !["node", "levels"].contains(&key.name.as_str()))
    {
        return Err(JsonMistake::UnknownField { name: key.name.clone() });
    }
    let node = entry.entry("node").and_then(name).ok_or(JsonMistake::NoNode)?;
    let Some(Value::Seq(levels)) = entry.entry("levels").map(|levels| &levels.value) else {
        return Err(JsonMistake::NoLevels { node });
    };
    let values: Option<Vec<String>> = levels.iter().map(name).collect();
    match values {
        Some(values) if !values.is_empty() => Ok(Place {
            node: node.to_lowercase(),
            values,
            origin: Some(Origin { file: file.to_owned(), line: entry.line as usize }),
        }),
        _ => Err(JsonMistake::BadLevels { node }),
    }
}

/// Racks and rows often have numbers.
fn name(value: &Yaml) -> Option<String> {
    match &value.value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_nodes_with_their_levels_is_read() {
        let text = r#"[
            {"node": "N1", "levels": ["l1", 7]},
            {"node": "n2", "levels": ["l2", "s1"]}
        ]"#;
        let (names, places) = read("t", text, &[]).expect("it is such a list");
        assert_eq!(names, ["leaf", "spine"]);
        let place = Place {
            node: "n1".into(),
            values: vec!["l1".into(), "7".into()],
            origin: Some(Origin { file: "t".into(), line: 2 }),
        };
        assert_eq!(places[0], place);
    }

    #[test]
    fn all_wrong_entries_are_reported_at_once() {
        let text = r#"[
            {"node": "n1", "levels": ["l1"]},
            {"levels": ["l1"]},
            {"node": "n3", "level": "l1"},
            {"node": "n4", "levels": "l1"},
            {"node": "n5", "levels": []},
            {"system_name": "n6"},
            {"node": "n7", "levels": ["l1", "s1"]}
        ]"#;
        let problems = read("t", text, &[]).expect_err("six are wrong");
        let starts = [
            "t:3: node is missing",
            "t:4: there is no field level;",
            "t:5: levels of node n4 is missing or no list",
            "t:6: levels of node n5 must be names",
            "t:7: this is a port of UFM",
            "t:8: 2 levels for n7 where the first node has 1",
        ];
        assert_eq!(problems.len(), starts.len(), "{problems:#?}");
        for (problem, start) in problems.iter().zip(starts) {
            assert!(problem.to_string().starts_with(start), "{problem}");
        }
        for (text, hint) in [("{}", "not a list"), ("[]", "empty"), ("[{", "t: EOF")] {
            let problems = read("t", text, &[]).expect_err(text);
            let told = problems[0].to_string();
            assert!(told.contains(hint) && told.contains("levels"), "{told}");
        }
    }
}
