//! The network for people: domains with their room, and the gangs in them. A gang is shown at the
//! smallest domain that holds its placed pods.

mod dot;
mod json;
mod svg;
mod tree;

use std::collections::BTreeMap;

use muster_engine::explain::{counted, fault, grouped};
use muster_engine::ids::{DomainId, GangId, NodeId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::search;

use super::map;
use super::text::Names;

pub use dot::dot;
pub use json::network;
pub use svg::svg;
pub use tree::lines;

/// What all pictures of the network share.
struct Chart<'c> {
    cluster: &'c Cluster,
    /// The resource that measures room.
    resource: ResourceId,
    names: Names,
    /// In the order of their names.
    gangs: BTreeMap<DomainId, Vec<GangId>>,
}

#[derive(Copy, Clone)]
struct Room {
    used: i64,
    size: i64,
}

impl Room {
    fn free(self) -> i64 {
        (self.size - self.used).max(0)
    }

    /// One of `steps` steps from empty to full; only what is empty is on the first, only what is
    /// full on the last.
    fn step(self, steps: usize) -> usize {
        let used = self.used.clamp(0, self.size.max(0));
        match used {
            0 => 0,
            _ if used == self.size => steps - 1,
            _ => 1 + (i128::from(used) * (steps as i128 - 2) / i128::from(self.size)) as usize,
        }
    }
}

impl Chart<'_> {
    fn new(cluster: &Cluster) -> Chart<'_> {
        let mut gangs: BTreeMap<DomainId, Vec<GangId>> = BTreeMap::new();
        for gang in cluster.gangs.ids() {
            if let Some(domain) = search::domain_of(cluster, gang) {
                gangs.entry(domain).or_default().push(gang);
            }
        }
        for placed in gangs.values_mut() {
            placed.sort_by(|&a, &b| cluster.gangs[a].key.cmp(&cluster.gangs[b].key));
        }
        let keys = cluster.gangs.iter().map(|(_, gang)| gang.key.as_ref());
        Chart { cluster, resource: map::scarce(cluster), names: Names::new(keys), gangs }
    }

    /// The domain at which the picture starts: the root, unless it holds one domain and nothing
    /// else.
    fn top(&self) -> DomainId {
        let mut below = self.cluster.domains.children(ROOT);
        match (below.next(), below.next(), self.own_nodes(ROOT).is_empty()) {
            (Some(only), None, true) => only,
            _ => ROOT,
        }
    }

    fn name(&self, domain: DomainId) -> &str {
        if domain == ROOT { "(cluster)" } else { &self.cluster.domains[domain].name }
    }

    /// "1 leaf".
    fn tier(&self, domain: DomainId) -> String {
        let row = &self.cluster.domains[domain];
        match &row.tier_name {
            _ if domain == ROOT => String::new(),
            Some(name) => format!("{} {name}", row.tier),
            None => row.tier.to_string(),
        }
    }

    /// "tier 1, leaf".
    fn tier_words(&self, domain: DomainId) -> String {
        match self.tier(domain) {
            none if none.is_empty() => none,
            tier => format!("tier {}", tier.replacen(' ', ", ", 1)),
        }
    }

    fn nodes(&self, domain: DomainId) -> &[NodeId] {
        let ranks = self.cluster.domains.ranks(domain);
        &self.cluster.nodes.by_rank[ranks.start as usize..ranks.end as usize]
    }

    /// The nodes that are in the domain, but in none below it. They are ranked before the others.
    fn own_nodes(&self, domain: DomainId) -> &[NodeId] {
        let nodes = self.nodes(domain);
        &nodes
            [..nodes.partition_point(|&node| self.cluster.domains.smallest_around(node) == domain)]
    }

    fn room(&self, nodes: &[NodeId]) -> Room {
        let columns = &self.cluster.nodes;
        let used = nodes.iter().map(|&node| columns.used(self.resource, node)).sum();
        let size = nodes.iter().map(|&node| columns.allocatable[self.resource][node]).sum();
        Room { used, size }
    }

    fn gangs(&self, domain: DomainId) -> &[GangId] {
        self.gangs.get(&domain).map_or(&[], Vec::as_slice)
    }

    fn gang_name(&self, gang: GangId) -> &str {
        self.names.short(&self.cluster.gangs[gang].key)
    }

    fn resource_name(&self) -> &str {
        self.cluster.dimensions.name(self.resource)
    }

    /// Whole units: thousandths of a cluster's cpu are of no interest.
    fn amount(&self, amount: i64) -> String {
        let unit = if self.resource_name() == "cpu" { 1000 } else { 1 };
        grouped(((amount.max(0) + unit / 2) / unit) as u64)
    }

    /// "40/64 gpu".
    fn in_use(&self, room: Room) -> String {
        let name = self.resource_name().rsplit('/').next().unwrap_or_default();
        format!("{}/{} {name}", self.amount(room.used), self.amount(room.size))
    }

    /// "8 nodes, 7 HyperNodes, 40 of 64 nvidia.com/gpu in use".
    fn summary(&self) -> String {
        let room = self.room(self.nodes(ROOT));
        let nodes = counted(self.nodes(ROOT).len() as u64, "node");
        let hypers = counted(self.cluster.domains.len() as u64 - 1, "HyperNode");
        let (used, size) = (self.amount(room.used), self.amount(room.size));
        format!("{nodes}, {hypers}, {used} of {size} {} in use", self.resource_name())
    }

    /// The HyperNodes that are not in the tree, each with the reason.
    fn left(&self) -> Vec<(&str, String)> {
        let faults = self.cluster.domains.faults().iter();
        faults.map(|(name, why)| (name.as_ref(), fault(why))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn only_what_is_full_looks_full() {
        let steps = [(0, 8), (1, 800), (4, 8), (799, 800), (8, 8), (0, 0), (9, 8)];
        assert_eq!(steps.map(|(used, size)| Room { used, size }.step(5)), [0, 1, 2, 3, 4, 0, 4]);
    }
}
