//! The part of a Job that is restarted: a pod, a partition or a task. It is written on the Job
//! before any pod is deleted, so that another controller can go on after a crash.

use muster_api::{Job, JobSpec};
use serde::{Deserialize, Serialize};

use super::policy::Action;
use super::requests::PodName;
use crate::names::RESTART;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The retryCount of the Job with this restart. Pods that were created before have a lower one.
    pub retry: i32,
    /// The version of the Job; if it has risen, the whole Job is restarted instead.
    #[serde(default)]
    pub version: i32,
    pub parts: Vec<Piece>,
}

/// A task, or one of its partitions or pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    pub task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
}

impl Piece {
    /// What the action is about, if something happened to this pod. A task without partitions is
    /// one partition.
    pub fn of(spec: &JobSpec, action: Action, pod: &PodName) -> Option<Piece> {
        let task = pod.task.clone();
        match action {
            Action::RestartTask => Some(Piece { task, partition: None, index: None }),
            Action::RestartPartition => {
                let partition = spec.task(&task).and_then(|task| task.partition(pod.index));
                Some(Piece { task, partition, index: None })
            }
            Action::RestartPod => Some(Piece { task, partition: None, index: Some(pod.index) }),
            _ => None,
        }
    }

    pub fn includes(&self, spec: &JobSpec, task: &str, index: u32) -> bool {
        let partition = || spec.task(task).and_then(|task| task.partition(index));
        self.task == task
            && self.index.is_none_or(|only| only == index)
            && self.partition.is_none_or(|only| partition() == Some(only))
    }

    /// "task b", "partition 1 of task b", "pod b-0".
    pub fn words(&self) -> String {
        match (self.partition, self.index) {
            (_, Some(index)) => format!("pod {index} of task {}", self.task),
            (Some(partition), None) => format!("partition {partition} of task {}", self.task),
            (None, None) => format!("task {}", self.task),
        }
    }
}

impl Restart {
    /// The restart that a Job is in the middle of, or that it was told of and has not begun.
    pub fn read(job: &Job) -> Option<Restart> {
        serde_json::from_str(job.metadata.annotations.get(RESTART)?).ok()
    }

    /// Whether a pod that was created at this retryCount belongs to what is restarted.
    pub fn includes(&self, spec: &JobSpec, task: &str, index: u32, retry: i32) -> bool {
        retry < self.retry && self.parts.iter().any(|part| part.includes(spec, task, index))
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("names and numbers are JSON")
    }
}
