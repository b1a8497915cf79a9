//! Takes up the nominations that an earlier process wrote on the pods.

use crate::decision::reason::Reason;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::order::session::Session;

/// Takes up promises that an earlier run wrote on the pods. [`withdraw`] follows and sees which of
/// them stand. Once we decide ourselves, what objects say is an echo, or was written too late by
/// one who is gone: that is taken back.
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    let began = std::mem::replace(&mut cluster.began, true);
    for (pod, sequence) in std::mem::take(&mut cluster.unread_nominations).into_iter().zip(0..) {
        let (PodState::Pending, Some(recorded), Some(gang)) = (
            cluster.pods.state[pod],
            cluster.pods.fact[pod].recorded_nomination(),
            cluster.pods.gang[pod],
        ) else {
            continue;
        };
        let node = cluster.nodes.find(&recorded.node).filter(|_| !began);
        let Some(node) = node else {
            let void = recorded.annotated || !began;
            session.plan.withdrawn.extend(void.then_some(pod));
            continue;
        };
        let needs_evictions = recorded.needs_evictions;
        cluster.nomination_ledger.insert(
            pod,
            Nomination { node, since: session.now, sequence, needs_evictions, published: true },
        );
        let mut txn = Txn::begin(cluster);
        txn.nominate(pod, node);
        let _ = txn.commit();
        let places = cluster.gangs[gang].counts.nominated;
        cluster.gangs.explain(gang, vec![Reason::Nominated { places }]);
    }
}
