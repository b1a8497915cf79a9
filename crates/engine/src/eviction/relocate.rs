//! Finds other nodes for evicted pods, so that no pod is lost that fits elsewhere. In the
//! transaction a pod that moves is nominated to its new node; `commit.rs` turns the move into an
//! eviction and a reservation.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::room::Room;
use crate::eviction::search::Search;
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::release::would_complete_gang;
use crate::order::line::Line;
use crate::placement::domains::allowed_domains;
use crate::placement::fit::has_room;
use crate::placement::place_one::free_place;
use crate::placement::rankings::Rankings;
use crate::placement::request::PlacementRequest;
use crate::placement::search::place_gang;
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, BundleKind};

/// Places evicted pods again, in the order in which their gangs would be served: on their own node
/// if there is room again, otherwise elsewhere. A gang that breaks gets its minimum back or
/// nothing; surplus is placed pod by pod. Returns the pods that move, and where to.
fn relocate_all(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    leaving: &[PodId],
) -> Vec<(PodId, NodeId)> {
    let mut by_gang: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for &pod in leaving.iter().filter(|&&pod| may_move(txn, pod)) {
        if let Some(gang) = txn.pods.gang[pod] {
            by_gang.entry(gang).or_default().push(pod);
        }
    }
    let mut line = Line::new(txn, policy, by_gang.keys().copied());
    while let Some((_, gang)) = line.next_of_all(txn, policy) {
        let mut pods = by_gang.remove(&gang).unwrap_or_default();
        let place = |pod: &PodId| txn.gangs[gang].pods.iter().position(|other| other == pod);
        pods.sort_by_key(place);
        policy.order_pods(txn, &mut pods);
        relocate_gang(txn, policy, rankings, gang, &pods);
    }
    let moved = |&pod: &PodId| match txn.pods.state[pod] {
        PodState::Nominated(node) => Some((pod, node)),
        _ => None,
    };
    leaving.iter().filter_map(moved).collect()
}

/// Whether a pod may move: the reservation for its successor is written on its PodGroup.
fn may_move(cluster: &Cluster, pod: PodId) -> bool {
    cluster.pods.gang[pod].is_some_and(|gang| cluster.gangs[gang].origin == Origin::Group)
}

impl Search<'_> {
    /// Finds other nodes for the victims. A victim whose own node has room again is not evicted.
    pub fn relocate(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        taken: &mut Vec<Bundle>,
    ) -> Vec<(PodId, NodeId)> {
        let leaving: Vec<PodId> =
            taken.iter().flat_map(|bundle| bundle.pods.iter().copied()).collect();
        let moved = relocate_all(txn, self.policy, rankings, &leaving);
        let evicted = |pod: &PodId| !matches!(txn.pods.state[*pod], PodState::Running(_));
        taken.iter_mut().for_each(|bundle| bundle.pods.retain(evicted));
        taken.retain(|bundle| !bundle.pods.is_empty());
        // A gang that keeps its minimum by moves loses only surplus. Nominations that it had before
        // do not count for that.
        let mark = txn.mark();
        for bundle in taken.iter_mut().filter(|bundle| bundle.kind == BundleKind::Whole) {
            for pod in txn.gangs[bundle.gang].pods.clone() {
                if matches!(txn.pods.state[pod], PodState::Nominated(_)) && !is_moved(&moved, pod) {
                    txn.release(pod);
                }
            }
            if would_complete_gang(txn, bundle.gang, true) {
                bundle.kind = BundleKind::Safe;
            }
        }
        txn.rewind(mark);
        moved
    }
}

pub fn is_moved(moved: &[(PodId, NodeId)], pod: PodId) -> bool {
    moved.iter().any(|&(other, _)| other == pod)
}

fn relocate_gang(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
    pods: &[PodId],
) {
    let mark = txn.mark();
    let breaks = missing_after_nominations(&txn.gangs[gang], true).total > 0;
    let mut fits_nowhere = |&pod: &PodId| {
        let shape = txn.pods.shape[pod];
        let in_place = matches!(txn.pods.state[pod], PodState::Releasing(node) if has_room(txn, policy, shape, node, Room::FutureIdle));
        !in_place && rankings.of(txn, policy, shape, Room::FutureIdle).best(txn).is_none()
    };
    if pods.iter().all(&mut fits_nowhere) {
        return;
    }
    let units = units(txn, gang, pods);
    for unit in &units {
        keep_in_place(txn, policy, gang, unit);
    }
    for unit in &units {
        move_elsewhere(txn, policy, rankings, gang, unit);
    }
    if !breaks || would_complete_gang(txn, gang, true) {
        return;
    }
    txn.rewind(mark);
    let missing = missing_after_nominations(&txn.gangs[gang], true);
    let placement = PlacementRequest {
        gang,
        pods,
        missing: &missing,
        room: Room::FutureIdle,
        avoid: &[],
        near: None,
    };
    let own_node = |&pod: &PodId| Some((pod, txn.pods.state[pod].node()?));
    let own_nodes: BTreeMap<PodId, NodeId> = pods.iter().filter_map(own_node).collect();
    if place_gang(txn, policy, rankings, &placement).is_err()
        || !would_complete_gang(txn, gang, true)
    {
        return txn.rewind(mark);
    }
    keep_own_nodes(txn, pods, &own_nodes);
}

