//! Which gangs get a turn to take room from others.

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::decision::reason::Reason;
use crate::eviction::attempt::{Attempt, serve};
use crate::eviction::candidates::in_scope;
use crate::eviction::refusal::refuse;
use crate::eviction::request::EvictionRequest;
use crate::model::gangs::Gang;
use crate::model::gangs::missing::{Missing, missing_after_nominations};
use crate::order::failed_searches::FailedSearches;
use crate::order::gates::gate;
use crate::order::line::Line;
use crate::order::pods::{Serving, in_order};
use crate::order::session::{Action, Session};

/// Carries out the errand of an action: makes room for all gangs that starve.
pub fn run(session: &mut Session, action: &Action) {
    if let Some(request) = EvictionRequest::of(session.settings, action) {
        serve_all(session, request);
    }
}

/// Makes room for all gangs that starve, in order; then, where whole gangs are taken, for those
/// that have their minimum and more pods, by what others can spare.
fn serve_all(session: &mut Session, request: EvictionRequest) {
    let (purpose, mode) = (request.purpose, request.settings.mode);
    let mut failed_searches = FailedSearches::recall(
        session.failed_searches,
        session.cluster,
        session.policy,
        purpose,
        mode,
    );
    let mut steps = 0;
    serve_those(session, request, &mut failed_searches, &mut steps, starves);
    if request.helps_to_grow() {
        let settings = &request.settings.without_breaking_gangs();
        serve_those(
            session,
            EvictionRequest { settings, ..request },
            &mut failed_searches,
            &mut steps,
            grows,
        );
    }
    failed_searches.keep(session.failed_searches, session.cluster, purpose, mode);
}

/// Gives turns to all gangs of which this is true, as long as it is and they bring something;
/// beginning with the one for which there was no time in the last cycle.
fn serve_those(
    session: &mut Session,
    request: EvictionRequest,
    failed_searches: &mut FailedSearches,
    steps: &mut u64,
    wants: fn(&Session, GangId) -> bool,
) {
    let waiting = session.cluster.gangs.waiting().to_vec();
    let mut wanting: Vec<GangId> =
        waiting.into_iter().filter(|&gang| wants(session, gang)).collect();
    // Nobody is moved for one that would never move for others.
    wanting.retain(|&gang| {
        request.purpose != Purpose::Consolidate || !session.cluster.gangs[gang].protected
    });
    let key = |session: &Session, gang: GangId| session.cluster.gangs[gang].key.clone();
    let mut first = failed_searches.first();
    first = first.filter(|first| wanting.iter().any(|&gang| key(session, gang) == *first));
    let mut line = Line::new(session.cluster, session.policy, wanting);
    // What a queue deserves matters between queues.
    let next = |line: &mut Line, session: &mut Session| match request.purpose {
        Purpose::Reclaim => line.next(session.cluster, session.policy),
        _ => line.next_of_all(session.cluster, session.policy),
    };
    let mut later: Vec<GangId> = Vec::new();
    loop {
        let Some((_, gang)) = next(&mut line, session) else {
            if later.is_empty() {
                break;
            }
            line = Line::new(session.cluster, session.policy, std::mem::take(&mut later));
            continue;
        };
        if first.as_ref().is_some_and(|first| key(session, gang) != *first) {
            later.push(gang);
            continue;
        }
        first = None;
        if request.settings.mode == Mode::Scenario
            && *steps >= request.settings.bundle_settings.steps
        {
            failed_searches.put_off(key(session, gang));
            let (purpose, steps) = (request.purpose, *steps);
            refuse(session, gang, request.purpose, vec![Reason::NotAttempted { purpose, steps }]);
            session.plan.wake_at(session.now);
            continue;
        }
        if serve(session, gang, request, failed_searches, steps) && wants(session, gang) {
            line.put_back(session.cluster, session.policy, gang);
        }
    }
}

/// Whether a gang lacks pods to its minimum that nobody has promised it a place for, and nobody
/// must go before it.
pub fn starves(session: &Session, id: GangId) -> bool {
    wanted(session, id).total > 0 && has_a_turn(session, id)
}

/// Whether a gang has its minimum or is promised it, more of its pods wait, and nobody must go
/// before it. Subgroups would have to come as a whole.
pub fn grows(session: &Session, id: GangId) -> bool {
    let gang = &session.cluster.gangs[id];
    wanted(session, id).total == 0
        && gang.rules().is_empty()
        && gang.counts.pending > gang.counts.pending_best_effort
        && has_a_turn(session, id)
}

fn has_a_turn(session: &Session, id: GangId) -> bool {
    let gang = &session.cluster.gangs[id];
    // Whoever goes before a head passes nobody.
    let served_before_preemptor =
        |head: GangId| session.policy.gang_order(session.cluster, head, id).is_lt();
    let mut heads =
        session.heads.iter().filter(|&&(queue, head)| queue == gang.queue && head != id);
    let behind = heads.any(|&(_, head)| served_before_preemptor(head));
    !behind
        && gang.admitted()
        && gang.counts.pending > 0
        && gate(session.cluster, session.policy, id, session.now).is_ok()
}

/// What it lacks; without the plugin `gang`, one pod after the other.
pub fn wanted(session: &Session, id: GangId) -> Missing {
    let gang = &session.cluster.gangs[id];
    match session.policy.enforces_minimum() {
        true => missing_after_nominations(gang, true),
        false => Missing::one(gang.roles.len()),
    }
}

/// The pods that want places, and how many of them must get one: all that the gang lacks, or the
/// first one above that.
pub fn turn_of(session: &Session, gang: GangId) -> (Vec<PodId>, Missing) {
    let mut pods = in_order(session, gang, Serving::All);
    let missing = wanted(session, gang);
    if missing.total > 0 {
        return (pods, missing);
    }
    let cluster = &*session.cluster;
    pods.retain(|&pod| !cluster.shapes[cluster.pods.shape[pod]].best_effort);
    pods.truncate(1);
    (pods, Missing::one(cluster.gangs[gang].roles.len()))
}

/// Whether there is anyone with pods to spare whom the errand of a gang concerns, so that it is
/// worth looking where they are.
pub fn anyone_spares(session: &Session, gang: GangId, request: EvictionRequest) -> bool {
    let attempt = Attempt::new(session, gang, request, None);
    let preemptor = session.cluster.gangs[gang].pods.first().map(|&pod| attempt.preemptor_for(pod));
    // Who moves loses nothing.
    let moves = request.purpose == Purpose::Consolidate;
    let spares =
        |other: &Gang| other.counts.running > 0 && (moves || other.counts.ready() > other.minimum);
    let concerned =
        |id: GangId| preemptor.is_some_and(|preemptor| in_scope(session.cluster, &preemptor, id));
    session.cluster.gangs.iter().any(|(id, other)| spares(other) && concerned(id))
}
