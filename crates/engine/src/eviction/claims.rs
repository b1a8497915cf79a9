//! A gang that lacks room and makes others leave, all or nothing: what `preempt` and `reclaim` have
//! in common. Pod by pod in their mode `task`; by bundles of gangs (`gang_claims.rs`) in their mode
//! `gang`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, ResourceId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::counters::{Search, Work};
use crate::decision::plan::Eviction;
use crate::decision::reason::{Limit, Reason};
use crate::eviction::failed_searches::{Fruitless, Lack, Signature};
use crate::eviction::gang_claims::{Causes, GangTaker};
use crate::eviction::trace::{Record, Trace};
use crate::eviction::victims::{Leaver, Refusal, concerns, make_room, reprieve};
use crate::model::Cluster;
use crate::model::gangs::Gang;
use crate::model::gangs::missing::{Missing, not_promised};
use crate::model::nominations::Promise;
use crate::model::pods::PodState;
use crate::model::shapes::one_shape;
use crate::model::txn::{Mark, Move, Txn};
use crate::nomination::reaffirm::would_stand;
use crate::order::gates::gate;
use crate::order::line::Line;
use crate::order::pods::{Serving, in_order};
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::placement::request::Wish;
use crate::placement::search::{seat, seat_by_force};
use crate::placement::{domains, place_one};
use crate::policy::answers::Policy;
use crate::policy::preemptor::Claim;
use crate::settings::actions::Settings;
use crate::settings::eviction::Taking;

/// What an action is out for.
#[derive(Copy, Clone)]
pub struct Errand<'s> {
    pub action: &'static str,
    pub purpose: Purpose,
    pub taking: &'s Taking,
}

impl<'s> Errand<'s> {
    /// The errand of an action that takes room.
    pub fn of(settings: &'s Settings, action: &'static str) -> Option<Errand<'s>> {
        let (purpose, taking) = settings.taking(action)?;
        Some(Errand { action, purpose, taking })
    }

    /// Whether gangs that have their minimum are given more: not where pods are taken one by one.
    pub fn helps_to_grow(&self) -> bool {
        self.taking.mode != Mode::Task
    }
}

/// Carries out the errand of an action: makes room for all gangs that starve.
pub fn run(session: &mut Session, action: &'static str) {
    if let Some(errand) = Errand::of(session.settings, action) {
        serve_all(session, errand);
    }
}

/// Makes room for all gangs that starve, in order; then, where whole gangs are taken, for those
/// that have their minimum and more pods, by what others can spare.
fn serve_all(session: &mut Session, errand: Errand) {
    let (purpose, mode) = (errand.purpose, errand.taking.mode);
    let mut fruitless = Fruitless::recall(session.cluster, session.policy, purpose, mode);
    let mut steps = 0;
    serve_those(session, errand, &mut fruitless, &mut steps, starves);
    if errand.helps_to_grow() {
        let taking = &errand.taking.breaking_nobody();
        serve_those(session, Errand { taking, ..errand }, &mut fruitless, &mut steps, grows);
    }
    fruitless.keep(session.cluster, purpose, mode);
}

