//! What a Job has where its manifest says nothing. The API server fills in a part of it, an
//! admission webhook the rest; without them it is filled in when the Job is read.

use serde_json::Value;

use crate::keys::{DEFAULT_QUEUE, SCHEDULER_NAMES};
use crate::{Job, JobSpec, PartitionPolicy, TaskSpec};

/// How often a Job is restarted, and how often the containers of a task.
const MAX_RETRY: i32 = 3;

impl Job {
    pub fn set_defaults(&mut self) {
        self.spec.set_defaults();
    }
}

impl JobSpec {
    pub fn set_defaults(&mut self) {
        if self.queue.is_empty() {
            DEFAULT_QUEUE.clone_into(&mut self.queue);
        }
        if self.scheduler_name.is_empty() {
            SCHEDULER_NAMES[0].clone_into(&mut self.scheduler_name);
        }
        if self.max_retry == 0 {
            self.max_retry = MAX_RETRY;
        }
        for (place, task) in self.tasks.iter_mut().enumerate() {
            task.set_defaults(place);
        }
        if self.min_available == 0 {
            self.min_available = to_i32(self.tasks.iter().map(TaskSpec::least).sum());
        }
        let has = |name: &str| self.plugins.contains_key(name);
        let needs_svc = ["tensorflow", "mpi", "pytorch", "ray"].into_iter().any(has);
        let needs_ssh = has("mpi");
        for (name, needed) in [("svc", needs_svc), ("ssh", needs_ssh)] {
            if needed {
                self.plugins.entry(name.to_owned()).or_default();
            }
        }
    }

    /// How many pods the Job has.
    pub fn replicas(&self) -> i64 {
        self.tasks.iter().map(|task| i64::from(task.replicas)).sum()
    }

    pub fn task(&self, name: &str) -> Option<&TaskSpec> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

impl TaskSpec {
    fn set_defaults(&mut self, place: usize) {
        if self.name.is_empty() {
            self.name = format!("default{place}");
        }
        if self.max_retry == 0 {
            self.max_retry = MAX_RETRY;
        }
        if self.min_available.is_none() {
            self.min_available = Some(to_i32(self.least()));
        }
        if let Some(Value::Object(pod)) = self.template.get_mut("spec")
            && pod.get("hostNetwork") == Some(&Value::Bool(true))
            && pod.get("dnsPolicy").and_then(Value::as_str).is_none_or(str::is_empty)
        {
            // Otherwise the pod would not find the other pods of its Job by name.
            pod.insert("dnsPolicy".to_owned(), "ClusterFirstWithHostNet".into());
        }
    }

    /// How many pods of the task must be placed before any of them starts.
    pub fn least(&self) -> i64 {
        let partitions = self.partition_policy.as_ref().and_then(PartitionPolicy::least);
        self.min_available.map_or(partitions.unwrap_or(i64::from(self.replicas)), i64::from)
    }

    /// The partition of a pod.
    pub fn partition(&self, index: u32) -> Option<u32> {
        let size = self.partition_policy.as_ref()?.partition_size;
        u32::try_from(size).ok().and_then(|size| index.checked_div(size))
    }
}

impl PartitionPolicy {
    /// How many pods the partitions that must be placed have, if it is said how many these are.
    pub fn least(&self) -> Option<i64> {
        let pods = i64::from(self.min_partitions) * i64::from(self.partition_size);
        (self.min_partitions > 0).then_some(pods)
    }
}

fn to_i32(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(spec: Value) -> JobSpec {
        let mut spec: JobSpec = serde_json::from_value(spec).expect("a good spec");
        spec.set_defaults();
        spec
    }

    #[test]
    fn what_is_missing_is_filled_in_as_admission_does_it() {
        let spec = job(json!({"tasks": [
            {"replicas": 2, "template": {"spec": {"hostNetwork": true}}},
            {"name": "w", "replicas": 6, "partitionPolicy": {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}},
            {"name": "x", "replicas": 5, "minAvailable": 1, "maxRetry": -1},
        ]}));
        assert_eq!((spec.queue.as_str(), spec.scheduler_name.as_str()), ("default", "volcano"));
        assert_eq!((spec.max_retry, spec.min_available), (3, 2 + 4 + 1));
        let tasks: Vec<_> = spec
            .tasks
            .iter()
            .map(|task| (task.name.as_str(), task.min_available, task.max_retry))
            .collect();
        assert_eq!(tasks, [("default0", Some(2), 3), ("w", Some(4), 3), ("x", Some(1), -1)]);
        let policy = &spec.tasks[0].template["spec"]["dnsPolicy"];
        assert_eq!(policy, "ClusterFirstWithHostNet");
    }

    #[test]
    fn frameworks_bring_the_plugins_that_they_need() {
        let plugins = |name: &str| {
            let spec = job(json!({"plugins": {name: []}}));
            spec.plugins.into_keys().collect::<Vec<_>>().join(" ")
        };
        for (asked, all) in [
            ("mpi", "mpi ssh svc"),
            ("pytorch", "pytorch svc"),
            ("ray", "ray svc"),
            ("tensorflow", "svc tensorflow"),
            ("hcclrank", "hcclrank"),
            ("env", "env"),
        ] {
            assert_eq!(plugins(asked), all);
        }
    }
}
