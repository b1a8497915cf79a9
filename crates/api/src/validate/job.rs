//! Problems of Jobs and of what makes Jobs: all that the objects show by themselves, of a Job whose
//! defaults are filled in.

use std::collections::BTreeMap;

use super::{LABEL_LENGTH, Problem, Problems, is_dns_label};
use crate::{
    CronJob, JOB_PLUGINS, Job, JobFlow, JobSpec, JobVolume, LifecyclePolicy, PluginArgs, TaskSpec,
    parse_duration,
};

/// What a policy may wait for, and what it may do.
const EVENTS: [&str; 7] =
    ["*", "PodFailed", "PodEvicted", "PodPending", "Unknown", "TaskCompleted", "TaskFailed"];
const ACTIONS: [&str; 8] = [
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
];

/// Kubernetes does not support more pods than this in one cluster.
const MOST_PODS: i64 = 150_000;

/// The longest name of a CronJob: the Jobs add eleven characters to it.
const CRON_JOB_NAME: usize = 52;

pub fn validate_job(job: &Job) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&job.metadata);
    problems.0.extend(validate_job_spec(&job.metadata.name, &job.spec));
    problems.0
}

/// The problems of a spec; without defaults they are filled in first.
pub fn validate_job_spec(name: &str, spec: &JobSpec) -> Vec<Problem> {
    let mut spec = spec.clone();
    spec.set_defaults();
    let mut problems = Problems::default();
    let found = &mut problems;
    found.check(!spec.tasks.is_empty(), "spec.tasks", "is empty; write at least one task");
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, task) in spec.tasks.iter().enumerate() {
        let path = format!("spec.tasks[{place}]");
        if let Some(first) = names.insert(&task.name, place) {
            let message = format!("{:?} is also the name of task {first}; names differ", task.name);
            found.add(format!("{path}.name"), message);
        }
        check_task(found, &path, name, task);
    }
    let (replicas, least) = (spec.replicas(), i64::from(spec.min_available));
    if replicas > MOST_PODS {
        let message = format!("the tasks have {replicas} pods; write at most {MOST_PODS}");
        found.add("spec.tasks", message);
    }
    found.at_least("spec.minAvailable", 0, least);
    let message = format!("is {least}, more than the {replicas} pods of all tasks; lower it");
    found.check(least <= replicas, "spec.minAvailable", message);
    found.at_least("spec.maxRetry", 0, spec.max_retry);
    if let Some(success) = spec.min_success {
        found.at_least("spec.minSuccess", 1, success);
    }
    if let Some(ttl) = spec.ttl_seconds_after_finished {
        found.at_least("spec.ttlSecondsAfterFinished", 0, ttl);
    }
    found.duration("spec.runningEstimate".to_owned(), spec.running_estimate.as_ref());
    found.name("spec.queue", &spec.queue);
    if let Some(topology) = &spec.network_topology {
        super::custom_kinds::check_topology(found, "spec.networkTopology", topology);
    }
    check_policies(found, "spec.policies", &spec.policies);
    check_plugins(found, &spec);
    check_volumes(found, &spec.volumes);
    check_order(found, &spec.tasks);
    problems.0
}

fn check_task(problems: &mut Problems, path: &str, job: &str, task: &TaskSpec) {
    let TaskSpec { name, replicas, .. } = task;
    if !is_dns_label(name) {
        let message = format!("{name:?} is not a valid name; use lower case letters, digits and -");
        problems.add(format!("{path}.name"), message);
    }
    problems.at_least(format!("{path}.replicas"), 0, *replicas);
    let least = task.least();
    problems.at_least(format!("{path}.minAvailable"), 0, least);
    let message = format!("is {least}, more than its {replicas} replicas; lower it");
    problems.check(least <= i64::from(*replicas), format!("{path}.minAvailable"), message);
    let last = format!("{job}-{name}-{}", (replicas - 1).max(0));
    if last.len() > LABEL_LENGTH {
        let message = format!(
            "makes a pod named {last}, which has more than {LABEL_LENGTH} characters; shorten it \
             or the Job's name"
        );
        problems.add(format!("{path}.name"), message);
    }
    let containers = task.template.pointer("/spec/containers").and_then(|list| list.as_array());
    let message = "is missing; write at least one container";
    let has = containers.is_some_and(|list| !list.is_empty());
    problems.check(has, format!("{path}.template.spec.containers"), message);
    let known = ["", "none", "best-effort", "restricted", "single-numa-node"];
    problems.one_of(format!("{path}.topologyPolicy"), &task.topology_policy, &known);
    check_policies(problems, &format!("{path}.policies"), &task.policies);
    check_partitions(problems, path, task);
}

