//! Mode `task`: places one pod after the other, each on the node where that costs least.

use std::ops::Range;

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::choice::{Choice, Line, NextChoice};
use crate::decision::reason::Reason;
use crate::eviction::attempt::Attempt;
use crate::eviction::candidates::evict_one;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, evict_until_it_fits};
use crate::eviction::fit::NodeFit;
use crate::eviction::give_back::give_back;
use crate::eviction::node_candidates::{Candidate, Cost, candidates, cost};
use crate::eviction::order::priority;
use crate::eviction::refusal::Refusal;
use crate::eviction::search_log::Record;
use crate::eviction::trace::{EvictionCost, Obstacle, Outcome};
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::txn::{Mark, Move, Txn};
use crate::placement::fit::shortcoming;
use crate::placement::rankings::Rankings;
use crate::placement::{domains, place_one};
use crate::policy::answers::Policy;
use crate::policy::plugin::Veto;
use crate::policy::preemptor::Preemptor;

impl<'t> Attempt<'t> {
    pub fn place_pod(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        pod: PodId,
        left: u32,
    ) -> Result<(), Reason> {
        if let Some(trace) = &mut self.record.trace {
            trace.begin(pod);
        }
        let result = self.nominate(txn, rankings, pod, left);
        if let Some(trace) = &mut self.record.trace {
            trace.end(txn.pods.state[pod].node(), result.as_ref().err());
        }
        result
    }

    /// Nominates a pod: to a node with free room if there is one, otherwise to a node where pods
    /// are evicted for it.
    fn nominate(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        pod: PodId,
        left: u32,
    ) -> Result<(), Reason> {
        let shape = txn.pods.shape[pod];
        let tops = domains::allowed_domains(txn, self.gang, pod)?;
        let tops = self.large_enough(txn, rankings, tops, pod, left);
        let preemptor = self.preemptor_for(pod);
        let refused = self.policy.may_allocate(txn, self.gang, shape, Room::FutureIdle).err();
        let free = match &refused {
            None => {
                place_one::free_place(txn, self.policy, rankings, (self.gang, pod), &tops, left)
            }
            Some(_) => None,
        };
        // Room that this search has freed is not simply free: altogether the queue may take no more
        // than it may reclaim.
        let reclaims = self.request.purpose == Purpose::Reclaim && (free.is_none() || txn.evicts());
        if free.is_none() && txn.never_preempts(pod) {
            return Err(
                refused.unwrap_or(Reason::NeverPreempts { pod: txn.pods.name(pod).clone() })
            );
        }
        if reclaims {
            self.policy.may_reclaim(txn, &preemptor)?;
        }
        if let Some(node) = free {
            txn.nominate(pod, node);
            return Ok(());
        }
        let ranks: Vec<Range<u32>> = tops.iter().map(|&domain| txn.domains.ranks(domain)).collect();
        let record = &mut self.record;
        make_room(txn, self.policy, rankings, &preemptor, &ranks, CANDIDATES, record).map_err(
            |refusal| {
                self.until = [self.until, refusal.until].into_iter().flatten().min();
                refused.unwrap_or_else(|| refusal.reason(self.request.purpose))
            },
        )
    }

    /// Of these domains, those that could hold everything the gang lacks if they were empty.
    fn large_enough(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        tops: Vec<DomainId>,
        pod: PodId,
        left: u32,
    ) -> Vec<DomainId> {
        if tops.len() < 2 {
            return tops;
        }
        let need = left.min(
            missing_after_nominations(&txn.gangs[self.gang], self.policy.enforces_minimum())
                .total
                .max(1),
        );
        let shape = txn.pods.shape[pod];
        let ranking = rankings.of(txn, self.policy, shape, Room::FutureIdle);
        tops.into_iter()
            .filter(|&top| ranking.could_hold(txn, shape, need, txn.domains.ranks(top)))
            .collect()
    }
}

/// How many nodes with a solution are compared for one pod.
const CANDIDATES: usize = 100;

/// How many nodes are tried at most for each of these, counting those without a solution.
const PATIENCE: usize = 8;

