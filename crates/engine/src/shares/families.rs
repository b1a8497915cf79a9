//! Which queues divide a resource among each other, and what each of them wants.

use crate::base::ids::{QueueId, ResourceId, Table};
use crate::model::Cluster;
use crate::model::queues::{ROOT, capability, total};
use crate::shares::deserved::by_quota;
use crate::shares::division::{Party, Steps, divide};
use crate::shares::fair::{Division, Portion};

/// The queues that divide, by their parent.
pub struct Families<'c> {
    cluster: &'c Cluster,
    tree: bool,
    k_ppm: i64,
    /// Parents before their children, siblings by name.
    families: Vec<Family>,
}

struct Family {
    parent: QueueId,
    members: Vec<QueueId>,
}

impl<'c> Families<'c> {
    pub fn of(cluster: &'c Cluster, tree: bool, k_ppm: i64) -> Families<'c> {
        let parent = |queue: QueueId| if tree { cluster.queues[queue].lineage[1] } else { ROOT };
        let name = |queue: QueueId| &cluster.queues[queue].name;
        let depth = |queue: QueueId| if tree { cluster.queues[queue].lineage.len() } else { 0 };
        // A queue without a path to the root has no siblings, and no share.
        let stands = cluster.queues.iter().filter(|(_, row)| row.exists && row.broken.is_none());
        let mut queues: Vec<QueueId> = stands.map(|(id, _)| id).filter(|&id| id != ROOT).collect();
        let key = |queue: QueueId| (depth(queue), name(parent(queue)), name(queue));
        queues.sort_by(|&a, &b| key(a).cmp(&key(b)));
        let siblings = queues.chunk_by(|&a, &b| parent(a) == parent(b));
        let family =
            |members: &[QueueId]| Family { parent: parent(members[0]), members: members.to_vec() };
        Families { cluster, tree, k_ppm, families: siblings.map(family).collect() }
    }

    /// The shares of all queues. `divisions` gets each division.
    pub fn divide(
        &self,
        resource: ResourceId,
        mut divisions: Option<&mut Vec<Division>>,
    ) -> Table<QueueId, i64> {
        let wanted = self.wanted(resource);
        let mut fair: Table<QueueId, i64> = Table::default();
        fair.grow(self.cluster.queues.len(), 0);
        fair[ROOT] = total(self.cluster, resource);
        for Family { parent, members } in &self.families {
            let parties: Vec<Party> =
                members.iter().map(|&queue| self.party(queue, resource, wanted[queue])).collect();
            let mut steps = divisions.is_some().then(Steps::default);
            let shares = divide(fair[*parent], &parties, self.k_ppm, steps.as_mut());
            for (&queue, &share) in members.iter().zip(&shares) {
                fair[queue] = share;
            }
            if let (Some(divisions), Some(steps)) = (divisions.as_deref_mut(), steps) {
                let portion = |(party, &fair): (&Party, &i64)| Portion {
                    queue: party.queue,
                    deserved: party.deserved,
                    capability: capability(&self.cluster.queues[party.queue], resource),
                    requested: wanted[party.queue],
                    usage_ppm: party.usage_ppm,
                    fair,
                };
                let portions = parties.iter().zip(&shares).map(portion).collect();
                divisions.push(Division { parent: *parent, total: fair[*parent], portions, steps });
            }
        }
        fair
    }

    fn party(&self, queue: QueueId, resource: ResourceId, wanted: i64) -> Party<'c> {
        let row = &self.cluster.queues[queue];
        Party {
            queue,
            name: &row.name,
            created: row.created,
            deserved: by_quota(row, resource),
            wanted: wanted.min(capability(row, resource)),
            weight: i64::from(row.weight),
            priority: row.priority,
            usage_ppm: self.cluster.usage.ppm(queue, resource),
        }
    }

    /// What each queue wants: in a tree its own gangs' requests, and of the requests of the queues
    /// below it as much as each of them may have. No queue should get a share that it cannot use.
    fn wanted(&self, resource: ResourceId) -> Table<QueueId, i64> {
        let queues = &self.cluster.queues;
        let requested = |queue: QueueId| queues[queue].requested.get(resource);
        let mut wanted: Table<QueueId, i64> = Table::default();
        for queue in queues.ids() {
            wanted.push(requested(queue));
        }
        // Requests are summed up the tree, whether the shares follow it or not.
        for (id, queue) in queues.iter().filter(|(_, queue)| queue.exists) {
            if let Some(&parent) = queue.lineage.get(1) {
                wanted[parent] -= requested(id);
            }
        }
        for Family { parent, members } in self.families.iter().rev().filter(|_| self.tree) {
            let below = members
                .iter()
                .map(|&queue| wanted[queue].min(capability(&queues[queue], resource)));
            wanted[*parent] = below.fold(wanted[*parent], i64::saturating_add);
        }
        wanted
    }
}
