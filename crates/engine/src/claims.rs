//! A gang that lacks room and makes others leave, all or nothing: what `preempt` and `reclaim` have in common. Pod by pod in their mode
//! `task`; by bundles of gangs (`gang_claims.rs`) in their mode `gang`.

use std::collections::BTreeSet;
use std::ops::Range;

use muster_api::Time;

use crate::actions::Session;
use crate::actions::allocate::{Serving, in_order};
use crate::config::{Mode, Taking};
use crate::gang_claims::{Causes, GangTaker};
use crate::ids::{DomainId, GangId, NodeId, PodId, ShapeId};
use crate::line::{Line, gate};
use crate::model::Promise;
use crate::model::gangs::Missing;
use crate::model::pods::PodState;
use crate::nominations::not_promised;
use crate::placement::{Rankings, Wish, one_shape};
use crate::plan::{Cause, Eviction};
use crate::plugins::Argument;
use crate::policy::{Claim, Policy, Purpose, Room};
use crate::reason::Reason;
use crate::search::{self, seat, seat_by_force};
use crate::trace::{Record, Trace};
use crate::txn::{Mark, Move, Txn};
use crate::victims::{make_room, reprieve};

/// What an action has found out in this cycle: for the first pod of a gang that has nothing yet nobody can leave, or for so many.
/// Another that has nothing either, of the same queue and shape and no higher priority, needn't look.
#[derive(Default)]
struct Fruitless(Vec<(GangId, ShapeId, u32)>);

/// What the actions that take room have in common.
pub const EVICTION_METHOD: Argument = Argument {
    name: "evictionMethod",
    default: "eviction",
    meaning: "eviction: through the Eviction API, no PodDisruptionBudget is broken; delete: pods are deleted, and budgets \
              are broken where nobody else could make room",
};
pub const MAX_DOMAINS: Argument = Argument {
    name: "maxDomains",
    default: "8",
    meaning: "whole gangs: how many domains are tried for a gang",
};
pub const ALLOW_WHOLE_BUNDLE: Argument =
    Argument { name: "allowWholeBundle", default: "true", meaning: "whole gangs: gangs may be broken" };
pub const EVICT_BROKEN_GANG: Argument = Argument {
    name: "evictBrokenGang",
    default: "false",
    meaning: "whole gangs: what is left elsewhere of a gang that is broken leaves too",
};
pub const ROI_THRESHOLD: Argument = Argument {
    name: "roiThreshold",
    default: "0.05",
    meaning: "whole gangs: returns that differ by no more than this are equal",
};
pub const ORDER: Argument = Argument {
    name: "order",
    default: "safe-first",
    meaning: "whole gangs, preempt: safe-first takes what breaks nobody before anything else, priority-first goes by the \
              gang's priority first",
};
pub const MODE: Argument = Argument {
    name: "mode",
    default: "task",
    meaning: "task: pod by pod, exactly as many as needed on the cheapest node; gang: by what gangs can lose, then whole gangs \
              (scenario is not built yet)",
};

/// What an action is out for.
#[derive(Copy, Clone)]
pub struct Errand<'s> {
    pub action: &'static str,
    pub purpose: Purpose,
    pub taking: &'s Taking,
}

/// Makes room for all gangs that starve, in order.
pub fn serve_all(session: &mut Session, errand: Errand) {
    if errand.taking.mode == Mode::NotBuilt {
        return;
    }
    let waiting = session.cluster.gangs.waiting().to_vec();
    let starving: Vec<GangId> = waiting.into_iter().filter(|&gang| starves(session, gang)).collect();
    let mut line = Line::new(session.cluster, session.policy, starving);
    let mut fruitless = Fruitless::default();
    // What a queue deserves matters between queues.
    let next = |line: &mut Line, session: &mut Session| match errand.purpose {
        Purpose::Reclaim => line.next(session.cluster, session.policy),
        _ => line.next_of_all(session.cluster, session.policy),
    };
    while let Some((_, gang)) = next(&mut line, session) {
        if serve(session, gang, errand, &mut fruitless) && starves(session, gang) {
            line.put_back(session.cluster, session.policy, gang);
        }
    }
}

/// Whether a gang lacks pods to its minimum that nobody has promised it a place for, and nobody must go before it.
fn starves(session: &Session, id: GangId) -> bool {
    let gang = &session.cluster.gangs[id];
    let behind = session.heads.iter().any(|&(queue, head)| queue == gang.queue && head != id);
    !behind
        && gang.admitted()
        && gang.counts.pending > 0
        && wanted(session, id).total > 0
        && gate(session.cluster, session.policy, id, session.now).is_ok()
}

/// What it lacks; without the plugin `gang`, one pod after the other.
fn wanted(session: &Session, id: GangId) -> Missing {
    let gang = &session.cluster.gangs[id];
    match session.policy.gangs_are_whole() {
        true => not_promised(gang, true),
        false => Missing::one(gang.roles.len()),
    }
}

