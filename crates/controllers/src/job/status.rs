//! The status of a Job: counts, and the phase that follows from them.

use muster_api::{Job, JobCondition, JobPhase, JobSpec, JobState, JobStatus, TaskSpec, Time};

use super::claims;
use super::pods::{Counts, Pods};
use crate::plugins;

/// The status with the counts of now, in the same phase.
pub fn counted(job: &Job, spec: &JobSpec, pods: &Pods) -> JobStatus {
    let total = pods.total();
    let mut status = job.status.clone();
    status.min_available = spec.min_available;
    status.pending = total.pending;
    status.running = total.running;
    status.succeeded = total.succeeded;
    status.failed = total.failed;
    status.unknown = total.unknown;
    status.terminating = total.terminating;
    let ends = status.state.phase.is_final();
    status.controlled_resources =
        plugins::controlled(spec).filter(|_| !ends).chain(claims::controlled(job, spec)).collect();
    let by_task = spec.tasks.iter().map(|task| (task.name.clone(), pods.counts(&task.name)));
    status.task_status_count = by_task
        .map(|(name, counts)| (name, counts.by_phase()))
        .filter(|(_, count)| !count.phase.is_empty())
        .collect();
    status
}

/// Moves the Job to a phase. The time is that of the change of phase, and of no other.
pub fn enter(
    status: &mut JobStatus,
    job: &Job,
    phase: JobPhase,
    reason: &str,
    message: String,
    now: Time,
) {
    let is_new = status.state.phase != phase || status.state.last_transition_time.is_none();
    let since = if is_new { Some(now) } else { status.state.last_transition_time };
    status.state =
        JobState { phase, reason: reason.to_owned(), message, last_transition_time: since };
    if is_new {
        if phase.is_final() {
            // What plugins have made goes with the end.
            status.controlled_resources.retain(|name, _| !name.starts_with("plugin-"));
        }
        status.conditions.retain(|condition| condition.status != phase);
        status.conditions.push(JobCondition { status: phase, last_transition_time: since });
        let began = job.metadata.creation_timestamp;
        status.running_duration = match began {
            Some(began) if phase.is_final() || phase == JobPhase::Aborted => {
                Some(go_duration(now.0 - began.0))
            }
            _ => None,
        };
    }
}

/// The phase that follows from the counts of a Job that is pending or runs, and why.
pub fn follows(job: &Job, spec: &JobSpec, pods: &Pods) -> Option<(JobPhase, &'static str, String)> {
    let total = pods.total();
    let least = spec.min_available;
    match job.status.state.phase {
        JobPhase::Pending => {
            let started = total.running + total.succeeded + total.failed;
            let starts = started >= least && spec.replicas() > 0 && started > 0;
            starts.then(|| (JobPhase::Running, "", String::new()))
        }
        JobPhase::Running => after_running(spec, pods, &total),
        _ => None,
    }
}

fn after_running(
    spec: &JobSpec,
    pods: &Pods,
    total: &Counts,
) -> Option<(JobPhase, &'static str, String)> {
    let replicas = spec.replicas();
    if replicas == 0 {
        return None;
    }
    let succeeded = total.succeeded;
    if let Some(enough) = spec.min_success.filter(|enough| succeeded >= *enough) {
        let message = format!("{} succeeded, and {enough} are enough", pods_of(succeeded));
        return Some((JobPhase::Completed, "EnoughSucceeded", message));
    }
    if i64::from(succeeded) + i64::from(total.failed) == replicas {
        return Some(at_the_end(spec, pods, total));
    }
    let spare = replicas - i64::from(spec.min_available);
    (i64::from(total.pending) > spare).then(|| {
        let message = format!("{} pending, too many to run", pods_of(total.pending));
        (JobPhase::Pending, "PodsPending", message)
    })
}

/// All pods have ended: whether that is success.
fn at_the_end(spec: &JobSpec, pods: &Pods, total: &Counts) -> (JobPhase, &'static str, String) {
    let needs: i64 = spec.tasks.iter().map(TaskSpec::least).sum();
    let failed = |message: String| (JobPhase::Failed, "TooFewSucceeded", message);
    if i64::from(spec.min_available) >= needs {
        let short = spec.tasks.iter().find_map(|task| {
            let counts = pods.counts(&task.name);
            let least = task.min_available?;
            let is_counted = !counts.by_phase().phase.is_empty();
            (is_counted && counts.succeeded < least).then(|| {
                let succeeded = pods_of(counts.succeeded);
                format!("{succeeded} of task {} succeeded, {least} had to", task.name)
            })
        });
        if let Some(message) = short {
            return failed(message);
        }
    }
    if let Some(least) = spec.min_success {
        return failed(format!("{} succeeded, {least} had to", pods_of(total.succeeded)));
    }
    let least = spec.min_available;
    match total.succeeded >= least {
        true => (
            JobPhase::Completed,
            "PodsSucceeded",
            format!("{} succeeded", pods_of(total.succeeded)),
        ),
        false => failed(format!("{} succeeded, {least} had to", pods_of(total.succeeded))),
    }
}

/// "1 pod", "3 pods".
fn pods_of(count: i32) -> String {
    muster_text::counted(count.max(0) as u64, "pod")
}

/// As Go writes durations: 1h2m3s.
fn go_duration(milliseconds: i64) -> String {
    let seconds = milliseconds.max(0) / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}
