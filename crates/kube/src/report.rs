//! What the cluster should be told about gangs, pods, queues and HyperNodes, and what has been
//! written already. Only changes are written: a new reason at once, new numbers in an old reason
//! now and then.

mod hypernodes;
mod queues;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use muster_api::core::Pod;
use muster_api::kinds::{Kind, Object};
use muster_api::{PodGroup, PodGroupCondition, PodGroupStatus};
use muster_engine::ids::GangId;
use muster_engine::model::Cluster;
use muster_engine::model::gangs::{Gang, Origin};
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Event, Reason, Stage, status};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use self::hypernodes::HyperNodeReporter;
use self::queues::QueueReporter;
use crate::clock::wall_clock;
use crate::metrics::Metrics;
use crate::writes::{Patch, Record, Target, Write};

/// How often the counts in a PodGroup's status are renewed, and the numbers in its message.
const COUNTS: Duration = Duration::from_secs(1);
const NUMBERS: Duration = Duration::from_secs(10);
/// How long the status of a gang may wait for pods that leave.
const LEAVING: Duration = Duration::from_secs(10);
/// A younger reason may be gone before anyone reads it.
const YOUNG_MS: i64 = 1_000;
/// The pods of a new gang are created one by one, and the API server stores their age in seconds:
/// this long after the last one, no more are expected soon.
const GROWS_MS: i64 = 2_000;
/// How often queues and HyperNodes are checked.
const LOOKS: Duration = Duration::from_secs(1);

/// Cluster autoscalers add nodes for pods with this reason, so only pods that lack nodes get it.
const UNSCHEDULABLE: &str = "Unschedulable";

pub struct Reporter {
    writes: UnboundedSender<Write>,
    groups: HashMap<String, Known>,
    /// The reason in the `PodScheduled` condition of waiting pods.
    marks: HashMap<String, String>,
    queues: QueueReporter,
    /// Gangs whose status is out of date but must wait: for binds, for pods that leave, or for time
    /// to pass.
    held: BTreeSet<GangId>,
    /// Gangs of which pods leave, and since when nothing is written for that.
    leaving: HashMap<GangId, Instant>,
    hyper_nodes: HyperNodeReporter,
    next_look: Instant,
    /// The model's generation when queues and HyperNodes were last checked.
    seen: u64,
}

/// What a PodGroup's object says.
struct Known {
    uid: String,
    status: PodGroupStatus,
    written: Option<Instant>,
    /// The condition for which the last event was written: its type and reason.
    recorded: Option<(String, String)>,
    /// Warnings for the owner, each to be reported once.
    remarks: Vec<String>,
}

impl Reporter {
    pub fn new(writes: UnboundedSender<Write>) -> Reporter {
        Reporter {
            writes,
            groups: HashMap::new(),
            marks: HashMap::new(),
            queues: QueueReporter::default(),
            held: BTreeSet::new(),
            leaving: HashMap::new(),
            hyper_nodes: HyperNodeReporter::default(),
            next_look: Instant::now(),
            seen: 0,
        }
    }

    /// Remembers what an object says.
    pub fn hear(&mut self, event: &Event) {
        match event {
            Event::Object(object) => self.hear_object(object),
            Event::Gone { kind: Kind::Pod, key, .. } => drop(self.marks.remove(key)),
            Event::Gone { kind: Kind::PodGroup, key, .. } => drop(self.groups.remove(key)),
            Event::Gone { kind: Kind::Queue, key, .. } => self.queues.forget(key),
            Event::Gone { kind: Kind::HyperNode, key, .. } => self.hyper_nodes.forget(key),
            _ => {}
        }
    }

    fn hear_object(&mut self, object: &Object) {
        match object {
            Object::Pod(pod) => self.hear_pod(pod),
            Object::PodGroup(group) => self.hear_group(group, object),
            Object::Queue(queue) => self.queues.hear(queue),
            Object::HyperNode(domain) => self.hyper_nodes.hear(domain),
            _ => {}
        }
    }

    fn hear_pod(&mut self, pod: &Pod) {
        let waits = pod.spec.node_name.is_none();
        let condition =
            pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled");
        match condition.filter(|condition| waits && condition.status == "False") {
            Some(condition) => {
                drop(self.marks.insert(pod.metadata.key(), condition.reason.clone()))
            }
            None => drop(self.marks.remove(&pod.metadata.key())),
        }
    }

