//! The measures of a map: the resources that are drawn, and how much of them is in use.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use muster_engine::explain::grouped;
use muster_engine::ids::{NodeId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::nodes::Columns;

use super::{DRAWN_NODES, Map, UNITS};
use crate::render::screen::Screen;
use crate::render::text::{BOLD, DIM, styled, width};

impl Map<'_> {
    /// "MAP   12 of 16 nvidia.com/gpu (+4 nominated), 48 of 128 cpu in use".
    pub(super) fn title(&self, screen: Screen) -> String {
        let note = if self.nodes.len() > DRAWN_NODES {
            let nodes = grouped(self.nodes.len() as u64);
            format!(" in use; {nodes} nodes, {} a character", self.block(screen))
        } else {
            " in use".to_owned()
        };
        let mut text = String::new();
        for resource in self.told() {
            let sizes = &self.cluster.nodes.allocatable[resource];
            let all: i64 = self.nodes.iter().map(|&node| sizes[node]).sum();
            let used = used(self.cluster, &self.nodes, resource);
            let (used, all) = (self.show(resource, used), self.show(resource, all));
            let name = self.cluster.dimensions.name(resource);
            if text.is_empty() {
                text = format!("{used} of {all} {name}{}", self.changing(resource));
                continue;
            }
            let longer = format!("{text}, {used} of {all} {name}");
            if width(&longer) + width(&note) + width("MAP   ") > screen.end() {
                break;
            }
            text = longer;
        }
        format!("{}   {}", styled(BOLD, "MAP"), styled(DIM, text + &note))
    }

    /// The resources in the title.
    fn told(&self) -> Vec<ResourceId> {
        let drawn: BTreeSet<ResourceId> =
            self.nodes.iter().map(|&node| self.drawn_resource(node)).collect();
        let told = |resource: &ResourceId| {
            drawn.contains(resource) || !given_otherwise(self.cluster, &self.nodes, *resource)
        };
        let counted = self.counted.iter().copied().filter(told);
        counted.chain(self.cluster.dimensions.find("cpu")).collect()
    }

    /// " (8 terminating, +8 nominated)": the part of what is in use that no queue holds any more,
    /// and what queues hold beyond it.
    fn changing(&self, resource: ResourceId) -> String {
        let columns = &self.cluster.nodes;
        let sum = |column: &Columns| -> i64 {
            self.nodes.iter().map(|&node| column[resource][node]).sum()
        };
        let (terminating, nominated) = (sum(&columns.releasing), sum(&columns.nominated));
        let parts = [
            (terminating > 0).then(|| format!("{} terminating", self.show(resource, terminating))),
            (nominated > 0).then(|| format!("+{} nominated", self.show(resource, nominated))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
    }

    /// A sum in whole units: thousandths of a cluster's cpu are of no interest.
    fn show(&self, resource: ResourceId, amount: i64) -> String {
        let unit = if self.cluster.dimensions.name(resource) == "cpu" { 1000 } else { 1 };
        grouped(((amount.max(0) + unit / 2) / unit) as u64)
    }
}

/// The resource that measures a cluster: the one that is drawn first, cpu if nothing is counted in
/// units.
pub fn scarce(cluster: &Cluster) -> ResourceId {
    let nodes: Vec<NodeId> = cluster.nodes.live().collect();
    let first = counted(cluster, &nodes).first().copied();
    first.unwrap_or_else(|| cluster.dimensions.find("cpu").expect("every cluster has cpu"))
}

/// Extended resources, best to draw first: those with few units per node, then the most used.
pub(super) fn counted(cluster: &Cluster, nodes: &[NodeId]) -> Vec<ResourceId> {
    let sizes = |resource: ResourceId| {
        nodes.iter().map(move |&node| cluster.nodes.allocatable[resource][node])
    };
    let many = |resource: ResourceId| sizes(resource).any(|size| size > UNITS);
    let mut found: Vec<ResourceId> = (0..cluster.dimensions.len())
        .map(ResourceId::from)
        .filter(|&resource| cluster.dimensions.name(resource).contains('/'))
        .filter(|&resource| sizes(resource).any(|size| size > 0))
        .collect();
    found.sort_by(|&a, &b| cluster.dimensions.by_scarcity(a, b));
    found.sort_by_cached_key(|&resource| {
        let used = used(cluster, nodes, resource);
        (given_otherwise(cluster, nodes, resource), many(resource), Reverse(used))
    });
    found
}

/// Whether pods get the same devices through another resource of the same vendor: no whole card
/// (`volcano.sh/gpu-number`) is in use where pods share cards by memory (`volcano.sh/gpu-memory`).
fn given_otherwise(cluster: &Cluster, nodes: &[NodeId], resource: ResourceId) -> bool {
    let vendor =
        |resource| cluster.dimensions.name(resource).split_once('/').map(|(vendor, _)| vendor);
    let mut others = (0..cluster.dimensions.len()).map(ResourceId::from);
    used(cluster, nodes, resource) == 0
        && others.any(|other| {
            vendor(other).is_some()
                && vendor(other) == vendor(resource)
                && used(cluster, nodes, other) > 0
        })
}

fn used(cluster: &Cluster, nodes: &[NodeId], resource: ResourceId) -> i64 {
    nodes.iter().map(|&node| cluster.nodes.used(resource, node)).sum()
}
