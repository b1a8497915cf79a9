//! Room by moving: pods leave nodes of a domain for other places, as few as possible, and only if
//! each has one.

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
use crate::eviction::evict_until_it_fits::{Evicted, Rules, Stop, evict_until_it_fits};
use crate::eviction::give_back::give_back;
use crate::eviction::need::Need;
use crate::eviction::per_domain::{HEADS, Way};
use crate::eviction::relocate::move_one;
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::eviction::trace::DomainOutcome;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::shapes::size_of;
use crate::model::topology::domains::ROOT;
use crate::model::txn::{Move, Txn};
use crate::placement::domains::allowed_domains;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::Bundle;

/// What it costs to move a pod, before its size: fewer pods first, then smaller ones.
const MOVE: i64 = 1_000_000;

/// So many moves are compared with other ways; more of them are taken as they are found.
const FEW: usize = 8;

/// Those who move, and where to.
pub type Moved = Vec<(PodId, NodeId)>;

/// A way that did not do: someone there could not be placed elsewhere.
struct Stranded {
    home: NodeId,
    pod: PodId,
}

/// A pod that may be moved.
struct Movable {
    node: NodeId,
    bundle: Bundle,
    /// There is room for it somewhere as things are.
    directly: bool,
}

/// Who may be moved, and how far others move for them.
#[derive(Copy, Clone)]
struct Means<'m> {
    /// Those on the nodes where room is to be made.
    here: &'m [Movable],
    /// Those anywhere, where some may move so that others find a place.
    chain: Option<&'m [Movable]>,
}

