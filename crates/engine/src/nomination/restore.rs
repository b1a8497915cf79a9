//! Restores the nominations that an earlier process wrote on the pods.

use crate::decision::reason::Reason;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::held::Held;
use crate::nomination::reaffirm::order_that_stands;
use crate::order::session::Session;

/// Restores nominations that an earlier process wrote on the pods. [`reaffirm`] follows and keeps
/// those that still fit. Once this process decides, what objects say is its own, or was written too
/// late by the earlier one and is withdrawn.
///
/// [`reaffirm`]: crate::nomination::reaffirm::reaffirm
pub fn restore(session: &mut Session) {
    let cluster = &mut *session.cluster;
    let began = std::mem::replace(&mut cluster.began, true);
    let mut held: Vec<Held> = Vec::new();
    for pod in std::mem::take(&mut cluster.unread_nominations) {
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
        let (since, sequence, published) = (session.now, held.len() as u32, true);
        let nomination = Nomination { node, since, sequence, needs_evictions, published };
        cluster.nomination_ledger.insert(pod, nomination);
        held.push((gang, pod, node));
        let mut txn = Txn::begin(cluster);
        txn.nominate(pod, node);
        let _ = txn.commit();
        let places = cluster.gangs[gang].counts.nominated;
        cluster.gangs.explain(gang, vec![Reason::Nominated { places }]);
    }
    put_in_order(session, &held);
}

/// Finds the order in which the restored nominations are reaffirmed.
fn put_in_order(session: &mut Session, held: &[Held]) {
    let mut txn = Txn::begin(session.cluster);
    held.iter().for_each(|&(_, pod, _)| txn.release(pod));
    let order = order_that_stands(&mut txn, session.policy, session.rankings, held);
    drop(txn);
    for ((_, pod, _), place) in order.into_iter().zip(0..) {
        let nomination = session.cluster.nomination_ledger.entry(pod);
        nomination.and_modify(|nomination| nomination.sequence = place);
    }
}
