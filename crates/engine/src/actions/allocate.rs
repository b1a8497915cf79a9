//! Binds gangs that fit: queue by queue, gang by gang, one turn at a time. A turn places the
//! missing minimum, all of it or nothing, or one pod above it.

use muster_api::DequeueStrategy;

use crate::base::ids::{GangId, PodId, ShapeId};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::gangs::missing;
use crate::model::gangs::missing::Missing;
use crate::model::shapes::one_shape;
use crate::model::topology::domains::ROOT;
use crate::model::txn::Txn;
use crate::nomination::fulfil;
use crate::order::gates::{blocks, gate, overdue};
use crate::order::line::Line;
use crate::order::pods::{Serving, in_order};
use crate::order::session::{Action, Session};
use crate::placement::request::PlacementRequest;
use crate::placement::search::place_gang;
use crate::settings::argument::Argument;

pub static ACTION: Action = Action {
    name: "allocate",
    summary: "bind gangs that fit, whole minimums first",
    arguments: &[
        Argument {
            name: "traverseHeadWait",
            default: "10m",
            meaning: "in a traverse queue no gang overtakes one that has waited this long (0s: \
                      never)",
        },
        Argument {
            name: "nominationLimit",
            default: "30m",
            meaning: "a nomination whose room is not free after this time is released and planned \
                      again (0s: never)",
        },
        Argument {
            name: "predicateErrorCacheEnable",
            default: "true",
            meaning: "accepted, always on",
        },
    ],
    configure: |args, settings| {
        let wait = args.duration_ms("traverseHeadWait", Some(settings.traverse_head_wait_ms));
        settings.traverse_head_wait_ms = wait.unwrap_or(0);
        let limit = args.duration_ms("nominationLimit", Some(settings.nomination_limit_ms));
        settings.nomination_limit_ms = limit.unwrap_or(0);
    },
    makes_room: None,
    run,
};

fn run(session: &mut Session) {
    fulfil::fulfil(session);
    explain_absence(session);
    let waiting = session.cluster.gangs.waiting().iter().copied();
    let candidates = waiting.filter(|&gang| wants_room(session, gang)).collect();
    serve(session, candidates, Serving::All);
}

/// Gives turns to the gangs until none can place anything more.
pub fn serve(session: &mut Session, candidates: Vec<GangId>, serving: Serving) {
    let mut ready = Vec::new();
    for gang in candidates {
        match gate(session.cluster, session.policy, gang, session.now) {
            Ok(()) => ready.push(gang),
            Err(reason) => session.cluster.gangs.explain(gang, vec![reason]),
        }
    }
    let mut line = Line::new(session.cluster, session.policy, ready);
    let next = |line: &mut Line, session: &mut Session| match serving {
        Serving::All => line.next(session.cluster, session.policy),
        Serving::BestEffort => line.next_of_all(session.cluster, session.policy),
    };
    while let Some((queue, gang)) = next(&mut line, session) {
        let starting = !session.cluster.gangs[gang].ready(session.policy.enforces_minimum());
        match turn(session, gang, serving) {
            Ok(()) => {
                let counts = &session.cluster.gangs[gang].counts;
                let nominated = (counts.nominated > 0)
                    .then_some(Reason::Nominated { places: counts.nominated });
                let wants_more = match serving {
                    Serving::All => counts.pending > 0,
                    Serving::BestEffort => counts.pending_best_effort > 0,
                };
                session.cluster.gangs.explain(gang, nominated.into_iter().collect());
                if wants_more {
                    line.put_back(session.cluster, session.policy, gang);
                }
            }
            Err(reasons) => {
                waits(session, gang, reasons, starting);
                let blocks =
                    starting && blocks(session.cluster, session.settings, gang, session.now);
                // A fifo queue is strict, as its owner asked; a traverse queue only waits for a
                // gang that can start some day.
                let strict = session.cluster.queues[queue].strategy == DequeueStrategy::Fifo;
                if blocks && (strict || could_ever_fit(session, gang)) {
                    let head = session.cluster.gangs[gang].key.clone();
                    let since = overdue(session.cluster, session.settings, gang, session.now);
                    for behind in line.stop(queue) {
                        let reason = Reason::Behind { head: head.clone(), since };
                        session.cluster.gangs.explain(behind, vec![reason]);
                    }
                    session.heads.push((queue, gang));
                }
            }
        }
    }
}

/// Whether the empty cluster could hold the gang. A gang too large for that would block a traverse
/// queue for ever.
fn could_ever_fit(session: &mut Session, gang: GangId) -> bool {
    let missing = session.cluster.gangs[gang].missing(session.policy.enforces_minimum()).total;
    let pods = in_order(session, gang, Serving::All);
    let mut shapes: Vec<ShapeId> =
        pods.iter().map(|&pod| session.cluster.pods.shape[pod]).collect();
    shapes.sort_unstable();
    shapes.dedup();
    // Labels alone, which may have mattered to pods that are gone, don't make pods different here.
    let (first, rest) = match shapes.as_slice() {
        [first, rest @ ..] => (&session.cluster.shapes[*first], rest),
        [] => return true,
    };
    let alike = rest.iter().all(|&shape| session.cluster.shapes[shape].asks_like(first));
    let need = if alike { missing } else { 1 };
    shapes.into_iter().all(|shape| {
        let ranking = session.rankings.of(session.cluster, session.policy, shape, Room::Idle);
        ranking.could_hold(session.cluster, shape, need, session.cluster.domains.ranks(ROOT))
    })
}

