//! The network as a tree of domains, made of what HyperNodes claim. Domains are numbered depth
//! first, so that all that is below one is a range; nodes are ranked in the same order, so that all
//! nodes of a domain are a range of ranks too.
//!
//! A HyperNode that can't have its place leaves the tree with all that is below it, and says why;
//! the rest stays. Nodes that no domain holds are right below the root, which stands for the whole
//! cluster.

mod tree_builder;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::ids::{DomainId, NodeId, ResourceId, Table};
use crate::model::nodes::Nodes;
use crate::model::topology::domains::tree_builder::TreeBuilder;
use crate::model::topology::hypernodes::HyperNodes;

/// The cluster as a domain.
pub const ROOT: DomainId = DomainId(0);
pub const ROOT_NAME: &str = "<cluster-top-hypernode>";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Domains {
    rows: Table<DomainId, Domain>,
    /// There are HyperNodes, in the tree or not.
    planted: bool,
    by_name: BTreeMap<Arc<str>, DomainId>,
    /// The smallest domain that holds each node.
    home: Table<NodeId, DomainId>,
    tiers: BTreeMap<Arc<str>, u32>,
    /// The tiers below the root's that there are, lowest first.
    levels: Vec<u32>,
    faults: BTreeMap<Arc<str>, Fault>,
    /// What the nodes of each domain have free and in all. Only while there are HyperNodes.
    idle: Table<ResourceId, Table<DomainId, i64>>,
    allocatable: Table<ResourceId, Table<DomainId, i64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    pub name: Arc<str>,
    pub tier: u32,
    pub tier_name: Option<Arc<str>>,
    pub parent: Option<DomainId>,
    /// Its place among all domains by name.
    pub order: u32,
    /// The first domain after all that is below this one.
    end: DomainId,
    /// The ranks of its live nodes.
    ranks: (u32, u32),
}

/// Why a HyperNode is not in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    BadMember {
        why: String,
    },
    TierName {
        name: Arc<str>,
        tier: u32,
        other: Arc<str>,
        other_tier: u32,
    },
    Cycle {
        through: Vec<Arc<str>>,
    },
    SharedChild {
        child: Arc<str>,
        with: Arc<str>,
    },
    NotBelow {
        tier: u32,
        parent: Arc<str>,
        parent_tier: u32,
    },
    SharedNode {
        node: Arc<str>,
        with: Arc<str>,
    },
    /// A HyperNode above it is not in the tree.
    Above {
        parent: Arc<str>,
    },
}

impl Default for Domains {
    fn default() -> Domains {
        let mut rows = Table::default();
        rows.push(Domain {
            name: ROOT_NAME.into(),
            tier: 1,
            tier_name: None,
            parent: None,
            order: 0,
            end: DomainId(1),
            ranks: (0, 0),
        });
        Domains {
            rows,
            planted: false,
            by_name: BTreeMap::new(),
            home: Table::default(),
            tiers: BTreeMap::new(),
            levels: Vec::new(),
            faults: BTreeMap::new(),
            idle: Table::default(),
            allocatable: Table::default(),
        }
    }
}

impl std::ops::Index<DomainId> for Domains {
    type Output = Domain;

    #[inline]
    fn index(&self, id: DomainId) -> &Domain {
        &self.rows[id]
    }
}

impl Domains {
    /// There are domains below the root.
    #[inline]
    pub fn are_real(&self) -> bool {
        self.rows.len() > 1
    }

    /// There are HyperNodes, in the tree or not.
    pub fn are_planted(&self) -> bool {
        self.planted
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        false
    }

    pub fn ids(&self) -> impl DoubleEndedIterator<Item = DomainId> + use<> {
        self.rows.ids()
    }

    pub fn find(&self, name: &str) -> Option<DomainId> {
        if name == ROOT_NAME { Some(ROOT) } else { self.by_name.get(name).copied() }
    }

    /// Why HyperNodes are not in the tree, by name.
    pub fn faults(&self) -> &BTreeMap<Arc<str>, Fault> {
        &self.faults
    }

    /// The number of a tier that has a name.
    pub fn tier_called(&self, name: &str) -> Option<u32> {
        self.tiers.get(name).copied()
    }

    /// The tiers below the root's that there are, lowest first.
    pub fn levels(&self) -> &[u32] {
        &self.levels
    }

    #[inline]
    pub fn home(&self, node: NodeId) -> DomainId {
        if self.are_real() { self.home[node] } else { ROOT }
    }

    /// The domain and all that is below it.
    pub fn below(&self, domain: DomainId) -> Range<u32> {
        domain.0..self.rows[domain].end.0
    }

    /// Whether the second is the first or below it.
    #[inline]
    pub fn holds(&self, domain: DomainId, other: DomainId) -> bool {
        self.below(domain).contains(&other.0)
    }

