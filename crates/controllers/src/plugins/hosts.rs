//! The names under which the pods of a Job find each other.

use muster_api::{Job, TaskSpec};
use serde_json::Value;

use crate::job::pod_name;

fn of_template<'t>(task: &'t TaskSpec, field: &str) -> Option<&'t str> {
    let text = task.template.get("spec")?.get(field).and_then(Value::as_str)?;
    Some(text).filter(|text| !text.is_empty())
}

/// The name of the pod of this index in its network.
pub fn hostname(job: &Job, task: &TaskSpec, index: u32) -> String {
    match of_template(task, "hostname") {
        Some(name) => name.to_owned(),
        None => pod_name(&job.metadata.name, &task.name, index),
    }
}

pub fn subdomain<'t>(job: &'t Job, task: &'t TaskSpec) -> &'t str {
    of_template(task, "subdomain").unwrap_or(&job.metadata.name)
}

/// Where the pod of this index is found by pods of the same namespace.
pub fn host(job: &Job, task: &TaskSpec, index: u32) -> String {
    format!("{}.{}", hostname(job, task, index), subdomain(job, task))
}

/// The hosts of a task. Pods whose template names the host share it.
pub fn hosts(job: &Job, task: &TaskSpec) -> Vec<String> {
    let count = match of_template(task, "hostname") {
        Some(_) => task.replicas.min(1),
        None => task.replicas,
    };
    (0..count.max(0) as u32).map(|index| host(job, task, index)).collect()
}
