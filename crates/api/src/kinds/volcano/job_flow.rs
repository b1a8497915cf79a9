//! The JobFlow: Jobs that run one after the other, each made from a JobTemplate.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::anonymise::{Class, Walk};
use crate::core::{Meta, is_default};
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, Problems, validate_job_flow, validate_job_spec};
use crate::{JobPhase, JobSpec, TaskCount, Time};

/// Jobs that run one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFlow {
    pub metadata: Meta,
    pub spec: JobFlowSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: JobFlowStatus,
}

/// The steps of a JobFlow, and what becomes of their Jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobFlowSpec {
    /// The steps.
    #[serde(skip_serializing_if = "is_default")]
    pub flows: Vec<Flow>,
    /// What becomes of the Jobs when all have succeeded: retain (also when unset) or delete.
    #[serde(skip_serializing_if = "is_default")]
    pub job_retain_policy: String,
}

/// A step of a JobFlow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Flow {
    /// The name of the step, and of the JobTemplate of its Job.
    pub name: String,
    /// What must have happened before the Job is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depends_on: Option<FlowDependsOn>,
    /// What the Job has otherwise than its template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<FlowPatch>,
}

/// What must have happened before the Job of a step is made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct FlowDependsOn {
    /// The steps whose Jobs must be completed, or pass the probe.
    #[serde(skip_serializing_if = "is_default")]
    pub targets: Vec<String>,
    /// Asks the pods of the targets whether they are ready, instead of waiting for their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<FlowProbe>,
}

/// Asks the pods of Jobs whether they are ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlowProbe {
    /// Pages that must answer with success.
    #[serde(skip_serializing_if = "is_default")]
    pub http_get_list: Vec<HttpProbe>,
    /// Ports that must accept connections.
    #[serde(skip_serializing_if = "is_default")]
    pub tcp_socket_list: Vec<TcpProbe>,
    /// Phases that pods of tasks must have.
    #[serde(skip_serializing_if = "is_default")]
    pub task_status_list: Vec<TaskProbe>,
}

/// A page that must answer with success.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HttpProbe {
    /// The task whose pods are asked.
    pub task_name: String,
    /// The path of the page.
    pub path: String,
    /// The port.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
    pub port: i32,
    /// A header of the request.
    #[serde(rename = "httpHeader", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::anything"))]
    pub header: Option<Value>,
}

/// A port that must accept connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TcpProbe {
    /// The task whose pods are asked.
    pub task_name: String,
    /// The port.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65535)))]
    pub port: i32,
}

/// A phase that the pods of a task must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TaskProbe {
    /// The task.
    pub task_name: String,
    /// The phase of a pod, for example Running.
    pub phase: String,
}

/// What the Job of a step has otherwise than its template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlowPatch {
    /// Fields of the Job's spec that take the place of those of the template; lists are replaced
    /// as a whole, but tasks are matched by name.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::anything"))]
    pub job_spec: Value,
}

/// How far a JobFlow is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobFlowStatus {
    /// Jobs that are pending.
    #[serde(skip_serializing_if = "is_default")]
    pub pending_jobs: Vec<String>,
    /// Jobs that run.
    #[serde(skip_serializing_if = "is_default")]
    pub running_jobs: Vec<String>,
    /// Jobs that have failed.
    #[serde(skip_serializing_if = "is_default")]
    pub failed_jobs: Vec<String>,
    /// Jobs that are completed.
    #[serde(skip_serializing_if = "is_default")]
    pub completed_jobs: Vec<String>,
    /// Jobs that were terminated.
    #[serde(skip_serializing_if = "is_default")]
    pub terminated_jobs: Vec<String>,
    /// Jobs in any other phase.
    #[serde(rename = "unKnowJobs", skip_serializing_if = "is_default")]
    pub other_jobs: Vec<String>,
    /// The Jobs with their times.
    #[serde(skip_serializing_if = "is_default")]
    pub job_status_list: Vec<FlowJob>,
    /// The Jobs by name.
    #[serde(skip_serializing_if = "is_default")]
    pub conditions: BTreeMap<String, FlowCondition>,
    /// The phase of the JobFlow.
    #[serde(skip_serializing_if = "is_default")]
    pub state: JobFlowState,
}

/// The phase of a JobFlow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct JobFlowState {
    /// Pending, Running, Succeed, Failed or Terminating.
    #[serde(skip_serializing_if = "is_default")]
    pub phase: String,
}

/// A Job of a JobFlow with its times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlowJob {
    /// The name of the Job.
    pub name: String,
    /// The phase of the Job.
    pub state: JobPhase,
    /// When the Job was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When the Job ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Time>,
    /// How often it was restarted.
    #[serde(skip_serializing_if = "is_default")]
    pub restart_count: i32,
    /// The phases that it has been in.
    #[serde(skip_serializing_if = "is_default")]
    pub running_histories: Vec<FlowHistory>,
}

/// A phase that a Job was in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlowHistory {
    /// When the phase began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timestamp: Option<Time>,
    /// When the phase ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_timestamp: Option<Time>,
    /// The phase.
    pub state: JobPhase,
}

/// How a Job of a JobFlow is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FlowCondition {
    /// The phase of the Job.
    pub phase: JobPhase,
    /// When the Job was created.
    #[serde(rename = "createTime", skip_serializing_if = "Option::is_none")]
    pub create_time: Option<Time>,
    /// From the creation of the Job to its last change of phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::text"))]
    pub running_duration: Option<String>,
    /// Counts of pods by task and phase.
    #[serde(skip_serializing_if = "is_default")]
    pub task_status_count: BTreeMap<String, TaskCount>,
}

/// A Job that JobFlows make.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobTemplate {
    pub metadata: Meta,
    pub spec: JobSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: JobTemplateStatus,
}

/// The Jobs of a JobTemplate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobTemplateStatus {
    /// The Jobs that were made from the template.
    #[serde(skip_serializing_if = "is_default")]
    pub job_depends_on_list: Vec<String>,
}

impl Contents for JobFlow {
    fn problems(&self) -> Vec<Problem> {
        validate_job_flow(self)
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let JobFlow { metadata, spec, status } = self;
        walk.meta(Class::Work, metadata);
        for Flow { name, depends_on, patch } in &mut spec.flows {
            walk.name(Class::Work, name);
            if let Some(FlowDependsOn { targets, probe }) = depends_on {
                walk.names(Class::Work, targets);
                *probe = None;
            }
            *patch = None;
        }
        let phase = std::mem::take(&mut status.state);
        *status = JobFlowStatus { state: phase, ..JobFlowStatus::default() };
    }
}

impl Contents for JobTemplate {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        problems.meta(&self.metadata);
        problems.0.extend(validate_job_spec(&self.metadata.name, &self.spec));
        problems.0
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let JobTemplate { metadata, spec, status } = self;
        walk.meta(Class::Work, metadata);
        spec.visit_names(walk);
        status.job_depends_on_list.clear();
    }
}
