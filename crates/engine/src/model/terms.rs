//! Rules between pods (affinity, anti-affinity, spread) as counters per topology value: how many
//! pods there match a rule, and how many pods there have the rule. Read when a pod is placed, never
//! recounted.

use std::sync::Arc;

use muster_api::core::Labels;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::base::ids::{KeyId, NodeId, SpaceId, Symbol, Table, TermId};
use crate::base::room::Room;
use crate::model::pods::PodState;
use crate::model::selectors::{Selector, Tags};

/// Which pods a rule is about, and within which part of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// A pod must match all of them (several required affinity terms of one pod select together).
    pub clauses: Vec<Clause>,
    pub topology_key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Clause {
    pub spaces: Vec<SpaceId>,
    /// Namespaces chosen by their labels, besides the listed ones.
    pub space_selector: Option<Selector>,
    pub selector: Selector,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Term {
    pub rule: Rule,
    pub key: KeyId,
    /// Whether some pod has the rule. Other terms stay here, since rules come back, but count
    /// nothing.
    #[serde(default = "carried")]
    carried: bool,
    /// Whether some pods exclude what this selects: then pods that match must check before they are
    /// placed.
    pub excludes: bool,
    /// Whether some pods prefer (or avoid) what this selects.
    pub attracts: bool,
    /// Per topology value.
    counts: Vec<Count>,
    total: u32,
    /// Of those, terminating pods.
    leaving: u32,
}

/// Checkpoints of older versions lack the field. The first cycle corrects it.
fn carried() -> bool {
    true
}

impl Term {
    /// Pods that match anywhere and still count for one that is placed in this room.
    pub fn total_in(&self, room: Room) -> u32 {
        self.total - if room == Room::FutureIdle { self.leaving } else { 0 }
    }
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Pods that match.
    pub present: u32,
    /// Of those, terminating pods.
    pub leaving: u32,
    /// Pods that exclude what matches.
    pub excluding: u32,
    /// Of those, terminating pods.
    pub excluding_leaving: u32,
    /// Summed weights of pods that prefer what matches.
    pub drawn: i64,
}

impl Count {
    /// Pods that match and still count for one that is placed in this room.
    pub fn present_in(self, room: Room) -> u32 {
        self.present - if room == Room::FutureIdle { self.leaving } else { 0 }
    }

    /// Pods that exclude what matches and still count.
    pub fn excluding_in(self, room: Room) -> u32 {
        self.excluding - if room == Room::FutureIdle { self.excluding_leaving } else { 0 }
    }
}

/// A topology key with the value of each node.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Key {
    name: Arc<str>,
    /// 0 where the node has no such label.
    value: Table<NodeId, u32>,
    values: FxHashMap<String, u32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Terms {
    rows: Table<TermId, Term>,
    by_rule: FxHashMap<Rule, TermId>,
    keys: Table<KeyId, Key>,
    by_name: FxHashMap<Arc<str>, KeyId>,
    /// Label keys of pods that some rule names; pods that differ in other labels only share a
    /// shape.
    pub watched: FxHashSet<Symbol>,
}

/// The rules that affect a shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bonds {
    /// Terms that select pods of this shape.
    pub matches: Vec<TermId>,
    pub affinity: Vec<TermId>,
    /// Whether the first pod of a set that must be together may go anywhere.
    pub affine_to_itself: bool,
    pub anti_affinity: Vec<TermId>,
    pub preferred: Vec<(TermId, i64)>,
    pub spread: Vec<Spread>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub term: TermId,
    pub max_skew: i64,
    /// Whether it is a rule; otherwise it is a preference.
    pub hard: bool,
    pub min_domains: u32,
    pub counts_itself: bool,
    pub honours_affinity: bool,
    pub honours_taints: bool,
}

