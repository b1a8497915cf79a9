//! No pod is bound that an evicting action would evict in the next cycle, and a nominated gang loses
//! its room to no gang to which it would not lose it if it ran. While such an action decides, the
//! pods that this cycle has bound and all nominated pods count as running. Those that it evicts are
//! not bound after all, and the nominations of their gangs are withdrawn.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use crate::base::ids::{GangId, NodeId, PodId, QueueId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::room::Room;
use crate::decision::decisions::Bind;
use crate::decision::reason::Reason;
use crate::eviction::request::EvictionRequest;
use crate::eviction::turns::{grows, starves, wanted};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::Txn;
use crate::nomination::held::{nominated_gangs, nominations_of};
use crate::nomination::release::{note_released, would_complete_gang};
use crate::order::session::{Action, OnTrial, Session, Stamp};
use crate::placement::fit::fits;

/// How often evicting actions are repeated at most because something has changed.
const ROUNDS: usize = 8;

/// Runs the configured actions in their order.
pub fn run_all(session: &mut Session, through: &mut dyn FnMut(&'static str)) {
    for action in session.actions {
        let stamp = Stamp::of(session);
        session.ran_at.push(stamp);
        run(session, action);
        through(action.name);
    }
}

/// Repeats the actions that evict as long as something has changed since they ran last, if pods were
/// bound that they could evict: they would do so in the next cycle. Returns whether anything was
/// repeated.
pub fn repeat(session: &mut Session) -> bool {
    let mut repeated = false;
    for _ in 0..ROUNDS {
        let mut rests = true;
        follow_heads(session);
        for (at, action) in session.actions.iter().enumerate() {
            let Some(request) = EvictionRequest::of(session.settings, action) else { continue };
            let now = Stamp::of(session);
            let bound: Vec<PodId> = session.plan.binds.iter().map(|bind| bind.pod).collect();
            if session.ran_at[at] != now && may_evict(session, request, &bound) {
                session.ran_at[at] = now;
                run(session, action);
                rests = false;
            }
        }
        if rests {
            break;
        }
        repeated = true;
    }
    repeated
}

/// Where the head of a line has got all that it lacked, the next gang of the line is its head.
fn follow_heads(session: &mut Session) {
    for at in 0..session.heads.len() {
        let (queue, head) = session.heads[at];
        if wanted(session, head).total > 0 {
            continue;
        }
        let (cluster, policy) = (&*session.cluster, session.policy);
        let waits = |gang: &GangId| {
            let row = &cluster.gangs[*gang];
            let is_behind = |reason: &Reason| matches!(reason, Reason::Behind { .. });
            row.queue == queue
                && row.reasons.iter().any(is_behind)
                && wanted(session, *gang).total > 0
        };
        let waiting = cluster.gangs.waiting().iter().copied().filter(waits);
        if let Some(next) = waiting.min_by(|&a, &b| policy.gang_order(cluster, a, b)) {
            session.heads[at] = (queue, next);
        }
    }
}

fn run(session: &mut Session, action: &Action) {
    let Some(request) = EvictionRequest::of(session.settings, action) else {
        return (action.run)(session);
    };
    session.bound_first.get_or_insert(session.plan.binds.len());
    begin(session, request);
    (action.run)(session);
    end(session);
}

/// Lets nominated pods, and those that this cycle has bound, count as running, if the action could
/// evict any of them.
pub fn begin(session: &mut Session, request: EvictionRequest) {
    let mut pods: Vec<PodId> = session.plan.binds.iter().map(|bind| bind.pod).collect();
    for gang in nominated_gangs(session) {
        pods.extend(nominations_of(session.cluster, gang).into_iter().map(|(pod, _)| pod));
    }
    if may_evict(session, request, &pods) {
        count_as_running(session, pods.into_iter());
    }
}

/// Whether there is a gang to make room for, and one of these pods could be in its way. In most
/// cycles there is none, and nothing is tried.
fn may_evict(session: &Session, request: EvictionRequest, pods: &[PodId]) -> bool {
    let cluster = &*session.cluster;
    let gangs: BTreeSet<GangId> = pods.iter().filter_map(|&pod| cluster.pods.gang[pod]).collect();
    let mut lowest: BTreeMap<QueueId, i32> = BTreeMap::new();
    for gang in gangs.iter().map(|&gang| &cluster.gangs[gang]) {
        let least = lowest.entry(gang.queue).or_insert(gang.priority);
        *least = gang.priority.min(*least);
    }
    let by_pod = request.settings.mode == Mode::Task;
    let in_reach = |id: GangId| {
        let gang = &cluster.gangs[id];
        match request.purpose {
            Purpose::Preempt | Purpose::Within => {
                lowest.get(&gang.queue).is_some_and(|&least| by_pod || least < gang.priority)
            }
            Purpose::Reclaim => lowest.keys().any(|&queue| queue != gang.queue),
            Purpose::Consolidate => gangs.iter().any(|&other| other != id),
        }
    };
    // Pod by pod, `preempt` also serves a gang that has its minimum, from the same gang.
    let within = by_pod && request.purpose == Purpose::Preempt;
    let wants = |gang: GangId| within || starves(session, gang) || grows(session, gang);
    !gangs.is_empty() && cluster.gangs.waiting().iter().any(|&gang| in_reach(gang) && wants(gang))
}

/// Lets those of these pods that are bound or nominated count as running from now on.
pub fn count_as_running(session: &mut Session, pods: impl Iterator<Item = PodId>) {
    let mut txn = Txn::begin(session.cluster);
    let mut on_trial = Vec::new();
    for pod in pods {
        let state = txn.pods.state[pod];
        if let PodState::Allocated(node) | PodState::Nominated(node) = state {
            txn.keep_running(pod, node);
            on_trial.push((pod, state));
        }
    }
    let _ = txn.commit();
    for (pod, state) in on_trial {
        let fact = &mut session.cluster.pods.fact[pod];
        fact.on_trial = true;
        let started = fact.started.replace(session.now);
        session.on_trial.push(OnTrial { pod, state, started });
    }
}

/// What became of pods that counted as running, by gang.
#[derive(Default)]
pub struct Displaced {
    /// Evicted pods: they wait.
    evicted: BTreeMap<GangId, Vec<OnTrial>>,
    /// Pods that were to move: they are nominated to their new nodes.
    moved: BTreeMap<GangId, Vec<OnTrial>>,
}

/// Puts the pods that count as running back. Returns those that do not stay where they are.
pub fn put_back(session: &mut Session) -> Displaced {
    let on_trial = mem::take(&mut session.on_trial);
    let mut displaced = Displaced::default();
    for one in &on_trial {
        let fact = &mut session.cluster.pods.fact[one.pod];
        (fact.started, fact.on_trial) = (one.started, false);
    }
    let mut txn = Txn::begin(session.cluster);
    let mut nominations: Vec<Bind> = Vec::new();
    for one in on_trial {
        match (txn.pods.state[one.pod], txn.pods.gang[one.pod]) {
            (PodState::Releasing(node), Some(gang)) => {
                // Budgets no longer count it as evicted.
                txn.keep_running(one.pod, node);
                txn.release(one.pod);
                match txn.end_reservation_for(gang, one.pod) {
                    Some(node) => {
                        txn.nominate(one.pod, node);
                        nominations.push(Bind { pod: one.pod, node });
                        displaced.moved.entry(gang).or_default().push(one);
                    }
                    None => displaced.evicted.entry(gang).or_default().push(one),
                }
            }
            _ => match one.state {
                PodState::Nominated(node) => txn.nominate(one.pod, node),
                PodState::Allocated(node) => txn.allocate(one.pod, node),
                _ => {}
            },
        }
    }
    let _ = txn.commit();
    session.plan.nominations.extend(nominations);
    displaced
}

fn end(session: &mut Session) {
    let Displaced { evicted, moved } = put_back(session);
    let mut incomplete = bound_and_evicted(session);
    if !evicted.is_empty() || !moved.is_empty() || !incomplete.is_empty() {
        let why = why_not_bound(session, &evicted);
        let pods = || evicted.values().chain(moved.values()).flatten();
        let left: BTreeSet<NodeId> = pods().filter_map(|one| one.state.node()).collect();
        let unbound = pods().map(|one| one.pod).collect();
        incomplete.extend(moved.keys());
        note_for_whom(session, &evicted);
        let gangs = unbind_what_depends(session, &incomplete, evicted.keys().copied().collect());
        forget(session, &unbound, &left);
        for gang in gangs {
            let reasons = why.get(&gang).cloned().into_iter().collect();
            session.cluster.gangs.explain(gang, reasons);
        }
        for gang in incomplete {
            let places = session.cluster.gangs[gang].counts.nominated;
            let reason = (places > 0).then_some(Reason::Nominated { places });
            if let Some(reason) = reason {
                session.cluster.gangs.explain(gang, vec![reason]);
            }
        }
        // The room may be free now, so the next cycle need not wait for anything.
        session.plan.wake_at(session.now);
    }
    count_nominations(session);
}

/// The gangs of which this cycle has bound some pods and evicts others.
fn bound_and_evicted(session: &Session) -> BTreeSet<GangId> {
    let gang = |pod: PodId| session.cluster.pods.gang[pod];
    let evicted: BTreeSet<GangId> =
        session.plan.evictions.iter().filter_map(|eviction| gang(eviction.pod)).collect();
    let bound = session.plan.binds.iter().filter_map(|bind| gang(bind.pod));
    bound.filter(|gang| evicted.contains(gang)).collect()
}

/// Corrects how many nominations gangs are said to have.
fn count_nominations(session: &mut Session) {
    for gang in nominated_gangs(session) {
        let row = &session.cluster.gangs[gang];
        let (now, mut reasons) = (row.counts.nominated, row.reasons.clone());
        for reason in &mut reasons {
            if let Reason::Nominated { places } = reason {
                *places = now;
            }
        }
        if reasons != row.reasons {
            session.cluster.gangs.explain(gang, reasons);
        }
    }
}

/// To which gang each of these gangs loses its pods.
fn why_not_bound(
    session: &Session,
    evicted: &BTreeMap<GangId, Vec<OnTrial>>,
) -> BTreeMap<GangId, Reason> {
    let reason = |(&gang, pods): (&GangId, &Vec<OnTrial>)| {
        // That a nomination is lost is said at the end of the cycle.
        let mut bound = pods.iter().filter(|one| matches!(one.state, PodState::Allocated(_)));
        let own = |pod: PodId| pods.iter().any(|one| one.pod == pod);
        bound.next()?;
        let eviction = session.plan.evictions.iter().find(|eviction| own(eviction.pod))?;
        let preemptor = session.cluster.gangs[eviction.preemptor?].key.clone();
        let action = eviction.action.into();
        Some((gang, Reason::NotBound { action, preemptor }))
    };
    evicted.iter().filter_map(reason).collect()
}

/// Notes to which gangs these gangs lose their nominations.
fn note_for_whom(session: &mut Session, evicted: &BTreeMap<GangId, Vec<OnTrial>>) {
    for (&gang, pods) in evicted {
        let own = |pod: PodId| pods.iter().any(|one| one.pod == pod);
        let eviction = session.plan.evictions.iter().find(|eviction| own(eviction.pod));
        if let Some(preemptor) = eviction.and_then(|eviction| eviction.preemptor) {
            session.released_for.insert(gang, preemptor);
        }
    }
}

/// Unbinds the pods of these gangs that cannot start without those that are not bound, and pods of
/// other gangs that may not be where they are without them; and withdraws the nominations of all
/// these gangs. An incomplete gang, of which pods move, keeps its nodes as nominations if it could run
/// with them. Returns the gangs that lost theirs.
fn unbind_what_depends(
    session: &mut Session,
    incomplete: &BTreeSet<GangId>,
    mut gangs: BTreeSet<GangId>,
) -> BTreeSet<GangId> {
    let whole = session.policy.enforces_minimum();
    let (binds, rankings) = (session.plan.binds.clone(), &mut *session.rankings);
    let mut nominations: Vec<Bind> = Vec::new();
    let mut txn = Txn::begin(session.cluster);
    let is_bound =
        |txn: &Txn, bind: &Bind| txn.pods.state[bind.pod] == PodState::Allocated(bind.node);
    let bound = |txn: &Txn, gang: GangId| -> Vec<(PodId, NodeId)> {
        let own = |bind: &&Bind| txn.pods.gang[bind.pod] == Some(gang) && is_bound(txn, bind);
        binds.iter().filter(own).map(|bind| (bind.pod, bind.node)).collect()
    };
    let starts = |txn: &Txn, gang: GangId, bound: &[(PodId, NodeId)]| {
        txn.gangs[gang].ready(whole) && has_whole_subgroups(txn, gang, bound)
    };
    for &gang in incomplete.iter().filter(|gang| !gangs.contains(gang)) {
        let bound = bound(&txn, gang);
        if !starts(&txn, gang, &bound) {
            for (pod, node) in bound {
                txn.nominate(pod, node);
                nominations.push(Bind { pod, node });
            }
        }
    }
    gangs.extend(incomplete.iter().filter(|&&gang| !would_complete_gang(&mut txn, gang, whole)));
    loop {
        let before = gangs.len();
        for &gang in &gangs {
            let bound = bound(&txn, gang);
            if !starts(&txn, gang, &bound) {
                bound.into_iter().for_each(|(pod, _)| txn.release(pod));
            }
            nominations_of(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
        for &bind in &binds {
            let (shape, gang) = (txn.pods.shape[bind.pod], txn.pods.gang[bind.pod]);
            let Some(gang) = gang.filter(|_| txn.depends_on_other_nodes(shape)) else { continue };
            if !is_bound(&txn, &bind) {
                continue;
            }
            txn.release(bind.pod);
            let place = (gang, shape, bind.node);
            match fits(&txn, session.policy, rankings, place, Room::Idle) {
                true => txn.allocate(bind.pod, bind.node),
                false => drop(gangs.insert(gang)),
            }
        }
        if gangs.len() == before {
            break;
        }
    }
    let moves = txn.commit();
    note_released(session.cluster, &moves);
    for &gang in &gangs {
        session.cluster.gangs[gang].did_not_fit_at = None;
    }
    session.cluster.freed += 1;
    session.plan.nominations.extend(nominations);
    gangs
}

/// Takes out of the plan what is not bound, and the evictions of these pods, which do not run. Where
/// nothing else leaves a node, nothing was evicted for the pods that are nominated to it.
fn forget(session: &mut Session, evicted: &BTreeSet<PodId>, left: &BTreeSet<NodeId>) {
    let (cluster, plan) = (&mut *session.cluster, &mut *session.plan);
    let is_bound = |cluster: &Cluster, bind: &Bind| {
        cluster.pods.state[bind.pod] == PodState::Allocated(bind.node)
    };
    let was_nominated = |bind: &&Bind| {
        !is_bound(cluster, bind) && cluster.nomination_ledger.contains_key(&bind.pod)
    };
    let missed = plan.binds.iter().filter(was_nominated).count() as u32;
    let counters = &mut plan.nomination_counters;
    counters.hits = counters.hits.saturating_sub(missed);
    counters.misses += missed;
    if let Some(first) = &mut session.bound_first {
        *first = plan.binds.iter().take(*first).filter(|bind| is_bound(cluster, bind)).count();
    }
    plan.binds.retain(|bind| is_bound(cluster, bind));
    plan.evictions.retain(|eviction| !evicted.contains(&eviction.pod));
    let vacated: BTreeSet<NodeId> = plan.evictions.iter().map(|eviction| eviction.node).collect();
    for nomination in cluster.nomination_ledger.values_mut() {
        let free = left.contains(&nomination.node) && !vacated.contains(&nomination.node);
        nomination.needs_evictions &= nomination.published || !free;
    }
}
