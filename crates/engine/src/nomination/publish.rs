//! What the plan says of nominations at the end of a cycle.

use crate::base::ids::PodId;
use crate::decision::plan::Bind;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::held::{nominated_gangs, nominations_of};
use crate::nomination::release::{note_released, would_complete_gang};
use crate::order::session::Session;

/// Ends a cycle: promises that don't make their gangs whole are given up, for they only keep others
/// waiting; and the plan says what the cluster doesn't know yet.
pub fn publish(session: &mut Session) {
    let whole = session.policy.enforces_minimum();
    let gangs = nominated_gangs(session);
    let mut txn = Txn::begin(session.cluster);
    for gang in gangs {
        if !would_complete_gang(&mut txn, gang, whole) {
            nominations_of(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let lost = txn.commit();
    note_released(session.cluster, &lost);

    let (cluster, plan) = (&mut *session.cluster, &mut *session.plan);
    let state = &cluster.pods.state;
    let waits = |pod: &PodId| matches!(state[*pod], PodState::Pending | PodState::Gated);
    plan.withdrawn.retain(waits);
    plan.withdrawn.extend(cluster.nomination_ledger.keys().filter(|pod| waits(pod)));
    plan.withdrawn.sort_by(|&a, &b| cluster.pods.name(a).cmp(cluster.pods.name(b)));
    plan.withdrawn.dedup();
    plan.nomination_counters.voided =
        (plan.withdrawn.len() as u32).saturating_sub(plan.nomination_counters.expired);
    cluster.nomination_ledger.retain(|pod, nomination| match state[*pod] {
        PodState::Nominated(node) => node == nomination.node,
        // Until that is confirmed, the pod says what it was promised.
        PodState::Allocated(_) => true,
        _ => false,
    });
    for (place, sequence) in plan.nominations.iter().zip(0..) {
        if state[place.pod] == PodState::Nominated(place.node) {
            let known = cluster.nomination_ledger.get(&place.pod);
            let needs_evictions = known.is_some_and(|nomination| nomination.needs_evictions);
            let published = known.is_some_and(|nomination| nomination.published);
            let nomination = Nomination {
                node: place.node,
                since: session.now,
                sequence,
                needs_evictions,
                published,
            };
            cluster.nomination_ledger.insert(place.pod, nomination);
        }
    }
    let news = cluster.nomination_ledger.iter_mut().filter(|(pod, nomination)| {
        !nomination.published && state[**pod] == PodState::Nominated(nomination.node)
    });
    let mut news: Vec<(u32, Bind)> = news
        .map(|(&pod, nomination)| {
            nomination.published = true;
            (nomination.sequence, Bind { pod, node: nomination.node })
        })
        .collect();
    news.sort_by(|(a, left), (b, right)| {
        a.cmp(b).then_with(|| cluster.pods.name(left.pod).cmp(cluster.pods.name(right.pod)))
    });
    plan.nominations = news.into_iter().map(|(_, place)| place).collect();
}