/// A node where the pod fits after these moves.
pub struct Solution {
    pub node: NodeId,
    pub cost: Cost,
    pub moves: Vec<Move>,
    pub victims: Vec<PodId>,
    /// How many pods were evicted and then given back.
    pub given_back: u32,
}

/// What is found while nodes are tried, and why no room could be made.
pub struct SearchLog<'f, 't> {
    pub refusal: Refusal,
    pub record: &'f mut Record<'t>,
}

impl SearchLog<'_, '_> {
    pub fn record_veto(&mut self, node: NodeId, pod: PodId, veto: Veto) {
        self.refusal.record_veto(veto);
        if let Some(trace) = &mut self.record.trace {
            trace.record_veto(node, pod, veto.rule);
        }
    }

    pub fn conclude(&mut self, node: NodeId, outcome: impl FnOnce() -> Outcome) {
        if let Some(trace) = &mut self.record.trace {
            trace.conclude(node, outcome());
        }
    }
}

/// Finds the node of these ranks where room for the preemptor's pod costs least, and makes it in
/// the transaction: evicts pods, releases lower nominations and nominates the pod. Compares at most
/// `most` nodes with a solution.
pub fn make_room(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    preemptor: &Preemptor,
    ranks: &[Range<u32>],
    most: usize,
    record: &mut Record,
) -> Result<(), Refusal> {
    // What this search has evicted for other pods of the gang was evictable too.
    let refusal = Refusal { evictable: txn.evicts(), ..Refusal::default() };
    let mut log = SearchLog { refusal, record };
    let candidates = candidates(txn, policy, rankings, preemptor, ranks, &mut log);
    let mut best: Option<Solution> = None;
    // Only the cost of the next best is of use.
    let mut next: Option<(NodeId, Cost)> = None;
    let mut solved = 0;
    for candidate in candidates.iter().take(most.saturating_mul(PATIENCE)) {
        let (mark, node) = (txn.mark(), candidate.node);
        log.record.work.simulations += 1;
        match attempt(txn, rankings, policy, preemptor, candidate, &mut log) {
            Some((victims, given_back)) => {
                let cost = cost(txn, policy, preemptor, node, &victims);
                log.conclude(node, || worked(txn, &victims, &cost));
                let other = match &best {
                    Some(known) if known.cost <= cost => Some((node, cost)),
                    _ => {
                        let moves = txn.since(mark);
                        let found = Solution { node, cost, moves, victims, given_back };
                        best.replace(found).map(|known| (known.node, known.cost))
                    }
                };
                next = [next, other].into_iter().flatten().min_by(|a, b| a.1.cmp(&b.1));
                solved += 1;
            }
            None => {
                log.refusal.nodes += 1;
                log.conclude(node, || failed(txn, policy, preemptor, mark, node));
            }
        }
        txn.rewind(mark);
        if solved == most {
            break;
        }
    }
    let Some(Solution { node, cost, moves, victims, given_back }) = best else {
        let shape = txn.pods.shape[preemptor.pod];
        let ranking = rankings.of(txn, policy, shape, Room::FutureIdle);
        let holds = |ranks: &Range<u32>| ranking.could_hold(txn, shape, 1, ranks.clone());
        return Err(Refusal { large: ranks.iter().any(holds), ..log.refusal });
    };
    let next = match next {
        Some((node, other)) => {
            let (line, figures) = cost.against(&other);
            Some(NextChoice { choice: Choice::Node(node), line, figures })
        }
        None => next_on_node(txn, policy, preemptor, &candidates, (node, &victims)),
    };
    log.record.next.extend(victims.into_iter().filter_map(|pod| Some((pod, next?))));
    let work = &mut log.record.work;
    work.selected += cost.pods as u32 + given_back;
    work.reprieved += given_back;
    txn.replay(&moves);
    Ok(())
}

