//! The node table: one contiguous column per resource, so that finding nodes with room is a linear
//! scan.

use std::sync::Arc;

use muster_api::Time;
use muster_api::cards::Card;
use muster_api::core::{Labels, Port, Taint};
use muster_api::keys::REVOCABLE_ZONE;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{DomainId, NodeId, PodId, ResourceId, Table};
use crate::base::room::Room;

/// One column of nodes per resource.
pub type Columns = Table<ResourceId, Table<NodeId, i64>>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Nodes {
    pub name: Table<NodeId, Arc<str>>,
    pub fact: Table<NodeId, Node>,
    /// The facts in brief, for questions about all nodes.
    pub traits: Table<NodeId, Traits>,
    /// The version of the object from which the facts were read.
    pub(super) version: Table<NodeId, u64>,
    pub allocatable: Columns,
    /// Free now.
    pub idle: Columns,
    /// Held by terminating pods, on nodes where they can leave.
    pub releasing: Columns,
    /// Kept for nominated pods.
    pub nominated: Columns,
    /// `2^62 / allocatable`, so that a utilisation is a multiplication (see [`fraction`]).
    pub reciprocal: Columns,
    /// The pods that are on a node or nominated to it, in order of their id.
    #[serde(alias = "seats")]
    pub pods_on: Table<NodeId, Vec<PodId>>,
    /// Host ports in use, with how many pods use each, and how many of these terminate.
    pub ports: Table<NodeId, Vec<(Port, [u32; 2])>>,
    /// Breaks all ties: the position of the node among all nodes, independent of the order of
    /// arrival.
    pub rank: Table<NodeId, u32>,
    pub by_rank: Vec<NodeId>,
    by_name: FxHashMap<Arc<str>, NodeId>,
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// False for the slot of a node that is known only by name, or is gone.
    pub live: bool,
    pub ready: bool,
    pub cordoned: bool,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    /// Image name and size.
    pub images: Vec<(String, i64)>,
    pub created: Time,
    pub cards: Option<Box<CardFacts>>,
}

/// A few flags that answer most questions about most nodes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traits {
    pub live: bool,
    pub ready: bool,
    /// Cordoned or tainted.
    pub refuses_some: bool,
    pub lists_images: bool,
}

impl Node {
    /// Its zone, if it is a revocable node that serves other systems at times.
    pub fn zone(&self) -> Option<&str> {
        self.labels.get(REVOCABLE_ZONE).map(String::as_str).filter(|zone| !zone.is_empty())
    }

    fn traits(&self) -> Traits {
        Traits {
            live: self.live,
            ready: self.ready,
            refuses_some: self.cordoned || !self.taints.is_empty(),
            lists_images: !self.images.is_empty(),
        }
    }

    /// Whether evicted pods leave it.
    pub fn lets_go(&self) -> bool {
        self.live && self.ready
    }
}

/// What a node says of its cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardFacts {
    /// Cards that it offers as virtual GPUs.
    pub offered: Vec<Card>,
    /// The numbers of broken cards.
    pub broken: Vec<u32>,
}

impl Nodes {
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The slot of a name; a new one is empty and not live.
    pub fn slot(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let shared: Arc<str> = name.into();
        let id = self.name.push(shared.clone());
        self.by_name.insert(shared, id);
        self.fact.push(Node::default());
        self.traits.push(Traits::default());
        self.version.push(0);
        // Room for a few from the start: a cycle fills many nodes at once.
        self.pods_on.push(Vec::with_capacity(8));
        self.ports.push(Vec::new());
        self.rank.push(u32::MAX);
        for columns in self.columns_mut() {
            for column in columns.rows_mut() {
                column.push(0);
            }
        }
        id
    }

    fn columns_mut(&mut self) -> [&mut Columns; 5] {
        [
            &mut self.allocatable,
            &mut self.idle,
            &mut self.releasing,
            &mut self.nominated,
            &mut self.reciprocal,
        ]
    }

    /// Makes room for dimensions that were interned since.
    pub fn widen(&mut self, dimensions: usize) {
        let rows = self.name.len();
        for columns in self.columns_mut() {
            while columns.len() < dimensions {
                let mut column = Table::default();
                column.grow(rows, 0);
                columns.push(column);
            }
        }
    }

