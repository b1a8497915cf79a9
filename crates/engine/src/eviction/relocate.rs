//! Another place for those who were asked to leave, so that nobody is lost who can be housed
//! elsewhere. In the transaction a pod that leaves and has a place elsewhere is promised that
//! place; `commit.rs` says what becomes of it when the plan stands.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::room::Room;
use crate::eviction::relocate;
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

/// Finds places for pods that were asked to leave, in the order in which their gangs would be
/// served: where they are if that can be, else elsewhere. A gang that breaks gets its minimum back
/// or nothing; what it can spare, pod by pod. Says who has another place.
pub fn rehouse_all(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    leaving: &[PodId],
) -> Vec<(PodId, NodeId)> {
    let mut homeless: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for &pod in leaving.iter().filter(|&&pod| may_move(txn, pod)) {
        if let Some(gang) = txn.pods.gang[pod] {
            homeless.entry(gang).or_default().push(pod);
        }
    }
    let mut line = Line::new(txn, policy, homeless.keys().copied());
    while let Some((_, gang)) = line.next_of_all(txn, policy) {
        let mut pods = homeless.remove(&gang).unwrap_or_default();
        let place = |pod: &PodId| txn.gangs[gang].pods.iter().position(|other| other == pod);
        pods.sort_by_key(place);
        policy.order_pods(txn, &mut pods);
        relocate(txn, policy, rankings, gang, &pods);
    }
    let moved = |&pod: &PodId| match txn.pods.state[pod] {
        PodState::Nominated(node) => Some((pod, node)),
        _ => None,
    };
    leaving.iter().filter_map(moved).collect()
}

/// Who comes back is known by its PodGroup, where its place is kept.
pub fn may_move(cluster: &Cluster, pod: PodId) -> bool {
    cluster.pods.gang[pod].is_some_and(|gang| cluster.gangs[gang].origin == Origin::Group)
}

impl Search<'_> {
    /// Finds other places for those who leave. Who finds one where it was doesn't leave.
    pub fn relocate(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        taken: &mut Vec<Bundle>,
    ) -> Vec<(PodId, NodeId)> {
        let leaving: Vec<PodId> =
            taken.iter().flat_map(|bundle| bundle.pods.iter().copied()).collect();
        let moved = relocate::rehouse_all(txn, self.policy, rankings, &leaving);
        let gone = |pod: &PodId| !matches!(txn.pods.state[*pod], PodState::Running(_));
        taken.iter_mut().for_each(|bundle| bundle.pods.retain(gone));
        taken.retain(|bundle| !bundle.pods.is_empty());
        // A gang that has its minimum elsewhere has lost what it can spare. What it waits for is no
        // such place.
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

pub fn relocate(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
    pods: &[PodId],
) {
    let mark = txn.mark();
    let breaks = missing_after_nominations(&txn.gangs[gang], true).total > 0;
    let mut nowhere = |&pod: &PodId| {
        let shape = txn.pods.shape[pod];
        let home = matches!(txn.pods.state[pod], PodState::Releasing(home) if has_room(txn, policy, shape, home, Room::FutureIdle));
        !home && rankings.of(txn, policy, shape, Room::FutureIdle).best(txn).is_none()
    };
    if pods.iter().all(&mut nowhere) {
        return;
    }
    let units = units(txn, gang, pods);
    for unit in &units {
        go_home(txn, policy, gang, unit);
    }
    for unit in &units {
        go_anywhere(txn, policy, rankings, gang, unit);
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
    let home = |&pod: &PodId| Some((pod, txn.pods.state[pod].node()?));
    let homes: BTreeMap<PodId, NodeId> = pods.iter().filter_map(home).collect();
    if place_gang(txn, policy, rankings, &placement).is_err()
        || !would_complete_gang(txn, gang, true)
    {
        return txn.rewind(mark);
    }
    keep_homes(txn, pods, &homes);
}

/// Whoever was given the place that it or its like was to leave stays there; but with cards it
/// leaves for others of the node.
fn keep_homes(txn: &mut Txn, pods: &[PodId], homes: &BTreeMap<PodId, NodeId>) {
    for &pod in pods {
        let home = homes[&pod];
        let kind = |pod: PodId| (txn.pods.shape[pod], txn.pods.role[pod], txn.pods.subgroup[pod]);
        let is_there = |other: PodId| txn.pods.state[other] == PodState::Nominated(home);
        let mut alike =
            pods.iter().copied().filter(|&other| is_there(other) && kind(other) == kind(pod));
        let other = Some(pod).filter(|&pod| is_there(pod)).or_else(|| alike.next());
        let Some(other) = other.filter(|_| !txn.shares_cards(pod)) else { continue };
        if other != pod {
            match txn.pods.state[pod] {
                PodState::Nominated(node) => txn.nominate(other, node),
                _ => txn.evict_from(other, homes[&other]),
            }
        }
        txn.keep_running(pod, home);
    }
}

/// Each alone, but those of a subgroup that lacks pods without them.
pub fn units(cluster: &Cluster, gang: GangId, pods: &[PodId]) -> Vec<Vec<PodId>> {
    let mut units: Vec<Vec<PodId>> = Vec::new();
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for &pod in pods {
        let place = cluster.pods.subgroup[pod];
        if !lacks_pods(cluster, gang, place) {
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

fn lacks_pods(cluster: &Cluster, gang: GangId, place: u32) -> bool {
    let row = &cluster.gangs[gang];
    let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
    group.is_some_and(|group| group.counts.ready() + group.counts.nominated < row.size_of(group))
}

/// Lets pods stay, all of them or none.
fn go_home(txn: &mut Txn, policy: &Policy, gang: GangId, unit: &[PodId]) {
    let mark = txn.mark();
    for &pod in unit {
        let shape = txn.pods.shape[pod];
        match txn.pods.state[pod] {
            PodState::Releasing(home)
                if has_room(txn, policy, shape, home, Room::FutureIdle)
                    && txn.may_keep_cards(pod)
                    && policy.may_allocate(txn, gang, shape, Room::FutureIdle).is_ok() =>
            {
                txn.keep_running(pod, home);
            }
            _ => return txn.rewind(mark),
        }
    }
}

/// Places those who are still away. Of a subgroup none, if it lacks pods all the same.
fn go_anywhere(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
    unit: &[PodId],
) {
    let mark = txn.mark();
    let mut lost = false;
    for &pod in unit {
        if matches!(txn.pods.state[pod], PodState::Releasing(_)) {
            lost |= !move_one(txn, policy, rankings, pod, 1);
        }
    }
    if lost && unit.iter().any(|&pod| lacks_pods(txn, gang, txn.pods.subgroup[pod])) {
        txn.rewind(mark);
    }
}

/// Finds another place for a pod that was asked to leave, near to the others of its gang if they
/// must be near, where so many of them have room. Whether there is one.
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
    match txn.pods.state[pod] == PodState::Releasing(node) {
        // On other cards it would have to leave all the same.
        true if !txn.may_keep_cards(pod) => return false,
        true => txn.keep_running(pod, node),
        false => txn.nominate(pod, node),
    }
    true
}
