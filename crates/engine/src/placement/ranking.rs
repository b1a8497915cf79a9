//! The nodes in order for one shape: which fits, and which is best. Kept between gangs and cycles;
//! after a move only the nodes that it touched are asked again.

mod counts;

use std::ops::{Not, Range};

use crate::base::ids::{DomainId, NodeId, ResourceId, ShapeId, Table, TermId};
use crate::base::room::Room;
use crate::decision::node_reason::{Bar, Histogram, Why};
use crate::model::Cluster;
use crate::model::devices::cards::Cards;
use crate::model::topology::domains::ROOT;
use crate::placement::fit::{counts_nominations, lacks, shown};
use crate::placement::ranking::counts::Holds;
use crate::placement::winner_tree::{Place, WinnerTree, place, score_of};
use crate::policy::answers::Policy;
use crate::policy::plugin::Scope;

pub struct Ranking {
    room: Room,
    /// Which shape it was made for; another may have come into its slot.
    pub born: u64,
    version: u64,
    touched: usize,
    changed: usize,
    /// Nodes that would do by what they say of themselves, and their points for it: asked again
    /// only when that changes.
    open: Vec<bool>,
    points: Vec<i32>,
    /// The version and the changes that they are of.
    facts: Option<(u64, usize)>,
    /// By rank, so that the best of a domain is the best of a range.
    tree: WinnerTree,
    /// How many pods of the shape fit, once it was asked for.
    holds: Option<Holds>,
    /// The best place below each domain with what the domains add, once it was asked for.
    tops: Option<Table<DomainId, Place>>,
}

/// Buffers for questions about many nodes, used over and over: fresh ones would cost more than the
/// questions.
#[derive(Default)]
pub struct Scratch {
    nodes: Vec<NodeId>,
    why: Vec<Why>,
    scores: Vec<i64>,
    fits: Vec<bool>,
    /// The round in which a node was last met: a node that many moves touched is asked once.
    met: Vec<u32>,
    round: u32,
}

impl Scratch {
    fn begin_round(&mut self, nodes: usize) {
        self.met.resize(nodes.max(self.met.len()), 0);
        self.round = self.round.wrapping_add(1);
    }

    #[inline]
    fn first_in_round(&mut self, node: NodeId) -> bool {
        std::mem::replace(&mut self.met[usize::from(node)], self.round) != self.round
    }
}

impl Ranking {
    pub fn new(room: Room, born: u64) -> Ranking {
        Ranking {
            room,
            born,
            version: u64::MAX,
            touched: 0,
            changed: 0,
            open: Vec::new(),
            points: Vec::new(),
            facts: None,
            tree: WinnerTree::default(),
            holds: None,
            tops: None,
        }
    }

    /// Brings the order up to date.
    pub fn refresh(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        scratch: &mut Scratch,
    ) {
        if std::mem::replace(&mut self.born, cluster.shapes[shape].born)
            != cluster.shapes[shape].born
        {
            self.version = u64::MAX;
            self.facts = None;
        }
        let logs = cluster.touched.since(self.touched).zip(cluster.changed.since(self.changed));
        let many = cluster.nodes.name.len() / 2;
        match logs {
            Some((touched, changed))
                if self.version == cluster.version && touched.len() < many.max(64) =>
            {
                for &node in changed {
                    self.ask_facts(cluster, policy, shape, std::iter::once(node), scratch);
                    self.rank_one(cluster, policy, shape, node);
                }
                scratch.begin_round(self.open.len());
                for &node in touched {
                    if scratch.first_in_round(node) {
                        self.rank_one(cluster, policy, shape, node);
                    }
                }
            }
            Some((_, [])) if self.version == cluster.version => {
                self.rank_all(cluster, policy, shape, scratch)
            }
            _ => {
                if self.facts != Some((cluster.version, cluster.changed.end())) {
                    self.open.resize(cluster.nodes.name.len(), false);
                    self.points.resize(cluster.nodes.name.len(), 0);
                    self.ask_facts(cluster, policy, shape, cluster.nodes.name.ids(), scratch);
                }
                self.rank_all(cluster, policy, shape, scratch);
            }
        }
        self.version = cluster.version;
        self.touched = cluster.touched.end();
        self.changed = cluster.changed.end();
        self.facts = Some((self.version, self.changed));
    }