fn check_partitions(problems: &mut Problems, path: &str, task: &TaskSpec) {
    let Some(policy) = &task.partition_policy else { return };
    let path = format!("{path}.partitionPolicy");
    let (total, size) = (policy.total_partitions, policy.partition_size);
    problems.at_least(format!("{path}.totalPartitions"), 1, total);
    problems.at_least(format!("{path}.partitionSize"), 1, size);
    problems.at_least(format!("{path}.minPartitions"), 0, policy.min_partitions);
    if total > 0 && size > 0 {
        let pods = i64::from(total) * i64::from(size);
        let message = format!(
            "{total} partitions of {size} pods are {pods}; write as many replicas, not {}",
            task.replicas
        );
        problems.check(pods == i64::from(task.replicas), path.clone(), message);
    }
    if let Some(least) = policy.least() {
        let message = format!(
            "{} partitions of {size} pods are {least}; write that as minAvailable, not {}",
            policy.min_partitions,
            task.least()
        );
        problems.check(least == task.least(), format!("{path}.minPartitions"), message);
    }
    if let Some(topology) = &policy.network_topology {
        let path = format!("{path}.networkTopology");
        super::custom_kinds::check_topology(problems, &path, topology);
    }
}

fn check_policies(problems: &mut Problems, path: &str, policies: &[LifecyclePolicy]) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut codes: BTreeMap<i32, usize> = BTreeMap::new();
    for (place, policy) in policies.iter().enumerate() {
        let path = format!("{path}[{place}]");
        problems.one_of(format!("{path}.action"), &policy.action, &ACTIONS);
        let events = policy.all_events();
        let message = "set event, events or exitCode";
        problems.check(!events.is_empty() || policy.exit_code.is_some(), &path, message);
        let message = "set an exit code or events, not both";
        problems.check(events.is_empty() || policy.exit_code.is_none(), &path, message);
        for event in events {
            problems.one_of(format!("{path}.event"), event, &EVENTS);
            if let Some(first) = seen.insert(event, place) {
                let message = format!("{event} is in policy {first} already; write it once");
                problems.add(format!("{path}.event"), message);
            }
            let lasts = policy.timeout.is_some() || event != "PodPending";
            let message = "is missing; PodPending needs a time, for example 10m";
            problems.check(lasts, format!("{path}.timeout"), message);
        }
        if let Some(code) = policy.exit_code {
            let message = "0 is success; write the exit code of a failure";
            problems.check(code != 0, format!("{path}.exitCode"), message);
            if let Some(first) = codes.insert(code, place) {
                let message = format!("{code} is in policy {first} already; write it once");
                problems.add(format!("{path}.exitCode"), message);
            }
        }
        if let Some(text) = &policy.timeout {
            let negative = parse_duration(text).is_ok_and(|time| time < 0);
            problems.duration(format!("{path}.timeout"), Some(text).filter(|_| !negative));
            problems.check(!negative, format!("{path}.timeout"), "is negative; write 0s or more");
        }
    }
    if seen.contains_key("*") && seen.len() > 1 {
        let message = "* is any event; leave out the others";
        problems.add(path, message);
    }
}

fn check_plugins(problems: &mut Problems, spec: &JobSpec) {
    let known: Vec<&str> = JOB_PLUGINS.iter().map(|(name, _)| *name).collect();
    for (plugin, written) in &spec.plugins {
        let path = format!("spec.plugins[{plugin}]");
        problems.one_of(&path, plugin, &known);
        if !known.contains(&plugin.as_str()) {
            continue;
        }
        let (args, wrong) = PluginArgs::read(plugin, written);
        wrong.into_iter().for_each(|message| problems.add(&path, message));
        // Without this task the plugin could do nothing.
        let needed = match plugin.as_str() {
            "mpi" => Some("master"),
            "ray" => Some("head"),
            _ => None,
        };
        if let Some(role) = needed.filter(|role| spec.task(args.text(role)).is_none()) {
            let message = format!(
                "there is no task {:?}; add one, or name another with --{role}",
                args.text(role)
            );
            problems.add(&path, message);
        }
    }
}

fn check_volumes(problems: &mut Problems, volumes: &[JobVolume]) {
    let mut mounted: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, volume) in volumes.iter().enumerate() {
        let path = format!("spec.volumes[{place}]");
        let JobVolume { mount_path, volume_claim_name, volume_claim } = volume;
        let at = format!("{path}.mountPath");
        problems.check(!mount_path.is_empty(), &at, "is missing; write a path, for example /data");
        problems.check(!mount_path.contains(':'), &at, "contains a colon; write another path");
        if let Some(first) = mounted.insert(mount_path, place) {
            problems.add(&at, format!("is also the path of volume {first}; paths differ"));
        }
        let claimed = !volume_claim_name.is_empty() || volume_claim.is_some();
        problems.check(claimed, &path, "set volumeClaimName or volumeClaim");
        if !volume_claim_name.is_empty() {
            problems.name(format!("{path}.volumeClaimName"), volume_claim_name);
        }
    }
}

