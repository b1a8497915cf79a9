//! Mode `task`: one pod after the other, each on the node where that costs least.

use std::ops::Range;

use crate::base::ids::{DomainId, NodeId, PodId};
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::eviction::attempt::Attempt;
use crate::eviction::candidates::evict_one;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, evict_until_it_fits};
use crate::eviction::fit::NodeFit;
use crate::eviction::give_back::give_back;
use crate::eviction::lower_nominations::{fits_without_nominated, give_again, release_lower};
use crate::eviction::node_candidates::{Candidate, Cost, candidates, cost};
use crate::eviction::refusal::Refusal;
use crate::eviction::search_log::Record;
use crate::eviction::trace::{EvictionCost, Obstacle, Outcome};
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
    pub fn one(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        pod: PodId,
        left: u32,
    ) -> Result<(), Reason> {
        if let Some(trace) = &mut self.record.trace {
            trace.begin(pod);
        }
        let result = self.find_place(txn, rankings, pod, left);
        if let Some(trace) = &mut self.record.trace {
            trace.end(txn.pods.state[pod].node(), result.as_ref().err());
        }
        result
    }

    /// Promises a pod a place: a free one if there is any, else one that others leave.
    fn find_place(
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
        // What others have just left is not simply free: the queue may have no more than it may
        // take back, all in all.
        let takes_back =
            self.request.purpose == Purpose::Reclaim && (free.is_none() || txn.evicts());
        if free.is_none() && txn.never_preempts(pod) {
            return Err(
                refused.unwrap_or(Reason::NeverPreempts { pod: txn.pods.name(pod).clone() })
            );
        }
        if takes_back {
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

    /// Of the domains that may hold the gang, those that could hold all that it lacks if they were
    /// empty.
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

/// How many nodes are compared for one pod.
const CANDIDATES: usize = 100;

/// How many nodes without a solution are tried for each that may have one.
const PATIENCE: usize = 8;

/// A node that does.
pub struct Way {
    pub cost: Cost,
    pub moves: Vec<Move>,
    /// How many were to leave before it turned out that they need not.
    pub reprieved: u32,
}

/// What comes to light while nodes are tried, and why nobody can make room.
pub struct SearchLog<'f, 't> {
    pub refusal: Refusal,
    pub record: &'f mut Record<'t>,
}

impl SearchLog<'_, '_> {
    pub fn keep(&mut self, node: NodeId, pod: PodId, veto: Veto) {
        self.refusal.keep(veto);
        if let Some(trace) = &mut self.record.trace {
            trace.keep(node, pod, veto.rule);
        }
    }

    pub fn conclude(&mut self, node: NodeId, outcome: impl FnOnce() -> Outcome) {
        if let Some(trace) = &mut self.record.trace {
            trace.conclude(node, outcome());
        }
    }
}

/// Finds the cheapest place for the claimant's pod among nodes of these ranks, and makes it in the
/// transaction: pods leave, weaker promises are taken back, and the pod is promised the place. At
/// most so many nodes are tried.
pub fn make_room(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    preemptor: &Preemptor,
    ranks: &[Range<u32>],
    most: usize,
    record: &mut Record,
) -> Result<(), Refusal> {
    let mut log = SearchLog { refusal: Refusal::default(), record };
    let candidates = candidates(txn, policy, rankings, preemptor, ranks, &mut log);
    let mut best: Option<Way> = None;
    let mut solved = 0;
    for candidate in candidates.iter().take(most.saturating_mul(PATIENCE)) {
        let mark = txn.mark();
        log.record.work.simulations += 1;
        match attempt(txn, rankings, policy, preemptor, candidate, &mut log) {
            Some((gone, reprieved)) => {
                let cost = cost(txn, policy, preemptor, candidate.node, &gone);
                log.conclude(candidate.node, || worked(txn, mark, &gone, &cost));
                if best.as_ref().is_none_or(|known| cost < known.cost) {
                    best = Some(Way { cost, moves: txn.since(mark), reprieved });
                }
                solved += 1;
            }
            None => {
                log.refusal.nodes += 1;
                log.conclude(candidate.node, || {
                    failed(txn, policy, preemptor, mark, candidate.node)
                });
            }
        }
        txn.rewind(mark);
        if solved == most {
            break;
        }
    }
    let Way { cost, moves, reprieved } = best.ok_or(log.refusal)?;
    let work = &mut log.record.work;
    work.selected += cost.pods as u32 + reprieved;
    work.reprieved += reprieved;
    txn.replay(&moves);
    Ok(())
}

/// Makes room on one node, with as few gone as possible, and says how many were given back. Leaves
/// its moves in the transaction either way.
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
    let nominations = release_lower(txn, preemptor, &[node]);
    let victims = candidate.victims.iter().copied();
    let evict = |txn: &mut Txn, pod, _| {
        evict_one(txn, policy, preemptor, pod).map_err(|veto| log.keep(node, pod, veto)).ok()
    };
    let Evicted { fits: true, mut gone, .. } =
        evict_until_it_fits(txn, rankings, &mut fit, victims, Rules::default(), evict)
    else {
        return None;
    };
    let given_back = give_back(txn, rankings, &mut fit, gone.iter().rev());
    gone.retain(|&pod| txn.pods.state[pod].leaving().is_some());
    if !fits_without_nominated(txn, policy, preemptor, shape, node) {
        return None;
    }
    txn.nominate(preemptor.pod, node);
    give_again(txn, policy, &nominations);
    Some((gone, given_back))
}

/// The node does, with these gone.
fn worked(txn: &Txn, mark: Mark, gone: &[PodId], cost: &Cost) -> Outcome {
    let lost = |step: &Move| {
        matches!(step.from, PodState::Nominated(_)) && txn.pods.state[step.pod] == PodState::Pending
    };
    let taken_back =
        txn.since(mark).iter().filter(|step| lost(step)).map(|step| step.pod).collect();
    let cost = EvictionCost {
        broken: cost.broken,
        price: cost.price,
        highest_priority: Some(cost.highest).filter(|_| cost.pods > 0),
        // The cost adds to each, so that one more pod is dearer even if its priority is below zero.
        sum_of_priorities: cost.sum - ((cost.pods as i64) << 31),
        pods: cost.pods,
    };
    Outcome::Works { gone: gone.to_vec(), taken_back, cost }
}

/// The node doesn't do, with all gone who could be taken.
pub fn failed(
    txn: &Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    mark: Mark,
    node: NodeId,
) -> Outcome {
    let shape = txn.pods.shape[preemptor.pod];
    let leaves = |step: &Move| {
        matches!(step.from, PodState::Running(_))
            && txn.pods.state[step.pod] == PodState::Releasing(node)
    };
    let gone = txn.since(mark).into_iter().filter(leaves).map(|step| step.pod).collect();
    let limit = policy
        .may_allocate(txn, preemptor.gang, shape, Room::FutureIdle)
        .err()
        .map(Obstacle::Limit);
    let lack = || shortcoming(txn, policy, shape, node, Room::FutureIdle).map(Obstacle::Node);
    Outcome::Fails { gone, obstacle: limit.or_else(lack).unwrap_or(Obstacle::Company) }
}
