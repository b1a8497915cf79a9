//! The network as a forest of domains, whatever it was read from, on its way to become HyperNodes.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::{
    ExactMatch, HyperNode, HyperNodeSpec, Member, MemberKind, MemberSelector, validate_hyper_node,
};
use muster_text::counted;

use crate::names::{few, natural};

/// The names of levels that have none, from the bottom.
const LEVELS: [&str; 3] = ["leaf", "spine", "core"];

#[derive(Debug, Default)]
pub struct Forest {
    pub domains: Vec<Domain>,
    /// Worth a word, but no error.
    pub notes: Vec<String>,
}

/// A HyperNode to be.
#[derive(Debug, PartialEq)]
pub struct Domain {
    pub name: String,
    /// From 1, the bottom.
    pub tier: usize,
    pub tier_name: String,
    pub kind: MemberKind,
    /// Names of nodes, or of domains.
    pub members: BTreeSet<String>,
}

impl Forest {
    pub fn nodes(&self) -> BTreeSet<&str> {
        let leaves = self.domains.iter().filter(|domain| domain.kind == MemberKind::Node);
        leaves.flat_map(|domain| &domain.members).map(String::as_str).collect()
    }

    /// Leaves out what is not among the nodes of the cluster, and domains that have nothing else.
    pub fn keep(&mut self, cluster: &BTreeSet<String>) -> Result<(), Vec<String>> {
        let strangers: Vec<String> = self
            .nodes()
            .into_iter()
            .filter(|node| !cluster.contains(*node))
            .map(str::to_owned)
            .collect();
        if strangers.len() == self.nodes().len() {
            return Err(vec![nobody(strangers.iter().map(String::as_str), cluster)]);
        }
        self.notes.extend(left_out(&strangers));
        // A domain may have the name of a node.
        let mut emptied: BTreeSet<String> = BTreeSet::new();
        self.domains.sort_by_key(|domain| domain.tier);
        self.domains.retain_mut(|domain| {
            match domain.kind {
                MemberKind::Node => domain.members.retain(|node| cluster.contains(node)),
                MemberKind::HyperNode => domain.members.retain(|below| !emptied.contains(below)),
            }
            !domain.members.is_empty() || !emptied.insert(domain.name.clone())
        });
        Ok(())
    }

    /// Says which nodes of the cluster are in no domain.
    pub fn miss(&mut self, cluster: &BTreeSet<String>) {
        let nodes = self.nodes();
        let missing: Vec<&str> =
            cluster.iter().map(String::as_str).filter(|node| !nodes.contains(node)).collect();
        if !missing.is_empty() {
            let count = counted(missing.len() as u64, "node");
            self.notes.push(format!("in no HyperNode: {count} of the cluster: {}", few(missing)));
        }
    }

    /// The objects from tier 1 up, each tier in the natural order of names.
    pub fn objects(mut self) -> Result<Vec<HyperNode>, Vec<String>> {
        self.domains.sort_by(|a, b| a.tier.cmp(&b.tier).then_with(|| natural(&a.name, &b.name)));
        let mut tiers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut problems = Vec::new();
        for domain in &self.domains {
            if let Some(tier) = tiers.insert(&domain.name, domain.tier) {
                let Domain { name, tier: other, .. } = domain;
                problems.push(format!(
                    "two HyperNodes, of tiers {tier} and {other}, would have the name {name}: rename one"
                ));
            }
        }
        let objects: Vec<HyperNode> = self.domains.iter().map(Domain::object).collect();
        for object in &objects {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let found = validate_hyper_node(object).into_iter();
            problems.extend(
                found.map(|problem| {
                    format!("HyperNode {name}: {}: {}", problem.path, problem.message)
                }),
            );
        }
        if problems.is_empty() { Ok(objects) } else { Err(problems) }
    }
}

impl Domain {
    fn object(&self) -> HyperNode {
        let mut names: Vec<&String> = self.members.iter().collect();
        names.sort_by(|a, b| natural(a, b));
        let member = |name: &String| Member {
            kind: self.kind,
            selector: MemberSelector {
                exact_match: Some(ExactMatch { name: name.clone() }),
                ..MemberSelector::default()
            },
        };
        let members = names.into_iter().map(member).collect();
        let tier = i32::try_from(self.tier).expect("a network has few levels");
        let mut object = HyperNode::new(
            &self.name,
            HyperNodeSpec { tier, tier_name: self.tier_name.clone(), members },
        );
        object.metadata.labels =
            Some([("app.kubernetes.io/managed-by".into(), "muster".into())].into());
        object
    }
}

