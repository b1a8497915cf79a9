//! Makes room by moving pods from nodes of a domain to other nodes: as few as possible, and only if
//! there is a node for each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{DomainId, NodeId, PodId, ShapeId};
use crate::base::parts_per_million::share;
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::eviction::candidates::{Eligibility, TOO_MANY, eligibility, evict_one, in_scope};
use crate::eviction::cheapest_nodes;
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::domain_trial::HEADS;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, Stop, evict_until_it_fits};
use crate::eviction::give_back::give_back;
use crate::eviction::need::Need;
use crate::eviction::per_domain::Solution;
use crate::eviction::relocate::move_one;
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::eviction::table::Way;
use crate::eviction::trace::DomainOutcome;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::shapes::size_of;
use crate::model::topology::domains::ROOT;
use crate::model::txn::{Move, Txn};
use crate::placement::domains::allowed_domains;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::Bundle;

/// The cost of a move, to which the size of the pod adds a little: fewer moves come first, then
/// smaller pods.
const MOVE: i64 = 1_000_000;

/// Up to this many moves are compared with other solutions. A solution with more is taken as found.
const FEW: usize = 8;

/// The pods that move, and where to.
pub type Moved = Vec<(PodId, NodeId)>;

/// A failed attempt: there was no other node for this pod.
struct Stranded {
    node: NodeId,
    pod: PodId,
}

/// A pod that may be moved.
struct Movable {
    node: NodeId,
    bundle: Bundle,
    /// Whether there is room for it elsewhere without other moves.
    directly: bool,
}

/// Which pods may be moved.
#[derive(Copy, Clone)]
struct MovablePods<'m> {
    /// Pods on the nodes where room is to be made.
    here: &'m [Movable],
    /// Pods on any node, if pods may also be moved to make room for those that move.
    anywhere: Option<&'m [Movable]>,
}