    fn hear_group(&mut self, group: &PodGroup, object: &Object) {
        let meta = &group.metadata;
        let status = group.status.clone().unwrap_or_default();
        match self.groups.get_mut(&meta.key()).filter(|known| known.uid == meta.uid) {
            Some(known) => known.status = status,
            None => {
                let recorded =
                    word(&status).map(|(kind, reason)| (kind.to_owned(), reason.to_owned()));
                // A PodGroup with a condition has been reported before.
                let remarks = if recorded.is_none() { object.remarks() } else { Vec::new() };
                let (key, uid) = (meta.key(), meta.uid.clone());
                self.groups.insert(key, Known { uid, status, written: None, recorded, remarks });
            }
        }
    }

    /// Writes what a cycle has changed, and what was held back and is due now. Returns when to call
    /// again.
    pub fn tell(&mut self, engine: &Engine, now: Instant) -> Option<Instant> {
        let cluster = engine.cluster();
        let mut gangs = std::mem::take(&mut self.held);
        gangs.extend(&engine.decisions().updates);
        let mut again: Option<Instant> = None;
        for id in gangs {
            let gang = &cluster.gangs[id];
            if !gang.live {
                self.leaving.remove(&id);
                continue;
            }
            // While binds are under way their outcome is unknown.
            if gang.counts.allocated > 0 {
                self.held.insert(id);
                continue;
            }
            let young = young(cluster, gang);
            let due = match self.until_left(gang, id, young, now) {
                Some(due) => Some(due),
                None if gang.origin == Origin::Group => self.tell_group(cluster, id, young, now),
                None => None,
            };
            if young.is_none() {
                self.mark_pods(cluster, gang);
            }
            if let Some(due) = [due, young.map(|left| now + left)].into_iter().flatten().min() {
                self.held.insert(id);
                again = Some(again.map_or(due, |known| known.min(due)));
            }
        }
        again
    }

    /// While pods of a gang leave, its counts change with each, and then its reason: one write says
    /// all of it. Returns when it must not wait any longer.
    fn until_left(
        &mut self,
        gang: &Gang,
        id: GangId,
        young: Option<Duration>,
        now: Instant,
    ) -> Option<Instant> {
        let leaves = gang.counts.releasing > 0;
        let since = match self.leaving.entry(id) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) if leaves => *entry.insert(now),
            Entry::Vacant(_) => return None,
        };
        let due = since + LEAVING;
        if due > now && (leaves || young.is_some()) {
            return Some(due);
        }
        self.leaving.remove(&id);
        None
    }

    /// Writes a PodGroup's status if it has changed; or returns when to.
    fn tell_group(
        &mut self,
        cluster: &Cluster,
        id: GangId,
        young: Option<Duration>,
        now: Instant,
    ) -> Option<Instant> {
        let gang = &cluster.gangs[id];
        let mut status = status::of(cluster, id)?;
        let known = self.groups.get_mut(&*gang.key).filter(|known| *known.uid == *gang.uid)?;
        for note in std::mem::take(&mut known.remarks) {
            let record = record_of(gang, true, "Remark", note);
            let _ = self.writes.send(Write::Record(record));
        }
        if young.is_some() {
            status.conditions.clone_from(&known.status.conditions);
        } else if let Some((kind, reason)) = word(&status)
            && known
                .recorded
                .as_ref()
                .is_none_or(|(k, r)| (k.as_str(), r.as_str()) != (kind, reason))
        {
            known.recorded = Some((kind.to_owned(), reason.to_owned()));
            let record = group_record(gang, &status);
            record.into_iter().for_each(|record| drop(self.writes.send(Write::Record(record))));
        }
        let same_word = word(&known.status) == word(&status) && known.status.phase == status.phase;
        let same_counts = counts(&known.status) == counts(&status);
        if same_word && same_counts && message(&known.status) == message(&status) {
            return None;
        }
        let patience = if same_counts { NUMBERS } else { COUNTS };
        let due = known.written.map(|written| written + patience).filter(|_| same_word);
        if let Some(due) = due.filter(|due| *due > now) {
            return Some(due);
        }
        let mut body = json!(status);
        body["conditions"] = json!(status.conditions);
        known.status = status;
        known.written = Some(now);
        let patch = Patch::new(Target::PodGroup(gang.key.to_string()), &gang.uid, body);
        let _ = self.writes.send(Write::Patch(patch));
        None
    }

    /// Writes the same condition on all pods of a waiting gang.
    fn mark_pods(&mut self, cluster: &Cluster, gang: &Gang) {
        let (Some(false), Some(reason)) = (gang.condition.scheduled, gang.reasons.first()) else {
            return;
        };
        let word =
            if reason.stage() == Stage::Nodes { UNSCHEDULABLE } else { &gang.condition.reason };
        for &pod in &gang.pods {
            let fact = &cluster.pods.fact[pod];
            let marked = self.marks.get(&*fact.key).is_some_and(|mark| mark == word);
            if marked || cluster.pods.state[pod] != PodState::Pending {
                continue;
            }
            self.marks.insert(fact.key.to_string(), word.to_owned());
            let condition = json!({
                "type": "PodScheduled",
                "status": "False",
                "reason": word,
                "message": gang.condition.message,
                "lastTransitionTime": gang.condition.since,
            });
            let status = json!({ "conditions": [condition] });
            let patch = Patch::new(Target::Pod(fact.key.to_string()), &fact.uid, status);
            let _ = self.writes.send(Write::Patch(patch));
            if gang.origin != Origin::Group {
                let note = gang.condition.message.clone();
                self.record_pod(&fact.key, &fact.uid, true, "FailedScheduling", note);
            }
        }
    }

    /// A pod without a PodGroup has been bound. For a gang, the PodGroup says so.
    pub fn bound(&self, key: &str, uid: &str, node: &str) {
        self.record_pod(key, uid, false, "Scheduled", format!("assigned {key} to {node}"));
    }

    /// A pod has been evicted.
    pub fn evicted(&self, key: &str, uid: &str, cause: String) {
        self.record_pod(key, uid, true, "Evict", cause);
    }

    fn record_pod(&self, key: &str, uid: &str, warning: bool, reason: &'static str, note: String) {
        let (key, uid) = (key.to_owned(), uid.to_owned());
        let record = Record { kind: "Pod", api_version: "v1", key, uid, warning, reason, note };
        let _ = self.writes.send(Write::Record(record));
    }

    /// Checks queues and HyperNodes once in a while, if anything has happened. Returns when to call
    /// again.
    pub fn look_around(
        &mut self,
        engine: &Engine,
        metrics: &Metrics,
        now: Instant,
    ) -> Option<Instant> {
        let cluster = engine.cluster();
        if cluster.generation == self.seen {
            return None;
        }
        if now < self.next_look {
            return Some(self.next_look);
        }
        self.seen = cluster.generation;
        self.next_look = now + LOOKS;
        self.queues.tell(cluster, metrics, &self.writes);
        self.hyper_nodes.tell(cluster, &self.writes);
        None
    }
}

