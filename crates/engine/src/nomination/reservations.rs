//! Reservations: room for pods that will be created again (`model/reservations.rs`). A pod that
//! returns is nominated to its reserved room, and a reservation that no pod will use ends.
//! Reservations are written on the PodGroup, so they outlive the process.

use std::collections::BTreeMap;

use muster_api::{Reserved, Time};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::{Gang, Origin};
use crate::model::reservations::Reservation;
use crate::model::topology::places::is_near_enough;
use crate::model::txn::Txn;
use crate::order::gates::named;
use crate::order::pods::{Serving, in_order};
use crate::order::session::Session;
use crate::placement::fit::fits;
use crate::policy::answers::Policy;

/// Ends reservations that cannot be kept or are of no use: their time is over, the node is gone,
/// not ready or full, or the pod that was to move stays. If a node has too little for all of them,
/// those of lower gangs end first. Nominations do not count: a pod that moves had room before the
/// pods that wait for some.
pub fn review(session: &mut Session) {
    let (cluster, now) = (&mut *session.cluster, session.now);
    let mut kept: BTreeMap<(NodeId, ResourceId), i64> = BTreeMap::new();
    for gang in in_gang_order(cluster, session.policy) {
        let over = is_over(&cluster.gangs[gang]);
        let mut place = 0;
        while let Some(reservation) = cluster.gangs[gang].reserved().get(place) {
            let (node, request) = (reservation.node, reservation.request.clone());
            let used = |resource| kept.get(&(node, resource)).copied().unwrap_or(0);
            let room = |resource| {
                cluster.nodes.future_idle(resource, node) + cluster.nodes.nominated[resource][node]
            };
            if over
                || reservation.until <= now
                || !cluster.nodes.fact[node].lets_go()
                || request.iter().any(|(resource, amount)| used(resource) + amount > room(resource))
                || cluster.victim_stays(gang, reservation)
            {
                end(cluster, gang, place);
                continue;
            }
            place += 1;
            for (resource, amount) in request.iter() {
                *kept.entry((node, resource)).or_default() += amount;
            }
        }
    }
}

/// Whether all work of the gang is done, so that its pods will not be created again.
fn is_over(gang: &Gang) -> bool {
    let counts = &gang.counts;
    gang.origin == Origin::Group
        && counts.succeeded > 0
        && counts.all() == counts.succeeded + counts.failed
}

fn end(cluster: &mut Cluster, gang: GangId, place: usize) {
    cluster.drop_reservation(gang, place);
    cluster.freed += 1;
}

/// In the first cycle: restores what an earlier process wrote on PodGroups, in the order of the
/// gangs, if there is room or future room for it; before nominations, as in every other cycle. If
/// the pod that was to move still runs, its eviction was never sent.
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    if cluster.began {
        return;
    }
    let mut gangs: Vec<(GangId, Vec<Reserved>)> = Vec::new();
    for (id, gang) in cluster.gangs.iter() {
        let written =
            gang.notes.as_ref().and_then(|notes| Reserved::read(notes.reservations()?).ok());
        gangs.extend(written.map(|written| (id, written)));
    }
    gangs.sort_by(|(a, _), (b, _)| session.policy.gang_order(cluster, *a, *b));
    // Another writer may have set the time: it is limited to the lifetime of a nomination.
    let limit = Some(session.settings.nomination_limit_ms).filter(|&limit| limit > 0);
    let latest = limit.map_or(Time(i64::MAX), |limit| session.now.plus_ms(limit));
    for (gang, written) in gangs {
        let mut read =
            written.iter().flat_map(|place| cluster.read_reservation(place)).collect::<Vec<_>>();
        let size = written.iter().filter_map(|place| place.gang_size).max();
        let size = size.unwrap_or_else(|| cluster.size_with(gang, &read));
        // Pods that returned and have a node are not awaited any more.
        let counts = &cluster.gangs[gang].counts;
        let mut awaited = size.saturating_sub(counts.allocated + counts.running);
        read.sort_by_key(|place| !cluster.is_there(gang, &place.instead_of));
        for reservation in read {
            let in_time = reservation.until > session.now;
            if in_time && awaited > 0 && has_room_for(cluster, gang, &reservation) {
                let until = reservation.until.min(latest);
                cluster.add_reservation(gang, Reservation { until, ..reservation }, size);
                awaited -= 1;
            }
        }
        // What was not restored is removed from the PodGroup.
        cluster.gangs.review(gang);
    }
}

