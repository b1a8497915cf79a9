//! The pods of one Job, by task and index, and counts of them that every change keeps. So a turn of
//! the Job costs as much as it has tasks, not pods.

use std::collections::BTreeMap;

use muster_api::{JobSpec, TaskCount, Time};

use crate::event::{PodPhase, SeenPod};
use crate::names::{JOB_RETRY_COUNT, JOB_VERSION, OUT_OF_SYNC};

/// What a Job knows of one of its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    /// The version and the retryCount of the Job when it was created.
    pub version: i32,
    pub retry: i32,
    pub phase: PodPhase,
    pub ready: bool,
    pub restarts: i32,
    pub exit_codes: Vec<i32>,
    pub created: Option<Time>,
    pub finished: Option<Time>,
    /// It has been asked to leave, by us or by others.
    pub is_leaving: bool,
    /// Its end is no eviction: a controller has said so on it.
    pub is_marked: bool,
}

impl Pod {
    pub fn of(seen: &SeenPod) -> Pod {
        let SeenPod { metadata, phase, ready, restarts, exit_codes, finished_at } = seen;
        let number = |key: &str| {
            metadata.annotations.get(key).and_then(|text| text.parse().ok()).unwrap_or_default()
        };
        Pod {
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
            version: number(JOB_VERSION),
            retry: number(JOB_RETRY_COUNT),
            phase: *phase,
            ready: *ready,
            restarts: *restarts,
            exit_codes: exit_codes.clone(),
            created: metadata.creation_timestamp,
            finished: *finished_at,
            is_leaving: metadata.deletion_timestamp.is_some(),
            is_marked: metadata.annotations.contains_key(OUT_OF_SYNC),
        }
    }
}

/// Counts of the pods of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pending: i32,
    pub running: i32,
    pub succeeded: i32,
    pub failed: i32,
    pub unknown: i32,
    /// Asked to leave and still there.
    pub terminating: i32,
    /// Succeeded, or running with all containers ready.
    pub ready: i32,
    /// Restarts of containers of pods that are pending or run.
    pub restarts: i32,
    /// Objects with an index that the task has, whatever their state: their names are taken.
    pub names_taken: i32,
    /// Pods to be deleted: of an older version, of an index that the task does not have, or marked.
    pub stray: i32,
    /// Pods that are not leaving, also those that do not count.
    pub present: i32,
}

impl Counts {
    /// Adds the pod's part to the counts, or takes it away again.
    fn add(&mut self, pod: &Pod, index: u32, wants: &Wants, sign: i32) {
        let has_index = (index as i32) < wants.replicas;
        self.names_taken += sign * i32::from(has_index);
        if pod.is_leaving {
            self.terminating += sign;
            return;
        }
        self.present += sign;
        if pod.version < wants.version || !has_index || pod.is_marked {
            self.stray += sign;
            return;
        }
        match pod.phase {
            PodPhase::Pending => self.pending += sign,
            PodPhase::Running => self.running += sign,
            PodPhase::Succeeded => self.succeeded += sign,
            PodPhase::Failed => self.failed += sign,
            PodPhase::Unknown => self.unknown += sign,
        }
        let is_ready =
            pod.phase == PodPhase::Succeeded || pod.phase == PodPhase::Running && pod.ready;
        self.ready += sign * i32::from(is_ready);
        if !pod.phase.has_ended() {
            self.restarts += sign * pod.restarts;
        }
    }

    pub fn sum(&mut self, other: &Counts) {
        self.pending += other.pending;
        self.running += other.running;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.terminating += other.terminating;
        self.ready += other.ready;
        self.restarts += other.restarts;
        self.names_taken += other.names_taken;
        self.stray += other.stray;
        self.present += other.present;
    }

    /// How many pods there are in each phase, as the status says it.
    pub fn by_phase(&self) -> TaskCount {
        let counts = [
            (PodPhase::Pending, self.pending),
            (PodPhase::Running, self.running),
            (PodPhase::Succeeded, self.succeeded),
            (PodPhase::Failed, self.failed),
            (PodPhase::Unknown, self.unknown),
        ];
        let there = counts.into_iter().filter(|(_, count)| *count > 0);
        TaskCount { phase: there.map(|(phase, count)| (phase.name().to_owned(), count)).collect() }
    }
}

/// What the Job wants of the pods of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wants {
    replicas: i32,
    version: i32,
}

#[derive(Clone, Debug, Default)]
struct Task {
    wants: Wants,
    pods: BTreeMap<u32, Pod>,
    counts: Counts,
}

#[derive(Clone, Debug, Default)]
pub struct Pods {
    tasks: BTreeMap<String, Task>,
}

impl Pods {
    /// Counts again if the Job has another version or other tasks.
    pub fn want(&mut self, spec: &JobSpec, version: i32) {
        let wanted = |name: &str| Wants {
            replicas: spec.task(name).map_or(0, |task| task.replicas),
            version,
        };
        for task in &spec.tasks {
            self.tasks.entry(task.name.clone()).or_default();
        }
        for (name, task) in &mut self.tasks {
            let wants = wanted(name);
            if task.wants != wants {
                task.counts = Counts::default();
                for (index, pod) in &task.pods {
                    task.counts.add(pod, *index, &wants, 1);
                }
                task.wants = wants;
            }
        }
    }