/// How long until a gang's reason to wait should be reported.
fn young(cluster: &Cluster, gang: &Gang) -> Option<Duration> {
    let since = gang.condition.since.filter(|_| gang.condition.scheduled == Some(false))?;
    let grows = matches!(
        gang.reasons.first(),
        Some(Reason::NotEnoughPods { .. } | Reason::NotEnoughOfRole { .. })
    );
    let newest =
        gang.pods.iter().filter(|_| grows).map(|&pod| cluster.pods.fact[pod].created).max();
    let told = newest.map_or(since, |created| since.max(created.plus_ms(GROWS_MS - YOUNG_MS)));
    let left = told.plus_ms(YOUNG_MS).0 - wall_clock().0;
    (left > 0).then(|| Duration::from_millis(left as u64))
}

fn condition(status: &PodGroupStatus) -> Option<&PodGroupCondition> {
    status.conditions.iter().rfind(|condition| condition.status == "True")
}

/// The text of a status without its numbers.
fn word(status: &PodGroupStatus) -> Option<(&str, &str)> {
    condition(status).map(|condition| (condition.kind.as_str(), condition.reason.as_str()))
}

fn message(status: &PodGroupStatus) -> Option<&str> {
    condition(status).map(|condition| condition.message.as_str())
}

fn counts(status: &PodGroupStatus) -> (i32, i32, i32) {
    (status.running, status.succeeded, status.failed)
}

fn group_record(gang: &Gang, status: &PodGroupStatus) -> Option<Record> {
    let condition = condition(status)?;
    let scheduled = condition.kind == "Scheduled";
    let placed = gang.counts.ready();
    let note = match scheduled {
        true => format!(
            "{placed} of {} pods are bound, at least {} needed",
            gang.counts.all(),
            gang.minimum
        ),
        false => condition.message.clone(),
    };
    let reason = if scheduled { "Scheduled" } else { "FailedScheduling" };
    Some(record_of(gang, !scheduled, reason, note))
}

fn record_of(gang: &Gang, warning: bool, reason: &'static str, note: String) -> Record {
    Record {
        kind: "PodGroup",
        api_version: "scheduling.volcano.sh/v1beta1",
        key: gang.key.to_string(),
        uid: gang.uid.to_string(),
        warning,
        reason,
        note,
    }
}

#[cfg(test)]
mod tests;
