//! The Job: tasks of equal pods that start together, and what happens when pods fail, end or are
//! evicted.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::anonymise::{Class, Walk, tidy};
use crate::core::{Meta, Pod, is_default};
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, validate_job};
use crate::{NetworkTopologySpec, Time};

/// Tasks of equal pods that start together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    pub metadata: Meta,
    pub spec: JobSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: JobStatus,
}

/// What a Job runs, and what it does when its pods fail or end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    /// The scheduler of pods whose template names none.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub scheduler_name: String,
    /// How many pods must be placed before any of them starts, and how many must succeed; 0 means
    /// the sum of what the tasks need.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub min_available: i32,
    /// Volumes that every container mounts.
    #[serde(skip_serializing_if = "is_default")]
    pub volumes: Vec<JobVolume>,
    /// The kinds of pods of the Job.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub tasks: Vec<TaskSpec>,
    /// What happens when pods fail, end or are evicted, where the task says nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub policies: Vec<LifecyclePolicy>,
    /// Job plugins with their arguments, for example `svc: []`.
    #[serde(skip_serializing_if = "is_default")]
    pub plugins: BTreeMap<String, Vec<String>>,
    /// How long the Job is expected to run, for example 90m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_estimate: Option<String>,
    /// The queue whose share the Job uses.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::queue_name"))]
    pub queue: String,
    /// How often the Job, or a part of it, is restarted before it has failed.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0), extend("default" = 3)))]
    pub max_retry: i32,
    /// How long a finished Job is kept; unset means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::count"))]
    pub ttl_seconds_after_finished: Option<i32>,
    /// The PriorityClass of the Job, and of pods whose template names none.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub priority_class_name: String,
    /// The Job is completed as soon as this many pods have succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::positive"))]
    pub min_success: Option<i32>,
    /// How close to each other the pods must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
}

/// A claim that every container of the Job mounts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobVolume {
    /// Where the containers see it.
    #[serde(skip_serializing_if = "is_default")]
    pub mount_path: String,
    /// The claim; where it is missing and volumeClaim says what is wanted, one is made.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(length(max = 253)))]
    pub volume_claim_name: String,
    /// The spec of a claim that belongs to the Job and goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::anything"))]
    pub volume_claim: Option<Value>,
}

/// Equal pods of a Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TaskSpec {
    /// The name of the task, which is a part of the names of its pods.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(length(max = 63)))]
    pub name: String,
    /// How many pods the task has.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub replicas: i32,
    /// How many pods of the task must be placed before any of them starts; unset means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::count"))]
    pub min_available: Option<i32>,
    /// The pods of the task.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::anything"))]
    pub template: Value,
    /// What happens when pods of the task fail, end or are evicted.
    #[serde(skip_serializing_if = "is_default")]
    pub policies: Vec<LifecyclePolicy>,
    /// How pods are laid out in the NUMA nodes of a machine: none, best-effort, restricted or
    /// single-numa-node.
    #[serde(skip_serializing_if = "is_default")]
    pub topology_policy: String,
    /// How often the containers of the task may restart before the event TaskFailed; -1 means any
    /// number.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = -1)))]
    pub max_retry: i32,
    /// The tasks that must run before pods of this task are created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<DependsOn>,
    /// Cuts the pods of the task into partitions of equal size, which are close to each other and
    /// can be restarted alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_policy: Option<PartitionPolicy>,
}

/// The tasks that must run first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct DependsOn {
    /// The names of tasks of the same Job.
    #[serde(skip_serializing_if = "is_default")]
    pub name: Vec<String>,
    /// any: one of the tasks is enough. all: all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub iteration: String,
}

/// How a task is cut into partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PartitionPolicy {
    /// How many partitions there are.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub total_partitions: i32,
    /// How many pods a partition has.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub partition_size: i32,
    /// How many partitions must be placed before the Job starts.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub min_partitions: i32,
    /// How close to each other the pods of a partition must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopologySpec>,
}

/// What happens after an event: the first policy that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LifecyclePolicy {
    /// AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob
    /// or ResumeJob.
    #[serde(skip_serializing_if = "is_default")]
    pub action: String,
    /// PodFailed, PodEvicted, PodPending, Unknown, TaskCompleted, TaskFailed, or * for any.
    #[serde(skip_serializing_if = "is_default")]
    pub event: String,
    /// Several events at once.
    #[serde(skip_serializing_if = "is_default")]
    pub events: Vec<String>,
    /// The exit code of a container that failed, instead of an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::number"))]
    pub exit_code: Option<i32>,
    /// How long the event must last before the action is taken, for example 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::text"))]
    pub timeout: Option<String>,
}

