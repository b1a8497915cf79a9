//! The network as data. The JSON form is a contract (`docs/topology-show.md`).

use std::collections::BTreeMap;

use muster_engine::ids::{DomainId, NodeId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use serde::Serialize;

use super::{Chart, Room};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Network {
    resource: String,
    domains: Vec<DomainLine>,
    nodes: Vec<NodeLine>,
    gangs: Vec<GangLine>,
    left_out: Vec<LeftLine>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DomainLine {
    name: String,
    tier: u32,
    tier_name: Option<String>,
    parent: Option<String>,
    nodes: usize,
    #[serde(flatten)]
    room: RoomLine,
    gangs: Vec<String>,
}

#[derive(Serialize)]
struct RoomLine {
    used: String,
    free: String,
    total: String,
}

#[derive(Serialize)]
struct NodeLine {
    name: String,
    /// `None` for a node that is in no HyperNode.
    domain: Option<String>,
    ready: bool,
    schedulable: bool,
    #[serde(flatten)]
    room: RoomLine,
    /// How many pods of each gang are there.
    gangs: BTreeMap<String, u32>,
}

#[derive(Serialize)]
struct GangLine {
    name: String,
    domain: String,
    tier: u32,
    /// How many of its pods are placed.
    placed: u32,
}

#[derive(Serialize)]
struct LeftLine {
    name: String,
    reason: String,
}

pub fn network(cluster: &Cluster) -> Network {
    let chart = Chart::new(cluster);
    let left = chart.left().into_iter();
    Network {
        resource: chart.resource_name().to_owned(),
        domains: cluster.domains.ids().map(|domain| chart.domain_line(domain)).collect(),
        nodes: chart.nodes(ROOT).iter().map(|&node| chart.node_line(node)).collect(),
        gangs: chart.gang_lines(),
        left_out: left.map(|(name, reason)| LeftLine { name: name.to_owned(), reason }).collect(),
    }
}

impl Chart<'_> {
    fn domain_line(&self, domain: DomainId) -> DomainLine {
        let domains = &self.cluster.domains;
        let row = &domains[domain];
        let gangs = self.gangs(domain).iter();
        DomainLine {
            name: row.name.to_string(),
            tier: row.tier,
            tier_name: row.tier_name.as_ref().map(ToString::to_string),
            parent: row.parent.map(|parent| domains[parent].name.to_string()),
            nodes: self.nodes(domain).len(),
            room: self.room_line(self.room(self.nodes(domain))),
            gangs: gangs.map(|&gang| self.cluster.gangs[gang].key.to_string()).collect(),
        }
    }

    fn node_line(&self, node: NodeId) -> NodeLine {
        let fact = &self.cluster.nodes.fact[node];
        let home = Some(self.cluster.domains.smallest_around(node)).filter(|&home| home != ROOT);
        NodeLine {
            name: self.cluster.nodes.name[node].to_string(),
            domain: home.map(|home| self.cluster.domains[home].name.to_string()),
            ready: fact.ready,
            schedulable: !fact.cordoned,
            room: self.room_line(self.room(&[node])),
            gangs: self
                .pods_on(node)
                .into_iter()
                .map(|(key, pods)| (key.to_owned(), pods))
                .collect(),
        }
    }

    /// How many pods of each gang are on a node, or nominated to it.
    pub(super) fn pods_on(&self, node: NodeId) -> BTreeMap<&str, u32> {
        let pods = &self.cluster.pods;
        let mut counts = BTreeMap::new();
        for gang in self.cluster.nodes.pods_on[node].iter().filter_map(|&pod| pods.gang[pod]) {
            *counts.entry(self.cluster.gangs[gang].key.as_ref()).or_default() += 1;
        }
        counts
    }

    fn gang_lines(&self) -> Vec<GangLine> {
        let mut lines: Vec<GangLine> = Vec::new();
        for (&domain, gangs) in &self.gangs {
            let row = &self.cluster.domains[domain];
            lines.extend(gangs.iter().map(|&gang| {
                let gang = &self.cluster.gangs[gang];
                let counts = &gang.counts;
                GangLine {
                    name: gang.key.to_string(),
                    domain: row.name.to_string(),
                    tier: row.tier,
                    placed: counts.allocated + counts.running + counts.nominated,
                }
            }));
        }
        lines.sort_by(|a, b| a.name.cmp(&b.name));
        lines
    }

    fn room_line(&self, room: Room) -> RoomLine {
        let show = |amount| self.cluster.dimensions.show(self.resource, amount);
        RoomLine { used: show(room.used), free: show(room.free()), total: show(room.size) }
    }
}
