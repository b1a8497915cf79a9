//! Promised places. A nomination takes room like a bound pod does, counts for its queue, and becomes a bind when
//! what was in its way has left.

use crate::actions::Session;
use crate::actions::allocate::{Serving, in_order};
use crate::ids::{GangId, NodeId, PodId, ShapeId};
use crate::line::{gate, named};
use crate::model::Cluster;
use crate::model::gangs::{Gang, Missing};
use crate::model::pods::PodState;
use crate::placement::{Rankings, Wish};
use crate::policy::{Policy, Room};
use crate::reason::Reason;
use crate::search::{has_whole_subgroups, is_near_enough, seat};
use crate::txn::Txn;

/// What is missing to the gang's minimum beyond the places that it was promised.
pub fn not_promised(gang: &Gang, whole: bool) -> Missing {
    let missing = gang.missing(whole);
    let roles: Vec<u32> = missing
        .roles
        .iter()
        .zip(&gang.roles)
        .map(|(&missing, role)| missing.saturating_sub(role.counts.nominated))
        .collect();
    let total = missing.total.saturating_sub(gang.counts.nominated).max(roles.iter().sum());
    Missing { total, roles }
}

/// Takes up promises that an earlier run wrote on the pods. [`withdraw`] follows and sees which of them stand.
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    for pod in std::mem::take(&mut cluster.promises) {
        let (PodState::Pending, Some(promised)) = (cluster.pods.state[pod], &cluster.pods.fact[pod].promised)
        else {
            continue;
        };
        let (Some(node), Some(gang)) = (cluster.nodes.find(promised), cluster.pods.gang[pod]) else {
            continue;
        };
        let mut txn = Txn::begin(cluster);
        txn.nominate(pod, node);
        let _ = txn.commit();
        let places = cluster.gangs[gang].counts.nominated;
        cluster.gangs.explain(gang, vec![Reason::Promised { places }]);
    }
}

/// Ends promises that can't be kept: the gang may not run any more, its queue may not take it, or the node is unfit
/// or was filled by others. All are taken back and given again one by one in order, so that it doesn't matter when
/// they were made.
pub fn withdraw(session: &mut Session) {
    let gangs = promised(session);
    let mut txn = Txn::begin(session.cluster);
    let mut held: Vec<(GangId, PodId, NodeId)> = Vec::new();
    for &gang in &gangs {
        for pod in txn.gangs[gang].pods.clone() {
            if let PodState::Nominated(node) = txn.pods.state[pod] {
                txn.release(pod);
                held.push((gang, pod, node));
            }
        }
    }
    // A pod that wants company stands once its company does, so those that fail get another round.
    loop {
        let before = held.len();
        held.retain(|&(gang, pod, node)| {
            let shape = txn.pods.shape[pod];
            let stands = named(&txn, session.policy, gang).is_ok()
                && session.policy.valid(&txn, gang).is_ok()
                && fits(&txn, session.policy, session.rankings, (gang, shape, node), Room::Later);
            if stands {
                txn.nominate(pod, node);
            }
            !stands
        });
        if held.is_empty() || held.len() == before {
            break;
        }
    }
    // Places that are too far apart, because the network has changed, or of which some are lost, are of no use to a gang
    // whose pods belong together.
    for &gang in &gangs {
        let lost = held.iter().any(|(of, ..)| *of == gang);
        if txn.gangs[gang].choosy.is_some() && (lost || !is_near_enough(&txn, gang)) {
            for pod in txn.gangs[gang].pods.clone() {
                if matches!(txn.pods.state[pod], PodState::Nominated(_)) {
                    txn.release(pod);
                }
            }
        }
    }
    for lost in txn.commit() {
        session.cluster.freed += 1;
        if let Some(gang) = session.cluster.pods.gang[lost.pod] {
            session.cluster.gangs[gang].hopeless = None;
        }
    }
}

/// Keeps room for gangs of which some binds succeeded and some were refused, while they back off. If others took it, what
/// is bound of them would hold its places in vain. The places last for this cycle; [`let_go`] gives them back.
pub fn hold(session: &mut Session) -> Vec<PodId> {
    let (cluster, whole) = (&*session.cluster, session.policy.gangs_are_whole());
    let broken = |gang: &GangId| cluster.gangs[*gang].is_broken(whole) && backs_off(session, *gang).is_some();
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
pub fn let_go(cluster: &mut Cluster, held: &[PodId]) {
    if held.is_empty() {
        return;
    }
    let mut txn = Txn::begin(cluster);
    held.iter().for_each(|&pod| txn.release(pod));
    let _ = txn.commit();
    cluster.freed += 1;
}

/// Whether a pod of the gang can have this place: its queue may take it and the node does.
fn fits(
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
    let mut gangs: Vec<GangId> = session.cluster.gangs.waiting().iter().copied().filter(promised).collect();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    gangs
}

/// Binds gangs to the places that they were promised, where the room has become free: the whole missing minimum or
/// nothing. After a refused bind, not before the gang's backoff is over.
pub fn fulfil(session: &mut Session) {
    for gang in promised(session) {
        if let Some(reason) = backs_off(session, gang) {
            session.cluster.gangs.explain(gang, vec![reason]);
            continue;
        }
        let mut txn = Txn::begin(session.cluster);
        for pod in txn.gangs[gang].pods.clone() {
            let PodState::Nominated(node) = txn.pods.state[pod] else { continue };
            let mark = txn.mark();
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            if fits(&txn, session.policy, session.rankings, (gang, shape, node), Room::Now) {
                txn.allocate(pod, node);
            } else {
                txn.rewind(mark);
            }
        }
        let row = &txn.gangs[gang];
        if row.ready(session.policy.gangs_are_whole()) && has_whole_subgroups(row) {
            let moves = txn.commit();
            session.plan.record(&moves);
        }
    }
}