/// Whether there is room on the node for a reservation that was read. It is kept even if the gang's
/// queue is closed, gone or full by now, as the process that wrote it would have done; the queue is
/// checked when the pod returns.
fn has_room_for(cluster: &Cluster, gang: GangId, reservation: &Reservation) -> bool {
    let node = reservation.node;
    let room = |(resource, amount)| cluster.nodes.future_idle(resource, node) >= amount;
    cluster.nodes.fact[node].lets_go()
        && reservation.request.iter().all(room)
        && !cluster.victim_stays(gang, reservation)
}

/// Nominates pods that returned to the room that was reserved for them, in the order of the pods
/// and of the nodes' names. If other pods came instead, reservations that no pod is left to use
/// end.
pub fn nominate_returned_pods(session: &mut Session) {
    for gang in in_gang_order(session.cluster, session.policy) {
        let may_run = named(session.cluster, session.policy, gang).is_ok()
            && session.policy.gang_can_start(session.cluster, gang).is_ok();
        if !may_run {
            continue;
        }
        let mut pods = in_order(session, gang, Serving::All);
        let mut place = 0;
        let mut moves = Vec::new();
        while let Some(reservation) = session.cluster.gangs[gang].reserved().get(place) {
            let comes = |&pod: &PodId| session.cluster.comes_for(pod, reservation);
            let Some(at) = pods.iter().position(comes) else {
                place += 1;
                continue;
            };
            let pod = pods.remove(at);
            let node = session.cluster.drop_reservation(gang, place).node;
            let shape = session.cluster.pods.shape[pod];
            if fits(
                session.cluster,
                session.policy,
                session.rankings,
                (gang, shape, node),
                Room::FutureIdle,
            ) {
                let mut txn = Txn::begin(session.cluster);
                txn.nominate(pod, node);
                // Other pods of its gang may have stayed where they were.
                if txn.gangs[gang].topology_rules.is_none() || is_near_enough(&txn, gang) {
                    moves.extend(txn.commit());
                    continue;
                }
            }
            session.cluster.freed += 1;
        }
        session.record(&moves);
        if !moves.is_empty() {
            let places = session.cluster.gangs[gang].counts.nominated;
            session.cluster.gangs.explain(gang, vec![Reason::Nominated { places }]);
        }
        give_up_for_others(session.cluster, gang, pods.len());
    }
}

/// Ends reservations for which other pods came: pods that wait and got none may have replaced the
/// awaited ones.
fn give_up_for_others(cluster: &mut Cluster, gang: GangId, others: usize) {
    let row = &cluster.gangs[gang];
    let size = row.notes.as_ref().map_or(0, |notes| notes.size) as usize;
    let counts = &row.counts;
    let there = (counts.valid() - counts.succeeded + counts.gated) as usize;
    let too_many = (there + row.reserved().len()).saturating_sub(size).min(others);
    for _ in 0..too_many.min(row.reserved().len()) {
        let last = cluster.gangs[gang].reserved().len() - 1;
        end(cluster, gang, last);
    }
}

fn in_gang_order(cluster: &Cluster, policy: &Policy) -> Vec<GangId> {
    let mut gangs: Vec<GangId> = cluster.reserving.iter().copied().collect();
    gangs.sort_by(|&a, &b| policy.gang_order(cluster, a, b));
    gangs
}

/// When the next reservation expires.
pub fn expiry(cluster: &Cluster) -> Option<Time> {
    let reserved = cluster.reserving.iter().flat_map(|&gang| cluster.gangs[gang].reserved());
    reserved.map(|reservation| reservation.until).min()
}

#[cfg(test)]
mod tests;