    /// The ranks of a domain's nodes.
    #[inline]
    pub fn ranks(&self, domain: DomainId) -> Range<u32> {
        let (start, end) = self.rows[domain].ranks;
        start..end
    }

    /// The ranks of those of its nodes that no domain below it holds.
    #[inline]
    pub fn own_ranks(&self, domain: DomainId) -> Range<u32> {
        let (start, end) = self.rows[domain].ranks;
        let below = self.children(domain).next().map_or(end, |child| self.rows[child].ranks.0);
        start..below
    }

    pub fn node_count(&self, domain: DomainId) -> u32 {
        self.ranks(domain).len() as u32
    }

    /// The domain and those above it, up to the root.
    pub fn chain(&self, domain: DomainId) -> impl Iterator<Item = DomainId> + '_ {
        std::iter::successors(Some(domain), |&at| self.rows[at].parent)
    }

    /// The smallest domain that holds both.
    pub fn common(&self, a: DomainId, b: DomainId) -> DomainId {
        self.chain(a).find(|&at| self.holds(at, b)).unwrap_or(ROOT)
    }

    /// The smallest domain that holds all of these nodes.
    pub fn around(&self, nodes: impl IntoIterator<Item = NodeId>) -> Option<DomainId> {
        nodes.into_iter().map(|node| self.home(node)).reduce(|a, b| self.common(a, b))
    }

    pub fn children(&self, domain: DomainId) -> impl Iterator<Item = DomainId> + '_ {
        let mut next = domain.0 + 1;
        let end = self.rows[domain].end.0;
        std::iter::from_fn(move || {
            let child = DomainId((next < end).then_some(next)?);
            next = self.rows[child].end.0;
            Some(child)
        })
    }

    #[inline]
    pub fn is_leaf(&self, domain: DomainId) -> bool {
        self.rows[domain].end.0 == domain.0 + 1
    }

    /// What the domain's nodes have free, and in all.
    pub fn room(&self, domain: DomainId, resource: ResourceId) -> (i64, i64) {
        let of = |columns: &Table<ResourceId, Table<DomainId, i64>>| {
            columns.rows().get(usize::from(resource)).map_or(0, |column| column[domain])
        };
        (of(&self.idle), of(&self.allocatable))
    }

    /// How full of a resource a domain would be with so much more in it, in 2^20ths.
    pub fn fullness(&self, domain: DomainId, resource: ResourceId, added: i64) -> i64 {
        let (idle, allocatable) = self.room(domain, resource);
        part_of(allocatable - idle + added, allocatable)
    }

    /// What would be left of a resource in a domain with so much more in it, in 2^20ths of what the
    /// cluster has.
    pub fn left_over(&self, domain: DomainId, resource: ResourceId, added: i64) -> i64 {
        part_of(self.room(domain, resource).0 - added, self.room(ROOT, resource).1)
    }

    /// A pod has taken room on a node, or has given it back.
    #[inline]
    pub(in crate::model) fn take(&mut self, node: NodeId, resource: ResourceId, amount: i64) {
        self.grow_columns(usize::from(resource) + 1);
        let mut at = Some(self.home[node]);
        while let Some(domain) = at {
            self.idle[resource][domain] -= amount;
            at = self.rows[domain].parent;
        }
    }

    /// A node has got more of a resource, or less.
    pub(in crate::model) fn widen(&mut self, node: NodeId, resource: ResourceId, amount: i64) {
        self.grow_columns(usize::from(resource) + 1);
        let mut at = Some(self.home[node]);
        while let Some(domain) = at {
            self.idle[resource][domain] += amount;
            self.allocatable[resource][domain] += amount;
            at = self.rows[domain].parent;
        }
    }

    fn grow_columns(&mut self, dimensions: usize) {
        for columns in [&mut self.idle, &mut self.allocatable] {
            while columns.len() < dimensions {
                let mut column = Table::default();
                column.grow(self.rows.len(), 0);
                columns.push(column);
            }
        }
    }

    /// Nodes that have just become known are below the root until the tree is made anew.
    pub(in crate::model) fn count_nodes(&mut self, nodes: usize) {
        self.home.grow(nodes, ROOT);
    }

    /// Makes the tree anew from what is claimed.
    pub(in crate::model) fn plant(&mut self, hypers: &HyperNodes, nodes: &Nodes) {
        let builder = TreeBuilder::new(hypers, nodes);
        self.faults = builder.faults();
        self.tiers.clone_from(&builder.tiers);
        self.rows = Table::default();
        self.by_name.clear();
        let stays = |at: &usize| builder.left[*at].is_none();
        // Those that have left count too: a gang that may not go above their tier may still not
        // have the whole cluster.
        let highest = builder.hypers.iter().map(|hyper| hyper.tier).max();
        self.planted = highest.is_some();
        let root = Domain {
            name: ROOT_NAME.into(),
            tier: highest.map_or(1, |tier| tier + 1),
            tier_name: None,
            parent: None,
            order: 0,
            end: DomainId(1),
            ranks: (0, 0),
        };
        self.rows.push(root);
        let mut place = vec![ROOT; builder.hypers.len()];
        let tops: Vec<usize> = (0..builder.hypers.len())
            .filter(|at| stays(at) && builder.parent[*at].is_none())
            .collect();
        self.branch(&builder, ROOT, tops, &mut place);
        self.levels = self.by_name.values().map(|&domain| self.rows[domain].tier).collect();
        self.levels.sort_unstable();
        self.levels.dedup();
        for (order, &domain) in self.by_name.values().enumerate() {
            self.rows[domain].order = order as u32 + 1;
        }
        self.home = Table::default();
        self.home.grow(nodes.name.len(), ROOT);
        for (&node, &owner) in &builder.owner {
            self.home[node] = place[owner];
        }
    }

    fn branch(
        &mut self,
        builder: &TreeBuilder,
        parent: DomainId,
        mut members: Vec<usize>,
        place: &mut [DomainId],
    ) {
        members.sort_by(|&a, &b| builder.hypers[a].name.cmp(&builder.hypers[b].name));
        for at in members {
            let hyper = builder.hypers[at];
            let id = self.rows.push(Domain {
                name: hyper.name.clone(),
                tier: hyper.tier,
                tier_name: hyper.tier_name.clone(),
                parent: Some(parent),
                order: 0,
                end: parent,
                ranks: (0, 0),
            });
            place[at] = id;
            self.by_name.insert(hyper.name.clone(), id);
            let below = builder.children[at].iter().copied();
            let below = below.filter(|&child| {
                builder.left[child].is_none() && builder.parent[child] == Some(at)
            });
            self.branch(builder, id, below.collect(), place);
        }
        self.rows[parent].end = DomainId::from(self.rows.len());
    }

    /// Notes which ranks belong to which domain, after nodes were ranked by their home.
    pub(in crate::model) fn note_ranks(&mut self, nodes: &Nodes) {
        let live = nodes.by_rank.partition_point(|&node| nodes.fact[node].live);
        let homes = &nodes.by_rank[..live];
        for id in self.rows.ids() {
            let end = self.rows[id].end;
            let before =
                |limit: DomainId| homes.partition_point(|&node| self.home(node) < limit) as u32;
            let ranks = if id == ROOT { (0, live as u32) } else { (before(id), before(end)) };
            self.rows[id].ranks = ranks;
        }
    }

    /// Adds up what the nodes have.
    pub(in crate::model) fn recount(&mut self, nodes: &Nodes) {
        self.idle = Table::default();
        self.allocatable = Table::default();
        if self.are_real() {
            self.grow_columns(nodes.idle.len());
            for resource in nodes.idle.ids() {
                for (column, of) in
                    [(&mut self.idle, &nodes.idle), (&mut self.allocatable, &nodes.allocatable)]
                {
                    let (column, of) = (&mut column[resource], &of[resource]);
                    nodes.live().for_each(|node| column[self.home[node]] += of[node]);
                    // Children have higher numbers than their parents.
                    for domain in self.rows.ids().rev() {
                        let sum = column[domain];
                        if let Some(parent) = self.rows[domain].parent {
                            column[parent] += sum;
                        }
                    }
                }
            }
        }
    }

    /// The sums, for comparing them with a recount. Columns without anything in them may not be
    /// there yet.
    pub(in crate::model) fn sums(&self) -> Vec<Vec<Vec<i64>>> {
        let filled = |columns: &Table<ResourceId, Table<DomainId, i64>>| {
            let mut columns: Vec<Vec<i64>> =
                columns.rows().iter().map(|column| column.rows().to_vec()).collect();
            while columns.pop_if(|column| column.iter().all(|sum| *sum == 0)).is_some() {}
            columns
        };
        [&self.idle, &self.allocatable].map(filled).into()
    }
}

/// `part / whole` in 2^20ths, rounded down. Equal parts of unequal wholes are equal, as long as the
/// wholes are below 2^43 or multiples of what they are above it.
fn part_of(part: i64, whole: i64) -> i64 {
    let (part, whole) = (part.max(0) as u64, whole.max(0) as u64);
    let cut = (u64::BITS - whole.max(part).leading_zeros()).saturating_sub(43);
    ((part >> cut) << 20).checked_div(whole >> cut).map_or(0, |found| found as i64)
}
