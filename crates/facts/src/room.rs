//! The room that a waiting gang lacks: puts its missing pods where they would fit, one after the
//! other, and says for each of the others which node comes closest and what it lacks. A sketch of
//! what would help, not a second scheduler: rules between the gang's own pods are ignored.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use muster_engine::ids::{GangId, NodeId, PodId, ResourceId, ShapeId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Missing;
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Room, Scope, Why};

/// How many of the closest nodes are named.
const CLOSEST: usize = 3;

#[derive(Default)]
pub struct Shortage {
    /// The nodes that come closest for the first pod that fits nowhere, with what they lack.
    pub closest: Vec<(NodeId, Vec<(ResourceId, i64)>)>,
    /// What to free on which node, so that all missing pods fit.
    pub free: BTreeMap<NodeId, BTreeMap<ResourceId, i64>>,
    /// A pod that no node could hold even if it were empty, and the number of such pods.
    pub too_large: Option<(PodId, u32)>,
    /// A pod for which there is no room beside the others, even if all nodes were empty, and the
    /// number of such pods.
    pub too_many: Option<(PodId, u32)>,
    /// A pod that no node accepts, however much room it has.
    pub unwelcome: Option<PodId>,
}

pub fn shortage(engine: &Engine, gang: GangId) -> Shortage {
    let mut rooms = Rooms { engine, cluster: engine.cluster(), spaces: BTreeMap::new() };
    let mut lines: BTreeMap<ShapeId, Line> = BTreeMap::new();
    let mut shortage = Shortage::default();
    for pod in missing_pods(engine, gang) {
        let shape = rooms.cluster.pods.shape[pod];
        let line = lines.entry(shape).or_insert_with(|| rooms.line(shape));
        if line.welcome.is_empty() {
            shortage.unwelcome.get_or_insert(pod);
            continue;
        }
        let Some(node) = rooms.next(shape, line) else {
            let which =
                if line.fits_somewhere { &mut shortage.too_many } else { &mut shortage.too_large };
            which.get_or_insert((pod, 0)).1 += 1;
            continue;
        };
        let lacks = rooms.lacks(shape, node);
        if !lacks.is_empty() && shortage.closest.is_empty() {
            shortage.closest = rooms.closest(shape, line);
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
    let mut missing = match row.missing(engine.policy().enforces_minimum()) {
        Missing { total: 0, roles } => Missing::one(roles.len()),
        missing => missing,
    };
    let mut pods = Vec::new();
    for &pod in &row.pods {
        let role = cluster.pods.role[pod] as usize;
        if missing.total > 0 && cluster.pods.state[pod] == PodState::Pending && missing.wants(role)
        {
            missing.take(role);
            pods.push(pod);
        }
    }
    pods
}

/// The nodes for pods of one shape, the one that comes closest first.
struct Line {
    /// The nodes that accept the shape if they have room.
    welcome: Vec<NodeId>,
    /// Whether some node could hold a pod of the shape if it were empty.
    fits_somewhere: bool,
    /// The amount to free, rank, node, and how many pods had been put on the node when the amount
    /// was computed.
    ranked: BinaryHeap<Reverse<(i128, u32, NodeId, u32)>>,
}

/// How the pods that were put on a node have changed it.
#[derive(Default)]
struct Space {
    pods: u32,
    /// What they request in total.
    placed: BTreeMap<ResourceId, i64>,
    /// How much they use of what is idle now.
    taken: BTreeMap<ResourceId, i64>,
}

struct Rooms<'e> {
    engine: &'e Engine,
    cluster: &'e Cluster,
    spaces: BTreeMap<NodeId, Space>,
}

impl Rooms<'_> {
    fn line(&self, shape: ShapeId) -> Line {
        let fact = &self.cluster.nodes.fact;
        let nodes: Vec<NodeId> =
            self.cluster.nodes.live().filter(|&node| fact[node].ready).collect();
        let mut why = vec![Why::Fits; nodes.len()];
        for reach in [Scope::NodeFacts, Scope::NodePods, Scope::OtherNodes] {
            self.engine.policy().filter(reach, self.cluster, (shape, Room::Idle), &nodes, &mut why);
        }
        let welcome = nodes.into_iter().zip(why).filter(|(_, why)| *why == Why::Fits);
        let welcome: Vec<NodeId> = welcome.map(|(node, _)| node).collect();
        let allocatable = &self.cluster.nodes.allocatable;
        let large =
            |node: &NodeId| self.request(shape).all(|(r, want)| allocatable[r][*node] >= want);
        Line {
            fits_somewhere: welcome.iter().any(large),
            ranked: welcome
                .iter()
                .filter_map(|&node| self.rank(shape, node))
                .map(Reverse)
                .collect(),
            welcome,
        }
    }

    /// The node that comes closest, if any has space beside the pods that were put there.
    fn next(&self, shape: ShapeId, line: &mut Line) -> Option<NodeId> {
        loop {
            let Reverse((_, _, node, pods)) = *line.ranked.peek()?;
            if self.spaces.get(&node).map_or(0, |space| space.pods) == pods {
                return Some(node);
            }
            // More pods have been put there since: rank the node again, or drop it if it has no
            // room left.
            line.ranked.pop();
            line.ranked.extend(self.rank(shape, node).map(Reverse));
        }
    }

    /// The rank of a node; `None` if the pod would not fit beside the others even if all other pods
    /// were gone.
    fn rank(&self, shape: ShapeId, node: NodeId) -> Option<(i128, u32, NodeId, u32)> {
        let space = self.spaces.get(&node);
        let placed =
            |resource| space.and_then(|space| space.placed.get(&resource)).copied().unwrap_or(0);
        let allocatable = &self.cluster.nodes.allocatable;
        self.request(shape).all(|(r, want)| allocatable[r][node] - placed(r) >= want).then(|| {
            let weight = self.weight(node, &self.lacks(shape, node));
            (weight, self.cluster.nodes.rank[node], node, space.map_or(0, |space| space.pods))
        })
    }

    fn closest(&self, shape: ShapeId, line: &Line) -> Vec<(NodeId, Vec<(ResourceId, i64)>)> {
        let mut ranked: Vec<_> =
            line.welcome.iter().filter_map(|&node| self.rank(shape, node)).collect();
        ranked.sort_unstable();
        ranked
            .into_iter()
            .take(CLOSEST)
            .map(|(_, _, node, _)| (node, self.lacks(shape, node)))
            .collect()
    }

    fn request(&self, shape: ShapeId) -> impl Iterator<Item = (ResourceId, i64)> + '_ {
        self.cluster.shapes[shape].request.iter()
    }

    fn lacks(&self, shape: ShapeId, node: NodeId) -> Vec<(ResourceId, i64)> {
        let nodes = &self.cluster.nodes;
        let space = self.spaces.get(&node);
        let short = self.request(shape).map(|(resource, want)| {
            let nominated = nodes.nominated[resource][node];
            let taken = space.and_then(|space| space.taken.get(&resource)).copied().unwrap_or(0);
            (resource, want - (nodes.idle[resource][node] - nominated - taken).max(0))
        });
        short.filter(|&(_, short)| short > 0).collect()
    }

    /// How much of the node would have to be freed, in thousandths of each resource.
    fn weight(&self, node: NodeId, lacks: &[(ResourceId, i64)]) -> i128 {
        let part = |&(resource, amount): &(ResourceId, i64)| {
            i128::from(amount) * 1000
                / i128::from(self.cluster.nodes.allocatable[resource][node].max(1))
        };
        lacks.iter().map(part).sum()
    }

    fn take(&mut self, shape: ShapeId, node: NodeId, lacks: &[(ResourceId, i64)]) {
        let space = self.spaces.entry(node).or_default();
        space.pods += 1;
        for (resource, want) in self.cluster.shapes[shape].request.iter() {
            let freed = lacks
                .iter()
                .find(|(lacking, _)| *lacking == resource)
                .map_or(0, |(_, amount)| *amount);
            *space.taken.entry(resource).or_default() += want - freed;
            *space.placed.entry(resource).or_default() += want;
        }
    }
}
