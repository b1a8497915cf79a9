//! Where the pods of a gang are placed, and whether that is near enough.

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::topology::domains::Domains;
use crate::model::topology::subgroups::{Subgroup, TierLimit};

/// Where other pods of a set are placed already.
#[derive(Default)]
pub struct PlacedPods {
    /// The smallest domain that holds them all.
    pub common_domain: Option<DomainId>,
    /// Their smallest domains, in order.
    pub domains: Vec<DomainId>,
}

impl PlacedPods {
    /// Where the pods of a gang, or of one of its subgroups, are or will be.
    pub fn of(cluster: &Cluster, gang: GangId, subgroup: Option<u32>) -> PlacedPods {
        PlacedPods::on(&cluster.domains, nodes_of(cluster, gang, subgroup).into_iter())
    }

    pub fn on(domains: &Domains, nodes: impl Iterator<Item = NodeId>) -> PlacedPods {
        let mut others = PlacedPods::default();
        others.join(domains, nodes);
        others
    }

    pub fn join(&mut self, domains: &Domains, nodes: impl Iterator<Item = NodeId>) {
        for smallest in nodes.map(|node| domains.smallest_around(node)) {
            self.common_domain = Some(
                self.common_domain
                    .map_or(smallest, |common_domain| domains.common(common_domain, smallest)),
            );
            self.domains.push(smallest);
        }
        self.domains.sort_unstable();
    }
}

/// The smallest domain that holds the placed pods of a gang, or of one of its subgroups, if there
/// are any.
pub fn around(cluster: &Cluster, gang: GangId, subgroup: Option<u32>) -> Option<DomainId> {
    cluster.domains.around(nodes_of(cluster, gang, subgroup))
}

/// The nodes where the pods of a gang, or of one of its subgroups, are or will be, also those that
/// are reserved for pods that will be created again.
fn nodes_of(cluster: &Cluster, gang: GangId, subgroup: Option<u32>) -> Vec<NodeId> {
    let row = &cluster.gangs[gang];
    let counts = |&&pod: &&PodId| subgroup.is_none_or(|at| cluster.pods.subgroup[pod] == at);
    let placed = row.pods.iter().filter(counts).filter_map(|&pod| place_of(cluster, pod));
    let name = subgroup.map(|at| row.subgroups().get(at as usize).map(|group| &group.name));
    let reserved = row.reserved().iter();
    let reserved = reserved.filter(|one| name.is_none_or(|name| name == one.subgroup.as_ref()));
    placed.chain(reserved.map(|one| one.node)).collect()
}

/// Where a pod is or will be, unless it terminates.
pub fn place_of(cluster: &Cluster, pod: PodId) -> Option<NodeId> {
    match cluster.pods.state[pod] {
        PodState::Allocated(node) | PodState::Running(node) | PodState::Nominated(node) => {
            Some(node)
        }
        _ => None,
    }
}

/// Whether the nodes of a gang's pods are as near to each other as its rules demand, and those of
/// its subgroups.
pub fn is_near_enough(cluster: &Cluster, id: GangId) -> bool {
    let gang = &cluster.gangs[id];
    let holds = |tier_limit: Option<&TierLimit>, domain: Option<DomainId>| {
        let (Some(tier_limit), Some(domain)) =
            (tier_limit.filter(|tier_limit| tier_limit.hard), domain)
        else {
            return true;
        };
        tier_limit.limit(&cluster.domains).is_ok_and(|limit| cluster.domains[domain].tier <= limit)
    };
    let mut pins: Vec<Option<DomainId>> = vec![None; gang.subgroups().len()];
    let mut pin = |at: usize, node: NodeId| {
        let Some(pin) = pins.get_mut(at) else { return };
        let smallest = cluster.domains.smallest_around(node);
        *pin = Some(pin.map_or(smallest, |pin| cluster.domains.common(pin, smallest)));
    };
    for &pod in &gang.pods {
        if let Some(node) = place_of(cluster, pod) {
            pin(cluster.pods.subgroup[pod] as usize, node);
        }
    }
    for reserved in gang.reserved() {
        let is_of = |group: &Subgroup| Some(&group.name) == reserved.subgroup.as_ref();
        if let Some(at) = gang.subgroups().iter().position(is_of) {
            pin(at, reserved.node);
        }
    }
    let of_rule = |group: &Subgroup| gang.rules()[group.rule? as usize].tier_limit.as_ref();
    holds(gang.tier_limit(), around(cluster, id, None))
        && gang.subgroups().iter().zip(pins).all(|(group, pin)| holds(of_rule(group), pin))
}

/// Whether no subgroup of these pods is placed in part. A subgroup that lost pods before does not
/// count against the others.
pub fn has_whole_subgroups(cluster: &Cluster, gang: GangId, placed: &[(PodId, NodeId)]) -> bool {
    let gang = &cluster.gangs[gang];
    let whole =
        |group: &Subgroup| group.counts.ready() == 0 || group.counts.ready() >= gang.size_of(group);
    placed.iter().all(|&(pod, _)| gang.subgroups().get(cluster.pods.place(pod).1).is_none_or(whole))
}

/// The domain that holds the placed pods of a gang, if there are any.
pub fn domain_of(cluster: &Cluster, gang: GangId) -> Option<DomainId> {
    around(cluster, gang, None)
}
