//! A free place for one pod.

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::topology::places::Others;
use crate::placement::rankings::Rankings;
use crate::placement::request::{Ask, Kind, Vicinity};
use crate::policy::answers::Policy;

/// A free place for one pod of a gang in these domains, near to the others if they want to be near.
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
    let ask = Ask { cluster, policy, shape, room: Room::Later, avoid: &[], kind };
    if gang.choosy.is_none() {
        return rankings.best(&ask);
    }
    let place = cluster.pods.subgroup[pod];
    let company = gang.pods.iter().filter(|&&other| cluster.pods.subgroup[other] == place);
    let others = Others::of(cluster, company);
    tops.iter().find_map(|&within| {
        let pin = others.pin.filter(|&pin| cluster.domains.holds(within, pin));
        let near = Vicinity { of: pin.unwrap_or(within), within, others: &others.homes };
        rankings.nearest(&ask, near, left)
    })
}
