//! The nominations that gangs hold.

use crate::base::ids::{GangId, NodeId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::order::session::Session;

/// A gang, a pod of it, and the node to which the pod is nominated.
pub type Held = (GangId, PodId, NodeId);

/// The nominated pods of a gang, with their nodes.
pub fn nominations_of(cluster: &Cluster, gang: GangId) -> Vec<(PodId, NodeId)> {
    let place = |&pod: &PodId| match cluster.pods.state[pod] {
        PodState::Nominated(node) => Some((pod, node)),
        _ => None,
    };
    cluster.gangs[gang].pods.iter().filter_map(place).collect()
}

/// The gangs that hold nominations, in the order in which gangs are served.
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
