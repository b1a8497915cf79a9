//! Takes up the nominations that an earlier process wrote on the pods.

use crate::decision::reason::Reason;
use crate::model::nominations::Promise;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::order::session::Session;

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
