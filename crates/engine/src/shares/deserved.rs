//! What each queue deserves of a resource: what its quota says, or its part by weight. What it should
//! have now, with what others leave, is its fair share (`shares/fair.rs`).

use crate::base::ids::{QueueId, ResourceId, Table};
use crate::base::resources::{Amounts, PODS, Sparse};
use crate::model::Cluster;
use crate::model::queues::Queue;
use crate::shares::proportional::{Party, divide};

/// What a queue deserves by its own quota, and at least what is guaranteed to it.
pub fn by_quota(queue: &Queue, resource: ResourceId) -> i64 {
    let amount = |list: &Sparse| list.get(resource).unwrap_or(0);
    amount(&queue.deserved).max(amount(&queue.guarantee))
}

/// What queues deserve that have only weights (plugin `proportion`): of each resource a part in
/// proportion to their weights, no more than they ask for and no less than is guaranteed to them.
pub fn by_weight(cluster: &Cluster) -> Table<QueueId, Amounts> {
    let mut asked: Table<QueueId, Amounts> = Table::default();
    asked.grow(cluster.queues.len(), Amounts::default());
    let mut served: Vec<QueueId> = Vec::new();
    for (_, gang) in cluster.gangs.iter() {
        asked[gang.queue].add_amounts(&gang.requested, 1);
        served.push(gang.queue);
    }
    served.sort_by(|&a, &b| cluster.queues[a].name.cmp(&cluster.queues[b].name));
    served.dedup();
    let mut deserved: Table<QueueId, Amounts> = Table::default();
    deserved.grow(cluster.queues.len(), Amounts::default());
    for resource in
        (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&resource| resource != PODS)
    {
        let total = cluster.total.get(resource);
        let parties: Vec<Party> = served
            .iter()
            .map(|&queue| {
                let least = cluster.queues[queue].guarantee.get(resource).unwrap_or(0);
                let most =
                    asked[queue].get(resource).min(real_capability(cluster, queue, resource));
                Party {
                    weight: i64::from(cluster.queues[queue].weight),
                    least,
                    most: most.max(least),
                }
            })
            .collect();
        for (&queue, share) in served.iter().zip(divide(total, &parties)) {
            deserved[queue].add(resource, share);
        }
    }
    deserved
}

/// The most a queue may ever use: its capability, and what the guarantees of others leave.
pub fn real_capability(cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
    let own = &cluster.queues[queue];
    let guaranteed: i64 = cluster
        .queues
        .iter()
        .filter(|(id, other)| *id != queue && other.exists)
        .map(|(_, other)| other.guarantee.get(resource).unwrap_or(0))
        .sum();
    let assured = own.guarantee.get(resource).unwrap_or(0);
    let left = if guaranteed > 0 {
        (cluster.total.get(resource) - guaranteed).max(assured)
    } else {
        i64::MAX
    };
    own.capability.get(resource).unwrap_or(i64::MAX).min(left)
}
