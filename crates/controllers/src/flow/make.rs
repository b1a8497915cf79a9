//! The Job of a step: its template, with what the step changes of it.

use muster_api::kinds::Kind;
use muster_api::manifest::merge_patch;
use muster_api::{Flow, JobFlow, JobTemplate};
use serde_json::{Value, json};

/// Which flow and which template a Job was made from: labels and annotations.
pub const BY_FLOW: &str = "volcano.sh/createdByJobFlow";
pub const BY_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";

/// The name of the Job of a step.
pub fn job_name(flow: &JobFlow, step: &str) -> String {
    format!("{}-{step}", flow.metadata.name)
}

pub fn job(flow: &JobFlow, step: &Flow, template: &JobTemplate) -> Value {
    let namespace = &flow.metadata.namespace;
    let notes = json!({
        BY_FLOW: format!("{namespace}.{}", flow.metadata.name),
        BY_TEMPLATE: format!("{namespace}.{}", step.name),
    });
    let mut spec = serde_json::to_value(&template.spec).expect("a spec is JSON");
    if let Some(patch) = &step.patch {
        apply(&mut spec, patch.job_spec.clone());
    }
    json!({
        "apiVersion": Kind::Job.api_version(),
        "kind": "Job",
        "metadata": {
            "name": job_name(flow, &step.name),
            "namespace": namespace,
            "labels": notes,
            "annotations": notes,
            "ownerReferences": [{
                "apiVersion": Kind::JobFlow.api_version(),
                "kind": "JobFlow",
                "name": flow.metadata.name,
                "uid": flow.metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": spec,
    })
}

/// A merge patch, in which tasks are those of the same name.
fn apply(spec: &mut Value, mut patch: Value) {
    let tasks = patch.as_object_mut().and_then(|patch| patch.remove("tasks"));
    merge_patch(spec, patch);
    let Some(Value::Array(changes)) = tasks else { return };
    if !spec["tasks"].is_array() {
        spec["tasks"] = json!([]);
    }
    let there = spec["tasks"].as_array_mut().expect("made above");
    for change in changes {
        match there.iter_mut().find(|task| task["name"] == change["name"]) {
            Some(task) => merge_patch(task, change),
            None => there.push(change),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_changes_fields_and_the_tasks_that_it_names() {
        let mut spec = json!({ "queue": "a", "maxRetry": 3, "tasks": [{ "name": "x", "replicas": 1 }, { "name": "y", "replicas": 2 }] });
        apply(
            &mut spec,
            json!({ "queue": "b", "tasks": [{ "name": "y", "replicas": 5 }, { "name": "z" }] }),
        );
        let expected = json!({ "queue": "b", "maxRetry": 3, "tasks": [{ "name": "x", "replicas": 1 }, { "name": "y", "replicas": 5 }, { "name": "z" }] });
        assert_eq!(spec, expected);
    }
}
