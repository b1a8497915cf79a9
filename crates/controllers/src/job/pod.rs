//! The pods of a Job as they are created: the template as it was written, with everything that
//! makes it one of the Job's.

use muster_api::core::PodSpec;
use muster_api::keys::GROUP_NAME;
use muster_api::{Job, JobSpec, TaskSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::group;
use crate::names;
use crate::plugins::{self, Place};

/// What the pods of a Job have in common.
pub struct Mould<'j> {
    pub job: &'j Job,
    /// The Job's spec with defaults.
    pub spec: &'j JobSpec,
    pub version: i32,
    pub retry: i32,
}

pub fn name(job: &str, task: &str, index: u32) -> String {
    format!("{job}-{task}-{index}")
}

/// What the template of a task says of scheduling.
pub fn spec_of(template: &Value) -> PodSpec {
    template.get("spec").and_then(|spec| PodSpec::deserialize(spec).ok()).unwrap_or_default()
}

/// The owner of everything that is made for a Job.
pub fn owner(job: &Job) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

impl Mould<'_> {
    /// The pod of this index.
    pub fn pod(&self, task: &TaskSpec, index: u32) -> Value {
        let Mould { job, spec, .. } = self;
        let mut metadata = object_in(&task.template, "metadata");
        let name = name(&job.metadata.name, &task.name, index);
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), job.metadata.namespace.clone().into());
        metadata.insert("ownerReferences".to_owned(), json!([owner(job)]));
        extend(&mut metadata, "annotations", self.annotations(task, index));
        extend(&mut metadata, "labels", self.labels(task, index));
        let mut pod = object_in(&task.template, "spec");
        fill_in(&mut pod, "schedulerName", &spec.scheduler_name);
        fill_in(&mut pod, "priorityClassName", &spec.priority_class_name);
        self.mount_claims(&mut pod);
        let mut pod =
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod });
        plugins::dress(job, spec, &Place { task, index }, &mut pod);
        pod
    }

    fn annotations(&self, task: &TaskSpec, index: u32) -> Vec<(String, String)> {
        let Mould { job, spec, version, retry } = self;
        let mut annotations = vec![
            (names::TASK_INDEX, index.to_string()),
            (names::TASK_SPEC, task.name.clone()),
            (GROUP_NAME[0], group::name(job)),
            (names::JOB_NAME, job.metadata.name.clone()),
            (names::QUEUE_NAME, spec.queue.clone()),
            (names::JOB_VERSION, version.to_string()),
            (names::TEMPLATE_UID, format!("{}-{}", job.metadata.name, task.name)),
            (names::JOB_RETRY_COUNT, retry.to_string()),
        ];
        if !task.topology_policy.is_empty() {
            annotations.push((names::NUMA_POLICY, task.topology_policy.clone()));
        }
        let of_job =
            |key: &'static str| job.metadata.annotations.get(key).map(|text| (key, text.clone()));
        let copied = [names::PREEMPTABLE, names::COOLDOWN_TIME, names::REVOCABLE_ZONE];
        annotations.extend(copied.into_iter().filter_map(of_job));
        let budget =
            of_job(names::JDB_MIN_AVAILABLE).or_else(|| of_job(names::JDB_MAX_UNAVAILABLE));
        annotations.extend(budget);
        annotations.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
    }

    fn labels(&self, task: &TaskSpec, index: u32) -> Vec<(String, String)> {
        let Mould { job, spec, .. } = self;
        let mut labels = vec![
            (names::TASK_INDEX, index.to_string()),
            (names::JOB_NAME, job.metadata.name.clone()),
            (names::TASK_SPEC, task.name.clone()),
            (names::JOB_NAMESPACE, job.metadata.namespace.clone()),
            (names::QUEUE_NAME, spec.queue.clone()),
        ];
        if let Some(partition) = task.partition(index) {
            labels.push((names::PARTITION_ID, partition.to_string()));
        }
        for key in [names::PREEMPTABLE, names::COOLDOWN_TIME] {
            labels.extend(job.metadata.labels.get(key).map(|text| (key, text.clone())));
        }
        labels.into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
    }

    /// Adds the volumes of the Job to the pod and its containers, each claim once as a volume and
    /// once for each path.
    fn mount_claims(&self, pod: &mut Map<String, Value>) {
        let mut known: Vec<(String, String)> = Vec::new();
        for (place, volume) in self.spec.volumes.iter().enumerate() {
            let claim = super::claims::name(self.job, self.spec, place);
            let seen =
                known.iter().find(|(known, _)| *known == claim).map(|(_, name)| name.clone());
            let name = seen.unwrap_or_else(|| {
                let suffix = names::suffix(&self.job.metadata.uid, place);
                let name = format!("{}-{suffix}", self.job.metadata.name);
                list_in(pod, "volumes")
                    .push(json!({ "name": name, "persistentVolumeClaim": { "claimName": claim } }));
                known.push((claim, name.clone()));
                name
            });
            for container in list_in(pod, "containers").iter_mut().filter_map(Value::as_object_mut)
            {
                list_in(container, "volumeMounts")
                    .push(json!({ "name": name, "mountPath": volume.mount_path }));
            }
        }
    }
}

/// A map in a template, or an empty one.
fn object_in(tree: &Value, key: &str) -> Map<String, Value> {
    tree.get(key).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The list of that name, which is made if it is missing.
pub fn list_in<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Vec<Value> {
    let entry = map.entry(key).or_insert_with(|| json!([]));
    if !entry.is_array() {
        *entry = json!([]);
    }
    entry.as_array_mut().expect("made above")
}

/// Adds texts to a map of the metadata; they win over what is there.
pub fn extend(metadata: &mut Map<String, Value>, key: &str, more: Vec<(String, String)>) {
    let entry = metadata.entry(key).or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    let map = entry.as_object_mut().expect("made above");
    map.extend(more.into_iter().map(|(key, text)| (key, text.into())));
}

fn fill_in(pod: &mut Map<String, Value>, key: &str, text: &str) {
    let missing = pod.get(key).and_then(Value::as_str).is_none_or(str::is_empty);
    if missing && !text.is_empty() {
        pod.insert(key.to_owned(), text.into());
    }
}
