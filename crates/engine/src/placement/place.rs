//! Places pods of a gang on nodes inside a transaction: each on the best node that fits, until nothing
//! is missing.

use std::cmp::Reverse;

use crate::base::ids::{PodId, ShapeId, TermId};
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::model::gangs::missing::Missing;
use crate::model::shapes::{one_shape, size_of};
use crate::model::txn::{Mark, Txn};
use crate::placement::rankings::Rankings;
use crate::placement::request::{Kind, NodeQuery, PlacementRequest, Vicinity};
use crate::policy::answers::Policy;

/// Places pods of the gang until nothing is missing, in the order given if that is possible. Leaves
/// its moves in the transaction either way; on failure the reasons name what stopped the first pod
/// of each shape.
pub fn place(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    request: &PlacementRequest,
) -> Result<(), Vec<Reason>> {
    let start = txn.mark();
    let result = place_in_order(txn, policy, rankings, request);
    let may_differ = request.missing.total > 1 && one_shape(txn, request.pods).is_none();
    if result.is_err() && may_differ && try_otherwise(txn, policy, rankings, request, start) {
        return Ok(());
    }
    result
}

fn place_in_order(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    request: &PlacementRequest,
) -> Result<(), Vec<Reason>> {
    let &PlacementRequest { gang, pods, room, avoid, mut near, .. } = request;
    let mut missing = request.missing.clone();
    let wanted = missing.total;
    let mut reasons: Vec<Reason> = Vec::new();
    let mut failed: Vec<ShapeId> = Vec::new();
    // A pod that needs other pods nearby may fit once they are placed, so such pods get another
    // round.
    let mut again: Vec<PodId> = Vec::new();
    let mut round: Vec<PodId> = Vec::new();
    let mut list = pods;
    // Asked once for pods that are alike.
    let mut known: Option<(ShapeId, Kind)> = None;
    loop {
        let before = missing.total;
        for (at, &pod) in list.iter().enumerate() {
            if missing.total == 0 {
                return Ok(());
            }
            let shape = txn.pods.shape[pod];
            let role = txn.pods.role[pod] as usize;
            if failed.contains(&shape) || !missing.wants(role) {
                continue;
            }
            if txn.shapes[shape].uses_claims() {
                reasons.push(Reason::ResourceClaims { pod: txn.pods.name(pod).clone() });
                failed.push(shape);
                continue;
            }
            if let Err(reason) = policy.may_allocate(txn, gang, shape, room) {
                reasons.push(reason);
                failed.push(shape);
                continue;
            }
            let kind = match known {
                Some((alike, kind)) if alike == shape => kind,
                _ => known.insert((shape, Kind::of(txn, policy, shape))).1,
            };
            let ask = NodeQuery { cluster: txn, policy, shape, room, avoid, kind };
            let found = match near {
                Some(near) => rankings.nearest(&ask, near, (list.len() - at) as u32),
                None => rankings.best(&ask),
            };
            match found {
                Some(node) => {
                    near =
                        near.map(|near| Vicinity { of: txn.domains.smallest_around(node), ..near });
                    match room {
                        Room::Idle | Room::Backfill => txn.allocate(pod, node),
                        Room::FutureIdle => txn.nominate(pod, node),
                    }
                    missing.take(role);
                }
                None if !txn.shapes[shape].bonds.affinity.is_empty() => again.push(pod),
                None => {
                    failed.push(shape);
                    let reason = no_nodes(txn, policy, rankings, pod, wanted, &missing, room);
                    // Pods of other shapes get the same answers from nodes.
                    if !reasons.iter().any(|known| known.says_the_same_of_nodes(&reason)) {
                        reasons.push(reason);
                    }
                }
            }
        }
        if missing.total == 0 {
            return Ok(());
        }
        if again.is_empty() || missing.total == before {
            break;
        }
        round.clear();
        std::mem::swap(&mut round, &mut again);
        list = &round;
    }
    if let Some(&pod) = again.first() {
        reasons.push(no_nodes(txn, policy, rankings, pod, wanted, &missing, room));
    }
    Err(reasons)
}

fn no_nodes(
    txn: &Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    pod: PodId,
    wanted: u32,
    missing: &Missing,
    room: Room,
) -> Reason {
    let shape = txn.pods.shape[pod];
    let histogram = rankings.of(txn, policy, shape, room).histogram(txn, policy, shape);
    Reason::NoNodes {
        placed: wanted - missing.total,
        wanted,
        pod: txn.pods.name(pod).clone(),
        histogram,
    }
}

/// In how many topology values a set is tried that must be together.
const TOGETHER_TRIES: usize = 16;

/// A gang of several shapes, or with rules between its pods, may fit in another order or elsewhere
/// than in the first try.
fn try_otherwise(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    request: &PlacementRequest,
    start: Mark,
) -> bool {
    // The best node for the first pod of a set that must be together may have too little room
    // around it for the others.
    let mut avoid: Vec<(TermId, u32)> = Vec::new();
    while let Some(found) =
        first_together(txn, request.pods).filter(|_| avoid.len() < TOGETHER_TRIES)
    {
        avoid.push(found);
        txn.rewind(start);
        if place_in_order(txn, policy, rankings, &PlacementRequest { avoid: &avoid, ..*request })
            .is_ok()
        {
            return true;
        }
    }
    // Small pods may have taken the room of large ones.
    txn.rewind(start);
    let large_first = by_size(txn, request.pods);
    place_in_order(txn, policy, rankings, &PlacementRequest { pods: &large_first, ..*request })
        .is_ok()
}

/// Where the attempt placed the first pod of a set that must be together.
fn first_together(txn: &Txn, pods: &[PodId]) -> Option<(TermId, u32)> {
    pods.iter().find_map(|&pod| {
        let bonds = &txn.shapes[txn.pods.shape[pod]].bonds;
        let term = *bonds.affinity.first().filter(|_| bonds.affine_to_itself)?;
        let value = txn.terms.value(term, txn.pods.state[pod].node()?);
        (value != 0).then_some((term, value))
    })
}

fn by_size(txn: &Txn, pods: &[PodId]) -> Vec<PodId> {
    let mut sorted = pods.to_vec();
    sorted.sort_by_key(|&pod| Reverse(size_of(txn, txn.pods.shape[pod])));
    sorted
}
