//! The fair share of every queue: what it should have if all queues took what is theirs. Siblings
//! divide what their parent should have, resource by resource (`shares/division.rs`). Follows from
//! what events say alone: nothing that moves within a cycle changes it.

use crate::base::ids::{QueueId, ResourceId, Table};
use crate::base::resources::{Amounts, PODS};
use crate::model::Cluster;
use crate::model::queues::{capability, divided};
use crate::model::usage::Memory;
use crate::shares::deserved::by_quota;
use crate::shares::division::Steps;
use crate::shares::families::Families;

/// How shares are found, and how long what was used is remembered for them, if it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub tree: bool,
    pub k_ppm: i64,
    pub memory: Option<Memory>,
}

pub struct Shares {
    fair: Table<QueueId, Amounts>,
}

impl Shares {
    /// The shares of all queues in all resources: of siblings in a tree, or of all queues alike.
    /// What a queue has used of late lowers its part of the surplus, `k` times as much as it is
    /// above its weight.
    pub fn of(cluster: &Cluster, tree: bool, k_ppm: i64) -> Shares {
        let families = Families::of(cluster, tree, k_ppm);
        let mut fair: Table<QueueId, Amounts> = Table::default();
        fair.grow(cluster.queues.len(), Amounts::default());
        for resource in divided(cluster) {
            for (queue, &share) in families.divide(resource, None).iter() {
                fair[queue].add(resource, share);
            }
        }
        Shares { fair }
    }

    /// The number of pods is not divided: every queue may have as many as there is room for.
    pub fn fair(&self, queue: QueueId, resource: ResourceId) -> i64 {
        if resource == PODS { i64::MAX } else { self.fair[queue].get(resource) }
    }

    /// What others leave to the queue: its fair share, or what it deserves if that is more, as far
    /// as its capability goes.
    pub fn allocatable(&self, cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
        let row = &cluster.queues[queue];
        self.fair(queue, resource).max(by_quota(row, resource)).min(capability(row, resource))
    }
}

/// What the siblings below one queue divide of a resource, and how.
#[derive(Clone, Debug)]
pub struct Division {
    /// The queue that they are below; the root if queues are no tree.
    pub parent: QueueId,
    pub total: i64,
    /// In the order of their names.
    pub portions: Vec<Portion>,
    pub steps: Steps,
}

/// What a queue brings to the division and gets of it.
#[derive(Clone, Debug)]
pub struct Portion {
    pub queue: QueueId,
    /// What it deserves, and at least what is guaranteed.
    pub deserved: i64,
    /// `i64::MAX` where nothing limits it.
    pub capability: i64,
    /// What its gangs have and want, as far as the capabilities of the queues below it allow.
    pub requested: i64,
    pub usage_ppm: i64,
    pub fair: i64,
}

/// How a resource is divided, parents before their children.
pub fn trace(cluster: &Cluster, tree: bool, k_ppm: i64, resource: ResourceId) -> Vec<Division> {
    let mut divisions = Vec::new();
    Families::of(cluster, tree, k_ppm).divide(resource, Some(&mut divisions));
    divisions
}
