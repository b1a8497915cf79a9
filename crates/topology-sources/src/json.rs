//! A list of nodes with their levels, from the leaf up: `[{"node": "n1", "levels": ["leaf1",
//! "spine1"]}]`.

use muster_api::yaml::{self, Value, Yaml};
use serde::de::IgnoredAny;

use crate::forest::level_names;
use crate::places::Place;

const FORM: &str = r#"[{"node": "n1", "levels": ["leaf1", "spine1"]}]"#;

/// The names of the levels and the places of the nodes.
pub fn read(
    file: &str,
    text: &str,
    given: &[String],
) -> Result<(Vec<String>, Vec<Place>), Vec<String>> {
    // Broken JSON is told as such; the tree below takes it for YAML, but knows the lines of what is
    // in it.
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| vec![format!("{file}: {error}; write {FORM}")])?;
    let tree =
        yaml::parse(text).map_err(|error| vec![format!("{file}:{}: {error}", error.line)])?;
    let Value::Seq(entries) = &tree.value else {
        return Err(vec![format!("{file}:{}: not a list; write {FORM}", tree.line)]);
    };
    if entries.is_empty() {
        return Err(vec![format!("{file}: the list is empty; write {FORM}")]);
    }
    let mut problems = Vec::new();
    let mut places = Vec::new();
    for entry in entries {
        match place(file, entry) {
            Ok(place) => places.push(place),
            Err(problem) => problems.push(format!("{file}:{}: {problem}", entry.line)),
        }
    }
    let count = places.first().map_or(0, |place| place.values.len());
    for place in places.iter().filter(|place| place.values.len() != count) {
        let (origin, node, found) =
            (place.origin.as_deref().unwrap_or_default(), &place.node, place.values.len());
        problems.push(format!(
            "{origin}: {found} levels for {node} where the first node has {count}; write as many"
        ));
    }
    match level_names(given, count) {
        Ok(names) if problems.is_empty() => Ok((names, places)),
        Err(problem) if problems.is_empty() => Err(vec![format!("{file}: {problem}")]),
        _ => Err(problems),
    }
}

fn place(file: &str, entry: &Yaml) -> Result<Place, String> {
    if entry.entry("system_name").is_some() {
        return Err("this is a port of UFM; read the file with --from ufm".to_owned());
    }
    if let Value::Map(entries) = &entry.value
        && let Some((key, _)) =
            entries.iter().find(|(key, _)| !["node", "levels"].contains(&key.name.as_str()))
    {
        return Err(format!("there is no field {}; write {FORM}", key.name));
    }
    let node = entry
        .entry("node")
        .and_then(name)
        .ok_or_else(|| format!("node is missing or no name; write {FORM}"))?;
    let Some(Value::Seq(levels)) = entry.entry("levels").map(|levels| &levels.value) else {
        return Err(format!("levels of node {node} is missing or no list; write {FORM}"));
    };
    let values: Option<Vec<String>> = levels.iter().map(name).collect();
    match values {
        Some(values) if !values.is_empty() => Ok(Place {
            node: node.to_lowercase(),
            values,
            origin: Some(format!("{file}:{}", entry.line)),
        }),
        _ => Err(format!("levels of node {node} must be names, the leaf first; write {FORM}")),
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
    fn a_list_of_nodes_with_their_levels() {
        let text = r#"[
            {"node": "N1", "levels": ["l1", 7]},
            {"node": "n2", "levels": ["l2", "s1"]}
        ]"#;
        let (names, places) = read("t", text, &[]).expect("it is such a list");
        assert_eq!(names, ["leaf", "spine"]);
        let place = Place {
            node: "n1".into(),
            values: vec!["l1".into(), "7".into()],
            origin: Some("t:2".into()),
        };
        assert_eq!(places[0], place);
    }

    #[test]
    fn all_wrong_entries_are_told_at_once() {
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
            assert!(problem.starts_with(start), "{problem}");
        }
        for (text, hint) in [("{}", "not a list"), ("[]", "empty"), ("[{", "t: EOF")] {
            let problems = read("t", text, &[]).expect_err(text);
            assert!(problems[0].contains(hint) && problems[0].contains("levels"), "{problems:?}");
        }
    }
}
