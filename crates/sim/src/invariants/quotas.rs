//! What queues have, added up over pods, and what they may have at most.

use std::collections::BTreeSet;

use muster_engine::ids::{PodId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::model::queues;
use muster_engine::{Decisions, Engine};

use super::facts::{self, dimensions, has_queue_tree, queue_and_above};
use crate::violation::{Invariant, Violation};

/// What the gangs of a queue have of a resource; in a tree, also those of the queues below it.
#[derive(Default)]
pub struct Taken {
    /// Bound or running.
    pub held: i64,
    /// Nominated, or reserved for pods that will be created again.
    pub nominated: i64,
    pub leaving: i64,
}

/// The queues whose limits hold for work in a queue: it, and in a tree those above it.
pub fn levels(engine: &Engine, queue: QueueId) -> Vec<QueueId> {
    let mut line = queue_and_above(engine.cluster(), queue);
    if !has_queue_tree(engine) {
        line.truncate(1);
    }
    line
}

/// Adds up what a queue has, pod by pod; only what non-preemptable gangs have, if so wanted.
pub fn taken(engine: &Engine, queue: QueueId, resource: ResourceId, protected: bool) -> Taken {
    let cluster = engine.cluster();
    let mut taken = Taken::default();
    for (_, gang) in cluster.gangs.iter() {
        if protected && !gang.protected || !levels(engine, gang.queue).contains(&queue) {
            continue;
        }
        for &pod in &gang.pods {
            let amount = cluster.request_of(cluster.pods.shape[pod], resource);
            match cluster.pods.state[pod] {
                PodState::Allocated(_) | PodState::Running(_) => taken.held += amount,
                PodState::Nominated(_) => taken.nominated += amount,
                PodState::Releasing(_) => taken.leaving += amount,
                _ => {}
            }
        }
        let reserved = gang.reserved().iter();
        taken.nominated += reserved.filter_map(|place| place.request.get(resource)).sum::<i64>();
    }
    taken
}

/// The most that a queue may have: its capability, and what the guarantees of others leave. In a
/// tree these are its siblings, of what the queue above may have.
fn limit(engine: &Engine, queue: QueueId, resource: ResourceId) -> i64 {
    let cluster = engine.cluster();
    let row = &cluster.queues[queue];
    let own = row.capability.get(resource).unwrap_or(i64::MAX);
    let above = |queue: QueueId| queue_and_above(cluster, queue).get(1).copied();
    let tree = has_queue_tree(engine);
    if tree && above(queue).is_none() {
        return own;
    }
    let others = cluster.queues.iter().filter(|(id, other)| {
        *id != queue && other.exists && (!tree || above(*id) == above(queue))
    });
    let guaranteed: i64 = others.filter_map(|(_, other)| other.guarantee.get(resource)).sum();
    if guaranteed == 0 {
        return own;
    }
    let total = cluster.total.get(resource);
    let all = match above(queue).filter(|_| tree) {
        Some(parent) => limit(engine, parent, resource).min(total),
        None => total,
    };
    own.min((all - guaranteed).max(row.guarantee.get(resource).unwrap_or(0)))
}

/// What non-preemptable gangs of a queue may have together, if the configuration limits them: what
/// it deserves or is guaranteed. A queue that names nothing deserves nothing.
fn protected_limit(cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
    let row = &cluster.queues[queue];
    let named = row.deserved.get(resource).max(row.guarantee.get(resource));
    let silent = row.deserved.is_empty() && row.guarantee.is_empty() && queue != queues::ROOT;
    let nothing = silent && cluster.dimensions.name(resource) != "pods";
    named.unwrap_or(if nothing { 0 } else { i64::MAX })
}

fn limits_non_preemptable(engine: &Engine) -> bool {
    facts::plugin(engine, "capacity", |on| on.may_allocate)
        .is_some_and(|plugin| facts::flag(plugin, "nonPreemptibleWithinDeserved", false))
}

fn limits_queues(engine: &Engine) -> bool {
    ["capacity", "proportion"]
        .iter()
        .any(|name| facts::plugin(engine, name, |on| on.may_allocate).is_some())
}

/// The plan takes no queue above its limits, in any dimension that it binds; in a tree the same
/// holds for the queues above.
pub fn no_queue_is_over(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    if !limits_queues(engine) {
        return Ok(());
    }
    // Each queue, resource and kind of gang once, for the first pod that is bound there.
    let mut seen: BTreeSet<(QueueId, ResourceId, bool)> = BTreeSet::new();
    for bind in &plan.binds {
        let Some(gang) = cluster.pods.gang[bind.pod].map(|gang| &cluster.gangs[gang]) else {
            continue;
        };
        for queue in levels(engine, gang.queue) {
            for (resource, _) in cluster.shapes[cluster.pods.shape[bind.pod]].request.iter() {
                let protected = gang.protected && limits_non_preemptable(engine);
                if !seen.insert((queue, resource, protected)) {
                    continue;
                }
                let most = limit(engine, queue, resource);
                let all = taken(engine, queue, resource, false);
                // What is nominated waits for what leaves, so that the two are not added.
                let mut cases = vec![(all.held + all.leaving.max(all.nominated), most)];
                if protected {
                    let kept = taken(engine, queue, resource, true);
                    let most = protected_limit(cluster, queue, resource);
                    cases.push((kept.held + kept.nominated, most));
                }
                if let Some((taken, most)) = cases.into_iter().find(|(taken, most)| taken > most) {
                    let (pod, queue) = (cluster.pods.name(bind.pod), &cluster.queues[queue].name);
                    let show = |amount: i64| cluster.dimensions.show(resource, amount);
                    return Invariant::QueueLimit.fails(format!(
                        "binding {pod} takes queue {queue} to {} of {} {}",
                        show(taken),
                        show(most),
                        cluster.dimensions.name(resource)
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether the queue of a pod that leaves could have it as well as all that it has by now. What
/// `proportion` would say can't be told from sums.
pub fn could_have_it_as_well(engine: &Engine, pod: PodId) -> bool {
    let cluster = engine.cluster();
    if facts::plugin(engine, "proportion", |on| on.may_allocate).is_some() {
        return false;
    }
    let Some(gang) = cluster.pods.gang[pod].map(|gang| &cluster.gangs[gang]) else { return true };
    if !limits_queues(engine) {
        return true;
    }
    let fits = |queue: QueueId, resource: ResourceId, want: i64| {
        let with = |protected: bool| {
            let taken = taken(engine, queue, resource, protected);
            taken.held + taken.nominated + want
        };
        with(false) <= limit(engine, queue, resource)
            && (!gang.protected
                || !limits_non_preemptable(engine)
                || with(true) <= protected_limit(cluster, queue, resource))
    };
    let request = &cluster.shapes[cluster.pods.shape[pod]].request;
    levels(engine, gang.queue)
        .into_iter()
        .all(|queue| request.iter().all(|(resource, want)| fits(queue, resource, want)))
}

/// Whether some limit of its queues is about a pod: a capability, what is guaranteed to another
/// queue, or a share by weight.
pub fn is_limited(engine: &Engine, pod: PodId) -> bool {
    let cluster = engine.cluster();
    let by_weight = facts::plugin(engine, "proportion", |_| true).is_some();
    let Some(gang) = cluster.pods.gang[pod] else { return false };
    let line = queue_and_above(cluster, cluster.gangs[gang].queue);
    let asked = &cluster.shapes[cluster.pods.shape[pod]].request;
    let limits = |resource: ResourceId| {
        let guaranteed = |queue: &queues::Queue| queue.guarantee.get(resource).is_some();
        let capped = |&queue: &QueueId| cluster.queues[queue].capability.get(resource).is_some();
        line.iter().any(capped) || cluster.queues.iter().any(|(_, queue)| guaranteed(queue))
    };
    by_weight || dimensions(cluster).any(|id| asked.get(id).is_some() && limits(id))
}
