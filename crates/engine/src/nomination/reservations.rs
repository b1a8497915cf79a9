//! What becomes of room that is kept for pods which will be made again (`model/reservations.rs`): a
//! pod that comes for it is nominated to it, and a reservation for which no pod will come ends.
//! Written on the PodGroup, it outlives the process.

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

/// Ends reservations that can't be kept or are of no use: their time is over, the node is gone, not
/// ready or was filled by others, or the pod stays that was to leave for it. Where a node has too
/// little for all, those of weaker gangs end first. Nominations don't count: a pod that was moved
/// had room before the pods that wait for some.
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

/// All of its work is done: its pods will not be created again.
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
/// gangs, as far as there is room or future room for it; before nominations, as in every other
/// cycle. Where the pod that was to leave stays, the eviction was never sent.
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
    // Another writer may have made it up: it can't last longer than a nomination.
    let limit = Some(session.settings.nomination_limit_ms).filter(|&limit| limit > 0);
    let latest = limit.map_or(Time(i64::MAX), |limit| session.now.plus_ms(limit));
    for (gang, written) in gangs {
        let mut read =
            written.iter().flat_map(|place| cluster.read_reservation(place)).collect::<Vec<_>>();
        let size = written.iter().filter_map(|place| place.gang_size).max();
        let size = size.unwrap_or_else(|| cluster.size_with(gang, &read));
        // Pods that have come back and have a node are not awaited any more.
        let counts = &cluster.gangs[gang].counts;
        let mut awaited = size.saturating_sub(counts.allocated + counts.running);
        read.sort_by_key(|place| !cluster.is_there(gang, &place.instead_of));
        for reservation in read {
            let in_time = reservation.until > session.now;
            if in_time && awaited > 0 && stands(cluster, gang, &reservation) {
                let until = reservation.until.min(latest);
                cluster.add_reservation(gang, Reservation { until, ..reservation }, size);
                awaited -= 1;
            }
        }
        // Whatever didn't stand is taken off.
        cluster.gangs.review(gang);
    }
}

/// Whether there is room on the node for a reservation that was read. It is kept for its time even
/// if its gang's queue is closed, gone or full by now, as it would have been by the process that
/// wrote it; the pod that comes for it is asked then.
fn stands(cluster: &Cluster, gang: GangId, reservation: &Reservation) -> bool {
    let node = reservation.node;
    let room = |(resource, amount)| cluster.nodes.future_idle(resource, node) >= amount;
    cluster.nodes.fact[node].lets_go()
        && reservation.request.iter().all(room)
        && !cluster.victim_stays(gang, reservation)
}

/// Nominates pods that came back to the room that was reserved for them, in the order of the pods
/// and of the nodes' names. If others came instead, as many reservations end as have no pod to wait
/// for.
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
                // Others of its gang may have stayed where they were.
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

/// Pods that wait and came for none of the reservations may have come instead of those that were
/// awaited.
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

/// When the time of the next one is over.
pub fn expiry(cluster: &Cluster) -> Option<Time> {
    let reserved = cluster.reserving.iter().flat_map(|&gang| cluster.gangs[gang].reserved());
    reserved.map(|reservation| reservation.until).min()
}

#[cfg(test)]
mod tests;
