//! Which queue may reclaim from which: by what they deserve, and by their positions in the tree.

use crate::base::ids::{QueueId, ResourceId, ShapeId};
use crate::base::resources::{PODS, Share};
use crate::model::Cluster;
use crate::model::queues::ROOT;
use crate::plugins::capacity::Capacity;

/// The rules that protect what a queue has.
pub(super) const DESERVED: &str = "its queue's deserved share";
const OUTDONE: &str = "its queue would have less than the preemptor's";

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

    /// A queue, and the ancestors whose share counts for it.
    fn spokesmen<'c>(&self, cluster: &'c Cluster, queue: QueueId) -> &'c [QueueId] {
        let lineage = &cluster.queues[queue].lineage;
        let levels = if self.tree { 1 + self.reclaim_levels } else { 1 };
        let below_root = lineage.iter().position(|&queue| queue == ROOT).unwrap_or(lineage.len());
        &lineage[..levels.min(below_root)]
    }

    /// The resources that pods request and of which their queue, or an ancestor that may stand in
    /// for it, has no more than it deserves with this many of them.
    pub(super) fn rights(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        (shape, pods): (ShapeId, i64),
    ) -> impl Iterator<Item = ResourceId> {
        let spokesmen = self.spokesmen(cluster, queue);
        let has_right = move |id: ResourceId, want: i64| {
            spokesmen.iter().any(|&queue| within(cluster, queue, (id, want * pods)))
        };
        requested(cluster, shape)
            .filter(move |&(resource, want)| has_right(resource, want))
            .map(|(resource, _)| resource)
    }

    /// An ancestor whose share would give a queue a right to one more pod, but does not count
    /// (`ancestorReclaimLevel`), with what the pod requests of the resource.
    pub(super) fn silent_ancestor(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        shape: ShapeId,
    ) -> Option<(QueueId, (ResourceId, i64))> {
        let lineage = if self.tree { &cluster.queues[queue].lineage[..] } else { &[] };
        let silent = lineage.iter().skip(1 + self.reclaim_levels).filter(|&&above| above != ROOT);
        silent.copied().find_map(|above| {
            let mut asked = requested(cluster, shape);
            Some((above, asked.find(|&asked| within(cluster, above, asked))?))
        })
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
        let levels = self.up_to_parting(cluster, from, to).iter();
        levels
            .copied()
            .all(|queue| cluster.queues[queue].taken(resource) > deserved(cluster, queue, resource))
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

    /// The rule that protects a pod of one queue from pods of another, to which it is `open`. Only
    /// what they lack matters: a resource that is free is taken from no queue.
    pub(super) fn keeps_from(
        &self,
        cluster: &Cluster,
        (from, victim): (QueueId, ShapeId),
        (to, open): (QueueId, &[ResourceId]),
        (shape, pods): (ShapeId, i64),
        lacking: i64,
    ) -> Option<&'static str> {
        let deserved_there = |&(resource, _): &(ResourceId, i64)| {
            cluster.request_of(victim, resource) > 0
                && self.deserves_some(cluster, from, resource)
                && !self.has_too_much(cluster, from, to, resource)
        };
        let turned = |compared: &dyn Fn(ResourceId) -> bool| {
            self.turns_the_tables(cluster, shape, to, from, compared).then_some(OUTDONE)
        };
        let at_stake: Vec<ResourceId> = requested(cluster, shape)
            .filter(deserved_there)
            .map(|(resource, _)| resource)
            .collect();
        // Mostly neither rule applies, whatever is lacking.
        if at_stake.is_empty() && turned(&|_| true).is_none() {
            return None;
        }
        let lacks: Vec<ResourceId> = requested(cluster, shape)
            .filter(|&(resource, _)| is_scarce(cluster, shape, resource, lacking))
            .map(|(resource, _)| resource)
            .collect();
        let claimed: Vec<ResourceId> =
            open.iter().copied().filter(|resource| lacks.contains(resource)).collect();
        // What a queue deserves is not for one that deserves none of it, nor for one that has its
        // share and only needs other things, of which enough is free.
        let rights: Vec<ResourceId> = self.rights(cluster, to, (shape, pods)).collect();
        let is_barred = |&resource: &ResourceId| {
            let no_claim = claimed.is_empty() && !rights.contains(&resource);
            lacks.contains(&resource) && (no_claim || !self.deserves_some(cluster, to, resource))
        };
        if at_stake.iter().any(is_barred) {
            return Some(DESERVED);
        }
        // What a queue does not deserve at all it can neither keep nor take back.
        if claimed.iter().any(|&resource| !self.deserves_some(cluster, from, resource)) {
            return None;
        }
        match claimed.is_empty() {
            true => turned(&|_| true),
            false => turned(&|resource| lacks.contains(&resource)),
        }
    }

    /// Whether a queue, or an ancestor that may stand in for it, deserves any of a resource.
    fn deserves_some(&self, cluster: &Cluster, queue: QueueId, resource: ResourceId) -> bool {
        let spokesmen = self.spokesmen(cluster, queue);
        spokesmen.iter().any(|&queue| deserved(cluster, queue, resource) > 0)
    }

    /// A preemptor that would have more than it deserves of a resource must still have less of it
    /// than the queue that gives, or the two would reclaim from each other endlessly.
    fn turns_the_tables(
        &self,
        cluster: &Cluster,
        shape: ShapeId,
        to: QueueId,
        from: QueueId,
        compared: &dyn Fn(ResourceId) -> bool,
    ) -> bool {
        let (to, from) = self.parting(cluster, to, from);
        let request = &cluster.shapes[shape].request;
        let share = |queue: QueueId, more: bool| {
            let row = &cluster.queues[queue];
            let deserved = row.deserved.iter().filter(|&(id, _)| id != PODS && compared(id));
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

fn deserved(cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
    cluster.queues[queue].deserved.get(resource).unwrap_or(0)
}

/// Whether a queue has no more of a resource than it deserves with this much more.
fn within(cluster: &Cluster, queue: QueueId, (resource, want): (ResourceId, i64)) -> bool {
    let row = &cluster.queues[queue];
    row.deserved.get(resource).is_some_and(|most| row.taken(resource) + want <= most)
}

/// What a pod requests.
fn requested(cluster: &Cluster, shape: ShapeId) -> impl Iterator<Item = (ResourceId, i64)> {
    cluster.shapes[shape].request.iter().filter(|&(resource, _)| resource != PODS)
}

/// Whether too little of a resource is free, now or when terminating pods have left, for so many
/// pods: on nodes that are large enough for one, whatever else is free there.
pub(super) fn is_scarce(
    cluster: &Cluster,
    shape: ShapeId,
    resource: ResourceId,
    pods: i64,
) -> bool {
    let (nodes, want) = (&cluster.nodes, cluster.request_of(shape, resource));
    if want <= 0 {
        return false;
    }
    let mut left = pods;
    for node in nodes.live() {
        let holds = (nodes.future_idle(resource, node).max(0) / want).min(left);
        let large =
            || requested(cluster, shape).all(|(id, amount)| nodes.allocatable[id][node] >= amount);
        if holds > 0 && nodes.fact[node].lets_go() && large() {
            left -= holds;
            if left <= 0 {
                return false;
            }
        }
    }
    left > 0
}