/// Makes room for what a gang lacks, all of it or nothing.
fn serve(session: &mut Session, gang: GangId, errand: Errand, fruitless: &mut Fruitless) -> bool {
    let pods = in_order(session, gang, Serving::All);
    let missing = wanted(session, gang);
    if fruitless.covers(session, gang, &pods, missing.total) {
        return false;
    }
    let mut taker = Taker::new(session, gang, errand, None);
    let mut txn = Txn::begin(session.cluster);
    let wish = Wish { gang, pods: &pods, missing: &missing, room: Room::Later, avoid: &[], near: None };
    if let Err(refused) = taker.claim(&mut txn, session.rankings, &wish) {
        let nobody = |reason: &Reason| matches!(reason, Reason::NothingToTake { .. });
        let first = txn.mark() == Mark::START && refused.iter().all(nobody);
        let Taker { until, record, .. } = taker;
        drop(txn);
        session.plan.wake_at_any(until);
        session.plan.taking.add(&record.work.in_vain());
        // One pod that gets no place tells as much of any number; a whole gang only of gangs that are no smaller.
        let least = if errand.taking.mode == Mode::Gang { missing.total } else { 0 };
        let known = telling(session, gang, &pods).filter(|_| first).map(|shape| (gang, shape, least));
        fruitless.0.extend(known);
        let mut reasons = session.cluster.gangs[gang].reasons.clone();
        let kind = std::mem::discriminant::<Reason>;
        reasons.retain(|known| refused.iter().all(|reason| kind(known) != kind(reason)));
        reasons.extend(refused);
        session.cluster.gangs.explain(gang, reasons);
        return false;
    }
    let moves = txn.commit();
    let Taker { causes, record, .. } = taker;
    session.plan.taking.add(&record.work);
    fruitless.0.clear();
    carry_out(session, gang, errand, &moves, &causes);
    true
}

/// What is tried to make room for a gang, if it starves; nothing comes of it.
pub fn trace(session: &mut Session, gang: GangId, errand: Errand) -> Option<Trace> {
    if errand.taking.mode == Mode::NotBuilt {
        return None;
    }
    let gangs = &session.cluster.gangs;
    let behind = gangs[gang].reasons.iter().any(|reason| matches!(reason, Reason::Behind { .. }));
    let overused = || session.policy.overused(session.cluster, gangs[gang].queue).is_some();
    if behind || !starves(session, gang) || errand.purpose == Purpose::Reclaim && overused() {
        return None;
    }
    let pods = in_order(session, gang, Serving::All);
    let missing = wanted(session, gang);
    let mut trace = Trace::default();
    let mut taker = Taker::new(session, gang, errand, Some(&mut trace));
    let mut txn = Txn::begin(session.cluster);
    let wish = Wish { gang, pods: &pods, missing: &missing, room: Room::Later, avoid: &[], near: None };
    let refused = taker.claim(&mut txn, session.rankings, &wish).err();
    drop(txn);
    // Pod by pod it is in the last attempt.
    trace.refused = refused.filter(|_| errand.taking.mode == Mode::Gang).unwrap_or_default();
    Some(trace)
}

/// Makes room for one pod of a gang that runs, by pods of its own that matter less.
pub fn serve_within(session: &mut Session, gang: GangId, pod: PodId, errand: Errand) -> bool {
    let errand = Errand { purpose: Purpose::Within, ..errand };
    let mut taker = Taker::new(session, gang, errand, None);
    let mut txn = Txn::begin(session.cluster);
    if taker.one(&mut txn, session.rankings, pod, 1).is_err() {
        drop(txn);
        session.plan.wake_at_any(taker.until);
        session.plan.taking.add(&taker.record.work.in_vain());
        return false;
    }
    let moves = txn.commit();
    session.plan.taking.add(&taker.record.work);
    carry_out(session, gang, errand, &moves, &Causes::new());
    true
}

fn carry_out(session: &mut Session, gang: GangId, errand: Errand, moves: &[Move], causes: &Causes) {
    let Errand { action, purpose, taking } = errand;
    session.plan.record(moves);
    session.cluster.freed += 1;
    for step in moves {
        let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to) else { continue };
        let known = causes.get(&step.pod).copied();
        let cause = known.unwrap_or_else(|| cause(session, gang, purpose, step.pod));
        let method = taking.method;
        let eviction = Eviction { pod: step.pod, node, action, claimant: Some(gang), cause, method };
        session.plan.evictions.push(eviction);
    }
    let leaving = |step: &Move| step.to.node().filter(|&node| step.to == PodState::Releasing(node));
    let left: BTreeSet<NodeId> = moves.iter().filter_map(leaving).collect();
    for step in moves {
        if let PodState::Nominated(node) = step.to
            && left.contains(&node)
        {
            let promise = Promise { node, since: session.now, turn: 0, evicted: true, told: false };
            session.cluster.promised.insert(step.pod, promise);
        }
    }
    let places = session.cluster.gangs[gang].counts.nominated;
    session.cluster.gangs.explain(gang, vec![Reason::Promised { places }]);
    // Who lost a promise waits again.
    for step in moves.iter().filter(|step| step.to == PodState::Pending) {
        if let Some(other) = session.cluster.pods.gang[step.pod] {
            session.cluster.gangs[other].hopeless = None;
        }
    }
}

