//! Promised places. A nomination takes room like a bound pod does, counts for its queue, and
//! becomes a bind when what was in its way has left.

use muster_api::Time;

use crate::actions::allocate::{Serving, in_order};
use crate::base::ids::{GangId, NodeId, PodId, ShapeId};
use crate::config::Settings;
use crate::decision::plan::Bind;
use crate::decision::reason::Reason;
use crate::model::cluster::{Cluster, Promise};
use crate::model::gangs::{Gang, Missing, Role};
use crate::model::pods::PodState;
use crate::model::topology::subgroups::Subgroup;
use crate::model::txn::{Mark, Move, Txn};
use crate::order::line::{gate, named};
use crate::order::session::Session;
use crate::placement::rankings::{Rankings, Wish};
use crate::placement::search::{has_whole_subgroups, is_near_enough, seat};
use crate::policy::answers::{Policy, Room};

/// What is missing to the gang's minimum beyond the places that it was promised, or that are kept
/// for pods of it that will be made again.
pub fn not_promised(gang: &Gang, whole: bool) -> Missing {
    let missing = gang.missing(whole);
    let reserved =
        |role: &Role| gang.reserved().iter().filter(|place| place.role == role.name).count() as u32;
    let roles: Vec<u32> = missing
        .roles
        .iter()
        .zip(&gang.roles)
        .map(|(&missing, role)| missing.saturating_sub(role.counts.nominated + reserved(role)))
        .collect();
    let promised = gang.counts.nominated + gang.reserved().len() as u32;
    let total = missing.total.saturating_sub(promised).max(roles.iter().sum());
    Missing { total, roles }
}

/// Has its minimum, its roles' and its subgroups' once what it was promised has come true.
pub fn will_be_ready(gang: &Gang, whole: bool) -> bool {
    not_promised(gang, whole).total == 0
        && (!whole || gang.has_its_subgroups(|group| expected(gang, group)))
}

/// How many pods a subgroup will have once what was promised to them has come true.
pub fn expected(gang: &Gang, group: &Subgroup) -> u32 {
    let reserved =
        gang.reserved().iter().filter(|place| place.subgroup.as_ref() == Some(&group.name));
    group.counts.ready() + group.counts.nominated + reserved.count() as u32
}

/// Takes up promises that an earlier run wrote on the pods. [`withdraw`] follows and sees which of
/// them stand. Once we decide ourselves, what objects say is an echo, or was written too late by
/// one who is gone: that is taken back.
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    let began = std::mem::replace(&mut cluster.began, true);
    for (pod, turn) in std::mem::take(&mut cluster.promises).into_iter().zip(0..) {
        let (PodState::Pending, Some(promised), Some(gang)) =
            (cluster.pods.state[pod], cluster.pods.fact[pod].promised(), cluster.pods.gang[pod])
        else {
            continue;
        };
        let node = cluster.nodes.find(&promised.node).filter(|_| !began);
        let Some(node) = node else {
            let void = promised.annotated || !began;
            session.plan.withdrawn.extend(void.then_some(pod));
            continue;
        };
        let evicted = promised.evicted;
        cluster
            .promised
            .insert(pod, Promise { node, since: session.now, turn, evicted, told: true });
        let mut txn = Txn::begin(cluster);
        txn.nominate(pod, node);
        let _ = txn.commit();
        let places = cluster.gangs[gang].counts.nominated;
        cluster.gangs.explain(gang, vec![Reason::Promised { places }]);
    }
}