/// How far a Job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    /// The phase, why it is so, and since when.
    #[serde(skip_serializing_if = "is_default")]
    pub state: JobState,
    /// minAvailable as it was last taken from the spec.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub min_available: i32,
    /// Counts of pods by task and phase.
    #[serde(skip_serializing_if = "is_default")]
    pub task_status_count: BTreeMap<String, TaskCount>,
    /// How many pods wait for a node or for their containers.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub pending: i32,
    /// How many pods run.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub running: i32,
    /// How many pods have succeeded.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub succeeded: i32,
    /// How many pods have failed.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub failed: i32,
    /// How many pods have been asked to leave and are still there.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub terminating: i32,
    /// How many pods are on nodes that are out of reach.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub unknown: i32,
    /// Rises each time that all pods are ended; pods of an older version do not count.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub version: i32,
    /// How often the Job, or a part of it, has been restarted or resumed.
    #[serde(skip_serializing_if = "is_default")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub retry_count: i32,
    /// From the creation of the Job to its last change of phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::text"))]
    pub running_duration: Option<String>,
    /// What was made for the Job beside its pods: plugins and claims.
    #[serde(skip_serializing_if = "is_default")]
    pub controlled_resources: BTreeMap<String, String>,
    /// When the Job reached each of its phases, the newest last.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: Vec<JobCondition>,
}

/// The phase of a Job, why it is so, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobState {
    /// The phase of the Job.
    #[serde(skip_serializing_if = "is_default")]
    pub phase: JobPhase,
    /// One word for why the Job is in this phase.
    #[serde(skip_serializing_if = "is_default")]
    pub reason: String,
    /// Why the Job is in this phase, or what it waits for.
    #[serde(skip_serializing_if = "is_default")]
    pub message: String,
    /// When the Job reached this phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// How far a Job is; without a word it is pending.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum JobPhase {
    /// Not all pods that it needs have started.
    #[default]
    #[serde(alias = "")]
    Pending,
    Running,
    /// Pods are ended so that they can be created again.
    Restarting,
    /// Pods are ended; the Job can be resumed.
    Aborting,
    Aborted,
    /// Pods are ended, with success.
    Completing,
    Completed,
    /// Pods are ended for good.
    Terminating,
    Terminated,
    Failed,
}

impl JobPhase {
    pub fn name(self) -> &'static str {
        match self {
            JobPhase::Pending => "Pending",
            JobPhase::Running => "Running",
            JobPhase::Restarting => "Restarting",
            JobPhase::Aborting => "Aborting",
            JobPhase::Aborted => "Aborted",
            JobPhase::Completing => "Completing",
            JobPhase::Completed => "Completed",
            JobPhase::Terminating => "Terminating",
            JobPhase::Terminated => "Terminated",
            JobPhase::Failed => "Failed",
        }
    }

    /// A Job never leaves these.
    pub fn is_final(self) -> bool {
        matches!(self, JobPhase::Completed | JobPhase::Failed | JobPhase::Terminated)
    }
}

/// Counts of the pods of a task by phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct TaskCount {
    /// How many pods are in each phase.
    #[serde(skip_serializing_if = "is_default")]
    pub phase: BTreeMap<String, i32>,
}

/// When a Job reached a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobCondition {
    /// The phase.
    pub status: JobPhase,
    /// When the Job last reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

impl Contents for Job {
    fn problems(&self) -> Vec<Problem> {
        let mut job = self.clone();
        job.set_defaults();
        validate_job(&job)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let Job { metadata, spec, status } = self;
        walk.meta(Class::Work, metadata);
        spec.visit_names(walk);
        let JobStatus { state, task_status_count, controlled_resources, .. } = status;
        tidy(&mut state.reason, &mut state.message);
        for (mut task, count) in std::mem::take(task_status_count) {
            walk.name(Class::Role, &mut task);
            task_status_count.insert(task, count);
        }
        controlled_resources.clear();
    }
}

impl JobSpec {
    pub(crate) fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let JobSpec {
            scheduler_name,
            min_available: _,
            volumes,
            tasks,
            policies: _,
            plugins,
            running_estimate: _,
            queue,
            max_retry: _,
            ttl_seconds_after_finished: _,
            priority_class_name,
            min_success: _,
            network_topology,
        } = self;
        walk.name(Class::Scheduler, scheduler_name);
        volumes.clear();
        // Arguments hold names, and may hold keys; and no plugin changes where pods run.
        plugins.clear();
        walk.name(Class::Queue, queue);
        walk.name(Class::PriorityClass, priority_class_name);
        if let Some(topology) = network_topology {
            walk.names(Class::Tier, &mut topology.highest_tier_name);
        }
        for task in tasks {
            walk.name(Class::Role, &mut task.name);
            task.template = anonymous_template(&task.template, walk);
            let before = task.depends_on.iter_mut().flat_map(|before| &mut before.name);
            walk.names(Class::Role, before);
            let topology = task
                .partition_policy
                .iter_mut()
                .filter_map(|policy| policy.network_topology.as_mut());
            walk.names(
                Class::Tier,
                topology.filter_map(|topology| topology.highest_tier_name.as_mut()),
            );
        }
    }
}

/// What scheduling needs of a template. Otherwise it holds environments, images and whatever a newer
/// Kubernetes knows.
fn anonymous_template(template: &Value, walk: &mut Walk<'_>) -> Value {
    let Ok(mut pod) = serde_json::from_value::<Pod>(template.clone()) else { return Value::Null };
    pod.visit_names(walk);
    let Meta { labels, annotations, .. } = &pod.metadata;
    json!({ "metadata": { "labels": labels, "annotations": annotations }, "spec": pod.spec })
}
