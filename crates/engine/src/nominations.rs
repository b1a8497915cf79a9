//! Promised places. A nomination takes room like a bound pod does, counts for its queue, and becomes a bind when
//! what was in its way has left.

use crate::actions::Session;
use crate::ids::{GangId, PodId};
use crate::line::named;
use crate::model::gangs::{Gang, Missing};
use crate::model::pods::PodState;
use crate::policy::Room;
use crate::reason::Reason;
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

/// Takes up promises that an earlier run wrote on the pods, in order of priority, as far as room covers them.
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    if cluster.promises.is_empty() {
        return;
    }
    let mut pods = std::mem::take(&mut cluster.promises);
    pods.sort_unstable();
    pods.dedup();
    pods.retain(|&pod| {
        cluster.pods.state[pod] == PodState::Pending && cluster.pods.fact[pod].promised.is_some()
    });
    let priority = |pod: PodId| cluster.pods.gang[pod].map_or(i32::MIN, |gang| cluster.gangs[gang].priority);
    pods.sort_by(|&a, &b| {
        priority(b).cmp(&priority(a)).then_with(|| cluster.pods.name(a).cmp(cluster.pods.name(b)))
    });
    for pod in pods {
        let promised = cluster.pods.fact[pod].promised.clone().expect("filtered");
        let (Some(node), Some(gang)) = (cluster.nodes.find(&promised), cluster.pods.gang[pod]) else {
            continue;
        };
        let shape = cluster.pods.shape[pod];
        let ranking = session.rankings.of(cluster, session.policy, shape, Room::Later);
        if ranking.admits(cluster, session.policy, shape, node) {
            let mut txn = Txn::begin(cluster);
            txn.nominate(pod, node);
            let _ = txn.commit();
            let places = cluster.gangs[gang].counts.nominated;
            cluster.gangs.explain(gang, vec![Reason::Promised { places }]);
        }
    }
}

/// Ends promises that can't be kept: the gang may not run any more, its queue may not take it, or the node is unfit
/// or was filled by others.
pub fn withdraw(session: &mut Session) {
    for gang in promised(session) {
        let may_run = named(session.cluster, session.policy, gang).is_ok()
            && session.policy.valid(session.cluster, gang).is_ok();
        let queue = session.cluster.gangs[gang].queue;
        let mut txn = Txn::begin(session.cluster);
        for pod in txn.gangs[gang].pods.clone() {
            let PodState::Nominated(node) = txn.pods.state[pod] else { continue };
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            let stands = may_run
                && session.policy.may_take(&txn, queue, shape, Room::Later).is_ok()
                && session.rankings.of(&txn, session.policy, shape, Room::Later).admits(
                    &txn,
                    session.policy,
                    shape,
                    node,
                );
            if stands {
                txn.nominate(pod, node);
            }
        }
        if !txn.commit().is_empty() {
            session.cluster.freed += 1;
            session.cluster.gangs[gang].hopeless = None;
        }
    }
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
/// nothing.
pub fn fulfil(session: &mut Session) {
    for gang in promised(session) {
        let queue = session.cluster.gangs[gang].queue;
        let mut txn = Txn::begin(session.cluster);
        for pod in txn.gangs[gang].pods.clone() {
            let PodState::Nominated(node) = txn.pods.state[pod] else { continue };
            let mark = txn.mark();
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            let fits = session.policy.may_take(&txn, queue, shape, Room::Now).is_ok()
                && session.rankings.of(&txn, session.policy, shape, Room::Now).admits(
                    &txn,
                    session.policy,
                    shape,
                    node,
                );
            if fits {
                txn.allocate(pod, node);
            } else {
                txn.rewind(mark);
            }
        }
        if txn.gangs[gang].ready(session.policy.gangs_are_whole()) {
            let moves = txn.commit();
            session.plan.record(&moves);
        }
    }
}