    /// Takes over what is known of nodes for a shape that sees them in the same way.
    pub fn learn(&mut self, other: &Ranking) {
        self.open.clone_from(&other.open);
        self.points.clone_from(&other.points);
        self.facts = other.facts;
    }

    fn ask_facts(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        nodes: impl Iterator<Item = NodeId>,
        scratch: &mut Scratch,
    ) {
        scratch.nodes.clear();
        scratch.nodes.extend(nodes);
        facts(cluster, policy, shape, &scratch.nodes, &mut scratch.why);
        scratch.scores.clear();
        scratch.scores.resize(scratch.nodes.len(), 0);
        policy.score(Scope::NodeFacts, cluster, shape, &scratch.nodes, &mut scratch.scores);
        for ((&node, why), score) in scratch.nodes.iter().zip(&scratch.why).zip(&scratch.scores) {
            self.open[usize::from(node)] = *why == Why::Fits;
            self.points[usize::from(node)] =
                (*score).clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        }
    }

    fn rank_all(
        &mut self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        scratch: &mut Scratch,
    ) {
        self.scan(cluster, shape, &mut scratch.fits);
        scratch.nodes.clear();
        let fitting = scratch.fits.iter().enumerate().filter(|(_, fits)| **fits);
        scratch.nodes.extend(fitting.map(|(node, _)| NodeId::from(node)));
        let nodes = &scratch.nodes;
        scratch.why.clear();
        scratch.why.resize(
            if cluster.shapes[shape].ports.is_empty() { 0 } else { nodes.len() },
            Why::Fits,
        );
        policy.filter(Scope::NodePods, cluster, (shape, self.room), nodes, &mut scratch.why);
        scratch.scores.clear();
        scratch.scores.extend(nodes.iter().map(|&node| i64::from(self.points[usize::from(node)])));
        policy.score(Scope::NodePods, cluster, shape, nodes, &mut scratch.scores);
        self.tree.clear(scratch.fits.len());
        for (&node, &score) in nodes.iter().zip(&scratch.scores) {
            let rank = cluster.nodes.rank[node];
            self.tree.put(rank as usize, place(score, rank));
        }
        for (&node, _) in nodes.iter().zip(&scratch.why).filter(|(_, why)| **why != Why::Fits) {
            self.tree.put(cluster.nodes.rank[node] as usize, 0);
        }
        self.tree.play();
        if self.holds.take().is_some() {
            self.count(cluster, shape);
        }
        if self.tops.take().is_some() {
            self.need_tops(cluster, policy, shape);
        }
    }

    /// The kernel: one pass over the columns of the requested resources.
    fn scan(&self, cluster: &Cluster, shape: ShapeId, fits: &mut Vec<bool>) {
        fits.clear();
        fits.extend_from_slice(&self.open);
        let nodes = &cluster.nodes;
        for (resource, want) in cluster.shapes[shape].request.iter() {
            let idle = nodes.idle[resource].rows();
            if self.room != Room::FutureIdle {
                for (fits, &idle) in fits.iter_mut().zip(idle) {
                    *fits &= idle >= want;
                }
            }
            if counts_nominations(cluster, self.room) {
                let (releasing, nominated) =
                    (nodes.releasing[resource].rows(), nodes.nominated[resource].rows());
                for (((fits, idle), releasing), nominated) in
                    fits.iter_mut().zip(idle).zip(releasing).zip(nominated)
                {
                    *fits &= idle + releasing - nominated >= want;
                }
            }
        }
        if let Some(demand) = cluster.demand(shape) {
            for (node, fits) in fits.iter_mut().enumerate().filter(|(_, fits)| **fits) {
                *fits = cluster.devices.admit(demand, NodeId::from(node), self.room);
            }
        }
    }

