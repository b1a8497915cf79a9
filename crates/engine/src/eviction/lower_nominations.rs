//! Nominations of gangs with lower priority: released for the preemptor, and given again if there
//! is room left.

use crate::base::ids::{GangId, NodeId, PodId, ShapeId};
use crate::base::room::Room;
use crate::eviction::candidates::{wants_more, was_nominated_this_cycle};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::placement::fit::has_room;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;

/// Gangs whose nominations on these nodes the preemptor may have: of its queue, with lower
/// priority. Not if pods are evicted for them in this cycle, since these evictions would become
/// useless; and none if the preemptor has its minimum already.
pub fn lower_nominations(
    cluster: &Cluster,
    preemptor: &Preemptor,
    nodes: &[NodeId],
) -> Vec<GangId> {
    let own = &cluster.gangs[preemptor.gang];
    if cluster.nominated_count == 0 || wants_more(cluster, preemptor) {
        return Vec::new();
    }
    let nominated = |pod: &&PodId| matches!(cluster.pods.state[**pod], PodState::Nominated(_));
    let pods = nodes.iter().flat_map(|&node| &cluster.nodes.pods_on[node]).filter(nominated);
    let mut gangs: Vec<GangId> = pods.filter_map(|&pod| cluster.pods.gang[pod]).collect();
    gangs.sort_unstable();
    gangs.dedup();
    gangs.retain(|&gang| {
        let other = &cluster.gangs[gang];
        gang != preemptor.gang
            && other.queue == own.queue
            && other.priority < own.priority
            && !was_nominated_this_cycle(cluster, gang)
    });
    gangs
}

/// Releases all nominations of each lower gang with one on these nodes. Returns them by gang.
pub fn release_lower(
    txn: &mut Txn,
    preemptor: &Preemptor,
    nodes: &[NodeId],
) -> Vec<Vec<(PodId, NodeId)>> {
    let mut released = Vec::new();
    for gang in lower_nominations(txn, preemptor, nodes) {
        let nominated = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        let nominations: Vec<(PodId, NodeId)> =
            txn.gangs[gang].pods.iter().filter_map(nominated).collect();
        nominations.iter().for_each(|&(pod, _)| txn.release(pod));
        released.push(nominations);
    }
    released
}

/// Nominates pods again to the nodes that they had, where the preemptor left room: all of a gang or
/// none, gangs in order.
pub fn nominate_again(txn: &mut Txn, policy: &Policy, nominations: &[Vec<(PodId, NodeId)>]) {
    let gang = |places: &[(PodId, NodeId)]| places.first().and_then(|&(pod, _)| txn.pods.gang[pod]);
    let mut of_gangs: Vec<(GangId, &Vec<(PodId, NodeId)>)> =
        nominations.iter().filter_map(|places| Some((gang(places)?, places))).collect();
    of_gangs.sort_by(|(a, _), (b, _)| policy.gang_order(txn, *a, *b));
    for (_, places) in of_gangs {
        let mark = txn.mark();
        for &(pod, node) in places {
            if !has_room(txn, policy, txn.pods.shape[pod], node, Room::FutureIdle) {
                txn.rewind(mark);
                break;
            }
            txn.nominate(pod, node);
        }
    }
}

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

/// Whether the preemptor also fits if pods of other gangs that are nominated to the node never
/// start.
pub fn fits_without_nominated(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    shape: ShapeId,
    node: NodeId,
) -> bool {
    if !txn.depends_on_other_nodes(shape) {
        return true;
    }
    let nominated = |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Nominated(_));
    let is_other = |pod: &PodId| txn.pods.gang[*pod] != Some(preemptor.gang);
    let pods: Vec<PodId> = txn.nodes.pods_on[node]
        .iter()
        .copied()
        .filter(|pod| nominated(pod) && is_other(pod))
        .collect();
    let mark = txn.mark();
    pods.into_iter().for_each(|pod| txn.release(pod));
    let fits = has_room(txn, policy, shape, node, Room::FutureIdle);
    txn.rewind(mark);
    fits
}