/// Ends promises that can't be kept: they are too old, the gang may not run any more, its queue may
/// not take it, or the node is unfit or was filled by others. All are taken back and given again
/// one by one as they were given: where pods mind each other, another order could lose what nothing
/// has happened to. If not all of them stand, gang by gang in order. A gang that loses a part keeps
/// the rest for now: in this cycle it may find other places near them.
pub fn withdraw(session: &mut Session) {
    let gangs = promised(session);
    let old = expired(session, &gangs);
    let mut txn = Txn::begin(session.cluster);
    let mut held: Vec<Held> = Vec::new();
    let turn = |cluster: &Cluster, pod: PodId| {
        cluster.promised.get(&pod).map(|promise| (promise.since, promise.turn))
    };
    for &gang in &gangs {
        let mut places = places(&txn, gang);
        places.sort_by_cached_key(|&(pod, _)| turn(&txn, pod));
        for (pod, node) in places {
            txn.release(pod);
            held.push((gang, pod, node));
        }
    }
    held.retain(|(gang, ..)| !old.contains(gang));
    let mark = txn.mark();
    let mut by_turn = held.clone();
    by_turn.sort_by_cached_key(|&(_, pod, _)| turn(&txn, pod));
    if !give_again(&mut txn, session.policy, session.rankings, by_turn) {
        txn.rewind(mark);
        give_again(&mut txn, session.policy, session.rankings, held);
    }
    // Places that are too far apart, because the network has changed, are of no use to a gang whose
    // pods belong together.
    for &gang in &gangs {
        if txn.gangs[gang].choosy.is_some() && !is_near_enough(&txn, gang) {
            places(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let lost = txn.commit();
    give_up(session.cluster, &lost);
}

/// A pod of a gang and the node on which it was promised a place.
type Held = (GangId, PodId, NodeId);

/// Whether what a gang was just promised would stand if it were given again, as it is in every
/// cycle.
pub fn would_stand(txn: &mut Txn, policy: &Policy, rankings: &mut Rankings, gang: GangId) -> bool {
    let mark = txn.mark();
    let mut held: Vec<Held> = Vec::new();
    for step in txn.since(Mark::START) {
        if let PodState::Nominated(node) = txn.pods.state[step.pod]
            && txn.pods.gang[step.pod] == Some(gang)
        {
            txn.release(step.pod);
            held.push((gang, step.pod, node));
        }
    }
    let stands = give_again(txn, policy, rankings, held);
    txn.rewind(mark);
    stands
}

/// Gives promises again, one after the other. Says whether all of them stand.
fn give_again(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    mut held: Vec<Held>,
) -> bool {
    // A pod that wants company stands once its company does, so those that fail get another round.
    loop {
        let before = held.len();
        held.retain(|&(gang, pod, node)| {
            let shape = txn.pods.shape[pod];
            let stands = named(txn, policy, gang).is_ok()
                && policy.valid(txn, gang).is_ok()
                && fits(txn, policy, rankings, (gang, shape, node), Room::Later);
            if stands {
                txn.nominate(pod, node);
            }
            !stands
        });
        if held.is_empty() || held.len() == before {
            return held.is_empty();
        }
    }
}

/// The gangs that hold a promise which is too old; it begins anew if they get it again.
fn expired(session: &mut Session, gangs: &[GangId]) -> Vec<GangId> {
    let limit = session.settings.nomination_limit_ms;
    if limit == 0 {
        return Vec::new();
    }
    let cluster = &mut *session.cluster;
    let mut old = Vec::new();
    for &gang in gangs {
        let pods: Vec<PodId> = places(cluster, gang).into_iter().map(|(pod, _)| pod).collect();
        let since =
            pods.iter().filter_map(|pod| cluster.promised.get(pod)).map(|promise| promise.since);
        if since.min().is_some_and(|since| since.plus_ms(limit) <= session.now) {
            for pod in &pods {
                cluster.promised.entry(*pod).and_modify(|promise| promise.since = session.now);
            }
            session.plan.fast_path.expired += pods.len() as u32;
            old.push(gang);
        }
    }
    old
}

/// When the next promise is too old.
pub fn expiry(cluster: &Cluster, settings: &Settings) -> Option<Time> {
    let limit = Some(settings.nomination_limit_ms).filter(|&limit| limit > 0)?;
    cluster.promised.values().map(|promise| promise.since.plus_ms(limit)).min()
}

/// Promises have ended: there is more room than before.
fn give_up(cluster: &mut Cluster, lost: &[Move]) {
    for step in lost {
        cluster.freed += 1;
        if let Some(gang) = cluster.pods.gang[step.pod] {
            cluster.gangs[gang].hopeless = None;
        }
    }
}

/// The places that a gang is promised.
fn places(cluster: &Cluster, gang: GangId) -> Vec<(PodId, NodeId)> {
    let place = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Nominated(node) => Some((pod, node)),
        _ => None,
    };
    cluster.gangs[gang].pods.iter().filter_map(place).collect()
}

/// Keeps room for gangs of which some binds succeeded and some were refused, while they back off.
/// If others took it, what is bound of them would hold its places in vain. The places last for this
/// cycle; [`let_go`] gives them back.
pub fn hold(session: &mut Session) -> Vec<PodId> {
    let (cluster, whole) = (&*session.cluster, session.policy.gangs_are_whole());
    let broken = |gang: &GangId| {
        cluster.gangs[*gang].is_broken(whole) && backs_off(session, *gang).is_some()
    };
    let mut gangs: Vec<GangId> = cluster.gangs.waiting().iter().copied().filter(broken).collect();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    let mut held = Vec::new();
    for gang in gangs {
        let pods = in_order(session, gang, Serving::All);
        let missing = not_promised(&session.cluster.gangs[gang], whole);
        let mut txn = Txn::begin(session.cluster);
        let room = Room::Later;
        let wish = Wish { gang, pods: &pods, missing: &missing, room, avoid: &[], near: None };
        if missing.total > 0 && seat(&mut txn, session.policy, session.rankings, &wish).is_ok() {
            held.extend(txn.commit().iter().map(|step| step.pod));
        }
    }
    held
}

/// Ends what [`hold`] began. Whoever was refused because of it may try again.
pub fn let_go(session: &mut Session, held: &[PodId]) {
    if held.is_empty() {
        return;
    }
    let mut txn = Txn::begin(session.cluster);
    held.iter().for_each(|&pod| txn.release(pod));
    let _ = txn.commit();
    session.cluster.freed += 1;
}

/// Ends a cycle: promises that don't make their gangs whole are given up, for they only keep others
/// waiting; and the plan says what the cluster doesn't know yet.
pub fn announce(session: &mut Session) {
    let whole = session.policy.gangs_are_whole();
    let gangs = promised(session);
    let mut txn = Txn::begin(session.cluster);
    for gang in gangs {
        if !suffice(&mut txn, gang, whole) {
            places(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let lost = txn.commit();
    give_up(session.cluster, &lost);

    let (cluster, plan) = (&mut *session.cluster, &mut *session.plan);
    let state = &cluster.pods.state;
    let waits = |pod: &PodId| matches!(state[*pod], PodState::Pending | PodState::Gated);
    plan.withdrawn.retain(waits);
    plan.withdrawn.extend(cluster.promised.keys().filter(|pod| waits(pod)));
    plan.withdrawn.sort_by(|&a, &b| cluster.pods.name(a).cmp(cluster.pods.name(b)));
    plan.withdrawn.dedup();
    plan.fast_path.voided = (plan.withdrawn.len() as u32).saturating_sub(plan.fast_path.expired);
    cluster.promised.retain(|pod, promise| match state[*pod] {
        PodState::Nominated(node) => node == promise.node,
        // Until that is confirmed, the pod says what it was promised.
        PodState::Allocated(_) => true,
        _ => false,
    });
    for (place, turn) in plan.nominations.iter().zip(0..) {
        if state[place.pod] == PodState::Nominated(place.node) {
            let known = cluster.promised.get(&place.pod);
            let evicted = known.is_some_and(|promise| promise.evicted);
            let told = known.is_some_and(|promise| promise.told);
            let promise = Promise { node: place.node, since: session.now, turn, evicted, told };
            cluster.promised.insert(place.pod, promise);
        }
    }
    let news = cluster.promised.iter_mut().filter(|(pod, promise)| {
        !promise.told && state[**pod] == PodState::Nominated(promise.node)
    });
    let mut news: Vec<(u32, Bind)> = news
        .map(|(&pod, promise)| {
            promise.told = true;
            (promise.turn, Bind { pod, node: promise.node })
        })
        .collect();
    news.sort_by(|(a, left), (b, right)| {
        a.cmp(b).then_with(|| cluster.pods.name(left.pod).cmp(cluster.pods.name(right.pod)))
    });
    plan.nominations = news.into_iter().map(|(_, place)| place).collect();
}

/// Whether a gang that is promised places could run with them.
pub fn suffice(txn: &mut Txn, gang: GangId, whole: bool) -> bool {
    if txn.gangs[gang].choosy.is_none() {
        return not_promised(&txn.gangs[gang], whole).total == 0;
    }
    let mark = txn.mark();
    let promised = places(txn, gang);
    promised.iter().for_each(|&(pod, node)| txn.allocate(pod, node));
    let ready = txn.gangs[gang].ready(whole) && has_whole_subgroups(txn, gang, &promised);
    txn.rewind(mark);
    ready
}

/// Whether a pod of the gang can have this place: its queue may take it and the node does.
pub fn fits(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    (gang, shape, node): (GangId, ShapeId, NodeId),
    room: Room,
) -> bool {
    policy.may_take(cluster, gang, shape, room).is_ok()
        && rankings.of(cluster, policy, shape, room).admits(cluster, policy, shape, node)
}

/// Why the gang is not tried, if that is because a bind of it was refused.
fn backs_off(session: &Session, gang: GangId) -> Option<Reason> {
    let reason = gate(session.cluster, session.policy, gang, session.now).err()?;
    matches!(reason, Reason::Backoff { .. }).then_some(reason)
}

/// The gangs that hold promises, in order.
fn promised(session: &Session) -> Vec<GangId> {
    if session.cluster.nominations == 0 {
        return Vec::new();
    }
    let promised = |gang: &GangId| session.cluster.gangs[*gang].counts.nominated > 0;
    let mut gangs: Vec<GangId> =
        session.cluster.gangs.waiting().iter().copied().filter(promised).collect();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    gangs
}

/// Binds gangs to the places that they were promised, where the room has become free: the whole
/// missing minimum or nothing. After a refused bind, not before the gang's backoff is over.
pub fn fulfil(session: &mut Session) {
    for gang in promised(session) {
        if let Some(reason) = backs_off(session, gang) {
            session.cluster.gangs.explain(gang, vec![reason]);
            continue;
        }
        let mut txn = Txn::begin(session.cluster);
        let promised = places(&txn, gang);
        for &(pod, node) in &promised {
            let mark = txn.mark();
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            if fits(&txn, session.policy, session.rankings, (gang, shape, node), Room::Now) {
                txn.allocate(pod, node);
            } else {
                txn.rewind(mark);
            }
        }
        let ready = txn.gangs[gang].ready(session.policy.gangs_are_whole());
        if ready && has_whole_subgroups(&txn, gang, &promised) {
            let moves = txn.commit();
            session.plan.record(&moves);
            session.plan.fast_path.hits += moves.len() as u32;
            session.plan.fast_path.misses += (promised.len() - moves.len()) as u32;
        } else {
            session.plan.fast_path.misses += promised.len() as u32;
        }
    }
}
