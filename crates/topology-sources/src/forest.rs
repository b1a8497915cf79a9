//! The network as a forest of domains, from any source, from which HyperNodes are made.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::{
    ExactMatch, HyperNode, HyperNodeSpec, Member, MemberKind, MemberSelector, validate_hyper_node,
};
use muster_text::counted;
use thiserror::Error;

use crate::error::SourceError;
use crate::names::{few, few_of, natural};

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ForestMistake {
    /// If no name matches, the names are wrong rather than the nodes.
    #[error(
        "none of what was found is a node of the cluster: found {}, the cluster has {}; the names must be the same",
        few_of(found),
        if cluster.is_empty() { "none".to_owned() } else { few_of(cluster) }
    )]
    NoneInCluster { found: Vec<String>, cluster: Vec<String> },
    #[error("two HyperNodes, of tiers {tier} and {other}, would have the name {name}: rename one")]
    SameName { name: String, tier: usize, other: usize },
    #[error("HyperNode {name}: {path}: {message}")]
    Invalid { name: String, path: String, message: String },
}

#[derive(Debug, Default)]
pub struct Forest {
    pub domains: Vec<Domain>,
    /// Notes that are not errors.
    pub notes: Vec<String>,
}

/// A future HyperNode.
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

    /// Removes everything that is not among the nodes of the cluster, and domains that then are
    /// empty.
    pub fn keep(&mut self, cluster: &BTreeSet<String>) -> Result<(), ForestMistake> {
        let strangers: Vec<String> = self
            .nodes()
            .into_iter()
            .filter(|node| !cluster.contains(*node))
            .map(str::to_owned)
            .collect();
        if strangers.len() == self.nodes().len() {
            return Err(ForestMistake::none_in(cluster, strangers));
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

    /// Notes which nodes of the cluster are in no domain.
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
    pub fn objects(mut self) -> Result<Vec<HyperNode>, Vec<SourceError>> {
        self.domains.sort_by(|a, b| a.tier.cmp(&b.tier).then_with(|| natural(&a.name, &b.name)));
        let mut tiers: BTreeMap<&str, usize> = BTreeMap::new();
        let mut problems = Vec::new();
        for domain in &self.domains {
            if let Some(tier) = tiers.insert(&domain.name, domain.tier) {
                let (name, other) = (domain.name.clone(), domain.tier);
                problems.push(SourceError::new(ForestMistake::SameName { name, tier, other }));
            }
        }
        let objects: Vec<HyperNode> = self.domains.iter().map(Domain::object).collect();
        for object in &objects {
            let name = &object.metadata.name;
            let found = validate_hyper_node(object).into_iter();
            problems.extend(found.map(|problem| {
                let (name, path, message) = (name.to_owned(), problem.path, problem.message);
                SourceError::new(ForestMistake::Invalid { name, path, message })
            }));
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
        object.metadata.labels = [("app.kubernetes.io/managed-by".into(), "muster".into())].into();
        object
    }
}

impl ForestMistake {
    pub(crate) fn none_in(cluster: &BTreeSet<String>, found: Vec<String>) -> ForestMistake {
        ForestMistake::NoneInCluster { found, cluster: cluster.iter().cloned().collect() }
    }
}

pub fn left_out(strangers: &[String]) -> Option<String> {
    let count = counted(strangers.len() as u64, "host");
    let names = few_of(strangers);
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
            format!("{}: {}", &object.metadata.name, members.collect::<Vec<_>>().join(" "))
        };
        objects.iter().map(line).collect()
    }

    #[test]
    fn objects_and_members_are_in_their_natural_order() {
        let objects = forest().objects().expect("they are valid");
        assert_eq!(names(&objects), ["l2: n2", "l9: n1", "l10: n9 n10", "s: l9 l10", "t: l2"]);
    }

    #[test]
    fn hosts_outside_the_cluster_and_empty_domains_are_left_out() {
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
    fn names_that_all_differ_from_the_cluster_are_an_error() {
        let mistake =
            forest().keep(&["gpu1.example.com".to_owned()].into()).expect_err("none is known");
        assert!(
            mistake.to_string().contains("found n1, n2, n9, n10, the cluster has gpu1.example.com"),
            "{mistake}"
        );
    }

    #[test]
    fn two_objects_with_the_same_name_are_an_error() {
        let domains = vec![domain("a", 1, &["n1"]), domain("a", 2, &["a"])];
        let problems =
            Forest { domains, notes: Vec::new() }.objects().expect_err("the name is there twice");
        assert_eq!(
            problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["two HyperNodes, of tiers 1 and 2, would have the name a: rename one"]
        );
    }
}