/// Lets those stay whom the plan asks to leave without need, since room was made for one gang after the other.
pub fn review(session: &mut Session) {
    // Bundles go together.
    let single = |eviction: &&Eviction| !matches!(eviction.cause, Cause::Bundle { .. });
    let gone = |eviction: &Eviction| Some((eviction.pod, eviction.node, eviction.claimant?));
    let gone: Vec<_> = session.plan.evictions.iter().filter(single).filter_map(gone).collect();
    if gone.is_empty() {
        return;
    }
    let mut txn = Txn::begin(session.cluster);
    session.plan.taking.reprieved += reprieve(&mut txn, session.policy, gone);
    let spared = txn.commit();
    session.plan.evictions.retain(|eviction| !spared.iter().any(|step| step.pod == eviction.pod));
}

/// Counts what is lost by those whom the plan asks to leave for others: gangs that break, and the time that accelerators were held for
/// nothing.
pub fn count_losses(session: &mut Session) {
    let (cluster, plan) = (&*session.cluster, &mut *session.plan);
    let mut losers: BTreeSet<PodId> = BTreeSet::new();
    let mut broken: BTreeSet<GangId> = BTreeSet::new();
    for eviction in plan.evictions.iter().filter(|eviction| eviction.claimant.is_some()) {
        losers.insert(eviction.pod);
        let anyway = matches!(eviction.cause, Cause::Bundle { broken: true, .. });
        broken.extend(
            cluster.pods.gang[eviction.pod].filter(|&gang| !anyway && !cluster.gangs[gang].ready(true)),
        );
    }
    for &gang in &broken {
        let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
        losers.extend(cluster.gangs[gang].pods.iter().copied().filter(runs));
    }
    plan.taking.broken += broken.len() as u32;
    for pod in losers {
        let Some(started) = cluster.pods.fact[pod].started else { continue };
        let seconds = (session.now.0 - started.0).max(0) / 1000;
        for (resource, amount) in cluster.shapes[cluster.pods.shape[pod]].request.iter() {
            if cluster.dimensions.name(resource).contains('/') {
                let sum = plan.taking.wasted_seconds.entry(resource).or_default();
                *sum = sum.saturating_add(amount.saturating_mul(seconds));
            }
        }
    }
}

fn cause(session: &Session, claimant: GangId, purpose: Purpose, victim: PodId) -> Cause {
    let cluster = &*session.cluster;
    let priority = |gang: Option<GangId>| gang.map_or(0, |gang| cluster.gangs[gang].priority);
    match purpose {
        Purpose::Preempt => Cause::Outranked {
            priority: priority(cluster.pods.gang[victim]),
            claimant: priority(Some(claimant)),
        },
        Purpose::Within => Cause::OutrankedWithin { priority: cluster.pods.order[victim] },
        Purpose::Reclaim => Cause::Reclaimed {
            from: cluster.pods.gang[victim]
                .map_or(cluster.gangs[claimant].queue, |gang| cluster.gangs[gang].queue),
            to: cluster.gangs[claimant].queue,
        },
    }
}

struct Taker<'t> {
    policy: &'t Policy,
    gang: GangId,
    errand: Errand<'t>,
    now: Time,
    /// Queues take back what they deserve, in this action or in another.
    takes_back: bool,
    /// Why each leaves, where that is known with the choice.
    causes: Causes,
    /// When a rule ends that stood in the way and that time alone ends.
    until: Option<Time>,
    record: Record<'t>,
}

