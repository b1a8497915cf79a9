//! Free room for one pod.

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::topology::places::PlacedPods;
use crate::placement::rankings::Rankings;
use crate::placement::request::{Kind, NodeQuery, Vicinity};
use crate::policy::answers::Policy;

/// Free room for one pod of a gang in these domains, near its other pods if topology rules say so.
pub fn free_place(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    (id, pod): (GangId, PodId),
    tops: &[DomainId],
    left: u32,
) -> Option<NodeId> {
    let gang = &cluster.gangs[id];
    let shape = cluster.pods.shape[pod];
    let kind = Kind::of(cluster, policy, shape);
    let ask = NodeQuery { cluster, policy, shape, room: Room::FutureIdle, avoid: &[], kind };
    if gang.topology_rules.is_none() {
        return rankings.best(&ask);
    }
    let place = cluster.pods.subgroup[pod];
    let others = PlacedPods::of(cluster, id, Some(place));
    tops.iter().find_map(|&within| {
        let common_domain = others
            .common_domain
            .filter(|&common_domain| cluster.domains.holds(within, common_domain));
        let near =
            Vicinity { of: common_domain.unwrap_or(within), within, others: &others.domains };
        rankings.nearest(&ask, near, left)
    })
}