impl Search<'_> {
    /// Whether the free amounts of the whole cluster suffice, so that moves alone may make room.
    pub fn has_enough_in_sum(&self, txn: &Txn, need: &Need) -> bool {
        let ranks = txn.domains.ranks(ROOT);
        let nodes = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
        need.lacks(txn, nodes).is_empty()
    }

    /// Makes room in a domain by moving pods elsewhere. Leaves its moves in the transaction either
    /// way.
    pub fn move_others(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        log: &mut SearchLog,
    ) -> Option<Solution> {
        let here = self.movable(txn, rankings, nodes, log);
        log.refusal.evictable |= !here.is_empty();
        let start = txn.mark();
        let movable = MovablePods { here: &here, anywhere: None };
        let found = self.move_some(txn, rankings, need, (domain, nodes), movable, log);
        log.refusals_recorded = true;
        let found = match found {
            Some(moved) if moved.len() == 1 || moved.len() > FEW => Some(moved),
            known => {
                let known = known.map(|moved| (moved, txn.since(start)));
                txn.rewind(start);
                self.move_fewer(txn, rankings, need, (domain, nodes), (&here, known), log)
            }
        };
        log.refusals_recorded = false;
        let Some(moved) = found else {
            log.refusal.nodes += nodes.len() as u32;
            let why = vec![log.refusal.clone().reason(Purpose::Consolidate)];
            log.trace(|trace| {
                trace.conclude_domain(DomainOutcome::Fails { victims: Vec::new(), why })
            });
            return None;
        };
        let bundle = |&(pod, _): &(PodId, NodeId)| Some(Bundle::single(txn.pods.gang[pod]?, pod));
        let victims: Vec<Bundle> = moved.iter().filter_map(bundle).collect();
        let cost = moved.len() as i64 * MOVE;
        let causes = moved.iter().map(|&(pod, to)| (pod, Cause::Moved { to })).collect();
        log.trace(|trace| trace.conclude_domain(DomainOutcome::Works { victims, moved, cost }));
        let way = Way { cost, ..Way::default() };
        Some(Solution { domain, way, causes, given_back: 0 })
    }

    /// Looks for a solution with fewer moves than the known one: pods may also be moved to make
    /// room for those that move, and each of the nodes to clear is left out once. Leaves the moves
    /// of the best solution in the transaction.
    fn move_fewer(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        (here, known): (&[Movable], Option<(Moved, Vec<Move>)>),
        log: &mut SearchLog,
    ) -> Option<Moved> {
        let ranks = txn.domains.ranks(ROOT);
        let all = txn.nodes.by_rank[ranks.start as usize..ranks.end as usize].to_vec();
        let all = self.movable(txn, rankings, &all, log);
        let movable = MovablePods { here, anywhere: Some(&all) };
        let mut cleared: Vec<NodeId> = match &known {
            Some((moved, _)) => {
                moved.iter().filter_map(|&(pod, _)| txn.pods.state[pod].node()).collect()
            }
            None => here.iter().map(|one| one.node).collect(),
        };
        cleared.dedup();
        let start = txn.mark();
        let mut best = known;
        for without in std::iter::once(None).chain(cleared.into_iter().take(FEW).map(Some)) {
            if best.as_ref().is_some_and(|(moved, _)| moved.len() == 1) || !self.may_go_on(txn) {
                log.budget_exhausted |= best.is_none();
                break;
            }
            let left: Vec<NodeId> =
                nodes.iter().copied().filter(|&node| Some(node) != without).collect();
            let found = self.move_some(txn, rankings, need, (domain, &left), movable, log);
            if let Some(moved) = found
                && best.as_ref().is_none_or(|(best, _)| moved.len() < best.len())
            {
                best = Some((moved, txn.since(start)));
            }
            txn.rewind(start);
        }
        let (moved, moves) = best?;
        txn.replay(&moves);
        Some(moved)
    }

    /// Looks for a solution that moves only these pods. Leaves the transaction as it was if there
    /// is none.
    fn move_some(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        movable: MovablePods,
        log: &mut SearchLog,
    ) -> Option<Moved> {
        let mut left: Vec<NodeId> = nodes.to_vec();
        let mut stay: BTreeSet<PodId> = BTreeSet::new();
        let mark = txn.mark();
        loop {
            let found = self.try_moves(txn, rankings, need, (domain, &left), (movable, &stay), log);
            let Err(stranded) = found else { return found.ok() };
            txn.rewind(mark);
            log.refusals_recorded = true;
            // There is no other node for it: move other pods instead.
            log.budget_exhausted |= stranded.is_some() && !self.may_go_on(txn);
            let Stranded { node, pod } = stranded.filter(|_| self.may_go_on(txn))?;
            match movable.anywhere {
                None => left.retain(|&other| other != node),
                Some(_) if stay.len() >= HEADS => return None,
                Some(_) => stay.extend([pod]),
            }
        }
    }

    /// The pods on these nodes that may be moved.
    fn movable(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        nodes: &[NodeId],
        log: &mut SearchLog,
    ) -> Vec<Movable> {
        let mut fits: BTreeMap<ShapeId, bool> = BTreeMap::new();
        let mut found = Vec::new();
        for &node in nodes {
            let mut pods = txn.nodes.pods_on[node].clone();
            pods.sort_unstable_by(|&a, &b| txn.pods.name(a).cmp(txn.pods.name(b)));
            for pod in pods {
                let Some(gang) =
                    txn.pods.gang[pod].filter(|&gang| in_scope(txn, &self.preemptor, gang))
                else {
                    continue;
                };
                match eligibility(txn, self.policy, &self.preemptor, pod) {
                    Eligibility::OutOfScope => continue,
                    Eligibility::Vetoed(veto) => {
                        log.record_veto(&[pod], veto);
                        continue;
                    }
                    Eligibility::Evictable => {}
                }
                let shape = txn.pods.shape[pod];
                let directly = *fits.entry(shape).or_insert_with(|| {
                    rankings.of(txn, self.policy, shape, Room::FutureIdle).best(txn).is_some()
                });
                found.push(Movable { node, bundle: Bundle::single(gang, pod), directly });
            }
        }
        found
    }

    fn try_moves(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        (movable, stay): (MovablePods, &BTreeSet<PodId>),
        log: &mut SearchLog,
    ) -> Result<Moved, Option<Stranded>> {
        let open: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let moves = |one: &&Movable| {
            let may_move = one.directly || movable.anywhere.is_some();
            open.contains(&one.node) && may_move && !stay.contains(&one.bundle.pods[0])
        };
        let (here, prices) = priced(txn, movable.here.iter().filter(moves));
        let order = cheapest_nodes::by_cheapest_room(
            txn,
            &need.shapes,
            nodes,
            &here,
            &prices,
            BTreeMap::new(),
        );
        let mut fit = DomainFit::new(txn, self.policy, self.placement, &need.pods, domain);
        let order = order.into_iter().map(|at| here[at].pods[0]);
        let rules = Rules { most: self.settings.max_moves, ..Rules::default() };
        let evicted = evict_until_it_fits(txn, rankings, &mut fit, order, rules, |txn, pod, _| {
            let evicted = evict_one(txn, self.policy, &self.preemptor, pod);
            evicted.map_err(|veto| log.record_veto(&[pod], veto)).ok()
        });
        let Evicted { fits, mut evicted, stopped, .. } = evicted;
        if let Some(Stop::TooMany(pod)) = stopped {
            log.record_veto(&[pod], TOO_MANY);
        }
        log.record.work.scenarios += evicted.len() as u32;
        if fits {
            give_back(txn, rankings, &mut fit, &evicted);
            evicted.retain(|&pod| txn.pods.state[pod].leaving().is_some());
        }
        log.record.work.simulations += fit.tries;
        if !fits {
            return Err(None);
        }
        self.move_all(txn, rankings, evicted, (movable, stay), log).map_err(Some)
    }

    /// Finds other nodes for all of these pods, the largest first; or says for which pod there is
    /// none, and where it runs.
    fn move_all(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        mut evicted: Vec<PodId>,
        (movable, stay): (MovablePods, &BTreeSet<PodId>),
        log: &mut SearchLog,
    ) -> Result<Moved, Stranded> {
        let size = |cluster: &Cluster, pod: PodId| size_of(cluster, cluster.pods.shape[pod]);
        evicted.sort_by_key(|&pod| Reverse(size(txn, pod)));
        // Pods that a rule keeps which counts what has left.
        let mut kept: BTreeSet<PodId> = BTreeSet::new();
        let mut at = 0;
        while let Some(&pod) = evicted.get(at) {
            let PodState::Releasing(node) = txn.pods.state[pod] else {
                at += 1;
                continue;
            };
            let siblings =
                evicted[at..].iter().filter(|&&other| txn.pods.gang[other] == txn.pods.gang[pod]);
            let left = siblings.count() as u32;
            if move_one(txn, self.policy, rankings, pod, left) {
                at += 1;
                continue;
            }
            let others = movable.anywhere.map_or(Vec::new(), |all| {
                self.pods_to_move_as_well(txn, rankings, pod, all, |other| {
                    stay.contains(&other) || evicted.contains(&other) || kept.contains(&other)
                })
            });
            if others.is_empty() {
                return Err(Stranded { node, pod });
            }
            if evicted.len() + others.len() > self.settings.max_moves {
                log.refusal.kept.entry(TOO_MANY.rule).or_insert(others.len() as u32);
                return Err(Stranded { node, pod });
            }
            let mark = txn.mark();
            let vetoed = others.iter().find_map(|&other| {
                let veto = evict_one(txn, self.policy, &self.preemptor, other).err()?;
                Some((other, veto))
            });
            if let Some((other, veto)) = vetoed {
                txn.rewind(mark);
                log.refusal.kept.entry(veto.rule).or_insert(1);
                log.refusal.note_end(veto);
                kept.insert(other);
                continue;
            }
            evicted.extend(others);
            evicted[at..].sort_by_key(|&pod| Reverse(size(txn, pod)));
        }
        let moved = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        Ok(evicted.iter().filter_map(moved).collect())
    }

    /// The pods to move as well so that a pod finds a node: the rest of its gang if topology rules
    /// tie it to them, otherwise as few smaller pods as possible, which are easier to place.
    fn pods_to_move_as_well(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        pod: PodId,
        all: &[Movable],
        stays: impl Fn(PodId) -> bool,
    ) -> Vec<PodId> {
        let (Some(gang), shape) = (txn.pods.gang[pod], txn.pods.shape[pod]) else {
            return Vec::new();
        };
        let runs = |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Running(_));
        let vetoed = |pod: PodId| self.policy.vetoes_after(txn, &self.preemptor, pod).is_some();
        let may_go = |pod: PodId| runs(&pod) && !stays(pod) && !vetoed(pod);
        if txn.gangs[gang].topology_rules.is_some() {
            let own = |one: &&Movable| one.bundle.gang == gang && may_go(one.bundle.pods[0]);
            let siblings: Vec<PodId> =
                all.iter().filter(own).map(|one| one.bundle.pods[0]).collect();
            if !siblings.is_empty()
                && siblings.len() == txn.gangs[gang].pods.iter().filter(|pod| runs(pod)).count()
            {
                return siblings;
            }
        }
        let tops = allowed_domains(txn, gang, pod).unwrap_or_default();
        let ranking = rankings.of(txn, self.policy, shape, Room::FutureIdle);
        let mut nodes: Vec<NodeId> = Vec::new();
        for domain in tops {
            let ranks = txn.domains.ranks(domain);
            let range = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
            nodes.extend(range.iter().copied().filter(|&node| ranking.is_open(node)));
        }
        let smaller = |one: &&Movable| {
            let other = one.bundle.pods[0];
            may_go(other) && size_of(txn, txn.pods.shape[other]) < size_of(txn, shape)
        };
        let (others, prices) = priced(txn, all.iter().filter(smaller));
        let cleared = cheapest_nodes::for_one_pod(txn, shape, &nodes, &others, &prices);
        cleared.into_iter().map(|at| others[at].pods[0]).collect()
    }
}

/// What it costs to move each pod: one that fits nowhere as things are needs at least one more
/// move.
fn priced<'m>(
    cluster: &Cluster,
    movable: impl Iterator<Item = &'m Movable>,
) -> (Vec<Bundle>, Vec<i64>) {
    let price = |one: &Movable| {
        let size = size_of(cluster, cluster.pods.shape[one.bundle.pods[0]]);
        let moves = if one.directly { MOVE } else { 2 * MOVE };
        moves + share(size.part, size.whole).min(MOVE) / 1000
    };
    movable.map(|one| (one.bundle.clone(), price(one))).unzip()
}
