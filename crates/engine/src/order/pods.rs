//! The pods of a gang in the order in which they are placed.

use crate::base::ids::{GangId, PodId};
use crate::model::pods::PodState;
use crate::order::session::Session;

/// Which pods get their turn.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Serving {
    All,
    /// Pods that request nothing, which the usage of their queue does not affect.
    BestEffort,
}

/// The gang's pending pods in the order in which they are placed.
pub fn in_order(session: &Session, gang: GangId, serving: Serving) -> Vec<PodId> {
    let cluster = &*session.cluster;
    let pending = |pod: &&PodId| cluster.pods.state[**pod] == PodState::Pending;
    let mut pods: Vec<PodId> = cluster.gangs[gang].pods.iter().filter(pending).copied().collect();
    if serving == Serving::BestEffort {
        pods.retain(|&pod| cluster.shapes[cluster.pods.shape[pod]].best_effort);
    }
    session.policy.order_pods(cluster, &mut pods);
    pods
}
