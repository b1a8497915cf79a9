//! The PodGroup of a Job: what must be placed together, and in which pieces.

use std::collections::BTreeMap;

use muster_api::core::LabelSelector;
use muster_api::{
    Job, JobSpec, PodGroupSpec, Quantity, ResourceList, SubGroupPolicy, TaskSpec, pod_requests,
};
use serde_json::{Value, json};

use super::pod::{owner, spec_of};
use crate::known::Known;
use crate::names;

/// The name follows from the UID, so that a Job of the same name gets another PodGroup.
pub fn name(job: &Job) -> String {
    format!("{}-{}", job.metadata.name, job.metadata.uid)
}

pub fn wanted(job: &Job, spec: &JobSpec, known: &Known) -> PodGroupSpec {
    let least = |task: &TaskSpec| i32::try_from(task.least()).unwrap_or(i32::MAX);
    PodGroupSpec {
        min_member: spec.min_available,
        min_task_member: spec.tasks.iter().map(|task| (task.name.clone(), least(task))).collect(),
        queue: spec.queue.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        min_resources: Some(min_resources(spec, known)),
        network_topology: job.spec.network_topology.clone(),
        sub_group_policy: spec.tasks.iter().filter_map(sub_group).collect(),
    }
}

fn sub_group(task: &TaskSpec) -> Option<SubGroupPolicy> {
    let policy = task.partition_policy.as_ref()?;
    let label = (names::TASK_SPEC.to_owned(), task.name.clone());
    Some(SubGroupPolicy {
        name: task.name.clone(),
        network_topology: policy.network_topology.clone(),
        sub_group_size: policy.partition_size,
        min_sub_groups: policy.min_partitions,
        label_selector: Some(LabelSelector {
            match_labels: BTreeMap::from([label]),
            ..LabelSelector::default()
        }),
        match_label_keys: vec![names::PARTITION_ID.to_owned()],
    })
}

/// The PodGroup as it is created. Labels and annotations are the Job's at that time.
pub fn object(job: &Job, spec: &PodGroupSpec) -> Value {
    let mut annotations = job.metadata.annotations.clone();
    for key in
        [names::RESTART, names::RESUMED_AT, "kubectl.kubernetes.io/last-applied-configuration"]
    {
        annotations.remove(key);
    }
    if let Some(estimate) = &job.spec.running_estimate {
        annotations.entry(names::RUNNING_ESTIMATE.to_owned()).or_insert(estimate.clone());
    }
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name(job),
            "namespace": job.metadata.namespace,
            "labels": job.metadata.labels,
            "annotations": annotations,
            "ownerReferences": [owner(job)],
        },
        "spec": spec,
    })
}

/// What differs between the PodGroup there is and the one that is wanted, as a patch of its spec.
/// Queue, topology, labels and annotations stay as they were.
pub fn difference(there: &PodGroupSpec, wanted: &PodGroupSpec) -> Option<Value> {
    let mut patch = serde_json::Map::new();
    let mut set = |key: &str, value: Value| drop(patch.insert(key.to_owned(), value));
    if there.min_member != wanted.min_member {
        set("minMember", wanted.min_member.into());
    }
    if there.priority_class_name != wanted.priority_class_name {
        set("priorityClassName", json!(wanted.priority_class_name));
    }
    if there.min_resources != wanted.min_resources {
        let gone = there.min_resources.iter().flatten().map(|(name, _)| (name, Value::Null));
        let mut amounts: BTreeMap<&String, Value> = gone.collect();
        let now = wanted.min_resources.iter().flatten();
        amounts.extend(now.map(|(name, amount)| (name, json!(amount))));
        set("minResources", json!(amounts));
    }
    let is_same = |(task, least): (&String, &i32)| there.min_task_member.get(task) == Some(least);
    if !wanted.min_task_member.iter().all(is_same) {
        set("minTaskMember", json!(wanted.min_task_member));
    }
    if there.sub_group_policy != wanted.sub_group_policy {
        set("subGroupPolicy", json!(wanted.sub_group_policy));
    }
    (!patch.is_empty()).then(|| json!({ "spec": patch }))
}