/// The names of levels from the bottom: those that were given from the top, or the usual ones.
pub fn level_names(given: &[String], count: usize) -> Result<Vec<String>, String> {
    let usual = |level: usize| {
        LEVELS.get(level).map_or_else(|| format!("tier{}", level + 1), |name| (*name).to_owned())
    };
    match given.len() {
        0 => Ok((0..count).map(usual).collect()),
        given_count if given_count == count => Ok(given.iter().rev().cloned().collect()),
        given_count => Err(format!(
            "--levels has {} and the network has {}: write one name for each, from the top to the bottom",
            counted(given_count as u64, "name"),
            counted(count as u64, "level")
        )),
    }
}

/// When the two name nothing alike, it is the names that are wrong.
pub fn nobody<'n>(found: impl IntoIterator<Item = &'n str>, cluster: &BTreeSet<String>) -> String {
    format!(
        "none of what was found is a node of the cluster: found {}, the cluster has {}; the names must be the same",
        few(found),
        if cluster.is_empty() {
            "none".to_owned()
        } else {
            few(cluster.iter().map(String::as_str))
        }
    )
}

pub fn left_out(strangers: &[String]) -> Option<String> {
    let count = counted(strangers.len() as u64, "host");
    let names = few(strangers.iter().map(String::as_str));
    (!strangers.is_empty())
        .then(|| format!("left out: {count} not among the nodes of the cluster: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str, tier: usize, members: &[&str]) -> Domain {
        let kind = if tier == 1 { MemberKind::Node } else { MemberKind::HyperNode };
        let members = members.iter().map(|name| (*name).to_owned()).collect();
        Domain { name: name.to_owned(), tier, tier_name: format!("tier{tier}"), kind, members }
    }

    fn forest() -> Forest {
        let domains = vec![
            domain("s", 2, &["l10", "l9"]),
            domain("t", 2, &["l2"]),
            domain("l10", 1, &["n10", "n9"]),
            domain("l9", 1, &["n1"]),
            domain("l2", 1, &["n2"]),
        ];
        Forest { domains, notes: Vec::new() }
    }

    fn names(objects: &[HyperNode]) -> Vec<String> {
        let line = |object: &HyperNode| {
            let members = object.spec.members.iter();
            let members = members
                .filter_map(|member| Some(member.selector.exact_match.as_ref()?.name.as_str()));
            format!(
                "{}: {}",
                object.metadata.name.as_deref().unwrap_or_default(),
                members.collect::<Vec<_>>().join(" ")
            )
        };
        objects.iter().map(line).collect()
    }

    #[test]
    fn objects_and_members_are_in_their_natural_order() {
        let objects = forest().objects().expect("they are valid");
        assert_eq!(names(&objects), ["l2: n2", "l9: n1", "l10: n9 n10", "s: l9 l10", "t: l2"]);
    }

    #[test]
    fn what_is_not_in_the_cluster_is_left_out_up_to_the_top() {
        let mut forest = forest();
        let cluster: BTreeSet<String> = ["n1", "n9", "other"].map(str::to_owned).into();
        forest.keep(&cluster).expect("some are known");
        forest.miss(&cluster);
        assert_eq!(
            forest.notes,
            [
                "left out: 2 hosts not among the nodes of the cluster: n2, n10",
                "in no HyperNode: 1 node of the cluster: other"
            ]
        );
        assert_eq!(
            names(&forest.objects().expect("they are valid")),
            ["l9: n1", "l10: n9", "s: l9 l10"]
        );
    }

    #[test]
    fn names_that_are_all_strange_are_an_error() {
        let problems =
            forest().keep(&["gpu1.example.com".to_owned()].into()).expect_err("none is known");
        assert!(
            problems[0].contains("found n1, n2, n9, n10, the cluster has gpu1.example.com"),
            "{problems:?}"
        );
    }

    #[test]
    fn two_objects_of_one_name_are_an_error() {
        let domains = vec![domain("a", 1, &["n1"]), domain("a", 2, &["a"])];
        let problems =
            Forest { domains, notes: Vec::new() }.objects().expect_err("the name is there twice");
        assert_eq!(
            problems,
            ["two HyperNodes, of tiers 1 and 2, would have the name a: rename one"]
        );
    }
}