/// A pod keeps running if it, or an equal pod of its gang, was placed on its node. Not so with
/// shared cards: it would get other cards of the node, so it must restart.
fn keep_own_nodes(txn: &mut Txn, pods: &[PodId], own_nodes: &BTreeMap<PodId, NodeId>) {
    for &pod in pods {
        let node = own_nodes[&pod];
        let kind = |pod: PodId| (txn.pods.shape[pod], txn.pods.role[pod], txn.pods.subgroup[pod]);
        let is_there = |other: PodId| txn.pods.state[other] == PodState::Nominated(node);
        let mut alike =
            pods.iter().copied().filter(|&other| is_there(other) && kind(other) == kind(pod));
        let other = Some(pod).filter(|&pod| is_there(pod)).or_else(|| alike.next());
        let Some(other) = other.filter(|_| !txn.shares_cards(pod)) else { continue };
        if other != pod {
            match txn.pods.state[pod] {
                PodState::Nominated(node) => txn.nominate(other, node),
                _ => txn.evict_from(other, own_nodes[&other]),
            }
        }
        txn.keep_running(pod, node);
    }
}

/// Splits pods into sets that are placed together: the pods of a subgroup that is incomplete
/// without them, otherwise each pod alone.
fn units(cluster: &Cluster, gang: GangId, pods: &[PodId]) -> Vec<Vec<PodId>> {
    let mut units: Vec<Vec<PodId>> = Vec::new();
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for &pod in pods {
        let place = cluster.pods.subgroup[pod];
        if !is_incomplete(cluster, gang, place) {
            units.push(vec![pod]);
            continue;
        }
        let at = *groups.entry(place).or_insert(units.len());
        if at == units.len() {
            units.push(Vec::new());
        }
        units[at].push(pod);
    }
    units
}

fn is_incomplete(cluster: &Cluster, gang: GangId, place: u32) -> bool {
    let row = &cluster.gangs[gang];
    let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
    group.is_some_and(|group| group.counts.ready() + group.counts.nominated < row.size_of(group))
}

/// Lets evicted pods run on where they are, all of them or none.
fn keep_in_place(txn: &mut Txn, policy: &Policy, gang: GangId, unit: &[PodId]) {
    let mark = txn.mark();
    for &pod in unit {
        let shape = txn.pods.shape[pod];
        match txn.pods.state[pod] {
            PodState::Releasing(node)
                if has_room(txn, policy, shape, node, Room::FutureIdle)
                    && txn.may_keep_cards(pod)
                    && policy.may_allocate(txn, gang, shape, Room::FutureIdle).is_ok() =>
            {
                txn.keep_running(pod, node);
            }
            _ => return txn.rewind(mark),
        }
    }
}

/// Places the pods of a set that are still evicted; none of them if their subgroup remains
/// incomplete.
fn move_elsewhere(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
    unit: &[PodId],
) {
    let mark = txn.mark();
    let mut failed = false;
    for &pod in unit {
        if matches!(txn.pods.state[pod], PodState::Releasing(_)) {
            failed |= !move_one(txn, policy, rankings, pod, 1);
        }
    }
    if failed && unit.iter().any(|&pod| is_incomplete(txn, gang, txn.pods.subgroup[pod])) {
        txn.rewind(mark);
    }
}

/// Finds another node, or other cards of its node, for an evicted pod: near the other pods of its gang if topology rules say so,
/// and preferably in a domain with room for `left` such pods. Returns whether there is one.
pub fn move_one(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    pod: PodId,
    left: u32,
) -> bool {
    let Some(gang) = txn.pods.gang[pod] else { return false };
    let allowed = policy.may_allocate(txn, gang, txn.pods.shape[pod], Room::FutureIdle).is_ok();
    let Some(mut tops) = allowed_domains(txn, gang, pod).ok().filter(|_| allowed) else {
        return false;
    };
    if left > 1 && tops.len() > 1 {
        let ranking = rankings.counted(txn, policy, txn.pods.shape[pod], Room::FutureIdle);
        tops.sort_by_key(|&top| ranking.holds(top) < left);
    }
    let Some(node) = free_place(txn, policy, rankings, (gang, pod), &tops, left) else {
        return false;
    };
    // To get other cards of its node it must restart, as it must on another node.
    match txn.pods.state[pod] == PodState::Releasing(node) && txn.may_keep_cards(pod) {
        true => txn.keep_running(pod, node),
        false => txn.nominate(pod, node),
    }
    true
}
