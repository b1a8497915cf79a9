//! The tree of domains from what HyperNodes claim, and why some are left out of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::base::ids::NodeId;
use crate::model::nodes::Nodes;
use crate::model::topology::domains::Fault;
use crate::model::topology::hypernodes::{HyperNode, HyperNodes};

/// The claims while they are sorted out. HyperNodes are in the order of their age, so that the
/// older keeps what two claim.
pub(super) struct TreeBuilder<'h> {
    pub(super) hypers: Vec<&'h HyperNode>,
    pub(super) children: Vec<Vec<usize>>,
    pub(super) parent: Vec<Option<usize>>,
    /// Why each has left the tree.
    pub(super) left: Vec<Option<Fault>>,
    pub(super) tiers: BTreeMap<Arc<str>, u32>,
    pub(super) owner: FxHashMap<NodeId, usize>,
}

impl<'h> TreeBuilder<'h> {
    pub(super) fn new(all: &'h HyperNodes, nodes: &Nodes) -> TreeBuilder<'h> {
        let mut hypers: Vec<&HyperNode> = all.iter().collect();
        hypers.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let place: FxHashMap<&str, usize> =
            hypers.iter().enumerate().map(|(at, hyper)| (hyper.name.as_ref(), at)).collect();
        let children = hypers
            .iter()
            .map(|hyper| {
                all.children(hyper).into_iter().map(|child| place[child.name.as_ref()]).collect()
            })
            .collect();
        let mut builder = TreeBuilder {
            children,
            parent: vec![None; hypers.len()],
            left: vec![None; hypers.len()],
            tiers: BTreeMap::new(),
            owner: FxHashMap::default(),
            hypers,
        };
        builder.refuse_bad_members();
        builder.name_tiers();
        builder.cut_cycles();
        for _ in 0..builder.hypers.len() {
            builder.find_parents();
            builder.compare_tiers();
            builder.lead_out();
            for at in 0..builder.hypers.len() {
                builder.settle_nodes(at, nodes);
            }
            if !builder.forgive() {
                break;
            }
        }
        builder
    }

    /// A HyperNode that was left out because of another that is left out as well gets another
    /// chance, with all that is below it.
    fn forgive(&mut self) -> bool {
        let gone: Vec<&Arc<str>> = self
            .hypers
            .iter()
            .zip(&self.left)
            .filter(|(_, left)| left.is_some())
            .map(|(h, _)| &h.name)
            .collect();
        let unjust = |left: &Option<Fault>| match left {
            Some(Fault::SharedChild { with, .. } | Fault::SharedNode { with, .. }) => {
                gone.contains(&with)
            }
            _ => false,
        };
        if !self.left.iter().any(unjust) {
            return false;
        }
        for left in &mut self.left {
            if unjust(left) || matches!(left, Some(Fault::Above { .. })) {
                *left = None;
            }
        }
        self.parent.fill(None);
        self.owner.clear();
        true
    }

    fn refuse_bad_members(&mut self) {
        for (hyper, left) in self.hypers.iter().zip(&mut self.left) {
            *left = hyper.bad_member().map(|why| Fault::BadMember { why: why.to_string() });
        }
    }

    /// A name stands for one number: the oldest's.
    fn name_tiers(&mut self) {
        let mut first: BTreeMap<&Arc<str>, &HyperNode> = BTreeMap::new();
        for (at, &hyper) in self.hypers.iter().enumerate() {
            let Some(name) = hyper.tier_name.as_ref().filter(|_| self.left[at].is_none()) else {
                continue;
            };
            let other = *first.entry(name).or_insert(hyper);
            if other.tier != hyper.tier {
                self.left[at] = Some(Fault::TierName {
                    name: name.clone(),
                    tier: hyper.tier,
                    other: other.name.clone(),
                    other_tier: other.tier,
                });
            }
        }
        self.tiers = first.into_iter().map(|(name, hyper)| (name.clone(), hyper.tier)).collect();
    }

    /// A HyperNode that is below itself is left out.
    fn cut_cycles(&mut self) {
        for at in 0..self.hypers.len() {
            if self.left[at].is_none()
                && let Some(way) = self.way_back(at)
            {
                let through = way.iter().map(|&step| self.hypers[step].name.clone()).collect();
                self.left[at] = Some(Fault::Cycle { through });
            }
        }
    }

    /// The way from a HyperNode down to itself, if there is one.
    fn way_back(&self, from: usize) -> Option<Vec<usize>> {
        let mut seen = vec![false; self.hypers.len()];
        let mut way = vec![(from, 0)];
        while let Some((at, next)) = way.last_mut() {
            let Some(&child) = self.children[*at].get(*next) else {
                way.pop();
                continue;
            };
            *next += 1;
            if child == from {
                return Some(way.into_iter().map(|(at, _)| at).collect());
            }
            if !std::mem::replace(&mut seen[child], true) {
                way.push((child, 0));
            }
        }
        None
    }

    /// A HyperNode with a child that an older one has too is left out.
    fn find_parents(&mut self) {
        for at in 0..self.hypers.len() {
            if self.left[at].is_some() {
                continue;
            }
            let taken =
                self.children[at].iter().find_map(|&child| Some((child, self.parent[child]?)));
            if let Some((child, older)) = taken {
                let (child, with) =
                    (self.hypers[child].name.clone(), self.hypers[older].name.clone());
                self.left[at] = Some(Fault::SharedChild { child, with });
                continue;
            }
            for &child in &self.children[at] {
                self.parent[child] = Some(at);
            }
        }
        // HyperNodes that left the tree take what is below them out of it.
        for at in (0..self.hypers.len()).filter(|&at| self.left[at].is_some()) {
            for &child in &self.children[at] {
                self.parent[child].get_or_insert(at);
            }
        }
    }

    fn compare_tiers(&mut self) {
        for at in 0..self.hypers.len() {
            let (Some(parent), None) = (self.parent[at], &self.left[at]) else { continue };
            let (tier, parent) = (self.hypers[at].tier, self.hypers[parent]);
            if tier >= parent.tier {
                let (parent, parent_tier) = (parent.name.clone(), parent.tier);
                self.left[at] = Some(Fault::NotBelow { tier, parent, parent_tier });
            }
        }
    }

    /// A HyperNode below one that is left out is left out as well.
    fn lead_out(&mut self) {
        let mut leading: Vec<usize> =
            (0..self.hypers.len()).filter(|&at| self.left[at].is_some()).collect();
        while let Some(at) = leading.pop() {
            for &child in &self.children[at] {
                if self.parent[child] == Some(at) && self.left[child].is_none() {
                    self.left[child] = Some(Fault::Above { parent: self.hypers[at].name.clone() });
                    leading.push(child);
                }
            }
        }
    }

    /// Gives a HyperNode the nodes that it claims, unless an older one has one of them that is
    /// neither above nor below it.
    fn settle_nodes(&mut self, at: usize, nodes: &Nodes) {
        if self.left[at].is_some() {
            return;
        }
        let taken = self.hypers[at].nodes().filter_map(|node| {
            let &owner = self.owner.get(&node)?;
            (!self.is_above(at, owner) && !self.is_above(owner, at))
                .then_some((&nodes.name[node], owner))
        });
        // The first by name: ids are in the order of arrival.
        if let Some((node, owner)) = taken.min() {
            let (node, with) = (node.clone(), self.hypers[owner].name.clone());
            self.left[at] = Some(Fault::SharedNode { node, with });
            self.lead_out();
            self.owner.retain(|_, owner| self.left[*owner].is_none());
            return;
        }
        for node in self.hypers[at].nodes() {
            match self.owner.get(&node) {
                // The one below keeps it.
                Some(&owner) if self.is_above(at, owner) => {}
                _ => drop(self.owner.insert(node, at)),
            }
        }
    }

    fn is_above(&self, at: usize, other: usize) -> bool {
        std::iter::successors(self.parent[other], |&up| self.parent[up]).any(|up| up == at)
    }

    pub(super) fn faults(&self) -> BTreeMap<Arc<str>, Fault> {
        let named = self.hypers.iter().zip(&self.left);
        named.filter_map(|(hyper, fault)| Some((hyper.name.clone(), fault.clone()?))).collect()
    }
}
