//! Which queue may reclaim from which: by what they deserve, and by their positions in the tree.

use crate::base::ids::{QueueId, ResourceId, ShapeId};
use crate::base::resources::{PODS, Share};
use crate::model::Cluster;
use crate::model::queues::ROOT;
use crate::plugins::capacity::Capacity;

impl Capacity {
    /// Where the paths of two queues from the root part; the queues themselves if they aren't a
    /// tree.
    pub(super) fn parting(&self, cluster: &Cluster, a: QueueId, b: QueueId) -> (QueueId, QueueId) {
        if !self.tree {
            return (a, b);
        }
        let (up_a, up_b) = (&cluster.queues[a].lineage, &cluster.queues[b].lineage);
        let parting = up_a.iter().rev().zip(up_b.iter().rev()).find(|(a, b)| a != b);
        parting.map_or((a, b), |(&a, &b)| (a, b))
    }

    /// The resources that pods request and of which their queue, or an ancestor that may stand in
    /// for it, has no more than it deserves with this many of them.
    pub(super) fn rights(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        (shape, pods): (ShapeId, i64),
    ) -> impl Iterator<Item = ResourceId> {
        let levels = if self.tree { 1 + self.reclaim_levels } else { 1 };
        let spokesmen =
            cluster.queues[queue].lineage.iter().take(levels).filter(|queue| **queue != ROOT);
        let within = move |id: ResourceId, want: i64| {
            spokesmen.clone().any(|&queue| {
                let row = &cluster.queues[queue];
                row.deserved.get(id).is_some_and(|most| row.taken(id) + want * pods <= most)
            })
        };
        let asked = cluster.shapes[shape].request.iter().filter(|&(resource, _)| resource != PODS);
        asked.filter(move |&(resource, want)| within(resource, want)).map(|(resource, _)| resource)
    }

    /// A queue and those above it, up to where its path from the root parts from another's.
    pub(super) fn up_to_parting<'c>(
        &self,
        cluster: &'c Cluster,
        from: QueueId,
        to: QueueId,
    ) -> &'c [QueueId] {
        let (_, top) = self.parting(cluster, to, from);
        let lineage = &cluster.queues[from].lineage;
        let end = lineage.iter().position(|&queue| queue == top).unwrap_or(0);
        &lineage[..=end]
    }

    /// Whether a queue has more of a resource than it deserves, from the view of another.
    fn has_too_much(
        &self,
        cluster: &Cluster,
        from: QueueId,
        to: QueueId,
        resource: ResourceId,
    ) -> bool {
        self.up_to_parting(cluster, from, to).iter().all(|&queue| {
            let row = &cluster.queues[queue];
            row.taken(resource) > row.deserved.get(resource).unwrap_or(0)
        })
    }

    /// What another queue may reclaim with pods like this: resources that it has a right to, and of
    /// which this queue has too much.
    pub(super) fn open_to(
        &self,
        cluster: &Cluster,
        from: QueueId,
        to: QueueId,
        pods: (ShapeId, i64),
    ) -> impl Iterator<Item = ResourceId> {
        self.rights(cluster, to, pods)
            .filter(move |&resource| self.has_too_much(cluster, from, to, resource))
    }

    /// A preemptor that would have more than it deserves of a resource must still have less of it
    /// than the queue that gives, or the two would reclaim from each other endlessly.
    pub(super) fn turns_the_tables(
        &self,
        cluster: &Cluster,
        shape: ShapeId,
        to: QueueId,
        from: QueueId,
    ) -> bool {
        let (to, from) = self.parting(cluster, to, from);
        let request = &cluster.shapes[shape].request;
        let share = |queue: QueueId, more: bool| {
            let row = &cluster.queues[queue];
            let deserved = row.deserved.iter().filter(|&(resource, _)| resource != PODS);
            let asked = deserved.filter_map(|(id, most)| Some((id, most, request.get(id)?)));
            asked
                .map(|(id, most, want)| {
                    Share::of(row.taken(id) + if more { want } else { 0 }, most)
                })
                .max()
        };
        let after = share(to, true).filter(|share| *share > Share::ONE);
        after.zip(share(from, false)).is_some_and(|(after, before)| after >= before)
    }
}
