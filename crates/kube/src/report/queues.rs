//! The status of queues and their metrics: what each queue's gangs use, and how many of them are in
//! which phase.

use std::collections::{BTreeMap, HashMap};

use muster_api::{PodGroupPhase, Quantity, Queue, QueueStatus};
use muster_engine::Stage;
use muster_engine::ids::ResourceId;
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Origin;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::metrics::{ByQueue, Metrics, PHASES};
use crate::writes::{Patch, Target, Write};

/// What the objects of queues say.
#[derive(Default)]
pub struct QueueReporter {
    known: HashMap<String, Option<QueueStatus>>,
}

impl QueueReporter {
    pub fn hear(&mut self, queue: &Queue) {
        self.known.insert(queue.metadata.name.clone(), queue.status.clone());
    }

    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    pub fn tell(&mut self, cluster: &Cluster, metrics: &Metrics, writes: &UnboundedSender<Write>) {
        let counts = count_phases(cluster);
        show_queues(cluster, metrics, &counts);
        show_waiting(cluster, metrics);
        for (_, queue) in cluster.queues.iter().filter(|(_, queue)| queue.exists) {
            let Some(known) = self.known.get_mut(&*queue.name) else { continue };
            let [pending, inqueue, running, unknown, completed] =
                counts.get(&*queue.name).copied().unwrap_or_default();
            let held = queue.held.iter().filter(|&(_, amount)| amount != 0);
            let allocated = held.map(|(id, amount)| {
                (cluster.dimensions.name(id).to_owned(), quantity(cluster, id, amount))
            });
            let fresh = known.is_none();
            let old = known.clone().unwrap_or_default();
            let new = QueueStatus {
                allocated: allocated.collect(),
                pending,
                inqueue,
                running,
                unknown,
                completed,
                ..old.clone()
            };
            if old == new && !fresh {
                continue;
            }
            let body = queue_body(&old, &new, fresh);
            *known = Some(new);
            let _ = writes.send(Write::Patch(Patch::new(
                Target::Queue(queue.name.to_string()),
                "",
                body,
            )));
        }
    }
}

fn quantity(cluster: &Cluster, id: ResourceId, amount: i64) -> Quantity {
    match cluster.dimensions.name(id) {
        "cpu" => Quantity::from_milli(amount),
        _ => Quantity::from_units(amount),
    }
}

/// The queue controller owns the state; only a queue without any status is reported as open.
fn queue_body(old: &QueueStatus, new: &QueueStatus, fresh: bool) -> Value {
    let mut body = json!(new);
    let object = body.as_object_mut().expect("a struct");
    object.remove("reservation");
    if !fresh {
        object.remove("state");
    }
    let mut allocated = json!(new.allocated);
    for gone in old.allocated.keys().filter(|name| !new.allocated.contains_key(*name)) {
        allocated[gone] = Value::Null;
    }
    body["allocated"] = allocated;
    body
}

/// How many PodGroups of each queue are in each phase, in the order of [`PHASES`].
fn count_phases(cluster: &Cluster) -> BTreeMap<&str, [i32; PHASES.len()]> {
    let mut counts: BTreeMap<&str, [i32; PHASES.len()]> = BTreeMap::new();
    for (_, gang) in cluster.gangs.iter().filter(|(_, gang)| gang.origin == Origin::Group) {
        let place = match gang.phase {
            PodGroupPhase::Pending => 0,
            PodGroupPhase::Inqueue => 1,
            PodGroupPhase::Running => 2,
            PodGroupPhase::Unknown => 3,
            PodGroupPhase::Completed => 4,
        };
        counts.entry(&cluster.queues[gang.queue].name).or_default()[place] += 1;
    }
    counts
}

fn show_queues(cluster: &Cluster, metrics: &Metrics, counts: &BTreeMap<&str, [i32; PHASES.len()]>) {
    let queues = &metrics.queues;
    queues.clear();
    for (_, queue) in cluster.queues.iter().filter(|(_, queue)| queue.exists) {
        let name = &*queue.name;
        let resource = |id| cluster.dimensions.name(id);
        queue.held.iter().for_each(|(id, amount)| queues.allocated.set(name, resource(id), amount));
        queue
            .requested
            .iter()
            .for_each(|(id, amount)| queues.request.set(name, resource(id), amount));
        queue
            .deserved
            .iter()
            .for_each(|(id, amount)| queues.deserved.set(name, resource(id), amount));
        queue
            .capability
            .iter()
            .for_each(|(id, amount)| queues.capacity.set(name, resource(id), amount));
        let label = ByQueue { queue_name: name.to_owned() };
        queues.weight.get_or_create(&label).set(i64::from(queue.weight));
        let counted = counts.get(name).copied().unwrap_or_default();
        for (family, count) in queues.phases.iter().zip(counted) {
            family.get_or_create(&label).set(i64::from(count));
        }
    }
}

/// Gangs that wait, by the step that stopped them.
fn show_waiting(cluster: &Cluster, metrics: &Metrics) {
    let stages =
        [Stage::Reference, Stage::Admission, Stage::Gang, Stage::Quota, Stage::Order, Stage::Nodes];
    let mut waiting: BTreeMap<Stage, i64> = stages.into_iter().map(|stage| (stage, 0)).collect();
    for &gang in cluster.gangs.waiting() {
        if let Some(reason) = cluster.gangs[gang].reasons.first() {
            *waiting.entry(reason.stage()).or_default() += 1;
        }
    }
    metrics.unschedulable.set(waiting.values().sum());
    for (stage, count) in waiting {
        metrics.pending(stage.name(), count);
    }
}