/// Gives a reason to gangs without a pod to try, because gates hold their pods or because they have
/// none.
fn explain_absence(session: &mut Session) {
    for gang in session.cluster.gangs.waiting().to_vec() {
        let row = &session.cluster.gangs[gang];
        let gated = row.counts.gated;
        if row.counts.pending + row.counts.nominated == 0 && row.admitted() {
            let reason = gate(session.cluster, session.policy, gang, session.now).err();
            let reason = reason.or((gated > 0).then_some(Reason::Gated { pods: gated }));
            session.cluster.gangs.explain(gang, reason.into_iter().collect());
        }
    }
}

/// Whether it has pods for this action: gangs of which only pods without requests wait are left to
/// `backfill`.
fn wants_room(session: &Session, id: GangId) -> bool {
    let gang = &session.cluster.gangs[id];
    gang.counts.pending > gang.counts.pending_best_effort && may_try(session, id)
}

/// Whether it is admitted, and something has changed since it was last refused; or whether it has
/// waited so long that it blocks its queue.
pub fn may_try(session: &Session, id: GangId) -> bool {
    let gang = &session.cluster.gangs[id];
    let news = gang.did_not_fit_at != Some(session.cluster.freed);
    gang.admitted()
        && (news || overdue(session.cluster, session.settings, id, session.now).is_some())
}

/// Records why a gang waits. If only nodes were in the way, only more room can help.
fn waits(session: &mut Session, id: GangId, reasons: Vec<Reason>, starting: bool) {
    let cluster = &mut *session.cluster;
    let near = cluster.gangs[id]
        .pods
        .iter()
        .all(|&pod| !cluster.depends_on_other_nodes(cluster.pods.shape[pod]));
    let nodes_only = reasons
        .iter()
        .all(|reason| matches!(reason, Reason::NoNodes { .. } | Reason::NoDomain { .. }));
    let freed = cluster.freed;
    cluster.gangs.explain(id, reasons);
    let heads = blocks(cluster, session.settings, id, session.now);
    let gang = &mut cluster.gangs[id];
    if starting {
        gang.waiting_since.get_or_insert(session.now);
    }
    // The head of a line must be visited again, or the gangs behind it would overtake it.
    gang.did_not_fit_at = (near && nodes_only && !heads).then_some(freed);
}

/// Places what one turn of the gang may place: binds if possible, else nominations to room that is
/// being freed.
fn turn(session: &mut Session, gang: GangId, serving: Serving) -> Result<(), Vec<Reason>> {
    let whole = session.policy.enforces_minimum();
    let row = &session.cluster.gangs[gang];
    let minimum = row.missing(whole);
    let missing = match minimum.total {
        0 => Missing::one(row.roles.len()),
        _ => missing::missing_after_nominations(row, whole),
    };
    if missing.total == 0 {
        return Err(vec![Reason::Nominated { places: row.counts.nominated }]);
    }
    let pods = in_order(session, gang, serving);
    // A partly nominated gang cannot be bound in this turn, so the rest is nominated as well.
    let nominated = minimum.total > 0 && missing != minimum;
    let rooms: &[Room] = match (nominated, session.cluster.departures > 0) {
        (true, _) => &[Room::FutureIdle],
        (false, true) => &[Room::Idle, Room::FutureIdle],
        (false, false) => &[Room::Idle],
    };
    let mut refused = Vec::new();
    for &room in rooms {
        match attempt(session, gang, &pods, &missing, room) {
            Ok(()) => return Ok(()),
            Err(reasons) => refused = reasons,
        }
    }
    Err(refused)
}

fn attempt(
    session: &mut Session,
    gang: GangId,
    pods: &[PodId],
    missing: &Missing,
    room: Room,
) -> Result<(), Vec<Reason>> {
    let topology_rules = session.cluster.gangs[gang].topology_rules.is_some();
    let single = one_shape(session.cluster, pods).filter(|_| !topology_rules);
    if let Some(shape) = single
        && let Some(reason) =
            session.rankings.known_refusal(session.cluster, shape, room, pods, missing.total)
    {
        return Err(vec![reason]);
    }
    let mut txn = Txn::begin(session.cluster);
    let placement = PlacementRequest { gang, pods, missing, room, avoid: &[], near: None };
    match place_gang(&mut txn, session.policy, session.rankings, &placement) {
        Ok(()) => {
            let moves = txn.commit();
            session.record(&moves);
            Ok(())
        }
        Err(reasons) => {
            drop(txn);
            if let (Some(shape), [reason @ Reason::NoNodes { .. }]) = (single, reasons.as_slice()) {
                session.rankings.remember_refusal(shape, room, missing.total, reason);
            }
            Err(reasons)
        }
    }
}