    fn rank_one(&mut self, cluster: &Cluster, policy: &Policy, shape: ShapeId, node: NodeId) {
        let fits = self.open[usize::from(node)] && lacks(cluster, shape, node, self.room).is_none();
        let place = if fits { self.place_of(cluster, policy, shape, node) } else { 0 };
        self.tree.set(cluster.nodes.rank[node] as usize, place);
        if self.holds.is_some() {
            self.recount(cluster, shape, node);
        }
        if self.tops.is_some() {
            self.rise(cluster, policy, shape, cluster.domains.home(node));
        }
    }

    fn place_of(&self, cluster: &Cluster, policy: &Policy, shape: ShapeId, node: NodeId) -> Place {
        if !cluster.shapes[shape].ports.is_empty() {
            let mut why = [Why::Fits];
            policy.filter(Scope::NodePods, cluster, (shape, self.room), &[node], &mut why);
            if why[0] != Why::Fits {
                return 0;
            }
        }
        let mut score = [i64::from(self.points[usize::from(node)])];
        policy.score(Scope::NodePods, cluster, shape, &[node], &mut score);
        place(score[0], cluster.nodes.rank[node])
    }

    /// The best node, for a shape that no rule between pods concerns.
    pub fn best(&self, cluster: &Cluster) -> Option<NodeId> {
        self.node_at(cluster, self.tree.best())
    }

    /// The best node with what domains add, likewise; [`Ranking::need_tops`] came before.
    pub fn best_of_all(&self, cluster: &Cluster) -> Option<NodeId> {
        self.node_at(cluster, self.tops.as_ref().map_or(0, |tops| tops[ROOT]))
    }

    /// The best node of these ranks, likewise.
    pub fn best_of(&self, cluster: &Cluster, ranks: Range<u32>) -> Option<NodeId> {
        self.node_at(cluster, self.tree.best_of(ranks.start as usize, ranks.end as usize))
    }

    fn node_at(&self, cluster: &Cluster, place: Place) -> Option<NodeId> {
        (place != 0).then(|| cluster.nodes.by_rank[(place as u32).not() as usize])
    }

    /// The best node, asking every node that has room about the pods on other nodes too. What
    /// domains add may be left out.
    pub fn best_among(
        &self,
        cluster: &Cluster,
        policy: &Policy,
        shape: ShapeId,
        avoid: &[(TermId, u32)],
        ranks: Range<u32>,
        added: &Table<DomainId, i64>,
    ) -> Option<NodeId> {
        let leaves = self.tree.leaves();
        let ranks = ranks.start as usize..(ranks.end as usize).min(leaves.len());
        let fitting = ranks.filter(|&rank| leaves[rank] != 0);
        let avoided = |node: NodeId| {
            avoid.iter().any(|&(term, value)| cluster.terms.value(term, node) == value)
        };
        let nodes: Vec<NodeId> = fitting
            .map(|rank| cluster.nodes.by_rank[rank])
            .filter(|&node| !avoided(node))
            .collect();
        let mut why = vec![Why::Fits; nodes.len()];
        policy.filter(Scope::OtherNodes, cluster, (shape, self.room), &nodes, &mut why);
        let nodes: Vec<NodeId> = nodes
            .into_iter()
            .zip(why)
            .filter(|(_, why)| *why == Why::Fits)
            .map(|(node, _)| node)
            .collect();
        let mut scores = vec![0; nodes.len()];
        policy.score(Scope::OtherNodes, cluster, shape, &nodes, &mut scores);
        let best = nodes.iter().zip(scores).map(|(&node, score)| {
            let rank = cluster.nodes.rank[node];
            let added = added.rows().get(usize::from(cluster.domains.home(node))).unwrap_or(&0);
            place(score_of(leaves[rank as usize]) + score + added, rank)
        });
        self.node_at(cluster, best.max().unwrap_or(0))
    }

    /// Whether a node would do by what it says of itself.
    pub fn is_open(&self, node: NodeId) -> bool {
        self.open[usize::from(node)]
    }

    /// Whether one particular node would do.
    pub fn admits(&self, cluster: &Cluster, policy: &Policy, shape: ShapeId, node: NodeId) -> bool {
        let rank = cluster.nodes.rank[node] as usize;
        let mut why = [if self.tree.leaves()[rank] == 0 { Why::Gone } else { Why::Fits }];
        if why[0] == Why::Fits {
            policy.filter(Scope::OtherNodes, cluster, (shape, self.room), &[node], &mut why);
        }
        why[0] == Why::Fits
    }