    /// Takes in a pod as it is now, and returns what it was.
    pub fn put(&mut self, task: &str, index: u32, pod: Pod) -> Option<Pod> {
        let task = self.tasks.entry(task.to_owned()).or_default();
        task.counts.add(&pod, index, &task.wants, 1);
        let before = task.pods.insert(index, pod);
        if let Some(before) = &before {
            task.counts.add(before, index, &task.wants, -1);
        }
        before
    }

    /// The pod is there no more, if it is this one that was there.
    pub fn remove(&mut self, task: &str, index: u32, uid: &str) -> Option<Pod> {
        let task = self.tasks.get_mut(task)?;
        if !uid.is_empty() && task.pods.get(&index)?.uid != uid {
            return None;
        }
        let pod = task.pods.remove(&index)?;
        task.counts.add(&pod, index, &task.wants, -1);
        Some(pod)
    }

    pub fn get(&self, task: &str, index: u32) -> Option<&Pod> {
        self.tasks.get(task)?.pods.get(&index)
    }

    pub fn counts(&self, task: &str) -> Counts {
        self.tasks.get(task).map(|task| task.counts.clone()).unwrap_or_default()
    }

    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.tasks.values().for_each(|task| total.sum(&task.counts));
        total
    }

    /// The first indices of the task for which there is no pod, so many at most.
    pub fn missing(&self, task: &str, most: usize) -> Vec<u32> {
        let Some(task) = self.tasks.get(task) else { return Vec::new() };
        let replicas = task.wants.replicas;
        if task.counts.names_taken >= replicas {
            return Vec::new();
        }
        (0..replicas.max(0) as u32)
            .filter(|index| !task.pods.contains_key(index))
            .take(most)
            .collect()
    }

    /// Pods that are to be deleted whatever the phase of the Job.
    pub fn strays(&self) -> impl Iterator<Item = (&str, u32, &Pod)> {
        let tasks = self.tasks.iter().filter(|(_, task)| task.counts.stray > 0);
        tasks.flat_map(|(name, task)| {
            let is_stray = |(index, pod): &(&u32, &Pod)| {
                let old = pod.version < task.wants.version;
                let has_index = (**index as i32) < task.wants.replicas;
                !pod.is_leaving && (old || !has_index || pod.is_marked)
            };
            task.pods.iter().filter(is_stray).map(|(index, pod)| (name.as_str(), *index, pod))
        })
    }

    /// Every pod that is not leaving.
    pub fn present(&self) -> impl Iterator<Item = (&str, u32, &Pod)> {
        let tasks = self.tasks.iter().filter(|(_, task)| task.counts.present > 0);
        tasks.flat_map(|(name, task)| {
            let staying = task.pods.iter().filter(|(_, pod)| !pod.is_leaving);
            staying.map(|(index, pod)| (name.as_str(), *index, pod))
        })
    }

    /// Whether the index is one that the task has.
    pub fn wants(&self, task: &str, index: u32) -> bool {
        self.tasks.get(task).is_some_and(|task| (index as i32) < task.wants.replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(version: i32, phase: PodPhase) -> Pod {
        Pod {
            version,
            ..Pod::of(&SeenPod { phase, ready: true, restarts: 2, ..SeenPod::default() })
        }
    }

    #[test]
    fn counts_that_changes_keep_equal_a_recount() {
        let spec = |replicas: i32| {
            let text = format!(r#"{{"tasks": [{{"name": "t", "replicas": {replicas}}}]}}"#);
            serde_json::from_str::<JobSpec>(&text).expect("a good spec")
        };
        let mut pods = Pods::default();
        pods.want(&spec(3), 0);
        let phases = [PodPhase::Running, PodPhase::Failed, PodPhase::Pending, PodPhase::Succeeded];
        for (step, phase) in phases.into_iter().cycle().take(40).enumerate() {
            let index = (step * 7 % 5) as u32;
            match step % 4 {
                3 => drop(pods.remove("t", index, "")),
                _ => drop(pods.put("t", index, pod(step as i32 % 2, phase))),
            }
            pods.want(&spec(2 + step as i32 % 3), step as i32 % 2);
            let mut again = Pods::default();
            pods.tasks["t"]
                .pods
                .iter()
                .for_each(|(index, pod)| drop(again.put("t", *index, pod.clone())));
            again.want(&spec(2 + step as i32 % 3), step as i32 % 2);
            assert_eq!(pods.counts("t"), again.counts("t"), "step {step}");
        }
    }

    #[test]
    fn only_pods_of_this_version_and_of_a_valid_index_count() {
        let mut pods = Pods::default();
        let spec = serde_json::from_str(r#"{"tasks": [{"name": "t", "replicas": 2}]}"#);
        pods.want(&spec.expect("a good spec"), 1);
        pods.put("t", 0, pod(0, PodPhase::Succeeded));
        pods.put("t", 1, pod(1, PodPhase::Running));
        pods.put("t", 2, pod(1, PodPhase::Running));
        let counts = pods.counts("t");
        assert_eq!((counts.running, counts.succeeded, counts.stray), (1, 0, 2));
        assert_eq!(pods.strays().map(|(_, index, _)| index).collect::<Vec<_>>(), [0, 2]);
        assert!(pods.missing("t", 9).is_empty());
    }
}