/// Tasks that wait for others: those are there, and none waits for itself.
fn check_order(problems: &mut Problems, tasks: &[TaskSpec]) {
    let place = |name: &str| tasks.iter().position(|task| task.name == name);
    let before: Vec<Vec<usize>> = tasks
        .iter()
        .map(|task| task.depends_on.iter().flat_map(|before| &before.name))
        .map(|names| names.filter_map(|name| place(name)).collect())
        .collect();
    for (at, task) in tasks.iter().enumerate() {
        let Some(depends_on) = &task.depends_on else { continue };
        let path = format!("spec.tasks[{at}].dependsOn");
        for name in depends_on.name.iter().filter(|name| place(name).is_none()) {
            problems.add(format!("{path}.name"), format!("there is no task {name:?}"));
        }
        problems.one_of(format!("{path}.iteration"), &depends_on.iteration, &["", "any", "all"]);
        if reaches(&before, at, at) {
            let message = format!("{:?} waits for itself; remove a step of the circle", task.name);
            problems.add(format!("{path}.name"), message);
        }
    }
}

/// Whether one step, or several, lead from one place to the other.
fn reaches(edges: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; edges.len()];
    let mut open = edges[from].clone();
    while let Some(next) = open.pop() {
        if next == to {
            return true;
        }
        if !std::mem::replace(&mut seen[next], true) {
            open.extend(&edges[next]);
        }
    }
    false
}

impl LifecyclePolicy {
    /// The events that the policy is about.
    pub fn all_events(&self) -> Vec<&str> {
        let one = Some(self.event.as_str()).filter(|event| !event.is_empty());
        let mut events: Vec<&str> =
            one.into_iter().chain(self.events.iter().map(String::as_str)).collect();
        events.dedup();
        events
    }
}

