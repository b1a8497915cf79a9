//! What the plan says of nominations at the end of a cycle.

use crate::base::ids::PodId;
use crate::decision::decisions::Bind;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::order::session::Session;

/// Brings the ledger up to date and writes into the plan what has not been published yet.
pub fn publish(session: &mut Session) {
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
        // Until the bind is confirmed, the pod keeps its nomination.
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
    cluster.served_now.clear();
}
