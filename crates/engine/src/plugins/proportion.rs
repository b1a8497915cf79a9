//! Queues share the cluster in proportion to their weights; none gets more than it deserves.

use std::cell::RefCell;
use std::cmp::Ordering;

use crate::base::ids::{GangId, PodId, QueueId, ResourceId, ShapeId, Table};
use crate::base::purpose::Purpose;
use crate::base::resources::{Amounts, PODS, Share};
use crate::base::room::Room;
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, Vote, answers};
use crate::policy::preemptor::Preemptor;
use crate::shares::admission::Admission;
use crate::shares::deserved::{by_weight, real_capability};

pub static ENTRY: Entry = Entry {
    name: "proportion",
    summary: "queues share the cluster in proportion to their weights",
    arguments: &[],
    differs: "Shares are divided per resource in whole units, so that no GPU is left over by rounding. Unset \
              resources of `capability` are unlimited. As there, a gang that is larger than what its queue deserves \
              waits even if the cluster is empty: `capacity` lends room instead.",
    build: |_, _| Box::new(Proportion::default()),
};

#[derive(Default)]
struct Proportion {
    deserved: PerEvent<Table<QueueId, Amounts>>,
}

impl Proportion {
    fn deserved(&self, cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
        self.deserved.with(cluster, by_weight, |table| table[queue].get(resource))
    }
}

/// A value that depends only on events and doesn't change within a cycle: computed when first
/// needed.
pub struct PerEvent<T>(RefCell<Option<(u64, T)>>);

impl<T> Default for PerEvent<T> {
    fn default() -> Self {
        PerEvent(RefCell::new(None))
    }
}

impl<T> PerEvent<T> {
    #[inline]
    pub fn with<R>(
        &self,
        cluster: &Cluster,
        find: impl FnOnce(&Cluster) -> T,
        read: impl FnOnce(&T) -> R,
    ) -> R {
        let mut kept = self.0.borrow_mut();
        match &*kept {
            Some((events, value)) if *events == cluster.events => read(value),
            _ => read(&kept.insert((cluster.events, find(cluster))).1),
        }
    }
}

#[answers]
impl Plugin for Proportion {
    fn queue_order(&self, cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
        let share = |queue| self.deserves(cluster, queue).map_or(Share::ZERO, |(_, share)| share);
        let priority = |queue: QueueId| cluster.queues[queue].priority;
        priority(b).cmp(&priority(a)).then_with(|| share(a).cmp(&share(b)))
    }

    fn enqueue(&self, cluster: &Cluster, admission: &Admission, gang: GangId) -> Vote {
        let queue = cluster.gangs[gang].queue;
        let votes = cluster.gangs[gang].awaited().into_iter().map(|(resource, want)| {
            let limit = real_capability(cluster, queue, resource);
            vote(cluster, admission, queue, ENTRY.name, (resource, want), limit)
        });
        votes.into_iter().find(|vote| matches!(vote, Vote::Reject(_))).unwrap_or(Vote::Permit)
    }

    fn overused(&self, cluster: &Cluster, queue: QueueId) -> Option<Reason> {
        let row = &cluster.queues[queue];
        let mut reached = None;
        for resource in
            (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&resource| resource != PODS)
        {
            let limit = self.deserved(cluster, queue, resource);
            let used = row.taken(resource);
            if used < limit {
                return None;
            }
            if limit > 0 {
                let lack = Lack { resource, want: 0, used, limit };
                reached.get_or_insert(lack);
            }
        }
        let lack = reached?;
        Some(Reason::OverLimit {
            plugin: ENTRY.name.into(),
            limit: Limit::Deserved(row.name.clone()),
            lack,
        })
    }