    pub(super) fn describe(&mut self, node: NodeId, fact: Node) {
        self.traits[node] = fact.traits();
        self.fact[node] = fact;
    }

    /// Future idle: idle and releasing, less what is nominated.
    #[inline]
    pub fn future_idle(&self, resource: ResourceId, node: NodeId) -> i64 {
        self.idle[resource][node] + self.releasing[resource][node] - self.nominated[resource][node]
    }

    pub fn used(&self, resource: ResourceId, node: NodeId) -> i64 {
        self.allocatable[resource][node] - self.idle[resource][node]
    }

    pub fn set_allocatable(&mut self, resource: ResourceId, node: NodeId, amount: i64) {
        let before = std::mem::replace(&mut self.allocatable[resource][node], amount);
        self.idle[resource][node] += amount - before;
        self.reciprocal[resource][node] = if amount > 0 { (1 << 62) / amount } else { 0 };
    }

    pub fn live(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.traits.iter().filter(|(_, node)| node.live).map(|(id, _)| id)
    }

    /// Sorts the nodes again after one joined, left or moved: domain by domain, then by name; nodes
    /// that are gone come last.
    pub fn rank(&mut self, smallest: impl Fn(NodeId) -> DomainId) {
        self.by_rank = self.fact.ids().collect();
        let (fact, name) = (&self.fact, &self.name);
        let key = |node: NodeId| (!fact[node].live, smallest(node), &name[node]);
        self.by_rank.sort_by(|&a, &b| key(a).cmp(&key(b)));
        for (rank, &node) in self.by_rank.iter().enumerate() {
            self.rank[node] = rank as u32;
        }
    }

    pub(super) fn update_pods_on(&mut self, node: NodeId, pod: PodId, sign: i64) {
        let pods_on = &mut self.pods_on[node];
        match (pods_on.binary_search(&pod), sign) {
            (Err(place), 1) => pods_on.insert(place, pod),
            (Ok(place), _) => drop(pods_on.remove(place)),
            _ => unreachable!("a pod is added once and removed once"),
        }
    }

    pub(super) fn use_ports(&mut self, node: NodeId, ports: &[Port], leaving: bool, sign: i64) {
        let used = &mut self.ports[node];
        for port in ports {
            let place =
                used.binary_search_by(|(other, _)| other.cmp(port)).unwrap_or_else(|place| {
                    used.insert(place, (port.clone(), [0, 0]));
                    place
                });
            let [all, going] = &mut used[place].1;
            *all = (i64::from(*all) + sign) as u32;
            *going = (i64::from(*going) + if leaving { sign } else { 0 }) as u32;
            if *all == 0 {
                used.remove(place);
            }
        }
    }

    /// Whether a host port is taken on the node: same protocol and port, and one of the addresses
    /// is any.
    pub fn port_taken(&self, node: NodeId, want: &Port, room: Room) -> bool {
        let any = |ip: &str| ip.is_empty() || ip == "0.0.0.0" || ip == "::";
        self.ports[node].iter().any(|(used, [all, going])| {
            (room != Room::FutureIdle || all > going)
                && used.host_port == want.host_port
                && used.protocol == want.protocol
                && (used.host_ip == want.host_ip || any(&used.host_ip) || any(&want.host_ip))
        })
    }
}

/// `part / whole` in 2^20ths, with the whole's reciprocal as [`Nodes::reciprocal`] keeps it. A
/// division would cost more than the rest of a score.
#[inline]
pub fn fraction(part: i64, reciprocal: i64) -> i64 {
    ((part.max(0) as u128 * reciprocal as u128) >> 42) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_by_reciprocal_is_the_division_within_one_part_in_a_million() {
        for (part, whole) in [(1, 3), (95_999, 96_000), (7 << 30, 2 << 40), (8, 8), (0, 5)] {
            let exact = ((part as i128) << 20) / whole as i128;
            let found = fraction(part, (1 << 62) / whole);
            assert!((exact - i128::from(found)).abs() <= 1, "{part}/{whole}: {found} for {exact}");
        }
    }
}
