//! Fills the room that the line leaves: gangs that lack only pods without requests, and smaller
//! gangs behind the head of a line, where they don't delay it.

use muster_api::Time;

use crate::actions::allocate::{may_try, serve};
use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::missing::{Missing, missing_after_nominations};
use crate::model::pods::PodState;
use crate::model::topology::places::is_near_enough;
use crate::model::txn::{Mark, Move, Txn};
use crate::order::gates::gate;
use crate::order::pods::{Serving, in_order};
use crate::order::session::{Action, Session};
use crate::placement::fit::fits;
use crate::placement::rankings::Rankings;
use crate::placement::request::PlacementRequest;
use crate::placement::search::place_gang;
use crate::policy::answers::Policy;
use crate::settings::argument::Argument;

pub static ACTION: Action = Action {
    name: "backfill",
    summary: "place pods without requests, and small gangs that do not delay the head of their \
              queue",
    arguments: &[Argument {
        name: "predicateErrorCacheEnable",
        default: "true",
        meaning: "accepted, always on",
    }],
    configure: |_, _| {},
    makes_room: None,
    run,
};

fn run(session: &mut Session) {
    let heads = session.heads.clone();
    let whole = session.policy.enforces_minimum();
    let best_effort = |id: &GangId| {
        let gang = &session.cluster.gangs[*id];
        let counts = &gang.counts;
        let lacks_only_these = counts.pending == counts.pending_best_effort || gang.ready(whole);
        counts.pending_best_effort > 0 && lacks_only_these && may_try(session, *id)
    };
    let candidates = session.cluster.gangs.waiting().iter().copied().filter(best_effort).collect();
    serve(session, candidates, Serving::BestEffort);
    for (queue, head) in heads {
        fill_behind(session, queue, head);
    }
}

/// If this action is not configured, gangs that only it would place get a reason.
pub fn explain_absence(session: &mut Session) {
    for id in session.cluster.gangs.waiting().to_vec() {
        let gang = &session.cluster.gangs[id];
        let pods = gang.counts.pending_best_effort;
        if pods > 0 && pods == gang.counts.pending && gang.counts.nominated == 0 && gang.admitted()
        {
            let reason = gate(session.cluster, session.policy, id, session.now).err();
            session.cluster.gangs.explain(id, vec![reason.unwrap_or(Reason::NoBackfill { pods })]);
        }
    }
}

/// Places gangs behind the head on room that the head doesn't need, or that they free before the
/// head can start.
fn fill_behind(session: &mut Session, queue: QueueId, head: GangId) {
    let is_behind = |gang: &GangId| {
        let gang = &session.cluster.gangs[*gang];
        gang.queue == queue
            && gang.reasons.iter().any(|reason| matches!(reason, Reason::Behind { .. }))
    };
    let waiting = session.cluster.gangs.waiting().iter().copied();
    let mut behind: Vec<GangId> = waiting
        .filter(is_behind)
        .filter(|&id| gate(session.cluster, session.policy, id, session.now).is_ok())
        .collect();
    behind.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    if behind.is_empty() {
        return;
    }
    let pods: Vec<(GangId, Vec<PodId>)> =
        behind.iter().map(|&gang| (gang, in_order(session, gang, Serving::All))).collect();
    let head_pods = in_order(session, head, Serving::All);
    let whole = session.policy.enforces_minimum();
    // Nominations of other gangs wait for room that is about to be free: no pod may use it
    // meanwhile.
    let open = session.cluster.nominated_count == 0;

    let mut txn = Txn::begin(session.cluster);
    let start = txn.mark();
    let reserved =
        reserve(&mut txn, session.policy, session.rankings, session.now, head, &head_pods);
    let mut filled: Vec<(GangId, Vec<Move>)> = Vec::new();
    for (gang, pods) in &pods {
        // Its minimum is nominated; pods that are bound before it would run alone.
        if txn.gangs[*gang].counts.nominated > 0 && !txn.gangs[*gang].ready(whole) {
            continue;
        }
        let ends = estimate(&txn, *gang, pods).map(|run| session.now.plus_ms(run));
        let in_time = match (ends, reserved) {
            (Some(ends), Some(Some(needed))) => ends <= needed,
            _ => false,
        };
        let room = if in_time && open { Room::Backfill } else { Room::Idle };
        let missing = match missing_after_nominations(&txn.gangs[*gang], whole) {
            Missing { total: 0, roles } => Missing::one(roles.len()),
            missing => missing,
        };
        let placement =
            PlacementRequest { gang: *gang, pods, missing: &missing, room, avoid: &[], near: None };
        let mark = txn.mark();
        match place_gang(&mut txn, session.policy, session.rankings, &placement) {
            Ok(()) => filled.push((*gang, txn.since(mark))),
            Err(_) => txn.rewind(mark),
        }
    }
    txn.rewind(start);
    filled.retain(|(gang, moves)| stands(&mut txn, session.policy, session.rankings, *gang, moves));
    let moves = txn.commit();
    session.record(&moves);
    for (gang, _) in filled {
        session.cluster.gangs.explain(gang, Vec::new());
    }
}

