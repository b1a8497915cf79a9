//! Answers which pods would be evicted for a gang, and changes nothing.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::room::Room;
use crate::decision::reason::{Found, Reason};
use crate::eviction::attempt::Attempt;
use crate::eviction::refusal::deserves_nothing;
use crate::eviction::request::EvictionRequest;
use crate::eviction::trace::Trace;
use crate::eviction::turns::{any_gang_can_spare, grows, starves, turn_of};
use crate::eviction::verdict::{IN_NEED, takes_too_much};
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::order::session::Session;
use crate::placement::request::PlacementRequest;

/// The pods that would be evicted for a gang, or why none would be.
pub type Outcome = Result<Vec<PodId>, Vec<Reason>>;

/// What is tried to make room for a gang; nothing if it neither starves nor grows.
pub fn trace(session: &mut Session, gang: GangId, request: EvictionRequest) -> Option<Trace> {
    let overused =
        || session.policy.overused(session.cluster, session.cluster.gangs[gang].queue).is_some();
    if request.purpose == Purpose::Reclaim && overused() {
        return None;
    }
    let (trace, outcome) = decide(session, gang, request)?;
    let refused = outcome.err().unwrap_or_default();
    if refused.iter().any(deserves_nothing) {
        return None;
    }
    // In mode `task` the last attempt has the reason.
    let refused = if request.settings.mode == Mode::Task { Vec::new() } else { refused };
    Some(Trace { refused, ..trace })
}

/// Repeats the decision whether to make room for a gang, and records what is tried; nothing if the
/// gang neither starves nor grows.
pub fn decide(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
) -> Option<(Trace, Outcome)> {
    let row = &session.cluster.gangs[gang];
    let behind = row.reasons.iter().any(|reason| matches!(reason, Reason::Behind { .. }));
    let more = request.helps_to_grow() && grows(session, gang);
    if behind || !more && !starves(session, gang) {
        return None;
    }
    let no_victims = |kept| {
        vec![Reason::NothingToTake {
            purpose: request.purpose,
            nodes: 0,
            kept,
            found: Found::Nothing,
        }]
    };
    // Non-preemptible gangs never trigger consolidation.
    if request.purpose == Purpose::Consolidate && row.protected {
        return Some((Trace::default(), Err(vec![Reason::NeverMoves { gang: row.key.clone() }])));
    }
    if more && !any_gang_can_spare(session, gang, request) {
        return Some((Trace::default(), Err(no_victims(Vec::new()))));
    }
    let surplus_only = request.settings.without_breaking_gangs();
    let request =
        if more { EvictionRequest { settings: &surplus_only, ..request } } else { request };
    let (pods, missing) = turn_of(session, gang);
    let mut trace = Trace::default();
    let mut attempt = Attempt::new(session, gang, request, Some(&mut trace));
    let mut txn = Txn::begin(session.cluster);
    let placement = PlacementRequest {
        gang,
        pods: &pods,
        missing: &missing,
        room: Room::FutureIdle,
        avoid: &[],
        near: None,
    };
    let result = attempt.make_room(&mut txn, session.rankings, &placement);
    let victims: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
    let displaces = txn.displaces();
    let too_much = result.is_ok() && more && takes_too_much(session.policy, &txn, request, &pods);
    drop(txn);
    let outcome = match result {
        Ok(()) if more && (too_much || !displaces) => {
            trace.choose_nothing();
            let kept = (IN_NEED.to_owned(), victims.len() as u32);
            Err(no_victims(if too_much { vec![kept] } else { Vec::new() }))
        }
        result => result.map(|()| victims),
    };
    Some((trace, outcome))
}

/// What a queue reclaims for the first of its gangs that lacks room.
#[derive(Clone, Debug)]
pub struct TakingBack {
    /// The name of the action.
    pub action: &'static str,
    pub gang: GangId,
    /// Why it reclaims nothing; empty if it does reclaim.
    pub refused: Vec<Reason>,
    /// The queues of the victims, in the order of eviction.
    pub from: Vec<QueueId>,
    /// Other queues whose pods a rule protects, by name, and the first such rule.
    pub kept: Vec<(QueueId, &'static str)>,
}

pub fn taking_back(
    session: &mut Session,
    queue: QueueId,
    request: EvictionRequest,
) -> Option<TakingBack> {
    let gang = in_need(session, queue, request)?;
    let own = session.cluster.gangs[gang].queue;
    let (trace, outcome) = match session.policy.overused(session.cluster, own) {
        Some(reason) => (Trace::default(), Err(vec![reason])),
        None => decide(session, gang, request)?,
    };
    let cluster = &*session.cluster;
    let (victims, refused) = match outcome {
        Ok(victims) => (victims, Vec::new()),
        Err(refused) => (Vec::new(), refused),
    };
    let mut from: Vec<QueueId> = Vec::new();
    for queue in victims.iter().filter_map(|&pod| queue_of(cluster, pod)) {
        if !from.contains(&queue) {
            from.push(queue);
        }
    }
    let mut rules: BTreeMap<QueueId, &'static str> = BTreeMap::new();
    for (pod, rule) in trace.kept() {
        let queue = queue_of(cluster, pod).filter(|queue| *queue != own && !from.contains(queue));
        queue.map(|queue| *rules.entry(queue).or_insert(rule));
    }
    let mut kept: Vec<(QueueId, &'static str)> = rules.into_iter().collect();
    kept.sort_by_key(|&(queue, _)| &cluster.queues[queue].name);
    Some(TakingBack { action: request.action, gang, refused, from, kept })
}

/// The first gang of a queue, or of the queues below it, that lacks room. Gangs that starve come
/// before gangs that grow.
fn in_need(session: &Session, queue: QueueId, request: EvictionRequest) -> Option<GangId> {
    let (cluster, policy) = (&*session.cluster, session.policy);
    let below = |gang: &GangId| cluster.queues[cluster.gangs[*gang].queue].lineage.contains(&queue);
    let first = |wants: fn(&Session, GangId) -> bool| {
        let waiting = cluster.gangs.waiting().iter().copied().filter(below);
        waiting
            .filter(|&gang| wants(session, gang))
            .min_by(|&a, &b| policy.gang_order(cluster, a, b))
    };
    first(starves).or_else(|| first(grows).filter(|_| request.helps_to_grow()))
}

fn queue_of(cluster: &Cluster, pod: PodId) -> Option<QueueId> {
    cluster.pods.gang[pod].map(|gang| cluster.gangs[gang].queue)
}
