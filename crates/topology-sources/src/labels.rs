//! The network that labels of nodes describe.

use std::collections::BTreeSet;

use muster_api::core::Node;
use muster_text::counted;
use thiserror::Error;

use crate::error::SourceError;
use crate::forest::Forest;
use crate::names::{few, few_of};
use crate::places::{self, Naming, Place};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LabelMistake {
    #[error(
        "there are no nodes in what was read, so there is no network to be made of their labels"
    )]
    NoNodes,
    #[error(
        "none of {} has the label {label}, the lowest of --labels; they have {}",
        counted(*nodes, "node"),
        if known.is_empty() { "no labels".to_owned() } else { few_of(known) }
    )]
    Missing { nodes: u64, label: String, known: Vec<String> },
}

/// Reads the labels, given from the top of the network to the bottom.
pub fn read(
    nodes: &[&Node],
    labels: &[String],
    naming: Naming,
) -> Result<Forest, Vec<SourceError>> {
    let upwards: Vec<String> = labels.iter().rev().cloned().collect();
    let values = |node: &Node| {
        let value =
            |label| node.metadata.labels.get(label).filter(|value| !value.is_empty()).cloned();
        upwards.iter().map_while(value).collect()
    };
    let place = |node: &&Node| Place {
        node: node.metadata.name.clone(),
        values: values(node),
        origin: None,
    };
    let places: Vec<Place> = nodes.iter().map(place).collect();
    if places.iter().all(|place| place.values.is_empty()) {
        return Err(vec![SourceError::new(nothing(nodes, &upwards[0]))]);
    }
    let mut forest = places::forest(&upwards, &places, naming)?;
    forest.notes =
        (0..upwards.len()).filter_map(|level| lacking(&places, &upwards, level)).collect();
    Ok(forest)
}

/// Notes which nodes have the labels below this one but not this one.
fn lacking(places: &[Place], labels: &[String], level: usize) -> Option<String> {
    let lacking: Vec<&str> = places
        .iter()
        .filter(|place| place.values.len() == level)
        .map(|place| place.node.as_str())
        .collect();
    let (count, label) = (lacking.len() as u64, &labels[level]);
    let (nodes, lack) = (counted(count, "node"), if count == 1 { "lacks" } else { "lack" });
    let so = match level {
        0 => format!("in no HyperNode: {nodes} without the label {label}"),
        _ => format!(
            "{nodes} {lack} the label {label}, which is taken from other nodes of the same {}",
            labels[level - 1]
        ),
    };
    (count > 0).then(|| format!("{so}: {}", few(lacking)))
}

fn nothing(nodes: &[&Node], label: &str) -> LabelMistake {
    if nodes.is_empty() {
        return LabelMistake::NoNodes;
    }
    let known: BTreeSet<&String> =
        nodes.iter().flat_map(|node| node.metadata.labels.keys()).collect();
    LabelMistake::Missing {
        nodes: nodes.len() as u64,
        label: label.to_owned(),
        known: known.into_iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, labels: &[(&str, &str)]) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.to_owned();
        node.metadata.labels =
            labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        node
    }

    fn labels(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn the_last_label_is_the_lowest_tier_and_nodes_without_it_are_noted() {
        let nodes = [
            node("n1", &[("spine", "s1"), ("rack", "r1")]),
            node("n2", &[("rack", "r1")]),
            node("n3", &[("spine", "s1"), ("rack", "")]),
            node("n4", &[]),
        ];
        let nodes: Vec<&Node> = nodes.iter().collect();
        let forest = read(&nodes, &labels("spine,rack"), Naming::Value).expect("it is a tree");
        let tiers: Vec<(usize, &str, &str)> = forest
            .domains
            .iter()
            .map(|domain| (domain.tier, domain.tier_name.as_str(), domain.name.as_str()))
            .collect();
        assert_eq!(tiers, [(1, "rack", "rack-r1"), (2, "spine", "spine-s1")]);
        assert_eq!(
            forest.notes,
            [
                "in no HyperNode: 2 nodes without the label rack: n3, n4",
                "1 node lacks the label spine, which is taken from other nodes of the same rack: n2"
            ]
        );
    }

    #[test]
    fn a_label_that_no_node_has_is_an_error_that_names_existing_labels() {
        let nodes = [node("n1", &[("rak", "r1"), ("zone", "a")])];
        let problems =
            read(&[&nodes[0]], &labels("zone,rack"), Naming::Value).expect_err("none has it");
        assert_eq!(
            problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["none of 1 node has the label rack, the lowest of --labels; they have rak, zone"]
        );
        let problems = read(&[], &labels("rack"), Naming::Value).expect_err("nothing");
        assert_eq!(problems, [SourceError::new(LabelMistake::NoNodes)]);
    }
}