/// Repeats the moves now that the trial is undone: beside the pods that really run, the nodes, the
/// nominations of other gangs and the queue's limit must still allow them.
fn stands(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
    moves: &[Move],
) -> bool {
    let mark = txn.mark();
    for step in moves {
        let shape = txn.pods.shape[step.pod];
        let node = step.to.node().expect("a filler is bound");
        if !fits(txn, policy, rankings, (gang, shape, node), Room::Idle) {
            txn.rewind(mark);
            return false;
        }
        txn.replay(&[*step]);
    }
    // Pods of its own that had left in the trial are back.
    let near = txn.gangs[gang].topology_rules.is_none() || is_near_enough(txn, gang);
    if !near {
        txn.rewind(mark);
    }
    near
}

/// Finds the earliest time at which the head fits, and leaves its pods nominated in the
/// transaction. None: it can't fit at all. Some(None): it only fits after pods end whose end is
/// unknown.
fn reserve(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    now: Time,
    head: GangId,
    pods: &[PodId],
) -> Option<Option<Time>> {
    let ends = ends(txn, now);
    let mut fits = |txn: &mut Txn, leave: &[(Time, PodId)]| {
        let mark = txn.mark();
        for &(_, pod) in leave {
            txn.evict(pod);
        }
        let missing = missing_after_nominations(&txn.gangs[head], policy.enforces_minimum());
        let room = Room::FutureIdle;
        let placement =
            PlacementRequest { gang: head, pods, missing: &missing, room, avoid: &[], near: None };
        let placed = place_gang(txn, policy, rankings, &placement).is_ok();
        if !placed {
            txn.rewind(mark);
        }
        placed
    };
    let known = ends.partition_point(|&(end, _)| end < Time(i64::MAX));
    let mark: Mark = txn.mark();
    if !fits(txn, &ends[..known]) {
        return fits(txn, &ends).then_some(None);
    }
    // The more pods have left the better it fits, so the shortest sufficient list is found by
    // bisection.
    let (mut too_few, mut enough) = (0, known);
    while too_few < enough {
        txn.rewind(mark);
        let middle = (too_few + enough) / 2;
        if fits(txn, &ends[..middle]) { enough = middle } else { too_few = middle + 1 }
    }
    txn.rewind(mark);
    fits(txn, &ends[..enough]);
    Some(Some(enough.checked_sub(1).map_or(now, |last| ends[last].0)))
}

/// The pods on nodes by when they end; those without a known end last.
fn ends(cluster: &Cluster, now: Time) -> Vec<(Time, PodId)> {
    let mut ends: Vec<(Time, PodId)> = cluster
        .pods
        .live()
        .filter(|&pod| {
            matches!(cluster.pods.state[pod], PodState::Running(_) | PodState::Allocated(_))
        })
        .map(|pod| {
            let fact = &cluster.pods.fact[pod];
            let run = fact
                .estimate()
                .or_else(|| cluster.pods.gang[pod].and_then(|gang| cluster.gangs[gang].estimate));
            let end = run.map_or(Time(i64::MAX), |run| {
                fact.started.unwrap_or(now).plus_ms(run).max(now.plus_ms(1))
            });
            (end, pod)
        })
        .collect();
    ends.sort_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| cluster.pods.name(a.1).cmp(cluster.pods.name(b.1)))
    });
    ends
}

/// How long the gang's pods will run at most; None is forever.
fn estimate(cluster: &Cluster, gang: GangId, pods: &[PodId]) -> Option<i64> {
    let of_gang = cluster.gangs[gang].estimate;
    pods.iter()
        .map(|&pod| cluster.pods.fact[pod].estimate().or(of_gang))
        .try_fold(0, |longest, run| Some(longest.max(run?)))
}
