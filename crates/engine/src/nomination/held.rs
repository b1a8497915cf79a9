//! The nominations that gangs hold.

use crate::base::ids::{GangId, NodeId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::order::session::Session;

/// A pod of a gang and the node on which it was promised a place.
pub type Held = (GangId, PodId, NodeId);

/// The places that a gang is promised.
pub fn nominations_of(cluster: &Cluster, gang: GangId) -> Vec<(PodId, NodeId)> {
    let place = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Nominated(node) => Some((pod, node)),
        _ => None,
    };
    cluster.gangs[gang].pods.iter().filter_map(place).collect()
}

/// The gangs that hold promises, in order.
pub fn nominated_gangs(session: &Session) -> Vec<GangId> {
    if session.cluster.nominated_count == 0 {
        return Vec::new();
    }
    let nominated = |gang: &GangId| session.cluster.gangs[*gang].counts.nominated > 0;
    let mut gangs: Vec<GangId> =
        session.cluster.gangs.waiting().iter().copied().filter(nominated).collect();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    gangs
}