impl Search<'_> {
    /// Whether there is enough in the whole cluster, so that nobody need be lost.
    pub fn there_is_enough(&self, txn: &Txn, need: &Need) -> bool {
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
    ) -> Option<Way> {
        let here = self.movable(txn, rankings, nodes, log);
        let start = txn.mark();
        let means = Means { here: &here, chain: None };
        let found = self.move_some(txn, rankings, need, (domain, nodes), means, log);
        log.refusals_recorded = true;
        let found = match found {
            Some(moved) if moved.len() == 1 || moved.len() > FEW => Some(moved),
            known => {
                let known = known.map(|moved| (moved, txn.since(start)));
                txn.rewind(start);
                self.move_otherwise(txn, rankings, need, (domain, nodes), (&here, known), log)
            }
        };
        log.refusals_recorded = false;
        let Some(moved) = found else {
            log.refusal.nodes += nodes.len() as u32;
            let why = vec![log.refusal.clone().reason(Purpose::Consolidate)];
            log.tell(|trace| trace.conclude_domain(DomainOutcome::Fails { gone: Vec::new(), why }));
            return None;
        };
        let bundle = |&(pod, _): &(PodId, NodeId)| Some(Bundle::single(txn.pods.gang[pod]?, pod));
        let gone: Vec<Bundle> = moved.iter().filter_map(bundle).collect();
        let cost = moved.len() as i64 * MOVE;
        let causes = moved.iter().map(|&(pod, to)| (pod, Cause::Moved { to })).collect();
        log.tell(|trace| trace.conclude_domain(DomainOutcome::Works { gone, moved, cost }));
        Some(Way { cost, causes, reprieved: 0 })
    }

    /// Looks for a way with fewer moves than the one that is known, where pods may also move for
    /// those that move; and without each of the nodes that were to be cleared. Leaves the moves
    /// of the best in the transaction.
    fn move_otherwise(
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
        let means = Means { here, chain: Some(&all) };
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
            let found = self.move_some(txn, rankings, need, (domain, &left), means, log);
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

    /// Looks for a way by these means. Leaves the transaction as it was if there is none.
    fn move_some(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (domain, nodes): (DomainId, &[NodeId]),
        means: Means,
        log: &mut SearchLog,
    ) -> Option<Moved> {
        let mut left: Vec<NodeId> = nodes.to_vec();
        let mut stay: BTreeSet<PodId> = BTreeSet::new();
        let mark = txn.mark();
        loop {
            let found = self.try_moves(txn, rankings, need, (domain, &left), (means, &stay), log);
            let Err(stranded) = found else { return found.ok() };
            txn.rewind(mark);
            log.refusals_recorded = true;
            // It can't be placed elsewhere beside the others: others, then.
            log.budget_exhausted |= stranded.is_some() && !self.may_go_on(txn);
            let Stranded { home, pod } = stranded.filter(|_| self.may_go_on(txn))?;
            match means.chain {
                None => left.retain(|&node| node != home),
                Some(_) if stay.len() >= HEADS => return None,
                Some(_) => stay.extend([pod]),
            }
        }
    }

    /// Single pods on these nodes that may be moved.
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
                        log.keep(&[pod], veto);
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
        (means, stay): (Means, &BTreeSet<PodId>),
        log: &mut SearchLog,
    ) -> Result<Moved, Option<Stranded>> {
        let open: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let moves = |one: &&Movable| {
            let may_move = one.directly || means.chain.is_some();
            open.contains(&one.node) && may_move && !stay.contains(&one.bundle.pods[0])
        };
        let (here, prices) = priced(txn, means.here.iter().filter(moves));
        let order =
            cheapest_nodes::by_place(txn, &need.shapes, nodes, &here, &prices, BTreeMap::new());
        let mut fit = DomainFit::new(txn, self.policy, self.placement, &need.pods, domain);
        let order = order.into_iter().map(|at| here[at].pods[0]);
        let rules = Rules { most: self.settings.max_moves, ..Rules::default() };
        let evicted = evict_until_it_fits(txn, rankings, &mut fit, order, rules, |txn, pod, _| {
            let evicted = evict_one(txn, self.policy, &self.preemptor, pod);
            evicted.map_err(|veto| log.keep(&[pod], veto)).ok()
        });
        let Evicted { fits, mut gone, stopped, .. } = evicted;
        if let Some(Stop::TooMany(pod)) = stopped {
            log.keep(&[pod], TOO_MANY);
        }
        log.record.work.scenarios += gone.len() as u32;
        if fits {
            give_back(txn, rankings, &mut fit, &gone);
            gone.retain(|&pod| txn.pods.state[pod].leaving().is_some());
        }
        log.record.work.simulations += fit.tries;
        if !fits {
            return Err(None);
        }
        self.move_all(txn, rankings, gone, (means, stay), log).map_err(Some)
    }

    /// Finds other places for all of them, the largest first; or says from where some could not go.
    fn move_all(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        mut gone: Vec<PodId>,
        (means, stay): (Means, &BTreeSet<PodId>),
        log: &mut SearchLog,
    ) -> Result<Moved, Stranded> {
        let size = |cluster: &Cluster, pod: PodId| size_of(cluster, cluster.pods.shape[pod]);
        gone.sort_by_key(|&pod| Reverse(size(txn, pod)));
        let mut at = 0;
        while let Some(&pod) = gone.get(at) {
            let PodState::Releasing(home) = txn.pods.state[pod] else {
                at += 1;
                continue;
            };
            let company =
                gone[at..].iter().filter(|&&other| txn.pods.gang[other] == txn.pods.gang[pod]);
            let left = company.count() as u32;
            if move_one(txn, self.policy, rankings, pod, left) {
                at += 1;
                continue;
            }
            let others = means.chain.map_or(Vec::new(), |all| {
                self.in_the_way(txn, rankings, pod, all, |other| {
                    stay.contains(&other) || gone.contains(&other)
                })
            });
            if others.is_empty() {
                return Err(Stranded { home, pod });
            }
            if gone.len() + others.len() > self.settings.max_moves {
                log.refusal.kept.entry(TOO_MANY.rule).or_insert(others.len() as u32);
                return Err(Stranded { home, pod });
            }
            others.iter().for_each(|&other| txn.evict(other));
            gone.extend(others);
            gone[at..].sort_by_key(|&pod| Reverse(size(txn, pod)));
        }
        let moved = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        Ok(gone.iter().filter_map(moved).collect())
    }

    /// Who has to move as well so that a pod finds a place: those of its gang that hold it back, or
    /// else the fewest smaller pods, who find a place all the more.
    fn in_the_way(
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
        let restrained = |pod: PodId| self.policy.vetoes_after(txn, &self.preemptor, pod).is_some();
        let may_go = |pod: PodId| runs(&pod) && !stays(pod) && !restrained(pod);
        if txn.gangs[gang].topology_rules.is_some() {
            let own = |one: &&Movable| one.bundle.gang == gang && may_go(one.bundle.pods[0]);
            let company: Vec<PodId> =
                all.iter().filter(own).map(|one| one.bundle.pods[0]).collect();
            if !company.is_empty()
                && company.len() == txn.gangs[gang].pods.iter().filter(|pod| runs(pod)).count()
            {
                return company;
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
        let cleared = cheapest_nodes::one_place(txn, shape, &nodes, &others, &prices);
        cleared.into_iter().map(|at| others[at].pods[0]).collect()
    }
}

/// What it costs to move each of them: one for whom nothing is free makes at least one more move.
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
