//! What a run did, as data. Its JSON form is a contract (`docs/simulate-json.md`).

use muster_api::Time;
use muster_api::kinds::Object;
use muster_engine::Engine;
use muster_engine::ids::{GangId, QueueId};
use muster_facts::{GangLine, QueueLine, gang_line, queue_line};
use serde::Serialize;

use crate::world::Departure;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The time of the first cycle; with it a run can be repeated exactly.
    pub now: String,
    pub binds: Vec<Placement>,
    pub evictions: Vec<Eviction>,
    pub nominations: Vec<Placement>,
    pub held_nominations: Vec<HeldNomination>,
    pub gangs: Vec<GangLine>,
    pub queues: Vec<QueueLine>,
    pub cycles: Vec<CycleLine>,
    /// Pods that came with a deletionTimestamp later than the first cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub terminating: Vec<Terminating>,
    /// Each Job at the end of the run, by name; only if there are Jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobLine>,
    /// When Jobs changed their phase, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub job_changes: Vec<JobChange>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventLine>,
    /// When a gang began to wait, or to wait for another reason; `event` is the reason in one
    /// word.
    #[serde(skip)]
    pub waits: Vec<EventLine>,
    /// When a gang lost nominations; `event` says how many, and why.
    #[serde(skip)]
    pub lost_nominations: Vec<EventLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    pub pod: String,
    pub node: String,
    /// Where pods share cards: which, as the pod's annotation says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cards: Option<String>,
    pub cycle: u64,
}

/// A nomination that stands at the end of a cycle, whichever cycle made it.
#[derive(Clone, Debug, Serialize)]
pub struct HeldNomination {
    pub pod: String,
    pub node: String,
    pub cycle: u64,
    /// Whether pods were evicted there for it.
    pub evicted: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Eviction {
    pub pod: String,
    pub gang: String,
    pub node: String,
    pub cycle: u64,
    pub action: String,
    /// The gang that gets the room; none if the pod leaves for its own gang's sake.
    #[serde(rename = "for")]
    pub preemptor: Option<String>,
    pub reason: String,
    /// The node where the place of its successor is kept, if it is moved.
    #[serde(rename = "movesTo", skip_serializing_if = "Option::is_none")]
    pub moves_to: Option<String>,
    /// What the API server said if it refused; the pod stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Nothing for a pod that leaves within a second.
    #[serde(flatten)]
    pub leaves: Option<Leaves>,
}

/// When a pod leaves.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaves {
    /// When its room is free.
    pub terminated: String,
    /// When its object is gone, if a finalizer keeps it after that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// Its grace period, if it takes all of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<i64>,
}

impl From<Departure> for Leaves {
    fn from(departure: Departure) -> Leaves {
        let Departure { terminated, gone, grace_seconds } = departure;
        let gone = (gone > terminated).then(|| gone.to_string());
        Leaves { terminated: terminated.to_string(), gone, grace_seconds }
    }
}

/// A pod on a node that was being deleted before the first cycle.
#[derive(Clone, Debug, Serialize)]
pub struct Terminating {
    pub pod: String,
    pub gang: String,
    pub node: String,
    #[serde(flatten)]
    pub leaves: Leaves,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CycleLine {
    pub cycle: u64,
    pub now: String,
    /// The engine's time for this cycle alone.
    pub duration_micros: u64,
    pub binds: usize,
    pub evictions: usize,
    pub nominations: usize,
}

/// Something that happened between cycles, or to a gang in one.
#[derive(Clone, Debug, Serialize)]
pub struct EventLine {
    pub cycle: u64,
    pub object: String,
    pub event: String,
}

/// A Job came to a phase, or waits for something else than before.
#[derive(Clone, Debug, Serialize)]
pub struct JobChange {
    pub cycle: u64,
    pub job: String,
    pub phase: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A Job at the end of the run.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobLine {
    pub name: String,
    pub queue: String,
    pub phase: &'static str,
    pub message: String,
    pub retry_count: i32,
    pub pending: i32,
    pub running: i32,
    pub succeeded: i32,
    pub failed: i32,
}

impl JobLine {
    pub fn of(object: &Object) -> Option<JobLine> {
        let Object::Job(job) = object else { return None };
        let status = &job.status;
        let mut spec = job.spec.clone();
        spec.set_defaults();
        Some(JobLine {
            name: job.metadata.key(),
            queue: spec.queue,
            phase: status.state.phase.name(),
            message: status.state.message.clone(),
            retry_count: status.retry_count,
            pending: status.pending,
            running: status.running,
            succeeded: status.succeeded,
            failed: status.failed,
        })
    }
}

impl Report {
    pub fn new(now: Time) -> Report {
        Report { now: now.to_string(), ..Report::default() }
    }

    /// Fills in how things stand at the end.
    pub fn conclude(&mut self, engine: &Engine) {
        let cluster = engine.cluster();
        let mut gangs: Vec<GangId> = cluster.gangs.ids().collect();
        gangs.sort_by(|&a, &b| cluster.gangs[a].key.cmp(&cluster.gangs[b].key));
        self.gangs = gangs.iter().map(|&gang| gang_line(cluster, gang)).collect();
        let mut queues: Vec<QueueId> =
            cluster.queues.iter().filter(|(_, q)| q.exists).map(|(id, _)| id).collect();
        queues.sort_by(|&a, &b| cluster.queues[a].name.cmp(&cluster.queues[b].name));
        self.queues = queues.iter().map(|&queue| queue_line(engine, queue)).collect();
    }
}
