//! Where nodes are, as labels and tables say it: a value for each level. Nodes with the same value
//! are under the same switch.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::{MemberKind, is_dns_subdomain};

use crate::forest::{Domain, Forest};
use crate::names::{Level, few, levels};

/// The place of one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub node: String,
    /// From the leaf up, as far as it is known.
    pub values: Vec<String>,
    /// Where it was found, if that is a file: "racks.txt:7".
    pub origin: Option<String>,
}

/// What tells two domains of a level apart.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Naming {
    /// The level and its value: rack-r07
    Value,
    /// All values from the top: rack-zone1.spine2.r07; for values that several parents have
    Path,
}

/// A level, and the values by which a domain of it is known.
type Key<'p> = (usize, Vec<&'p str>);

/// Puts the nodes under their domains and the domains under theirs. The names of the levels are
/// from the bottom.
pub fn forest(names: &[String], places: &[Place], naming: Naming) -> Result<Forest, Vec<String>> {
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

/// A node is in one place, and has a name that a node can have.
fn node_problems(places: &[Place], levels: &[Level]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut first: BTreeMap<&str, &Place> = BTreeMap::new();
    for place in places {
        let at = place.origin.as_ref().map_or_else(String::new, |origin| format!("{origin}: "));
        problems.extend(bad_node(&place.node).map(|problem| format!("{at}{problem}")));
        let Some(other) = first.insert(&place.node, place) else { continue };
        let there =
            other.origin.as_ref().map_or_else(String::new, |origin| format!(" at {origin}"));
        let (node, level) = (&place.node, &levels[0].name);
        problems.push(match (place.values.first(), other.values.first()) {
            (Some(here), Some(former)) if here != former => format!(
                "{at}node {node} is under {level} {here}, and under {level} {former}{there}: a node has one {level}; delete one of the two"
            ),
            _ => format!("{at}node {node} is there twice, first{there}: delete one of the two"),
        });
    }
    problems
}

/// What is wrong with the name of a node.
pub fn bad_node(name: &str) -> Option<String> {
    (!is_dns_subdomain(name)).then(|| {
        format!("{name:?} is no name of a node; write it as kubectl get nodes does: lower case letters, digits, - and .")
    })
}

/// A value under two parents is either a wrong label or line, or two switches of one name. Only
/// people know which.
fn parent_problems(places: &[Place], levels: &[Level]) -> Vec<String> {
    let mut parents: BTreeMap<(usize, &str), BTreeMap<&str, Vec<&Place>>> = BTreeMap::new();
    for place in places {
        for (level, pair) in place.values.windows(2).enumerate() {
            let of_parent = parents.entry((level, &pair[0])).or_default();
            of_parent.entry(&pair[1]).or_default().push(place);
        }
    }
    let several = parents.into_iter().filter(|(_, parents)| parents.len() > 1);
    let tell = |((level, value), parents): ((usize, &str), BTreeMap<&str, Vec<&Place>>)| {
        let (name, above) = (&levels[level].name, &levels[level + 1].name);
        let under = parents.iter().map(|(parent, places)| {
            let origin = places[0]
                .origin
                .as_ref()
                .map_or_else(String::new, |origin| format!(", first at {origin}"));
            format!(
                "under {above} {parent} ({}{origin})",
                few(places.iter().map(|place| place.node.as_str()))
            )
        });
        let under = under.collect::<Vec<_>>().join(" and ");
        format!(
            "{name} {value} is {under}: correct what is wrong, or add --names path if they are different ones of the same name"
        )
    };
    several.map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node a line with its values from the leaf up.
    fn places(text: &str) -> Vec<Place> {
        let place = |(index, line): (usize, &str)| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let node = words.next()?;
            Some(Place { node, values: words.collect(), origin: Some(format!("t:{}", index + 1)) })
        };
        text.lines().enumerate().filter_map(place).collect()
    }

    fn read(text: &str, naming: Naming) -> Result<Vec<String>, Vec<String>> {
        let names = ["rack", "spine", "zone"].map(str::to_owned);
        let line = |domain: Domain| {
            let members: Vec<String> = domain.members.into_iter().collect();
            format!("{} {}: {}", domain.tier, domain.name, members.join(" "))
        };
        Ok(forest(&names, &places(text), naming)?.domains.into_iter().map(line).collect())
    }

    #[test]
    fn each_value_is_a_domain_of_what_is_below_it() {
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
    fn a_value_under_two_parents_is_told_with_its_nodes() {
        let text = "n1 r1 s1 a\nn2 r1 s1 a\nn3 r1 s2 b\nn4 r2 s2 b";
        assert_eq!(
            read(text, Naming::Value).expect_err("r1 has two parents"),
            [
                "rack r1 is under spine s1 (n1, n2, first at t:1) and under spine s2 (n3, first at t:3): \
                 correct what is wrong, or add --names path if they are different ones of the same name"
            ]
        );
        let found = read(text, Naming::Path).expect("paths differ");
        assert_eq!(
            found[..3],
            ["1 rack-a.s1.r1: n1 n2", "1 rack-b.s2.r1: n3", "1 rack-b.s2.r2: n4"]
        );
    }

    #[test]
    fn what_is_not_known_of_one_node_is_taken_from_the_others_of_its_rack() {
        let found = read("n1 r1 s1 a\nn2 r1\nn3 r2", Naming::Value).expect("it is a forest");
        assert_eq!(
            found,
            ["1 rack-r1: n1 n2", "1 rack-r2: n3", "2 spine-s1: rack-r1", "3 zone-a: spine-s1"]
        );
    }

    #[test]
    fn all_wrong_nodes_are_told_at_once() {
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
