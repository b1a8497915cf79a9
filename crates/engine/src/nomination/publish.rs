//! What the plan says of nominations at the end of a cycle.

use crate::base::ids::PodId;
use crate::decision::plan::Bind;
use crate::model::nominations::Promise;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::held::{places, promised};
use crate::nomination::release::{give_up, suffice};
use crate::order::session::Session;

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
