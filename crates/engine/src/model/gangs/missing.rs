//! What a gang lacks to its minimum.

use crate::base::ids::PodId;
use crate::model::Cluster;
use crate::model::gangs::{Gang, Role};
use crate::model::topology::subgroups::Subgroup;

/// See [`Gang::missing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub total: u32,
    pub roles: Vec<u32>,
}

impl Missing {
    /// One pod, of any role.
    pub fn one(roles: usize) -> Missing {
        Missing { total: 1, roles: vec![0; roles] }
    }

    /// Whether a pod of this role is missing.
    pub fn wants(&self, role: usize) -> bool {
        self.roles[role] > 0 || self.total > self.roles.iter().sum()
    }

    /// Counts a placed pod of this role.
    pub fn take(&mut self, role: usize) {
        self.roles[role] = self.roles[role].saturating_sub(1);
        self.total -= 1;
    }
}

/// What is missing to the gang's minimum beyond its nominated pods and the room that is reserved
/// for pods that will be created again.
pub fn missing_after_nominations(gang: &Gang, whole: bool) -> Missing {
    let missing = gang.missing(whole);
    let reserved =
        |role: &Role| gang.reserved().iter().filter(|place| place.role == role.name).count() as u32;
    let roles: Vec<u32> = missing
        .roles
        .iter()
        .zip(&gang.roles)
        .map(|(&missing, role)| missing.saturating_sub(role.counts.nominated + reserved(role)))
        .collect();
    let nominated = gang.counts.nominated + gang.reserved().len() as u32;
    let total = missing.total.saturating_sub(nominated).max(roles.iter().sum());
    Missing { total, roles }
}

/// Whether it has its minimum, those of its roles and its subgroups once its nominated pods are
/// bound.
pub fn will_be_ready(gang: &Gang, whole: bool) -> bool {
    missing_after_nominations(gang, whole).total == 0
        && (!whole || gang.has_its_subgroups(|group| expected(gang, group)))
}

/// How many pods a subgroup will have once its nominated pods are bound.
pub fn expected(gang: &Gang, group: &Subgroup) -> u32 {
    let reserved =
        gang.reserved().iter().filter(|place| place.subgroup.as_ref() == Some(&group.name));
    group.counts.ready() + group.counts.nominated + reserved.count() as u32
}

/// The pods of this list, in its order, that make up what is missing.
pub fn required(cluster: &Cluster, pods: &[PodId], missing: &Missing) -> Vec<PodId> {
    let Missing { mut total, mut roles } = missing.clone();
    let mut required = Vec::new();
    for &pod in pods {
        let role = roles.get_mut(cluster.pods.role[pod] as usize).filter(|role| **role > 0);
        let owed = role.is_some();
        if let Some(role) = role {
            *role -= 1;
        }
        if total > 0 && (owed || total > roles.iter().sum()) {
            total -= 1;
            required.push(pod);
        }
    }
    required
}