    fn may_allocate(
        &self,
        cluster: &Cluster,
        gang: GangId,
        shape: ShapeId,
        room: Room,
    ) -> Result<(), Reason> {
        let queue = cluster.gangs[gang].queue;
        for (resource, want) in
            cluster.shapes[shape].request.iter().filter(|&(resource, _)| resource != PODS)
        {
            let limit = self.deserved(cluster, queue, resource);
            let used = counted(cluster, queue, resource, room);
            if used + want > limit {
                let lack = Lack { resource, want, used, limit };
                let limit = Limit::Deserved(cluster.queues[queue].name.clone());
                return Err(Reason::OverLimit { plugin: ENTRY.name.into(), limit, lack });
            }
        }
        Ok(())
    }

    fn may_reclaim(&self, cluster: &Cluster, preemptor: &Preemptor) -> Option<Result<(), Reason>> {
        Some(self.may_allocate(
            cluster,
            preemptor.gang,
            cluster.pods.shape[preemptor.pod],
            Room::FutureIdle,
        ))
    }

    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        if preemptor.purpose != Purpose::Reclaim {
            return None;
        }
        let queue = cluster.gangs[cluster.pods.gang[victim]?].queue;
        keeps(cluster, preemptor, victim, queue, |resource| self.deserved(cluster, queue, resource))
    }

    fn deserves(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        let mut deserved = Amounts::default();
        let mut share = Share::ZERO;
        for resource in
            (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&resource| resource != PODS)
        {
            let amount = self.deserved(cluster, queue, resource);
            deserved.add(resource, amount);
            share = share.max(Share::of(cluster.queues[queue].claimed(resource), amount));
        }
        Some((deserved, share))
    }
}

/// Why a queue keeps a pod that another queue wants to evict: it has no more than it deserves of
/// what the preemptor requests, or would have less than its guarantee.
pub fn keeps(
    cluster: &Cluster,
    preemptor: &Preemptor,
    victim: PodId,
    queue: QueueId,
    deserved: impl Fn(ResourceId) -> i64,
) -> Option<&'static str> {
    let row = &cluster.queues[queue];
    let request = &cluster.shapes[cluster.pods.shape[preemptor.pod]].request;
    let mut asked =
        request.iter().map(|(resource, _)| resource).filter(|&resource| resource != PODS);
    if !asked.any(|resource| row.taken(resource) > deserved(resource)) {
        return Some("its queue's deserved share");
    }
    guarded(cluster, victim, queue)
}

/// Whether a queue would have less than its guarantee without a pod.
pub fn guarded(cluster: &Cluster, victim: PodId, queue: QueueId) -> Option<&'static str> {
    let row = &cluster.queues[queue];
    let short = |(resource, amount): (ResourceId, i64)| {
        row.guarantee.get(resource).is_some_and(|least| row.taken(resource) - amount < least)
    };
    cluster.shapes[cluster.pods.shape[victim]]
        .request
        .iter()
        .any(short)
        .then_some("its queue's guarantee")
}

/// What counts towards a queue's limit when a pod is placed in this room: what it has, and the
/// larger of what is still terminating and what is nominated to that room.
pub fn counted(cluster: &Cluster, queue: QueueId, resource: ResourceId, room: Room) -> i64 {
    let row = &cluster.queues[queue];
    let (leaving, nominated) = (row.leaving.get(resource), row.nominated.get(resource));
    row.held.get(resource)
        + match room {
            Room::Idle => leaving.max(nominated),
            Room::FutureIdle => nominated,
            Room::Backfill => leaving,
        }
}

/// Admits a gang if for each resource a queue (its own or one above) can hold what all admitted
/// gangs have and still need.
pub fn vote(
    cluster: &Cluster,
    admission: &Admission,
    queue: QueueId,
    plugin: &'static str,
    (resource, want): (ResourceId, i64),
    limit: i64,
) -> Vote {
    let row = &cluster.queues[queue];
    let used = row.claimed(resource) - admission.elastic[queue].get(resource);
    if want <= limit.saturating_sub(used) {
        return Vote::Permit;
    }
    let lack = Lack { resource, want, used, limit };
    let limit = Limit::Capability(row.name.clone());
    Vote::Reject(Reason::NotAdmitted { plugin: plugin.into(), limit, lack })
}
