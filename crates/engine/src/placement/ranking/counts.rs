//! How many pods of a shape each node and domain could hold, and the best node of each domain.

use crate::base::ids::{DomainId, NodeId, ShapeId, Table};
use crate::model::Cluster;
use crate::model::shapes::Shape;
use crate::model::topology::domains::ROOT;
use crate::placement::fit::{counts_nominations, free};
use crate::placement::ranking::Ranking;
use crate::placement::winner_tree::{Place, raised};
use crate::policy::answers::Policy;

/// How many pods fit on each node and in each domain. Exact for pods that no rule between pods
/// affects, otherwise an upper bound.
pub(super) struct Holds {
    pub(super) nodes: Vec<u32>,
    pub(super) domains: Table<DomainId, u32>,
}

impl Ranking {
    /// Counts from now on how many pods fit where.
    pub fn need_counts(&mut self, cluster: &Cluster, shape: ShapeId) {
        if self.holds.is_none() {
            self.count(cluster, shape);
        }
    }

    pub(super) fn count(&mut self, cluster: &Cluster, shape: ShapeId) {
        let mut holds = Holds { nodes: vec![0; self.open.len()], domains: Table::default() };
        holds.domains.grow(cluster.domains.len(), 0);
        let most = most_of(&cluster.shapes[shape]);
        for (&node, &place) in cluster.nodes.by_rank.iter().zip(self.tree.leaves()) {
            holds.nodes[usize::from(node)] = if place == 0 { 0 } else { most };
        }
        for (resource, want) in cluster.shapes[shape].request.iter() {
            let (idle, nodes) = (cluster.nodes.idle[resource].rows(), holds.nodes.iter_mut());
            if counts_nominations(cluster, self.room) {
                nodes.zip(cluster.nodes.name.ids()).for_each(|(pods, node)| {
                    *pods = at_most(*pods, free(cluster, resource, node, self.room), want);
                });
            } else {
                nodes.zip(idle).for_each(|(pods, &idle)| *pods = at_most(*pods, idle, want));
            }
        }
        if let Some(demand) = cluster.demand(shape) {
            for (pods, node) in
                holds.nodes.iter_mut().zip(cluster.nodes.name.ids()).filter(|(pods, _)| **pods > 0)
            {
                *pods = at_most(*pods, cluster.devices.holds(demand, node, self.room), 1);
            }
        }
        for (&pods, node) in
            holds.nodes.iter().zip(cluster.nodes.name.ids()).filter(|(pods, _)| **pods > 0)
        {
            holds.domains[cluster.domains.smallest_around(node)] += pods;
        }
        // Children have higher numbers than their parents.
        for domain in cluster.domains.ids().rev() {
            if let Some(parent) = cluster.domains[domain].parent {
                holds.domains[parent] += holds.domains[domain];
            }
        }
        self.holds = Some(holds);
    }

    pub(super) fn recount(&mut self, cluster: &Cluster, shape: ShapeId, node: NodeId) {
        let pods = self.holds_now(cluster, shape, node);
        let Some(holds) = &mut self.holds else { return };
        let before = std::mem::replace(&mut holds.nodes[usize::from(node)], pods);
        if before != pods {
            for domain in cluster.domains.chain(cluster.domains.smallest_around(node)) {
                holds.domains[domain] = holds.domains[domain] + pods - before;
            }
        }
    }

    /// Keeps from now on the best node of the cluster including the points of domains.
    pub fn need_tops(&mut self, cluster: &Cluster, policy: &Policy, shape: ShapeId) {
        if self.tops.is_none() {
            let mut tops = Table::default();
            tops.grow(cluster.domains.len(), 0);
            for domain in cluster.domains.ids().rev() {
                tops[domain] = self.top(cluster, policy, shape, domain, &tops);
            }
            self.tops = Some(tops);
        }
    }

    /// The best node below a domain, given those below its children.
    fn top(
        &self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        domain: DomainId,
        tops: &Table<DomainId, Place>,
    ) -> Place {
        let ranks = cluster.domains.own_ranks(domain);
        let own = self.tree.best_of(ranks.start as usize, ranks.end as usize);
        let children = cluster.domains.children(domain).map(|child| tops[child]).max().unwrap_or(0);
        let score = policy.domain_score(cluster, shape, domain).unwrap_or(0);
        if domain == ROOT {
            raised(own, score).max(children)
        } else {
            raised(own.max(children), score)
        }
    }

    /// Updates the domains above one that has changed.
    pub(super) fn rise(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        from: DomainId,
    ) {
        let Some(mut tops) = self.tops.take() else { return };
        for domain in cluster.domains.chain(from) {
            tops[domain] = self.top(cluster, policy, shape, domain, &tops);
        }
        self.tops = Some(tops);
    }

    /// How many pods of the shape fit on the node.
    fn holds_now(&self, cluster: &Cluster, shape: ShapeId, node: NodeId) -> u32 {
        if self.tree.leaves()[cluster.nodes.rank[node] as usize] == 0 {
            return 0;
        }
        let demand = cluster.demand(shape);
        let shape = &cluster.shapes[shape];
        let most = most_of(shape);
        let of_cards = |demand| at_most(most, cluster.devices.holds(demand, node, self.room), 1);
        let most = demand.map_or(most, of_cards);
        let less =
            |pods, (resource, want)| at_most(pods, free(cluster, resource, node, self.room), want);
        shape.request.iter().fold(most, less)
    }

    /// How many pods of the shape fit in the domain.
    pub fn holds(&self, domain: DomainId) -> u32 {
        self.holds.as_ref().map_or(0, |holds| holds.domains[domain])
    }
}

/// How many pods of a shape fit on a node that has plenty of everything.
fn most_of(shape: &Shape) -> u32 {
    if shape.ports.is_empty() { u32::MAX >> 8 } else { 1 }
}

/// This many pods, or fewer if a resource does not suffice for all of them.
#[inline]
fn at_most(pods: u32, free: i64, want: i64) -> u32 {
    // A division is expensive, and most resources are not the scarce one.
    let enough = free >= want.saturating_mul(i64::from(pods));
    if enough { pods } else { (free.max(0) / want.max(1)) as u32 }
}
