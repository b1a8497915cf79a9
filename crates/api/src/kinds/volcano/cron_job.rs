//! The CronJob: makes a Job at certain times.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::anonymise::{Class, Walk};
use crate::core::{Labels, Meta, is_default};
use crate::kinds::Contents;
#[cfg(feature = "schema")]
use crate::schema;
use crate::validate::{Problem, validate_cron_job};
use crate::{Job, JobSpec, Time};

/// Makes a Job at certain times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CronJob {
    pub metadata: Meta,
    pub spec: CronJobSpec,
    #[serde(skip_serializing_if = "is_default")]
    pub status: CronJobStatus,
}

/// When Jobs are made, and from which template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// When a Job is made: five fields as in cron, or for example @hourly.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub schedule: String,
    /// The time zone of the schedule, for example Europe/Berlin; unset means UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::text"))]
    pub time_zone: Option<String>,
    /// How late a Job may still be made; unset means at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::count64"))]
    pub starting_deadline_seconds: Option<i64>,
    /// What happens while an earlier Job has not ended: Allow makes another one, Forbid waits,
    /// Replace ends the earlier one.
    #[serde(skip_serializing_if = "is_default")]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether no Jobs are made for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::flag"))]
    pub suspend: Option<bool>,
    /// The Jobs that are made.
    pub job_template: JobTemplateSpec,
    /// How many Jobs that succeeded are kept; unset means 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::count"))]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that did not succeed are kept; unset means 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "schema::count"))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What a CronJob does while an earlier Job has not ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum ConcurrencyPolicy {
    #[default]
    #[serde(alias = "")]
    Allow,
    Forbid,
    Replace,
}

/// A Job without a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct JobTemplateSpec {
    /// Labels and annotations of the Jobs.
    #[serde(skip_serializing_if = "is_default")]
    pub metadata: JobTemplateMeta,
    /// The spec of the Jobs.
    pub spec: JobSpec,
}

/// Labels and annotations of a Job that will be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct JobTemplateMeta {
    /// The labels.
    #[serde(skip_serializing_if = "is_default")]
    pub labels: Labels,
    /// The annotations.
    #[serde(skip_serializing_if = "is_default")]
    pub annotations: Labels,
}

/// Which Jobs of a CronJob have not ended, and when it last made one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// The Jobs that have not ended.
    #[serde(skip_serializing_if = "is_default")]
    pub active: Vec<ActiveJob>,
    /// The time for which a Job was last made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When a Job last succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
}

/// A Job that has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ActiveJob {
    /// The group and version of the Job.
    pub api_version: String,
    /// Always Job.
    pub kind: String,
    /// The name of the Job.
    pub name: String,
    /// The namespace of the Job.
    pub namespace: String,
    /// The UID of the Job.
    pub uid: String,
}

impl Contents for CronJob {
    fn problems(&self) -> Vec<Problem> {
        validate_cron_job(self)
    }

    fn remarks(&self) -> Vec<String> {
        let meaning =
            "nothing creates Jobs from it here: Volcano's controllers do that on a cluster";
        vec![meaning.to_owned()]
    }

    fn visit_names(&mut self, walk: &mut Walk<'_>) {
        let CronJob { metadata, spec, status } = self;
        walk.meta(Class::Work, metadata);
        let JobTemplateSpec { metadata, spec } = &mut spec.job_template;
        walk.labels(&mut metadata.labels);
        metadata.annotations.clear();
        spec.visit_names(walk);
        status.active.clear();
    }
}

impl JobTemplateSpec {
    /// The Job of that name, with defaults.
    pub fn job(&self, name: &str, namespace: &str) -> Job {
        let metadata = Meta {
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            labels: self.metadata.labels.clone(),
            annotations: self.metadata.annotations.clone(),
            ..Meta::default()
        };
        let mut job = Job { metadata, spec: self.spec.clone(), ..Job::default() };
        job.set_defaults();
        job
    }
}