impl<'t> Taker<'t> {
    fn new<'e: 't>(
        session: &Session<'e>,
        gang: GangId,
        errand: Errand<'t>,
        trace: Option<&'t mut Trace>,
    ) -> Taker<'t> {
        let (policy, now, causes) = (session.policy, session.now, Causes::new());
        let record = Record { trace, ..Record::default() };
        let takes_back = session.settings.takes_back;
        Taker { policy, gang, errand, now, takes_back, causes, until: None, record }
    }

    fn claim_for(&self, pod: PodId) -> Claim {
        let Errand { purpose, taking, .. } = self.errand;
        let by_gang = taking.mode == Mode::Gang;
        Claim { by_gang, purpose, gang: self.gang, pod, now: self.now, method: taking.method }
    }

    fn claim(&mut self, txn: &mut Txn, rankings: &mut Rankings, wish: &Wish) -> Result<(), Vec<Reason>> {
        // Nobody leaves where nobody has to.
        if seat(txn, self.policy, rankings, wish).is_ok() {
            return Ok(());
        }
        txn.rewind(Mark::START);
        let queue = txn.gangs[self.gang].queue;
        let mut had = txn.queues[queue].held.clone();
        had.add_amounts(&txn.queues[queue].nominated, 1);
        self.take(txn, rankings, wish)?;
        let gone: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
        let (Some(&first), false, true) = (wish.pods.first(), gone.is_empty(), self.takes_back) else {
            return Ok(());
        };
        match self.policy.overreaches(txn, &self.claim_for(first), &had, &gone) {
            Some(reason) => Err(vec![reason]),
            None => Ok(()),
        }
    }

    fn take(&mut self, txn: &mut Txn, rankings: &mut Rankings, wish: &Wish) -> Result<(), Vec<Reason>> {
        let policy = self.policy;
        if let (Mode::Gang, Some(&first)) = (self.errand.taking.mode, wish.pods.first()) {
            let claim = self.claim_for(first);
            let taker = GangTaker { policy, taking: self.errand.taking, claim, wish: *wish };
            self.causes = taker.take(txn, rankings, &mut self.until, &mut self.record)?;
            return Ok(());
        }
        let force = &mut |txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32| {
            self.one(txn, rankings, pod, left)
        };
        seat_by_force(txn, policy, rankings, wish, force)?;
        let gone = txn.evicted().into_iter().map(|(pod, node)| (pod, node, self.gang)).collect();
        self.record.work.reprieved += reprieve(txn, policy, gone);
        Ok(())
    }

    fn one(&mut self, txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32) -> Result<(), Reason> {
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
        let tops = search::reach(txn, self.gang, pod)?;
        let tops = self.large_enough(txn, rankings, tops, pod, left);
        let claim = self.claim_for(pod);
        let refused = self.policy.may_take(txn, self.gang, shape, Room::Later).err();
        let free = match &refused {
            None => search::free_place(txn, self.policy, rankings, (self.gang, pod), &tops, left),
            Some(_) => None,
        };
        // What others have just left is not simply free: the queue may have no more than it may take back, all in all.
        let takes_back = self.errand.purpose == Purpose::Reclaim && (free.is_none() || txn.evicts());
        if free.is_none() && txn.never_preempts(pod) {
            return Err(refused.unwrap_or(Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }));
        }
        if takes_back {
            self.policy.may_reclaim(txn, &claim).map_err(|reason| {
                reason.unwrap_or(Reason::NothingToTake {
                    purpose: self.errand.purpose,
                    nodes: 0,
                    kept: Vec::new(),
                })
            })?;
        }
        if let Some(node) = free {
            txn.nominate(pod, node);
            return Ok(());
        }
        let ranks: Vec<Range<u32>> = tops.iter().map(|&domain| txn.domains.ranks(domain)).collect();
        let record = &mut self.record;
        make_room(txn, self.policy, rankings, &claim, &ranks, CANDIDATES, record).map_err(|refusal| {
            self.until = [self.until, refusal.until].into_iter().flatten().min();
            refused.unwrap_or_else(|| refusal.reason(self.errand.purpose))
        })
    }

    /// Of the domains that may hold the gang, those that could hold all that it lacks if they were empty.
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
        let need = left.min(not_promised(&txn.gangs[self.gang], self.policy.gangs_are_whole()).total.max(1));
        let shape = txn.pods.shape[pod];
        let ranking = rankings.of(txn, self.policy, shape, Room::Later);
        tops.into_iter().filter(|&top| ranking.could_hold(txn, shape, need, txn.domains.ranks(top))).collect()
    }
}

/// How many nodes are compared for one pod.
const CANDIDATES: usize = 100;

/// The shape of a gang's pods, if what is found for it holds for others as well.
fn telling(session: &Session, gang: GangId, pods: &[PodId]) -> Option<ShapeId> {
    let row = &session.cluster.gangs[gang];
    one_shape(session.cluster, pods).filter(|_| row.choosy.is_none() && row.idle())
}

impl Fruitless {
    fn covers(&self, session: &Session, gang: GangId, pods: &[PodId], wanted: u32) -> bool {
        let gangs = &session.cluster.gangs;
        let alike = |&(other, shape, least): &(GangId, ShapeId, u32)| {
            wanted >= least
                && gangs[other].queue == gangs[gang].queue
                && gangs[other].priority >= gangs[gang].priority
                && telling(session, gang, pods) == Some(shape)
        };
        self.0.iter().any(alike)
    }
}