/// What the pods that must be placed together request, as quotas count it. Tasks of higher
/// priority come first.
fn min_resources(spec: &JobSpec, known: &Known) -> ResourceList {
    let mut tasks: Vec<(&TaskSpec, i32)> = Vec::new();
    for task in &spec.tasks {
        let class = spec_of(&task.template).priority_class_name;
        let class = if class.is_empty() { &spec.priority_class_name } else { &class };
        tasks.push((task, known.priority(class)));
    }
    tasks.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
    let mut left = i64::from(spec.min_available);
    let mut counts: Vec<i64> = vec![0; tasks.len()];
    let needs: i64 = tasks.iter().map(|(task, _)| task.least()).sum();
    let mut take = |most: &dyn Fn(&TaskSpec) -> i64| {
        for (count, (task, _)) in counts.iter_mut().zip(&tasks) {
            let more = (most(task) - *count).clamp(0, left);
            *count += more;
            left -= more;
        }
    };
    if i64::from(spec.min_available) >= needs {
        take(&TaskSpec::least);
    }
    take(&|task| i64::from(task.replicas));
    let mut sum = ResourceList::new();
    for (count, (task, _)) in counts.into_iter().zip(&tasks).filter(|(count, _)| *count > 0) {
        for (name, amount) in as_quota(task) {
            let total = sum.entry(name).or_insert(Quantity::ZERO);
            *total = total.plus(times(amount, count));
        }
    }
    sum
}

/// The amounts of one pod under the names that quotas give them.
fn as_quota(task: &TaskSpec) -> ResourceList {
    let pod = spec_of(&task.template);
    let mut amounts = ResourceList::new();
    for (name, amount) in pod_requests(&pod) {
        amounts.insert(format!("requests.{name}"), amount);
        amounts.insert(name, amount);
    }
    let mut limits = pod.clone();
    for container in limits.containers.iter_mut().chain(&mut limits.init_containers) {
        container.resources.requests = std::mem::take(&mut container.resources.limits);
    }
    limits.resources = None;
    let limits = pod_requests(&limits).into_iter();
    amounts.extend(limits.map(|(name, amount)| (format!("limits.{name}"), amount)));
    for name in ["pods", "count/pods"] {
        amounts.insert(name.to_owned(), Quantity::from_units(1));
    }
    amounts
}

fn times(amount: Quantity, count: i64) -> Quantity {
    match amount.milli_value().checked_mul(count) {
        Some(milli) if milli % 1000 == 0 => Quantity::from_units(milli / 1000),
        Some(milli) => Quantity::from_milli(milli),
        // So much that a thousandth does not matter.
        None => Quantity::from_units(amount.value().saturating_mul(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(spec: Value) -> BTreeMap<String, String> {
        let mut spec: JobSpec = serde_json::from_value(spec).expect("a good spec");
        spec.set_defaults();
        let sum = min_resources(&spec, &Known::default());
        sum.into_iter().map(|(name, amount)| (name, amount.to_string())).collect()
    }

    fn task(name: &str, replicas: i32, least: i32, cpu: &str) -> Value {
        json!({
            "name": name,
            "replicas": replicas,
            "minAvailable": least,
            "template": { "spec": { "containers": [{ "resources": { "requests": { "cpu": cpu }, "limits": { "cpu": "4" } } }] } },
        })
    }

    #[test]
    fn each_task_gives_its_minimum_and_then_the_first_ones_more() {
        let tasks = [task("a", 3, 1, "500m"), task("b", 3, 1, "2")];
        let sum = resources(json!({ "minAvailable": 3, "tasks": tasks }));
        assert_eq!(sum["cpu"], "3");
        assert_eq!(sum["requests.cpu"], "3");
        assert_eq!(sum["limits.cpu"], "12");
        assert_eq!((sum["pods"].as_str(), sum["count/pods"].as_str()), ("3", "3"));
    }

    #[test]
    fn a_minimum_below_those_of_the_tasks_takes_the_first_pods() {
        let tasks = [task("a", 3, 3, "1"), task("b", 3, 3, "2")];
        let sum = resources(json!({ "minAvailable": 4, "tasks": tasks }));
        assert_eq!(sum["cpu"], "5");
    }
}