/// The next candidate on the node that was chosen, where there is no other node.
fn next_on_node(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    candidates: &[Candidate],
    (node, victims): (NodeId, &[PodId]),
) -> Option<NextChoice> {
    let candidate = candidates.iter().find(|candidate| candidate.node == node)?;
    let last = candidate.victims.iter().rposition(|pod| victims.contains(pod))?;
    let (pod, next) = (candidate.victims[last], *candidate.victims.get(last + 1)?);
    let gang = |pod: PodId| cluster.pods.gang[pod];
    let beyond = cluster.budgets.broken_by(cluster, &candidate.victims);
    let kept = |pod| beyond.contains(&pod);
    let queue = |gang: GangId| cluster.gangs[gang].queue;
    let (own, other) = (gang(pod)?, gang(next)?);
    let figures = (i64::from(priority(cluster, pod)), i64::from(priority(cluster, next)));
    let by_queue = || policy.queue_gives_first(cluster, preemptor, queue(own), queue(other));
    let line = match () {
        () if own == other => return None,
        () if kept(next) && !kept(pod) => Line::Budgets,
        () if queue(own) != queue(other) && by_queue().is_ne() => Line::Queue,
        () if figures.0 != figures.1 => Line::Priority,
        () => Line::TimeRun,
    };
    Some(NextChoice { choice: Choice::Gang(other), line, figures })
}

/// Makes room on one node with as few victims as possible. Returns the victims, and how many pods
/// were given back. Leaves its moves in the transaction either way.
pub fn attempt(
    txn: &mut Txn,
    rankings: &mut Rankings,
    policy: &Policy,
    preemptor: &Preemptor,
    candidate: &Candidate,
    log: &mut SearchLog,
) -> Option<(Vec<PodId>, u32)> {
    let node = candidate.node;
    let shape = txn.pods.shape[preemptor.pod];
    let mut fit = NodeFit { policy, gang: preemptor.gang, shape, node };
    let victims = candidate.victims.iter().copied();
    let evict = |txn: &mut Txn, pod, _| {
        let evicted = evict_one(txn, policy, preemptor, pod);
        log.refusal.evictable |= evicted.is_ok();
        evicted.map_err(|veto| log.record_veto(node, pod, veto)).ok()
    };
    let Evicted { fits: true, evicted: mut victims, .. } =
        evict_until_it_fits(txn, rankings, &mut fit, victims, Rules::default(), evict)
    else {
        return None;
    };
    let given_back = give_back(txn, rankings, &mut fit, victims.iter().rev());
    victims.retain(|&pod| txn.pods.state[pod].leaving().is_some());
    txn.nominate(preemptor.pod, node);
    Some((victims, given_back))
}

/// The outcome of a node where the pod fits.
fn worked(txn: &Txn, victims: &[PodId], cost: &Cost) -> Outcome {
    // Nominated pods count as running, but they are not evicted.
    let is_nominated = |pod: &&PodId| txn.nomination_ledger.contains_key(pod);
    let (released, victims): (Vec<PodId>, Vec<PodId>) = victims.iter().partition(is_nominated);
    let cost = EvictionCost {
        broken: cost.broken,
        price: cost.price,
        highest_priority: Some(cost.highest).filter(|_| cost.pods > 0),
        // `Cost` adds 2³¹ to each priority, so that one more pod always costs more, even one of
        // negative priority.
        sum_of_priorities: cost.sum - ((cost.pods as i64) << 31),
        pods: cost.pods,
    };
    Outcome::Works { victims, released, cost }
}

/// The outcome of a node where the pod does not fit although all candidates are evicted.
pub fn failed(
    txn: &Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    mark: Mark,
    node: NodeId,
) -> Outcome {
    let shape = txn.pods.shape[preemptor.pod];
    let is_evicted = |step: &Move| {
        matches!(step.from, PodState::Running(_))
            && txn.pods.state[step.pod] == PodState::Releasing(node)
    };
    let victims = txn.since(mark).into_iter().filter(is_evicted).map(|step| step.pod).collect();
    let limit = policy
        .may_allocate(txn, preemptor.gang, shape, Room::FutureIdle)
        .err()
        .map(Obstacle::Limit);
    let node = || shortcoming(txn, policy, shape, node, Room::FutureIdle).map(Obstacle::Node);
    Outcome::Fails { victims, obstacle: limit.or_else(node).unwrap_or(Obstacle::NeedsNominated) }
}