    /// Whether so many pods of the shape would fit on the nodes of these ranks if they were empty.
    pub fn could_hold(
        &self,
        cluster: &Cluster,
        shape: ShapeId,
        pods: u32,
        ranks: Range<u32>,
    ) -> bool {
        let (request, demand) = (&cluster.shapes[shape].request, cluster.demand(shape));
        let holds = |node: usize| {
            let fits = |(resource, want): (ResourceId, i64)| {
                cluster.nodes.allocatable[resource].rows()[node] / want
            };
            let on_cards = demand.map_or(i64::MAX, |demand| {
                let cards = cluster
                    .devices
                    .cards(NodeId::from(node))
                    .map(Cards::emptied)
                    .unwrap_or_default();
                cards.holds(demand, self.room, cluster.devices.prefer())
            });
            request.iter().map(fits).min().unwrap_or(0).min(on_cards)
        };
        let mut left = i64::from(pods);
        let nodes = &cluster.nodes.by_rank[ranks.start as usize..ranks.end as usize];
        for &node in nodes.iter().filter(|&&node| self.is_open(node)) {
            left -= holds(usize::from(node));
            if left <= 0 {
                return true;
            }
        }
        left <= 0
    }

    /// Why each node does or doesn't do, as of now.
    pub fn histogram(&self, cluster: &Cluster, policy: &Policy, shape: ShapeId) -> Histogram {
        // By rank, so that equally common causes are named in the same order whichever node came
        // first.
        let live = |node: &NodeId| cluster.nodes.fact[*node].live;
        let nodes: Vec<NodeId> = cluster.nodes.by_rank.iter().copied().filter(live).collect();
        let mut why = Vec::new();
        facts(cluster, policy, shape, &nodes, &mut why);
        for (&node, why) in nodes.iter().zip(&mut why).filter(|(_, why)| **why == Why::Fits) {
            *why = lacks(cluster, shape, node, self.room).unwrap_or(Why::Fits);
        }
        policy.filter(Scope::NodePods, cluster, (shape, self.room), &nodes, &mut why);
        policy.filter(Scope::OtherNodes, cluster, (shape, self.room), &nodes, &mut why);
        let mut histogram = Histogram { nodes: nodes.len() as u32, ..Histogram::default() };
        for (&node, why) in nodes.iter().zip(why) {
            if why == Why::Fits {
                histogram.fit += 1;
                continue;
            }
            let shown = shown(cluster, shape, node, self.room, why);
            match histogram.bars.iter_mut().find(|bar| bar.why.joins(&shown)) {
                Some(bar) => {
                    bar.nodes += 1;
                    bar.why.widen(&shown);
                }
                None => histogram.bars.push(Bar { nodes: 1, why: shown }),
            }
        }
        histogram.bars.sort_by_key(|bar| std::cmp::Reverse(bar.nodes));
        histogram
    }
}

/// What the domains around a node add to its score, by its smallest domain.
pub fn added_by_domains(
    cluster: &Cluster,
    policy: &Policy,
    shape: ShapeId,
) -> Table<DomainId, i64> {
    let mut added: Table<DomainId, i64> = Table::default();
    for domain in cluster.domains.ids() {
        let above = cluster.domains[domain].parent.filter(|&parent| parent != ROOT);
        let above = above.map_or(0, |parent| added[parent]);
        added.push(above + policy.domain_score(cluster, shape, domain).unwrap_or(0));
    }
    added
}

/// What nodes say of themselves: whether they are there, and what the policy makes of their labels
/// and taints.
fn facts(cluster: &Cluster, policy: &Policy, shape: ShapeId, nodes: &[NodeId], why: &mut Vec<Why>) {
    why.clear();
    why.extend(nodes.iter().map(|&node| match cluster.nodes.traits[node] {
        traits if !traits.live => Why::Gone,
        traits if !traits.ready => Why::NotReady,
        _ => Why::Fits,
    }));
    policy.filter(Scope::NodeFacts, cluster, (shape, Room::Idle), nodes, why);
}
