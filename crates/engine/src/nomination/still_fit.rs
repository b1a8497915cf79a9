//! Whether nominations still fit when evictions are undone.

use std::collections::BTreeSet;

use crate::base::ids::{GangId, NodeId, PodId, QueueId};
use crate::base::room::Room;
use crate::decision::decisions::Bind;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::held::nominations_of;
use crate::placement::fit::has_room;
use crate::policy::answers::Policy;

/// Whether all pods that are nominated to the node still fit there. If rules of the gang look at
/// other nodes, its pods elsewhere must fit too. Otherwise one pod elsewhere of each shape is
/// enough, since only the limits of the queue can have changed for it.
pub fn nominations_still_fit(txn: &mut Txn, policy: &Policy, gang: GangId, node: NodeId) -> bool {
    let nominated = |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Nominated(_));
    let own = &txn.gangs[gang].pods;
    let depends = own.iter().any(|&pod| txn.depends_on_other_nodes(txn.pods.shape[pod]));
    let is_elsewhere = |pod: &&PodId| nominated(pod) && txn.pods.state[**pod].node() != Some(node);
    let mut elsewhere: Vec<PodId> = own.iter().filter(is_elsewhere).copied().collect();
    if !depends {
        elsewhere.sort_by_key(|&pod| txn.pods.shape[pod]);
        elsewhere.dedup_by_key(|pod| txn.pods.shape[*pod]);
    }
    let here = txn.nodes.pods_on[node].iter().copied().filter(|pod| nominated(pod));
    let pods: Vec<PodId> = here.chain(elsewhere).collect();
    pods.into_iter().all(|pod| {
        let (Some(at), Some(of)) = (txn.pods.state[pod].node(), txn.pods.gang[pod]) else {
            return false;
        };
        let (shape, mark) = (txn.pods.shape[pod], txn.mark());
        txn.release(pod);
        let fits = policy.may_allocate(txn, of, shape, Room::FutureIdle).is_ok()
            && has_room(txn, policy, shape, at, Room::FutureIdle);
        txn.rewind(mark);
        fits
    })
}

/// Whether the limits of queues still allow what is nominated and what was bound, now that these
/// pods run again: one pod of each shape of each gang that shares a queue with them, or one above.
pub fn limits_still_hold(
    txn: &mut Txn,
    policy: &Policy,
    binds: &[Bind],
    running_again: &[PodId],
) -> bool {
    let queue_of = |txn: &Txn, gang: GangId| txn.gangs[gang].queue;
    let queues: BTreeSet<QueueId> = running_again
        .iter()
        .filter_map(|&pod| txn.pods.gang[pod])
        .flat_map(|gang| txn.queues[queue_of(txn, gang)].lineage.clone())
        .collect();
    let shares = |gang: &GangId| {
        txn.queues[queue_of(txn, *gang)].lineage.iter().any(|queue| queues.contains(queue))
    };
    let nominated = |gang: &GangId| txn.gangs[*gang].counts.nominated > 0 && shares(gang);
    let gangs = txn.gangs.waiting().iter().copied().filter(nominated);
    let mut pods: Vec<(GangId, PodId)> = Vec::new();
    for gang in gangs {
        pods.extend(nominations_of(txn, gang).into_iter().map(|(pod, _)| (gang, pod)));
    }
    let bound = binds.iter().filter_map(|bind| Some((txn.pods.gang[bind.pod]?, bind.pod)));
    pods.extend(bound.filter(|(gang, _)| shares(gang)));
    pods.sort_by_key(|&(gang, pod)| (gang, txn.pods.shape[pod]));
    pods.dedup_by_key(|&mut (gang, pod)| (gang, txn.pods.shape[pod]));
    pods.into_iter().all(|(gang, pod)| {
        let mark = txn.mark();
        txn.release(pod);
        let shape = txn.pods.shape[pod];
        let allowed = policy.may_allocate(txn, gang, shape, Room::FutureIdle).is_ok();
        txn.rewind(mark);
        allowed
    })
}