/// Gives turns to all gangs of which this is true, as long as it is and they bring something;
/// beginning with the one for which there was no time in the last cycle.
fn serve_those(
    session: &mut Session,
    errand: Errand,
    fruitless: &mut Fruitless,
    steps: &mut u64,
    wants: fn(&Session, GangId) -> bool,
) {
    let waiting = session.cluster.gangs.waiting().to_vec();
    let mut wanting: Vec<GangId> =
        waiting.into_iter().filter(|&gang| wants(session, gang)).collect();
    // Nobody is moved for one that would never move for others.
    wanting.retain(|&gang| {
        errand.purpose != Purpose::Consolidate || !session.cluster.gangs[gang].protected
    });
    let key = |session: &Session, gang: GangId| session.cluster.gangs[gang].key.clone();
    let mut first = fruitless.first();
    first = first.filter(|first| wanting.iter().any(|&gang| key(session, gang) == *first));
    let mut line = Line::new(session.cluster, session.policy, wanting);
    // What a queue deserves matters between queues.
    let next = |line: &mut Line, session: &mut Session| match errand.purpose {
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
        if errand.taking.mode == Mode::Scenario && *steps >= errand.taking.bundling.steps {
            fruitless.put_off(key(session, gang));
            let (purpose, steps) = (errand.purpose, *steps);
            refuse(session, gang, errand.purpose, vec![Reason::NotAttempted { purpose, steps }]);
            session.plan.wake_at(session.now);
            continue;
        }
        if serve(session, gang, errand, fruitless, steps) && wants(session, gang) {
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
    let goes_first = |head: GangId| session.policy.gang_order(session.cluster, head, id).is_lt();
    let mut heads =
        session.heads.iter().filter(|&&(queue, head)| queue == gang.queue && head != id);
    let behind = heads.any(|&(_, head)| goes_first(head));
    !behind
        && gang.admitted()
        && gang.counts.pending > 0
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

/// The pods that want places, and how many of them must get one: all that the gang lacks, or the
/// first one above that.
fn turn_of(session: &Session, gang: GangId) -> (Vec<PodId>, Missing) {
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

/// Makes room for what a gang lacks, all of it or nothing; or for one pod more. Counts the moves
/// that were tried.
fn serve(
    session: &mut Session,
    gang: GangId,
    errand: Errand,
    fruitless: &mut Fruitless,
    steps: &mut u64,
) -> bool {
    let more = grows(session, gang);
    let (pods, missing) = turn_of(session, gang);
    if more && !anyone_spares(session, gang, errand) {
        return false;
    }
    let signature = Signature::of(session.cluster, gang, &pods, &missing, errand.taking.mode);
    let known = signature.as_ref().and_then(|signature| fruitless.covers(signature, session.now));
    if let Some(failure) = known {
        if errand.taking.mode == Mode::Scenario {
            session.plan.wake_at_any(failure.until);
            let reasons = match failure.gang == session.cluster.gangs[gang].key {
                true => failure.reasons.clone(),
                false => vec![Reason::LikeAnother {
                    purpose: errand.purpose,
                    gang: failure.gang.clone(),
                }],
            };
            refuse(session, gang, errand.purpose, reasons);
        }
        return false;
    }
    let lack = Lack { signature: signature.clone(), pods: pods.len(), missing: missing.total };
    let mut taker = Taker::new(session, gang, errand, None);
    taker.record.progress = fruitless.resume(&session.cluster.gangs[gang].key, &lack);
    let mut txn = Txn::begin(session.cluster);
    let wish =
        Wish { gang, pods: &pods, missing: &missing, room: Room::Later, avoid: &[], near: None };
    let result = taker.claim(&mut txn, session.rankings, &wish);
    *steps += txn.steps();
    if let Err(refused) = result {
        let first = txn.mark() == Mark::START;
        let Taker { until, record, .. } = taker;
        drop(txn);
        session.plan.wake_at_any(until);
        let cut = refused.iter().any(|reason| matches!(reason, Reason::NotAttempted { .. }));
        if cut {
            fruitless.cut_short(session.cluster.gangs[gang].key.clone(), lack, record.progress);
            session.plan.wake_at(session.now);
        }
        tell_search(session, gang, errand, record.work.in_vain(), false);
        let nobody = |reason: &Reason| matches!(reason, Reason::NothingToTake { .. });
        let telling = errand.taking.mode == Mode::Scenario && !cut || refused.iter().all(nobody);
        if let Some(signature) = signature.filter(|_| first && telling) {
            fruitless.note(session.cluster, gang, signature, (refused.clone(), until));
        }
        refuse(session, gang, errand.purpose, refused);
        return false;
    }
    // Room that is free is for `allocate` to give, which asks whether the queue may have it.
    if more && (!txn.displaces() || gave_too_much(session.policy, &txn, errand, &pods)) {
        drop(txn);
        tell_search(session, gang, errand, taker.record.work.in_vain(), false);
        return false;
    }
    let moves = txn.commit();
    let Taker { causes, record, .. } = taker;
    tell_search(session, gang, errand, record.work, true);
    carry_out(session, gang, errand, &moves, &causes);
    fruitless.forget(session.cluster);
    true
}

fn tell_search(session: &mut Session, gang: GangId, errand: Errand, work: Work, found: bool) {
    session.plan.taking.add(&work);
    session.plan.searches.push(Search { gang, action: errand.action, work, found });
}

/// Says why nobody leaves for a gang, beside why it waits.
fn refuse(session: &mut Session, gang: GangId, purpose: Purpose, refused: Vec<Reason>) {
    let mut reasons = session.cluster.gangs[gang].reasons.clone();
    reasons.retain(|known| {
        !said_for(known, purpose) && refused.iter().all(|reason| !same(known, reason))
    });
    // One action may find nobody where another names those whom it would take, and the rules that
    // keep them.
    let told = reasons.iter().any(|known| finds_nobody(known) == Some(false));
    let adds = |reason: &Reason| !told || finds_nobody(reason) != Some(true);
    // Who deserves nothing has nothing to take back: that is why no one leaves for it, not why it
    // waits.
    let news = refused.into_iter().filter(adds);
    let news = news.filter(|reason| reasons.is_empty() || !deserves_nothing(reason));
    reasons.extend(news.collect::<Vec<_>>());
    session.cluster.gangs.explain(gang, reasons);
}

/// Whether nobody leaves, and no rule keeps anyone either.
fn finds_nobody(reason: &Reason) -> Option<bool> {
    match reason {
        Reason::NothingToTake { kept, .. } => Some(kept.is_empty()),
        _ => None,
    }
}

/// What an action says of this alone, and anew each time.
fn said_for(reason: &Reason, by: Purpose) -> bool {
    matches!(reason, Reason::NothingToTake { purpose, .. } | Reason::NotAttempted { purpose, .. } if *purpose == by)
}

/// Whether two reasons are about the same: the newer one is said, unless only the older one names
/// rules.
fn same(one: &Reason, other: &Reason) -> bool {
    let kind = std::mem::discriminant::<Reason>;
    let limits = match (one, other) {
        (Reason::OverLimit { limit: one, .. }, Reason::OverLimit { limit: other, .. }) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        (Reason::NothingToTake { kept, .. }, Reason::NothingToTake { .. }) => kept.is_empty(),
        _ => true,
    };
    kind(one) == kind(other) && limits
}

fn deserves_nothing(reason: &Reason) -> bool {
    matches!(reason, Reason::OverLimit { limit: Limit::Deserved(_), lack, .. } if lack.limit == 0)
}

/// Whether a queue from which room was taken back has less now than it deserves of what these pods
/// ask for: it would take that back. Where queues are measured by fair shares, that has been asked
/// for each that leaves.
fn gave_too_much(policy: &Policy, txn: &Txn, errand: Errand, pods: &[PodId]) -> bool {
    let asked =
        |resource| pods.iter().any(|&pod| txn.request_of(txn.pods.shape[pod], resource) > 0);
    let lacks = |(victim, _): (PodId, NodeId)| {
        let queue = txn.pods.gang[victim].map(|gang| txn.gangs[gang].queue)?;
        let (deserved, _) = policy.deserves(txn, queue)?;
        let less =
            |(resource, amount)| asked(resource) && txn.queues[queue].claimed(resource) < amount;
        Some(deserved.iter().any(less))
    };
    let by_deserved = errand.purpose == Purpose::Reclaim && errand.taking.mode != Mode::Scenario;
    by_deserved && txn.evicted().into_iter().any(|gone| lacks(gone) == Some(true))
}

/// Whether there is anyone with pods to spare whom the errand of a gang concerns, so that it is
/// worth looking where they are.
fn anyone_spares(session: &Session, gang: GangId, errand: Errand) -> bool {
    let taker = Taker::new(session, gang, errand, None);
    let claim = session.cluster.gangs[gang].pods.first().map(|&pod| taker.claim_for(pod));
    // Who moves loses nothing.
    let moves = errand.purpose == Purpose::Consolidate;
    let spares =
        |other: &Gang| other.counts.running > 0 && (moves || other.counts.ready() > other.minimum);
    let concerned = |id: GangId| claim.is_some_and(|claim| concerns(session.cluster, &claim, id));
    session.cluster.gangs.iter().any(|(id, other)| spares(other) && concerned(id))
}

/// What is tried to make room for a gang, if it starves or grows; nothing comes of it.
pub fn trace(session: &mut Session, gang: GangId, errand: Errand) -> Option<Trace> {
    let overused =
        || session.policy.overused(session.cluster, session.cluster.gangs[gang].queue).is_some();
    if errand.purpose == Purpose::Reclaim && overused() {
        return None;
    }
    let (trace, outcome) = decide(session, gang, errand)?;
    let refused = outcome.err().unwrap_or_default();
    if refused.iter().any(deserves_nothing) {
        return None;
    }
    // Pod by pod it is in the last attempt.
    let refused = if errand.taking.mode == Mode::Task { Vec::new() } else { refused };
    Some(Trace { refused, ..trace })
}

/// Who would leave for a gang, or why nobody does.
type Outcome = Result<Vec<PodId>, Vec<Reason>>;

/// Decides once more whether room is made for a gang that starves or grows, and tells what is
/// tried. Everything stays as it was.
pub fn decide(session: &mut Session, gang: GangId, errand: Errand) -> Option<(Trace, Outcome)> {
    let row = &session.cluster.gangs[gang];
    let behind = row.reasons.iter().any(|reason| matches!(reason, Reason::Behind { .. }));
    let more = errand.helps_to_grow() && grows(session, gang);
    if behind || !more && !starves(session, gang) {
        return None;
    }
    let nobody = |kept| vec![Reason::NothingToTake { purpose: errand.purpose, nodes: 0, kept }];
    // Nobody is moved for one that would never move for others.
    if errand.purpose == Purpose::Consolidate && row.protected {
        return Some((Trace::default(), Err(vec![Reason::NeverMoves { gang: row.key.clone() }])));
    }
    if more && !anyone_spares(session, gang, errand) {
        return Some((Trace::default(), Err(nobody(Vec::new()))));
    }
    let modest = errand.taking.breaking_nobody();
    let errand = if more { Errand { taking: &modest, ..errand } } else { errand };
    let (pods, missing) = turn_of(session, gang);
    let mut trace = Trace::default();
    let mut taker = Taker::new(session, gang, errand, Some(&mut trace));
    let mut txn = Txn::begin(session.cluster);
    let wish =
        Wish { gang, pods: &pods, missing: &missing, room: Room::Later, avoid: &[], near: None };
    let result = taker.claim(&mut txn, session.rankings, &wish);
    let gone: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
    let nothing = !txn.displaces();
    let too_much = result.is_ok() && more && gave_too_much(session.policy, &txn, errand, &pods);
    drop(txn);
    let outcome = match result {
        Ok(()) if more && (too_much || nothing) => {
            trace.choose_nothing();
            let kept = (IN_NEED.to_owned(), gone.len() as u32);
            Err(nobody(if too_much { vec![kept] } else { Vec::new() }))
        }
        result => result.map(|()| gone),
    };
    Some((trace, outcome))
}

/// The rule that keeps what would be taken back at once.
const IN_NEED: &str = "its queue, which would have too little";

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
    let (moves, moved) = keep_places(session, moves);
    let moves = &moves;
    session.plan.record(moves);
    session.cluster.freed += 1;
    for step in moves {
        let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to) else {
            continue;
        };
        let kept = moved.get(&step.pod).map(|&to| Cause::Moved { to });
        let known = kept.or_else(|| causes.get(&step.pod).copied());
        let cause = known.unwrap_or_else(|| cause(session, gang, purpose, step.pod));
        let method = taking.method;
        let eviction =
            Eviction { pod: step.pod, node, action, claimant: Some(gang), cause, method };
        session.plan.evictions.push(eviction);
    }
    let leaving = |step: &Move| step.to.node().filter(|&node| step.to == PodState::Releasing(node));
    let mut left: Vec<NodeId> = moves.iter().filter_map(leaving).collect();
    left.sort_unstable();
    left.dedup();
    for step in moves {
        if let PodState::Nominated(node) = step.to
            && left.binary_search(&node).is_ok()
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

/// Those who leave and have another place leave like others. Their successors are not there yet, so
/// that the places are kept for them.
fn keep_places(session: &mut Session, moves: &[Move]) -> (Vec<Move>, BTreeMap<PodId, NodeId>) {
    let until = session.now.plus_ms(session.settings.reservation_limit_ms);
    let mut moved = BTreeMap::new();
    let mut kept = moves.to_vec();
    for step in &mut kept {
        let (PodState::Running(from), PodState::Nominated(to)) = (step.from, step.to) else {
            continue;
        };
        step.to = PodState::Releasing(from);
        session.cluster.set(step.pod, step.to);
        if let Some(gang) = session.cluster.pods.gang[step.pod] {
            session.cluster.reserve(gang, step.pod, to, until);
        }
        moved.insert(step.pod, to);
    }
    (kept, moved)
}

/// Lets those stay whom the plan asks to leave without need, since room was made for one gang after
/// the other. A gang that breaks stays or goes together; of what others can lose each pod does, or
/// a subgroup.
pub fn review(session: &mut Session) {
    let mut claimants = session.plan.evictions.iter().filter_map(|eviction| eviction.claimant);
    let first = claimants.next();
    let at_once = session.plan.searches.iter().filter(|search| search.found).count() < 2;
    // Where one has gone to another place, another may find that it need not.
    let moves =
        session.plan.evictions.iter().any(|eviction| matches!(eviction.cause, Cause::Moved { .. }));
    if at_once && !moves && claimants.all(|claimant| Some(claimant) == first) {
        return;
    }
    let mut single: Vec<Vec<Leaver>> = Vec::new();
    let mut whole: BTreeMap<GangId, Vec<Leaver>> = BTreeMap::new();
    let mut safe: Vec<(GangId, Leaver)> = Vec::new();
    let mut moved: Vec<(GangId, Leaver)> = Vec::new();
    let stale: BTreeSet<GangId> = stale(session).collect();
    for &Eviction { pod, node, claimant, cause, .. } in &session.plan.evictions {
        let (Some(claimant), Some(gang)) = (claimant, session.cluster.pods.gang[pod]) else {
            continue;
        };
        if stale.contains(&gang) {
            continue;
        }
        let leaver = (pod, node, claimant);
        match cause {
            Cause::Bundle { whole: true, .. } => whole.entry(gang).or_default().push(leaver),
            Cause::Bundle { .. } => safe.push((gang, leaver)),
            Cause::Moved { .. } => moved.push((gang, leaver)),
            _ => single.push(vec![leaver]),
        }
    }
    let mut txn = Txn::begin(session.cluster);
    let mut reprieved = reprieve(&mut txn, session.policy, single);
    reprieved += reprieve(&mut txn, session.policy, whole.values().cloned().collect());
    // What a gang could spare is of no use to it once it is broken.
    let leaves = |(pod, ..): &Leaver| matches!(txn.pods.state[*pod], PodState::Releasing(_));
    whole.retain(|_, gone| gone.iter().any(leaves));
    safe.retain(|(gang, _)| !whole.contains_key(gang));
    let safe = by_subgroup(&txn, safe);
    session.plan.taking.reprieved += reprieved + reprieve(&mut txn, session.policy, safe);
    let spared: BTreeSet<PodId> = txn.commit().into_iter().map(|step| step.pod).collect();
    session.plan.evictions.retain(|eviction| !spared.contains(&eviction.pod));
    if !spared.is_empty() {
        recount(session);
    }
    review_moves(session, moved);
}

/// Gangs that leave because they can't go on: what would stay of them would be of no use.
fn stale(session: &Session) -> impl Iterator<Item = GangId> {
    let stale =
        session.plan.evictions.iter().filter(|gone| matches!(gone.cause, Cause::Stale { .. }));
    stale.filter_map(|gone| session.cluster.pods.gang[gone.pod])
}

/// The same for those who would move. Who is to be near others stays or goes with them.
fn review_moves(session: &mut Session, moved: Vec<(GangId, Leaver)>) {
    let mut sets: Vec<(GangId, Vec<Leaver>)> = Vec::new();
    for (gang, leaver) in moved {
        let row = &session.cluster.gangs[gang];
        let together = row.choosy.is_some() || !row.rules().is_empty();
        match sets.iter_mut().find(|(of, _)| together && *of == gang) {
            Some((_, set)) => set.push(leaver),
            None => sets.push((gang, vec![leaver])),
        }
    }
    for (gang, set) in sets {
        let cluster = &mut *session.cluster;
        let places = cluster.end_moves(gang, set.iter().map(|&(pod, ..)| pod));
        let mut txn = Txn::begin(cluster);
        let stay = reprieve(&mut txn, session.policy, vec![set.clone()]);
        if stay == 0 {
            drop(txn);
            places.into_iter().for_each(|place| session.cluster.keep_place(gang, place));
            continue;
        }
        txn.commit();
        session.cluster.freed += 1;
        session.plan.taking.reprieved += stay;
        session.plan.evictions.retain(|eviction| set.iter().all(|&(pod, ..)| pod != eviction.pod));
    }
}

/// Each alone, but those of a subgroup that goes.
fn by_subgroup(cluster: &Cluster, gone: Vec<(GangId, Leaver)>) -> Vec<Vec<Leaver>> {
    let mut sets: Vec<Vec<Leaver>> = Vec::new();
    let mut groups: BTreeMap<(GangId, u32), Vec<Leaver>> = BTreeMap::new();
    for (gang, leaver) in gone {
        let (row, place) = (&cluster.gangs[gang], cluster.pods.subgroup[leaver.0]);
        let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
        match group.is_some_and(|group| group.counts.ready() < row.size_of(group)) {
            true => groups.entry((gang, place)).or_default().push(leaver),
            false => sets.push(vec![leaver]),
        }
    }
    sets.extend(groups.into_values());
    sets
}

/// Bundles of which some stay say how many go.
fn recount(session: &mut Session) {
    let mut counts: BTreeMap<(Option<GangId>, Option<GangId>, bool), u32> = BTreeMap::new();
    let cluster = &*session.cluster;
    let key = |eviction: &Eviction, whole: bool| {
        (cluster.pods.gang[eviction.pod], eviction.claimant, whole)
    };
    for eviction in &session.plan.evictions {
        if let Cause::Bundle { whole, .. } = eviction.cause {
            *counts.entry(key(eviction, whole)).or_default() += 1;
        }
    }
    for eviction in &mut session.plan.evictions {
        if let Cause::Bundle { whole, .. } = eviction.cause
            && let Some(&left) = counts.get(&key(eviction, whole))
            && let Cause::Bundle { pods, .. } = &mut eviction.cause
        {
            *pods = left;
        }
    }
}

/// Counts what is lost by those whom the plan asks to leave for others: gangs that break, and the
/// time that accelerators were held for nothing.
pub fn count_losses(session: &mut Session) {
    let (cluster, plan) = (&*session.cluster, &mut *session.plan);
    let mut losers: Vec<PodId> = Vec::new();
    let mut broken: BTreeSet<GangId> = BTreeSet::new();
    for eviction in plan.evictions.iter().filter(|eviction| eviction.claimant.is_some()) {
        losers.push(eviction.pod);
        let anyway = matches!(eviction.cause, Cause::Bundle { broken: true, .. });
        broken.extend(
            cluster.pods.gang[eviction.pod]
                .filter(|&gang| !anyway && !cluster.gangs[gang].ready(true)),
        );
    }
    for &gang in &broken {
        let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
        losers.extend(cluster.gangs[gang].pods.iter().copied().filter(runs));
    }
    losers.sort_unstable();
    losers.dedup();
    plan.taking.broken += broken.len() as u32;
    let dimensions = (0..cluster.dimensions.len()).map(ResourceId::from);
    let accelerators: Vec<ResourceId> =
        dimensions.filter(|&resource| cluster.dimensions.name(resource).contains('/')).collect();
    for pod in losers {
        let Some(started) = cluster.pods.fact[pod].started else { continue };
        let seconds = (session.now.0 - started.0).max(0) / 1000;
        for &resource in &accelerators {
            let amount = cluster.request_of(cluster.pods.shape[pod], resource);
            if amount > 0 {
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
        Purpose::Preempt | Purpose::Consolidate => Cause::Outranked {
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
        Taker { policy, gang, errand, now, causes, until: None, record }
    }

    fn claim_for(&self, pod: PodId) -> Claim {
        let Errand { purpose, taking, .. } = self.errand;
        Claim {
            mode: taking.mode,
            purpose,
            gang: self.gang,
            pod,
            now: self.now,
            method: taking.method,
        }
    }

    fn claim(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        wish: &Wish,
    ) -> Result<(), Vec<Reason>> {
        // What others have left is for those who may take back; the rest is lent by `allocate`.
        if let (Mode::Scenario, Purpose::Reclaim, Some(&first)) =
            (self.errand.taking.mode, self.errand.purpose, wish.pods.first())
        {
            self.policy.may_reclaim(txn, &self.claim_for(first)).map_err(|reason| vec![reason])?;
        }
        // Nobody leaves where nobody has to.
        let full = one_shape(txn, wish.pods).is_some_and(|shape| {
            rankings.of(txn, self.policy, shape, Room::Later).best(txn).is_none()
        });
        if !full && seat(txn, self.policy, rankings, wish).is_ok() {
            return Ok(());
        }
        txn.rewind(Mark::START);
        let queue = txn.gangs[self.gang].queue;
        let mut had = txn.queues[queue].held.clone();
        had.add_amounts(&txn.queues[queue].nominated, 1);
        self.take(txn, rankings, wish, &had)?;
        if self.errand.taking.mode == Mode::Scenario {
            // Pods that look at other nodes mind where others went.
            let far = wish.pods.iter().any(|&pod| txn.far_reaching(txn.pods.shape[pod]));
            return match !far || would_stand(txn, self.policy, rankings, self.gang) {
                true => Ok(()),
                false => Err(vec![Refusal::default().reason(self.errand.purpose)]),
            };
        }
        let gone: Vec<PodId> = txn.evicted().into_iter().map(|(pod, _)| pod).collect();
        // Who matters more in its queue goes before what queues deserve.
        let reclaims = self.errand.purpose == Purpose::Reclaim;
        let (Some(&first), false, true) = (wish.pods.first(), gone.is_empty(), reclaims) else {
            return Ok(());
        };
        match self.policy.objects(txn, &self.claim_for(first), &had, &gone) {
            Some(reason) => Err(vec![reason]),
            None => Ok(()),
        }
    }

    fn take(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        wish: &Wish,
        had: &Amounts,
    ) -> Result<(), Vec<Reason>> {
        let policy = self.policy;
        if let (Mode::Gang | Mode::Scenario, Some(&first)) =
            (self.errand.taking.mode, wish.pods.first())
        {
            let claim = self.claim_for(first);
            let doubled = 1_u64.checked_shl(self.record.progress.doubled).unwrap_or(u64::MAX);
            let budget = self.errand.taking.bundling.steps_per_gang.saturating_mul(doubled);
            let taker =
                GangTaker { policy, taking: self.errand.taking, budget, claim, wish: *wish, had };
            let taken = taker.take(txn, rankings, &mut self.until, &mut self.record);
            let cut = |reason: &Reason| matches!(reason, Reason::NotAttempted { .. });
            self.record.work.cut_short =
                taken.as_ref().is_err_and(|refused| refused.iter().any(cut));
            self.causes = taken?;
            return Ok(());
        }
        let force = &mut |txn: &mut Txn, rankings: &mut Rankings, pod: PodId, left: u32| {
            self.one(txn, rankings, pod, left)
        };
        seat_by_force(txn, policy, rankings, wish, force)?;
        let gone =
            txn.evicted().into_iter().map(|(pod, node)| vec![(pod, node, self.gang)]).collect();
        self.record.work.reprieved += reprieve(txn, policy, gone);
        Ok(())
    }

    fn one(
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
        let tops = domains::reach(txn, self.gang, pod)?;
        let tops = self.large_enough(txn, rankings, tops, pod, left);
        let claim = self.claim_for(pod);
        let refused = self.policy.may_take(txn, self.gang, shape, Room::Later).err();
        let free = match &refused {
            None => {
                place_one::free_place(txn, self.policy, rankings, (self.gang, pod), &tops, left)
            }
            Some(_) => None,
        };
        // What others have just left is not simply free: the queue may have no more than it may
        // take back, all in all.
        let takes_back =
            self.errand.purpose == Purpose::Reclaim && (free.is_none() || txn.evicts());
        if free.is_none() && txn.never_preempts(pod) {
            return Err(
                refused.unwrap_or(Reason::NeverPreempts { pod: txn.pods.name(pod).clone() })
            );
        }
        if takes_back {
            self.policy.may_reclaim(txn, &claim)?;
        }
        if let Some(node) = free {
            txn.nominate(pod, node);
            return Ok(());
        }
        let ranks: Vec<Range<u32>> = tops.iter().map(|&domain| txn.domains.ranks(domain)).collect();
        let record = &mut self.record;
        make_room(txn, self.policy, rankings, &claim, &ranks, CANDIDATES, record).map_err(
            |refusal| {
                self.until = [self.until, refusal.until].into_iter().flatten().min();
                refused.unwrap_or_else(|| refusal.reason(self.errand.purpose))
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
        let need = left
            .min(not_promised(&txn.gangs[self.gang], self.policy.gangs_are_whole()).total.max(1));
        let shape = txn.pods.shape[pod];
        let ranking = rankings.of(txn, self.policy, shape, Room::Later);
        tops.into_iter()
            .filter(|&top| ranking.could_hold(txn, shape, need, txn.domains.ranks(top)))
            .collect()
    }
}

/// How many nodes are compared for one pod.
const CANDIDATES: usize = 100;
