//! The location of nodes, as labels and tables describe it: one value per level. Nodes with the
//! same value are under the same switch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use muster_api::{MemberKind, is_dns_subdomain};
use thiserror::Error;

use crate::error::{Origin, SourceError};
use crate::forest::{Domain, Forest};
use crate::names::{Level, few_of, levels};

/// The location of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub node: String,
    /// From the leaf up, as far as it is known.
    pub values: Vec<String>,
    /// Where this was found, if in a file.
    pub origin: Option<Origin>,
}

/// What distinguishes two domains of a level.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Naming {
    /// The level and its value: rack-r07
    Value,
    /// All values from the top: rack-zone1.spine2.r07; for values that several parents have
    Path,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlaceMistake {
    #[error(
        "{name:?} is no name of a node; write it as kubectl get nodes does: lower case letters, digits, - and ."
    )]
    NodeName { name: String },
    #[error(
        "node {node} is under {level} {here}, and under {level} {former}{}: a node has one {level}; delete one of the two",
        at(former_origin)
    )]
    TwoParents {
        node: String,
        level: String,
        here: String,
        former: String,
        former_origin: Option<Origin>,
    },
    #[error("node {node} is there twice, first{}: delete one of the two", at(first))]
    NodeTwice { node: String, first: Option<Origin> },
    /// Either a wrong label or line, or two switches of one name. Only a person can tell which.
    #[error(
        "{level} {value} is {}: correct what is wrong, or add --names path if they are different ones with the same name",
        parents.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    )]
    SeveralParents { level: String, value: String, parents: Vec<Parent> },
}

/// One of several parents that a value has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub level: String,
    pub value: String,
    pub nodes: Vec<String>,
    /// Where the first of the nodes was found.
    pub first: Option<Origin>,
}

impl fmt::Display for Parent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parent { level, value, nodes, first } = self;
        write!(f, "under {level} {value} ({}", few_of(nodes))?;
        first.iter().try_for_each(|origin| write!(f, ", first at {origin}"))?;
        write!(f, ")")
    }
}

fn at(origin: &Option<Origin>) -> String {
    origin.as_ref().map_or_else(String::new, |origin| format!(" at {origin}"))
}

/// A level, and the values that identify a domain of it.
type Key<'p> = (usize, Vec<&'p str>);

/// Puts the nodes under their domains and the domains under theirs. The names of the levels are
/// from the bottom.
pub fn forest(
    names: &[String],
    places: &[Place],
    naming: Naming,
) -> Result<Forest, Vec<SourceError>> {
    let levels = levels(names);
    let mut problems = node_problems(places, &levels);
    if naming == Naming::Value {
        problems.extend(parent_problems(places, &levels));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let name = |(level, values): &Key| match naming {
        Naming::Value => levels[*level].object(values[0]),
        Naming::Path => levels[*level].object_on_path(values),
    };
    let mut members: BTreeMap<Key, BTreeSet<String>> = BTreeMap::new();
    for place in places {
        let mut below = place.node.clone();
        for level in 0..place.values.len() {
            let key = key(place, level, naming);
            let above = name(&key);
            members.entry(key).or_default().insert(std::mem::replace(&mut below, above));
        }
    }
    let domain = |(key, members): (Key, BTreeSet<String>)| Domain {
        name: name(&key),
        tier: key.0 + 1,
        tier_name: levels[key.0].name.clone(),
        kind: if key.0 == 0 { MemberKind::Node } else { MemberKind::HyperNode },
        members,
    };
    Ok(Forest { domains: members.into_iter().map(domain).collect(), notes: Vec::new() })
}

fn key(place: &Place, level: usize, naming: Naming) -> Key<'_> {
    let end = if naming == Naming::Value { level + 1 } else { place.values.len() };
    (level, place.values[level..end].iter().map(String::as_str).collect())
}

/// A node has one location, and a valid name of a node.
fn node_problems(places: &[Place], levels: &[Level]) -> Vec<SourceError> {
    let mut problems = Vec::new();
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    for place in places {
        let mut add = |mistake: PlaceMistake| {
            problems.push(SourceError::from_origin(place.origin.as_ref(), mistake));
        };
        bad_node(&place.node).into_iter().for_each(&mut add);
        let Some(other) = first.insert(&place.node, place) else { continue };
        let (node, level) = (place.node.clone(), levels[0].name.clone());
        add(match (place.values.first(), other.values.first()) {
            (Some(here), Some(former)) if here != former => PlaceMistake::TwoParents {
                node,
                level,
                here: here.clone(),
                former: former.clone(),
                former_origin: other.origin.clone(),
            },
            _ => PlaceMistake::NodeTwice { node, first: other.origin.clone() },
        });
    }
    problems
}