pub fn validate_cron_job(cron_job: &CronJob) -> Vec<Problem> {
    let mut problems = Problems::default();
    let CronJob { metadata, spec, .. } = cron_job;
    problems.meta(metadata);
    let message = format!(
        "has {} characters; write at most {CRON_JOB_NAME}, since the names of its Jobs are longer",
        metadata.name.len()
    );
    problems.check(metadata.name.len() <= CRON_JOB_NAME, "metadata.name", message);
    let message = "is missing; write five fields as in cron, for example \"0 4 * * *\"";
    problems.check(!spec.schedule.trim().is_empty(), "spec.schedule", message);
    let message = "contains a time zone; write it as timeZone";
    problems.check(!spec.schedule.contains("TZ"), "spec.schedule", message);
    if let Some(seconds) = spec.starting_deadline_seconds {
        problems.at_least("spec.startingDeadlineSeconds", 0, seconds);
    }
    for (path, limit) in [
        ("spec.successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        ("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ] {
        problems.at_least(path, 0, limit.unwrap_or(0));
    }
    // The Jobs are named after the CronJob and a number of eight digits.
    let name = format!("{}-00000000", metadata.name);
    let found = validate_job_spec(&name, &spec.job_template.spec);
    problems.0.extend(found.into_iter().map(|problem| Problem {
        path: format!("spec.jobTemplate.{}", problem.path),
        message: problem.message,
    }));
    problems.0
}

pub fn validate_job_flow(flow: &JobFlow) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&flow.metadata);
    let flows = &flow.spec.flows;
    let place = |name: &str| flows.iter().position(|flow| flow.name == name);
    let targets = |at: usize| flows[at].depends_on.iter().flat_map(|before| &before.targets);
    let before: Vec<Vec<usize>> =
        (0..flows.len()).map(|at| targets(at).filter_map(|name| place(name)).collect()).collect();
    for (at, step) in flows.iter().enumerate() {
        let path = format!("spec.flows[{at}]");
        problems.name(format!("{path}.name"), &step.name);
        let message = format!("{:?} is the name of an earlier step; names differ", step.name);
        problems.check(place(&step.name) == Some(at), format!("{path}.name"), message);
        for name in targets(at).filter(|name| place(name).is_none()) {
            let message = format!("there is no step {name:?}");
            problems.add(format!("{path}.dependsOn.targets"), message);
        }
        if reaches(&before, at, at) {
            let message = format!("{:?} waits for itself; remove a step of the circle", step.name);
            problems.add(format!("{path}.dependsOn.targets"), message);
        }
    }
    problems.one_of(
        "spec.jobRetainPolicy",
        &flow.spec.job_retain_policy,
        &["", "retain", "delete"],
    );
    problems.0
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems;
    use super::*;

    const POD: &str = "template: {spec: {containers: [{name: main, image: i}]}}";

    #[test]
    fn a_good_job_has_no_problem() {
        let text = format!(
            "
metadata: {{name: train, namespace: default}}
spec:
  minAvailable: 3
  policies: [{{event: PodEvicted, action: RestartJob}}, {{event: PodPending, timeout: 10m, action: AbortJob}}]
  plugins: {{svc: [], mpi: [--port=22]}}
  volumes: [{{mountPath: /data, volumeClaimName: data}}, {{mountPath: /tmp2, volumeClaim: {{}}}}]
  tasks:
  - {{name: master, replicas: 1, {POD}, policies: [{{exitCode: 3, action: RestartTask}}]}}
  - {{name: worker, replicas: 4, partitionPolicy: {{totalPartitions: 2, partitionSize: 2, minPartitions: 1}}, dependsOn: {{name: [master]}}, {POD}}}"
        );
        assert_eq!(problems(&text, |job: &Job| crate::kinds::Contents::problems(job)), [""; 0]);
    }

    #[test]
    fn every_problem_of_a_job_is_named() {
        let text = format!(
            "
metadata: {{name: train}}
spec:
  minAvailable: 9
  minSuccess: 0
  queue: Big
  policies:
  - {{event: PodFailed, exitCode: 3, action: RestartJob}}
  - {{action: AbortJob}}
  - {{exitCode: 0, action: Sleep}}
  - {{event: PodPending, action: AbortJob}}
  - {{events: ['*', PodFailed], timeout: soon, action: AbortJob}}
  plugins: {{svx: []}}
  volumes: [{{mountPath: a:b}}]
  tasks:
  - {{name: a, replicas: 1, minAvailable: 2, dependsOn: {{name: [b, c]}}, {POD}}}
  - {{name: b, replicas: -1, dependsOn: {{name: [a]}}, {POD}}}
  - {{name: a, replicas: 3, partitionPolicy: {{totalPartitions: 2, partitionSize: 2}}, topologyPolicy: x}}"
        );
        let found = problems(&text, |job: &Job| crate::kinds::Contents::problems(job));
        let paths: Vec<&str> =
            found.iter().map(|line| line.split(": ").next().expect("a path")).collect();
        assert_eq!(
            paths,
            [
                "spec.tasks[0].minAvailable",
                "spec.tasks[1].replicas",
                "spec.tasks[1].minAvailable",
                "spec.tasks[2].name",
                "spec.tasks[2].template.spec.containers",
                "spec.tasks[2].topologyPolicy",
                "spec.tasks[2].partitionPolicy",
                "spec.minAvailable",
                "spec.minSuccess",
                "spec.queue",
                "spec.policies[0]",
                "spec.policies[1]",
                "spec.policies[2].action",
                "spec.policies[2].exitCode",
                "spec.policies[3].timeout",
                "spec.policies[4].event",
                "spec.policies[4].timeout",
                "spec.policies",
                "spec.plugins[svx]",
                "spec.volumes[0].mountPath",
                "spec.volumes[0]",
                "spec.tasks[0].dependsOn.name",
                "spec.tasks[0].dependsOn.name",
                "spec.tasks[1].dependsOn.name",
            ],
            "{found:#?}"
        );
    }

    #[test]
    fn names_of_pods_and_their_number_are_limited() {
        let long = "x".repeat(60);
        let text = format!(
            "{{metadata: {{name: {long}}}, spec: {{tasks: [{{name: worker, replicas: 2000000000, {POD}}}]}}}}"
        );
        let found = problems(&text, validate_job);
        assert!(found[0].contains("has more than 63 characters"), "{found:?}");
        assert!(found[1].contains("write at most 150000"), "{found:?}");
    }

    #[test]
    fn steps_of_a_flow_follow_each_other() {
        let text = "
metadata: {name: f}
spec:
  jobRetainPolicy: keep
  flows:
  - {name: a, dependsOn: {targets: [c]}}
  - {name: b, dependsOn: {targets: [b]}}
  - {name: a}";
        assert_eq!(
            problems(text, validate_job_flow),
            [
                "spec.flows[0].dependsOn.targets: there is no step \"c\"",
                "spec.flows[1].dependsOn.targets: \"b\" waits for itself; remove a step of the circle",
                "spec.flows[2].name: \"a\" is the name of an earlier step; names differ",
                "spec.jobRetainPolicy: \"keep\" is not known; write one of retain, delete",
            ]
        );
    }

    #[test]
    fn a_cron_job_is_checked_with_its_template() {
        let text = format!(
            "{{metadata: {{name: c}}, spec: {{schedule: 'TZ=UTC * * * * *', jobTemplate: {{spec: {{tasks: [{{name: T, replicas: 1, {POD}}}]}}}}}}}}"
        );
        let found = problems(&text, validate_cron_job);
        assert!(found[0].starts_with("spec.schedule: contains a time zone"), "{found:?}");
        assert!(found[1].starts_with("spec.jobTemplate.spec.tasks[0].name:"), "{found:?}");
    }
}
