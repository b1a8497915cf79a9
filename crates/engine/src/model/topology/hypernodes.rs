//! HyperNodes as they were last seen, and which nodes each of them claims. What becomes of the
//! claims is decided in `domains.rs`. Finding the members is the expensive part, so
//! it is done again only for what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::core::Labels;
use muster_api::{GoRegexError, Matcher, Member, MemberKind, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::NodeId;
use crate::model::apply;
use crate::model::nodes::Nodes;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HyperNodes {
    by_name: BTreeMap<Arc<str>, HyperNode>,
    /// The HyperNodes whose claims must be found anew, and the nodes that have changed since claims
    /// were found.
    dirty: BTreeSet<Arc<str>>,
    dirty_nodes: BTreeSet<NodeId>,
    /// Something has changed since the tree was made.
    stirred: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HyperNode {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub created: Time,
    pub tier: u32,
    pub tier_name: Option<Arc<str>>,
    version: u64,
    labels: Labels,
    members: Vec<Member>,
    /// The live nodes that it claims.
    nodes: BTreeSet<NodeId>,
    /// Compiled members, or what is wrong with one; not kept, since it can be made again.
    #[serde(skip)]
    matchers: Option<Result<Vec<(MemberKind, Matcher)>, BadPattern>>,
}

/// A member whose pattern cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{pattern:?}: {mistake}")]
pub struct BadPattern {
    pattern: String,
    mistake: GoRegexError,
}

impl HyperNode {
    /// What is wrong with its members, if anything.
    pub fn bad_member(&self) -> Option<&BadPattern> {
        self.matchers.as_ref().and_then(|matchers| matchers.as_ref().err())
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.iter().copied()
    }

    fn matchers(&self, kind: MemberKind) -> impl Iterator<Item = &Matcher> {
        let matchers = self.matchers.iter().flatten().flatten();
        matchers.filter(move |(of, _)| *of == kind).map(|(_, matcher)| matcher)
    }

    /// Whether it claims the node.
    fn claims(&self, name: &str, labels: &Labels) -> bool {
        self.matchers(MemberKind::Node).any(|matcher| matcher.matches(name, labels))
    }

    fn compile(&mut self) {
        let compiled = |member: &Member| {
            let bad = |mistake| {
                let regex = member.selector.regex_match.as_ref();
                BadPattern { pattern: regex.map_or("", |regex| &regex.pattern).to_owned(), mistake }
            };
            Ok((member.kind, Matcher::compile(&member.selector).map_err(bad)?))
        };
        self.matchers.get_or_insert_with(|| self.members.iter().map(compiled).collect());
    }
}

impl HyperNodes {
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &HyperNode> {
        self.by_name.values()
    }

    pub fn find(&self, name: &str) -> Option<&HyperNode> {
        self.by_name.get(name)
    }

    pub(in crate::model) fn put(&mut self, object: &muster_api::HyperNode) {
        let meta = &object.metadata;
        let version = apply::version_of(meta);
        let name: Arc<str> = meta.name.as_str().into();
        let known = self.by_name.get(&name);
        if known.is_some_and(|known| apply::stale(version, known.version)) {
            return;
        }
        let spec = &object.spec;
        let new = HyperNode {
            name: name.clone(),
            uid: meta.uid.as_str().into(),
            created: meta.creation_timestamp.unwrap_or_default(),
            tier: spec.tier.max(0) as u32,
            tier_name: Some(spec.tier_name.as_str()).filter(|name| !name.is_empty()).map(Arc::from),
            version,
            labels: meta.labels.clone(),
            members: spec.members.clone(),
            nodes: BTreeSet::new(),
            matchers: None,
        };
        if let Some(known) = self.by_name.get_mut(&name) {
            let same = known.uid == new.uid
                && (known.created, known.tier) == (new.created, new.tier)
                && known.tier_name == new.tier_name
                && (&known.labels, &known.members) == (&new.labels, &new.members);
            if same {
                known.version = version;
                return;
            }
        }
        self.by_name.insert(name.clone(), new);
        self.dirty.insert(name);
        self.stirred = true;
    }

    pub(in crate::model) fn remove(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() {
            self.dirty.remove(name);
            self.stirred = true;
        }
    }

    /// The node has joined or left, or its labels have changed.
    pub(in crate::model) fn note_node(&mut self, node: NodeId) {
        if !self.by_name.is_empty() {
            self.dirty_nodes.insert(node);
        }
    }

    /// Finds out which HyperNodes claim what has changed. Returns whether the tree must be built
    /// anew.
    pub(in crate::model) fn settle(&mut self, nodes: &Nodes) -> bool {
        self.by_name
            .values_mut()
            .filter(|hyper| hyper.matchers.is_none())
            .for_each(HyperNode::compile);
        // Asking all about a few nodes, or a few about all nodes.
        if self.dirty_nodes.len() > 64 {
            self.dirty_nodes.clear();
            self.dirty.extend(self.by_name.keys().cloned());
        }
        self.ask_nodes(nodes);
        self.ask_hyper_nodes(nodes);
        std::mem::take(&mut self.stirred)
    }

    fn ask_nodes(&mut self, nodes: &Nodes) {
        for node in std::mem::take(&mut self.dirty_nodes) {
            let fact = &nodes.fact[node];
            for hyper in self.by_name.values_mut() {
                let claims = fact.live && hyper.claims(&nodes.name[node], &fact.labels);
                self.stirred |=
                    if claims { hyper.nodes.insert(node) } else { hyper.nodes.remove(&node) };
            }
        }
    }

    fn ask_hyper_nodes(&mut self, nodes: &Nodes) {
        let dirty = std::mem::take(&mut self.dirty);
        if dirty.is_empty() {
            return;
        }
        let labelled = self.by_label(&dirty, nodes);
        for name in &dirty {
            let Some(hyper) = self.by_name.get_mut(name) else { continue };
            let mut claimed = BTreeSet::new();
            for matcher in hyper.matchers(MemberKind::Node) {
                match matcher {
                    Matcher::Exact(name) => {
                        claimed.extend(nodes.find(name).filter(|&node| nodes.fact[node].live));
                    }
                    Matcher::Labels(selector) if !selector.match_labels.is_empty() => {
                        let (key, value) =
                            selector.match_labels.iter().next().expect("it is not empty");
                        let found =
                            labelled.get(&(key.as_str(), value.as_str())).into_iter().flatten();
                        claimed.extend(
                            found.filter(|&&node| selector.matches(&nodes.fact[node].labels)),
                        );
                    }
                    _ => {
                        let means = |node: &NodeId| {
                            matcher.matches(&nodes.name[*node], &nodes.fact[*node].labels)
                        };
                        claimed.extend(nodes.live().filter(means));
                    }
                }
            }
            self.stirred |= claimed != hyper.nodes;
            hyper.nodes = claimed;
        }
    }

    /// The live nodes by the labels that these HyperNodes ask for first.
    fn by_label<'n>(
        &self,
        dirty: &BTreeSet<Arc<str>>,
        nodes: &'n Nodes,
    ) -> FxHashMap<(&'n str, &'n str), Vec<NodeId>> {
        let asked = dirty.iter().filter_map(|name| self.by_name.get(name));
        let keys: BTreeSet<&str> = asked
            .flat_map(|hyper| hyper.matchers(MemberKind::Node))
            .filter_map(|matcher| match matcher {
                Matcher::Labels(selector) => {
                    selector.match_labels.keys().next().map(String::as_str)
                }
                _ => None,
            })
            .collect();
        let mut found: FxHashMap<(&str, &str), Vec<NodeId>> = FxHashMap::default();
        for key in keys {
            for node in nodes.live() {
                if let Some((key, value)) = nodes.fact[node].labels.get_key_value(key) {
                    found.entry((key, value)).or_default().push(node);
                }
            }
        }
        found
    }

    /// The HyperNodes that this one claims, by name.
    pub fn children<'h>(&'h self, hyper: &'h HyperNode) -> Vec<&'h HyperNode> {
        let mut children: BTreeMap<&str, &HyperNode> = BTreeMap::new();
        for matcher in hyper.matchers(MemberKind::HyperNode) {
            match matcher {
                Matcher::Exact(name) => {
                    children.extend(self.find(name).map(|child| (child.name.as_ref(), child)));
                }
                _ => {
                    let means = |other: &&HyperNode| {
                        other.name != hyper.name && matcher.matches(&other.name, &other.labels)
                    };
                    children.extend(
                        self.iter().filter(means).map(|child| (child.name.as_ref(), child)),
                    );
                }
            }
        }
        children.into_values().collect()
    }
}