/// What is wrong with the name of a node.
pub fn bad_node(name: &str) -> Option<PlaceMistake> {
    (!is_dns_subdomain(name)).then(|| PlaceMistake::NodeName { name: name.to_owned() })
}

fn parent_problems(places: &[Place], levels: &[Level]) -> Vec<SourceError> {
    let mut parents: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&Place>>> = BTreeMap::new();
    for place in places {
        for (level, pair) in place.values.windows(2).enumerate() {
            let of_parent = parents.entry((level, &pair[0])).or_default();
            of_parent.entry(&pair[1]).or_default().push(place);
        }
    }
    let several = parents.into_iter().filter(|(_, parents)| parents.len() > 1);
    let tell = |((level, value), parents): ((usize, &str), BTreeMap<&str, Vec<&Place>>)| {
        let parent = |(parent, places): (&str, Vec<&Place>)| Parent {
            level: levels[level + 1].name.clone(),
            value: parent.to_owned(),
            nodes: places.iter().map(|place| place.node.clone()).collect(),
            first: places[0].origin.clone(),
        };
        SourceError::new(PlaceMistake::SeveralParents {
            level: levels[level].name.clone(),
            value: value.to_owned(),
            parents: parents.into_iter().map(parent).collect(),
        })
    };
    several.map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One node per line with its values from the leaf up.
    fn places(text: &str) -> Vec<Place> {
        let place = |(index, line): (usize, &str)| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let node = words.next()?;
            let origin = Origin { file: "t".to_owned(), line: index + 1 };
            Some(Place { node, values: words.collect(), origin: Some(origin) })
        };
        text.lines().enumerate().filter_map(place).collect()
    }

    fn read(text: &str, naming: Naming) -> Result<Vec<String>, Vec<String>> {
        let names = ["rack", "spine", "zone"].map(str::to_owned);
        let line = |domain: Domain| {
            let members: Vec<String> = domain.members.into_iter().collect();
            format!("{} {}: {}", domain.tier, domain.name, members.join(" "))
        };
        let told = |problems: Vec<SourceError>| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        let forest = forest(&names, &places(text), naming).map_err(told)?;
        Ok(forest.domains.into_iter().map(line).collect())
    }

    #[test]
    fn each_value_is_a_domain_of_the_values_below_it() {
        let found = read("n1 r1 s1 a\nn2 r1 s1 a\nn3 r2 s1 a\nn4 r3 s2 a", Naming::Value)
            .expect("it is a tree");
        assert_eq!(
            found,
            [
                "1 rack-r1: n1 n2",
                "1 rack-r2: n3",
                "1 rack-r3: n4",
                "2 spine-s1: rack-r1 rack-r2",
                "2 spine-s2: rack-r3",
                "3 zone-a: spine-s1 spine-s2"
            ]
        );
    }

    #[test]
    fn a_value_under_two_parents_is_reported_with_its_nodes() {
        let text = "n1 r1 s1 a\nn2 r1 s1 a\nn3 r1 s2 b\nn4 r2 s2 b";
        assert_eq!(
            read(text, Naming::Value).expect_err("r1 has two parents"),
            [
                "rack r1 is under spine s1 (n1, n2, first at t:1) and under spine s2 (n3, first at t:3): \
                 correct what is wrong, or add --names path if they are different ones with the same name"
            ]
        );
        let found = read(text, Naming::Path).expect("paths differ");
        assert_eq!(
            found[..3],
            ["1 rack-a.s1.r1: n1 n2", "1 rack-b.s2.r1: n3", "1 rack-b.s2.r2: n4"]
        );
    }

    #[test]
    fn missing_values_of_a_node_are_taken_from_its_rack() {
        let found = read("n1 r1 s1 a\nn2 r1\nn3 r2", Naming::Value).expect("it is a forest");
        assert_eq!(
            found,
            ["1 rack-r1: n1 n2", "1 rack-r2: n3", "2 spine-s1: rack-r1", "3 zone-a: spine-s1"]
        );
    }

    #[test]
    fn all_wrong_nodes_are_reported_at_once() {
        assert_eq!(
            read("n1 r1\nN_2 r1\nn1 r2\nn1 r2", Naming::Path).expect_err("there are four mistakes"),
            [
                "t:2: \"N_2\" is no name of a node; write it as kubectl get nodes does: lower case letters, digits, - and .",
                "t:3: node n1 is under rack r2, and under rack r1 at t:1: a node has one rack; delete one of the two",
                "t:4: node n1 is there twice, first at t:3: delete one of the two",
            ]
        );
    }
}
