//! The room that a waiting gang lacks: puts its missing pods where they would fit, one after the other, and says for
//! the others which node comes closest and what it lacks. A sketch of what would help, not a second scheduler: rules
//! between the gang's own pods are not looked at.

use std::collections::BTreeMap;

use muster_engine::ids::{GangId, NodeId, PodId, ResourceId, ShapeId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Missing;
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Reach, Why};

/// So many of the closest nodes are named.
const CLOSEST: usize = 3;

#[derive(Default)]
pub struct Shortage {
    /// The nodes that come closest for the first pod that fits nowhere, with what they lack.
    pub closest: Vec<(NodeId, Vec<(ResourceId, i64)>)>,
    /// What to free where, so that all missing pods fit.
    pub free: BTreeMap<NodeId, BTreeMap<ResourceId, i64>>,
    /// A pod that no node could hold even if it were empty, and for how many pods that is so.
    pub too_large: Option<(PodId, u32)>,
    /// A pod that no node takes whatever its room.
    pub unwelcome: Option<PodId>,
}

pub fn shortage(engine: &Engine, gang: GangId) -> Shortage {
    let cluster = engine.cluster();
    let mut rooms = Rooms { engine, cluster, welcome: BTreeMap::new(), taken: BTreeMap::new() };
    let mut shortage = Shortage::default();
    for pod in missing_pods(engine, gang) {
        let shape = cluster.pods.shape[pod];
        if rooms.welcome(shape).is_empty() {
            shortage.unwelcome.get_or_insert(pod);
            continue;
        }
        let mut ranked: Vec<(NodeId, Vec<(ResourceId, i64)>)> = rooms
            .welcome(shape)
            .into_iter()
            .filter(|&node| rooms.large_enough(shape, node))
            .map(|node| (node, rooms.lacks(shape, node)))
            .collect();
        if ranked.is_empty() {
            shortage.too_large.get_or_insert((pod, 0)).1 += 1;
            continue;
        }
        ranked.sort_by_key(|(node, lacks)| (rooms.weight(*node, lacks), cluster.nodes.rank[*node]));
        let (node, lacks) = ranked[0].clone();
        if !lacks.is_empty() && shortage.closest.is_empty() {
            ranked.truncate(CLOSEST);
            shortage.closest = ranked;
        }
        for (resource, amount) in &lacks {
            *shortage.free.entry(node).or_default().entry(*resource).or_default() += amount;
        }
        rooms.take(shape, node, &lacks);
    }
    shortage
}

/// The pending pods that the gang needs to start, or the next one above its minimum.
fn missing_pods(engine: &Engine, gang: GangId) -> Vec<PodId> {
    let cluster = engine.cluster();
    let row = &cluster.gangs[gang];
    let mut missing = match row.missing(engine.policy().gangs_are_whole()) {
        Missing { total: 0, roles } => Missing::one(roles.len()),
        missing => missing,
    };
    let mut pods = Vec::new();
    for &pod in &row.pods {
        let role = cluster.pods.role[pod] as usize;
        if missing.total > 0 && cluster.pods.state[pod] == PodState::Pending && missing.wants(role) {
            missing.take(role);
            pods.push(pod);
        }
    }
    pods
}

struct Rooms<'e> {
    engine: &'e Engine,
    cluster: &'e Cluster,
    /// The nodes that take a shape, apart from room.
    welcome: BTreeMap<ShapeId, Vec<NodeId>>,
    /// What pods that were put there before have taken, more than was lacking.
    taken: BTreeMap<(NodeId, ResourceId), i64>,
}

impl Rooms<'_> {
    fn welcome(&mut self, shape: ShapeId) -> Vec<NodeId> {
        let find = || {
            let fact = &self.cluster.nodes.fact;
            let nodes: Vec<NodeId> = self.cluster.nodes.live().filter(|&node| fact[node].ready).collect();
            let mut why = vec![Why::Fits; nodes.len()];
            for reach in [Reach::Facts, Reach::Node, Reach::Cluster] {
                self.engine.policy().filter(reach, self.cluster, shape, &nodes, &mut why);
            }
            nodes.into_iter().zip(why).filter(|(_, why)| *why == Why::Fits).map(|(node, _)| node).collect()
        };
        self.welcome.entry(shape).or_insert_with(find).clone()
    }

    fn request(&self, shape: ShapeId) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
        self.cluster.shapes[shape].request.iter()
    }

    fn large_enough(&self, shape: ShapeId, node: NodeId) -> bool {
        self.request(shape).all(|(resource, want)| {
            let freed = self.taken.get(&(node, resource)).copied().unwrap_or(0);
            self.cluster.nodes.allocatable[resource][node] - freed >= want
        })
    }

    fn lacks(&self, shape: ShapeId, node: NodeId) -> Vec<(ResourceId, i64)> {
        let nodes = &self.cluster.nodes;
        let short = self.request(shape).map(|(resource, want)| {
            let promised = nodes.nominated[resource][node];
            let taken = self.taken.get(&(node, resource)).copied().unwrap_or(0);
            (resource, want - (nodes.idle[resource][node] - promised - taken).max(0))
        });
        short.filter(|&(_, short)| short > 0).collect()
    }

    /// How much of the node would have to be freed, in thousandths of each resource.
    fn weight(&self, node: NodeId, lacks: &[(ResourceId, i64)]) -> i128 {
        let part = |&(resource, amount): &(ResourceId, i64)| {
            i128::from(amount) * 1000 / i128::from(self.cluster.nodes.allocatable[resource][node].max(1))
        };
        lacks.iter().map(part).sum()
    }

    fn take(&mut self, shape: ShapeId, node: NodeId, lacks: &[(ResourceId, i64)]) {
        let request: Vec<(ResourceId, i64)> = self.request(shape).collect();
        for (resource, want) in request {
            let freed =
                lacks.iter().find(|(lacking, _)| *lacking == resource).map_or(0, |(_, amount)| *amount);
            *self.taken.entry((node, resource)).or_default() += want - freed;
        }
    }
}
