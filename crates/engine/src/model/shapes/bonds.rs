//! The rules between pods that a shape brings: affinity, anti-affinity and spread.

use muster_api::core::{PodAffinity, PodSpec, PodTerm, SpreadConstraint};

use crate::base::ids::{ShapeId, SpaceId, Symbol, Table, TermId};
use crate::model::Cluster;
use crate::model::selectors::{Selector, Tags, tag};
use crate::model::terms::{Bonds, Clause, Rule, Spread};

impl Cluster {
    pub(super) fn bonds_of(&mut self, space: SpaceId, tags: &Tags, spec: &PodSpec) -> Bonds {
        let mut bonds = Bonds::default();
        if let Some(affinity) = &spec.affinity {
            let together = affinity.pod_affinity.as_ref();
            let apart = affinity.pod_anti_affinity.as_ref();
            self.affinity_bonds(space, tags, together, apart, &mut bonds);
        }
        for constraint in &spec.topology_spread_constraints {
            let spread = self.spread_bond(space, tags, constraint);
            bonds.spread.push(spread);
        }
        self.terms.mark(&bonds);
        bonds
    }

    fn affinity_bonds(
        &mut self,
        space: SpaceId,
        tags: &Tags,
        together: Option<&PodAffinity>,
        apart: Option<&PodAffinity>,
        bonds: &mut Bonds,
    ) {
        if let Some(together) = together {
            // Kubernetes counts only pods that match every required term, whatever their topology
            // keys.
            let clauses: Vec<Clause> =
                together.required.iter().map(|term| self.clause(space, tags, term)).collect();
            let space_tags = self.spaces[space].tags.clone();
            bonds.affine_to_itself =
                clauses.iter().all(|clause| clause.matches(space, &space_tags, tags));
            for term in &together.required {
                let rule =
                    Rule { clauses: clauses.clone(), topology_key: term.topology_key.clone() };
                bonds.affinity.push(self.term(rule));
            }
            for wish in &together.preferred {
                let term = self.single(space, tags, &wish.pod_affinity_term);
                bonds.preferred.push((term, i64::from(wish.weight)));
            }
        }
        if let Some(apart) = apart {
            for term in &apart.required {
                let term = self.single(space, tags, term);
                bonds.anti_affinity.push(term);
            }
            for wish in &apart.preferred {
                let term = self.single(space, tags, &wish.pod_affinity_term);
                bonds.preferred.push((term, -i64::from(wish.weight)));
            }
        }
    }

    fn single(&mut self, space: SpaceId, tags: &Tags, term: &PodTerm) -> TermId {
        let rule = Rule {
            clauses: vec![self.clause(space, tags, term)],
            topology_key: term.topology_key.clone(),
        };
        self.term(rule)
    }

    fn clause(&mut self, space: SpaceId, tags: &Tags, term: &PodTerm) -> Clause {
        let mut selector = Selector::compile(&mut self.names, term.label_selector.as_ref());
        for (keys, equal) in [(&term.match_label_keys, true), (&term.mismatch_label_keys, false)] {
            selector = self.narrow(selector, tags, keys, equal);
        }
        let mut spaces: Vec<SpaceId> =
            term.namespaces.iter().map(|name| self.space(name)).collect();
        if spaces.is_empty() && term.namespace_selector.is_none() {
            spaces.push(space);
        }
        spaces.sort_unstable();
        let space_selector = match &term.namespace_selector {
            Some(selector) => Some(Selector::compile(&mut self.names, Some(selector))),
            None => None,
        };
        Clause { spaces, space_selector, selector }
    }

    fn narrow(
        &mut self,
        mut selector: Selector,
        tags: &Tags,
        keys: &[String],
        equal: bool,
    ) -> Selector {
        for key in keys {
            let key = self.names.intern(key);
            if let Some(value) = tag(tags, key) {
                selector = selector.with(key, value, equal);
            }
        }
        selector
    }

    fn spread_bond(
        &mut self,
        space: SpaceId,
        tags: &Tags,
        constraint: &SpreadConstraint,
    ) -> Spread {
        let selector = Selector::compile(&mut self.names, constraint.label_selector.as_ref());
        let selector = self.narrow(selector, tags, &constraint.match_label_keys, true);
        let clause = Clause { spaces: vec![space], space_selector: None, selector };
        let counts_itself = clause.selector.matches(tags);
        let rule = Rule { clauses: vec![clause], topology_key: constraint.topology_key.clone() };
        Spread {
            term: self.term(rule),
            max_skew: i64::from(constraint.max_skew.max(1)),
            hard: constraint.when_unsatisfiable != "ScheduleAnyway",
            min_domains: constraint.min_domains.unwrap_or(1).max(1) as u32,
            counts_itself,
            honours_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
            honours_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
        }
    }

    /// The term of a rule. A new one is counted over the pods that are there.
    fn term(&mut self, rule: Rule) -> TermId {
        if let Some(term) = self.terms.find(&rule) {
            return term;
        }
        let fresh: Vec<Symbol> = rule
            .clauses
            .iter()
            .flat_map(|clause| clause.selector.keys())
            .filter(|key| !self.terms.watched.contains(key))
            .collect();
        let term = self.terms.insert(rule);
        if !fresh.is_empty() {
            self.terms.watched.extend(fresh);
            self.reshape();
        }
        self.introduce(term);
        term
    }

    /// Counts a new term over the shapes and pods that are there.
    fn introduce(&mut self, term: TermId) {
        for node in self.nodes.fact.ids() {
            self.terms.label_for(term, node, &self.nodes.fact[node].labels);
        }
        let rule = self.terms.get(term).rule.clone();
        let mut matched: Table<ShapeId, bool> = Table::default();
        for shape in self.shapes.rows.rows_mut() {
            let space_tags = &self.spaces[shape.space].tags;
            let matches = rule
                .clauses
                .iter()
                .all(|clause| clause.matches(shape.space, space_tags, &shape.tags));
            if matches && !shape.bonds.matches.contains(&term) {
                shape.bonds.matches.push(term);
            }
            matched.push(matches);
        }
        let alone = Bonds { matches: vec![term], ..Bonds::default() };
        for pod in self.pods.live() {
            let state = self.pods.state[pod];
            if let (true, Some(node)) = (matched[self.pods.shape[pod]], state.node()) {
                self.terms.tally(&alone, node, state, 1);
            }
        }
        self.version += 1;
    }
}