impl Bonds {
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty()
            && self.anti_affinity.is_empty()
            && self.preferred.is_empty()
            && self.spread.is_empty()
    }

    /// The terms of its own rules.
    fn carried(&self) -> impl Iterator<Item = TermId> {
        let preferred = self.preferred.iter().map(|&(term, _)| term);
        let spread = self.spread.iter().map(|spread| spread.term);
        let required = self.affinity.iter().chain(&self.anti_affinity).copied();
        required.chain(preferred).chain(spread)
    }
}

impl Terms {
    /// The term of a rule that some pod has.
    pub fn find(&self, rule: &Rule) -> Option<TermId> {
        self.by_rule.get(rule).copied().filter(|&term| self.rows[term].carried)
    }

    pub(super) fn insert(&mut self, rule: Rule) -> TermId {
        if let Some(&known) = self.by_rule.get(&rule) {
            self.rows[known].carried = true;
            return known;
        }
        let key = self.key(&rule.topology_key);
        let term = Term {
            rule: rule.clone(),
            key,
            carried: true,
            excludes: false,
            attracts: false,
            counts: Vec::new(),
            total: 0,
            leaving: 0,
        };
        let id = self.rows.push(term);
        self.by_rule.insert(rule, id);
        id
    }

    fn key(&mut self, name: &str) -> KeyId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let shared: Arc<str> = name.into();
        let key =
            Key { name: shared.clone(), value: Table::default(), values: FxHashMap::default() };
        let id = self.keys.push(key);
        self.by_name.insert(shared, id);
        id
    }

    pub(super) fn mark(&mut self, bonds: &Bonds) {
        for &term in &bonds.anti_affinity {
            self.rows[term].excludes = true;
        }
        for term in
            bonds.preferred.iter().map(|&(term, _)| term).chain(bonds.affinity.iter().copied())
        {
            self.rows[term].attracts = true;
        }
    }

    /// Forgets all rules except those of these bonds. Returns whether that changed anything.
    pub(super) fn keep_only(&mut self, carried: &[&Bonds]) -> bool {
        let flags = |terms: &Terms| -> Vec<[bool; 3]> {
            let rows = terms.rows.rows().iter();
            rows.map(|term| [term.carried, term.excludes, term.attracts]).collect()
        };
        let before = flags(self);
        for term in self.rows.rows_mut() {
            (term.carried, term.excludes, term.attracts) = (false, false, false);
        }
        for bonds in carried {
            self.mark(bonds);
            bonds.carried().for_each(|term| self.rows[term].carried = true);
        }
        self.watched.clear();
        for term in self.rows.rows_mut() {
            if term.carried {
                let keys = term.rule.clauses.iter().flat_map(|clause| clause.selector.keys());
                self.watched.extend(keys);
            } else {
                term.clear_counts();
            }
        }
        flags(self) != before
    }

    /// Whether some pod has the rule.
    pub(super) fn is_carried(&self, term: TermId) -> bool {
        self.rows[term].carried
    }

    pub fn iter(&self) -> impl Iterator<Item = (TermId, &Term)> {
        self.rows.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn get(&self, term: TermId) -> &Term {
        &self.rows[term]
    }

    pub fn key_name(&self, term: TermId) -> &str {
        &self.keys[self.rows[term].key].name
    }

    /// Whether placing a pod with these bonds can change the answers of other nodes.
    pub fn depends_on_other_nodes(&self, bonds: &Bonds) -> bool {
        !bonds.is_empty()
            || bonds
                .matches
                .iter()
                .any(|&term| self.rows[term].excludes || self.rows[term].attracts)
    }

    /// Reads the node's labels again for every key. The caller has taken the node's pods out of the
    /// counts.
    pub(super) fn label(&mut self, node: NodeId, labels: &Labels) {
        for key in self.keys.rows_mut() {
            key.label(node, labels);
        }
    }

    pub(super) fn label_for(&mut self, term: TermId, node: NodeId, labels: &Labels) {
        let key = self.rows[term].key;
        self.keys[key].label(node, labels);
    }

    /// The node's value of the term's key, 0 if it has none.
    #[inline]
    pub fn value(&self, term: TermId, node: NodeId) -> u32 {
        let column = &self.keys[self.rows[term].key].value;
        column.rows().get(usize::from(node)).copied().unwrap_or(0)
    }

    pub fn values(&self, term: TermId) -> usize {
        self.keys[self.rows[term].key].values.len()
    }

    #[inline]
    pub fn count(&self, term: TermId, value: u32) -> Count {
        self.rows[term].counts.get(value as usize).copied().unwrap_or_default()
    }

    /// Counts a pod with these bonds on the node (or takes it out of the counts).
    pub(super) fn tally(&mut self, bonds: &Bonds, node: NodeId, state: PodState, sign: i64) {
        let leaving = matches!(state, PodState::Releasing(_));
        for &term in &bonds.matches {
            let value = self.value(term, node);
            let row = &mut self.rows[term];
            row.total = (i64::from(row.total) + sign) as u32;
            row.leaving = (i64::from(row.leaving) + if leaving { sign } else { 0 }) as u32;
            let count = row.at(value);
            count.present = (i64::from(count.present) + sign) as u32;
            if leaving {
                count.leaving = (i64::from(count.leaving) + sign) as u32;
            }
        }
        for &term in &bonds.anti_affinity {
            let value = self.value(term, node);
            let count = self.rows[term].at(value);
            count.excluding = (i64::from(count.excluding) + sign) as u32;
            if leaving {
                count.excluding_leaving = (i64::from(count.excluding_leaving) + sign) as u32;
            }
        }
        // A pod with required affinity also prefers it with weight 1, as in Kubernetes.
        let demanded = bonds.affinity.iter().map(|&term| (term, 1));
        for (term, weight) in demanded.chain(bonds.preferred.iter().copied()) {
            let value = self.value(term, node);
            self.rows[term].at(value).drawn += sign * weight;
        }
    }

    /// Which terms select a pod with these labels in this namespace.
    pub fn matching(&self, space: SpaceId, space_tags: &Tags, tags: &Tags) -> Vec<TermId> {
        let selects =
            |rule: &Rule| rule.clauses.iter().all(|clause| clause.matches(space, space_tags, tags));
        let terms = self.rows.iter().filter(|(_, term)| term.carried && selects(&term.rule));
        terms.map(|(id, _)| id).collect()
    }

    /// All counters, for checks.
    pub fn counts(&self) -> Vec<(Vec<Count>, u32)> {
        self.rows
            .rows()
            .iter()
            .map(|term| {
                let used = term
                    .counts
                    .iter()
                    .rposition(|count| *count != Count::default())
                    .map_or(0, |last| last + 1);
                (term.counts[..used].to_vec(), term.total)
            })
            .collect()
    }

    pub(super) fn clear_counts(&mut self) {
        self.rows.rows_mut().iter_mut().for_each(Term::clear_counts);
    }
}

impl Key {
    fn label(&mut self, node: NodeId, labels: &Labels) {
        let value = labels.get(self.name.as_ref()).map(|text| {
            let next = self.values.len() as u32 + 1;
            *self.values.entry(text.clone()).or_insert(next)
        });
        self.value.grow(usize::from(node) + 1, 0);
        self.value[node] = value.unwrap_or(0);
    }
}

impl Clause {
    pub fn matches(&self, space: SpaceId, space_tags: &Tags, tags: &Tags) -> bool {
        let here = self.spaces.contains(&space)
            || self.space_selector.as_ref().is_some_and(|selector| selector.matches(space_tags));
        here && self.selector.matches(tags)
    }
}

impl Term {
    fn clear_counts(&mut self) {
        self.counts.clear();
        (self.total, self.leaving) = (0, 0);
    }

    fn at(&mut self, value: u32) -> &mut Count {
        let index = value as usize;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, Count::default());
        }
        &mut self.counts[index]
    }
}
