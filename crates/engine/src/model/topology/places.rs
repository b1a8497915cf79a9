//! Where the pods of a gang are, and whether that is near enough.

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::topology::domains::Domains;
use crate::model::topology::subgroups::{Closeness, Subgroup};

/// Where others of a set are already.
#[derive(Default)]
pub struct Others {
    /// The smallest domain that holds them all.
    pub pin: Option<DomainId>,
    /// Their homes, in order.
    pub homes: Vec<DomainId>,
}

impl Others {
    /// Where these pods are, or will be.
    pub fn of<'p>(cluster: &Cluster, pods: impl IntoIterator<Item = &'p PodId>) -> Others {
        Others::on(&cluster.domains, pods.into_iter().filter_map(|&pod| place_of(cluster, pod)))
    }

    pub fn on(domains: &Domains, nodes: impl Iterator<Item = NodeId>) -> Others {
        let mut others = Others::default();
        others.join(domains, nodes);
        others
    }

    pub fn join(&mut self, domains: &Domains, nodes: impl Iterator<Item = NodeId>) {
        for home in nodes.map(|node| domains.home(node)) {
            self.pin = Some(self.pin.map_or(home, |pin| domains.common(pin, home)));
            self.homes.push(home);
        }
        self.homes.sort_unstable();
    }
}

/// The smallest domain that holds those of the pods that have places.
pub fn around<'p>(
    cluster: &Cluster,
    pods: impl IntoIterator<Item = &'p PodId>,
) -> Option<DomainId> {
    cluster.domains.around(pods.into_iter().filter_map(|&pod| place_of(cluster, pod)))
}

/// Where a pod is, or will be, unless it is on its way out.
pub fn place_of(cluster: &Cluster, pod: PodId) -> Option<NodeId> {
    match cluster.pods.state[pod] {
        PodState::Allocated(node) | PodState::Running(node) | PodState::Nominated(node) => {
            Some(node)
        }
        _ => None,
    }
}

/// Whether the places that a gang has are as near to each other as they must be, and those of its
/// subgroups.
pub fn is_near_enough(cluster: &Cluster, id: GangId) -> bool {
    let gang = &cluster.gangs[id];
    let holds = |closeness: Option<&Closeness>, domain: Option<DomainId>| {
        let (Some(closeness), Some(domain)) =
            (closeness.filter(|closeness| closeness.hard), domain)
        else {
            return true;
        };
        closeness.limit(&cluster.domains).is_ok_and(|limit| cluster.domains[domain].tier <= limit)
    };
    let mut pins: Vec<Option<DomainId>> = vec![None; gang.subgroups().len()];
    for &pod in &gang.pods {
        let pin = pins.get_mut(cluster.pods.subgroup[pod] as usize);
        if let (Some(pin), Some(node)) = (pin, place_of(cluster, pod)) {
            let home = cluster.domains.home(node);
            *pin = Some(pin.map_or(home, |pin| cluster.domains.common(pin, home)));
        }
    }
    let of_rule = |group: &Subgroup| gang.rules()[group.rule? as usize].closeness.as_ref();
    holds(gang.closeness(), around(cluster, &gang.pods))
        && gang.subgroups().iter().zip(pins).all(|(group, pin)| holds(of_rule(group), pin))
}

/// Whether no subgroup of these pods is placed in part. One that lost pods before is no reason
/// against the others.
pub fn has_whole_subgroups(cluster: &Cluster, gang: GangId, placed: &[(PodId, NodeId)]) -> bool {
    let gang = &cluster.gangs[gang];
    let whole =
        |group: &Subgroup| group.counts.ready() == 0 || group.counts.ready() >= gang.size_of(group);
    placed.iter().all(|&(pod, _)| gang.subgroups().get(cluster.pods.place(pod).1).is_none_or(whole))
}

/// The domain in which a gang is, if any of it has a place.
pub fn domain_of(cluster: &Cluster, gang: GangId) -> Option<DomainId> {
    around(cluster, &cluster.gangs[gang].pods)
}
