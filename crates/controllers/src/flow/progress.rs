//! How far a JobFlow is: the status that follows from its Jobs.

use muster_api::{
    FlowCondition, FlowHistory, FlowJob, Job, JobFlow, JobFlowStatus, JobPhase, TaskProbe, Time,
};

/// The Jobs of the steps as they are, in the order of the steps.
pub type Steps<'j> = Vec<(String, Option<&'j Job>)>;

/// Whether the Job of that name has been completed, now or before it was deleted.
pub fn is_completed(flow: &JobFlow, name: &str, job: Option<&Job>) -> bool {
    match job {
        Some(job) => job.status.state.phase == JobPhase::Completed,
        None => flow.status.completed_jobs.iter().any(|done| done == name),
    }
}

/// Whether so many pods of the task are in the phase as the task needs.
pub fn passes(job: &Job, probe: &TaskProbe) -> bool {
    let count = job.status.task_status_count.get(&probe.task_name);
    let count = count.and_then(|count| count.phase.get(&probe.phase)).copied().unwrap_or(0);
    let mut spec = job.spec.clone();
    spec.set_defaults();
    let least = spec.task(&probe.task_name).map_or(1, |task| task.least().max(1));
    i64::from(count) >= least
}

pub fn status(flow: &JobFlow, steps: &Steps<'_>, now: Time) -> JobFlowStatus {
    let mut new = JobFlowStatus { state: flow.status.state.clone(), ..JobFlowStatus::default() };
    for (name, job) in steps {
        let Some(job) = job else {
            // What a Job that is gone has come to is remembered.
            if is_completed(flow, name, None) {
                new.completed_jobs.push(name.clone());
            }
            let known = flow.status.job_status_list.iter().find(|line| line.name == *name);
            new.job_status_list.extend(known.cloned());
            continue;
        };
        let phase = job.status.state.phase;
        let list = match phase {
            JobPhase::Pending => &mut new.pending_jobs,
            JobPhase::Running | JobPhase::Completing | JobPhase::Terminating => {
                &mut new.running_jobs
            }
            JobPhase::Failed => &mut new.failed_jobs,
            JobPhase::Completed => &mut new.completed_jobs,
            JobPhase::Terminated => &mut new.terminated_jobs,
            _ => &mut new.other_jobs,
        };
        list.push(name.clone());
        new.job_status_list.push(line(flow, name, job, now));
        new.conditions.insert(
            name.clone(),
            FlowCondition {
                phase,
                create_time: job.metadata.creation_timestamp,
                running_duration: job.status.running_duration.clone(),
                task_status_count: job.status.task_status_count.clone(),
            },
        );
    }
    new.state.phase = phase(&new, steps.len()).to_owned();
    new
}

fn phase(status: &JobFlowStatus, steps: usize) -> &str {
    let failed = !status.failed_jobs.is_empty() || !status.terminated_jobs.is_empty();
    let started = !status.running_jobs.is_empty() || !status.completed_jobs.is_empty();
    match status.state.phase.as_str() {
        end @ ("Succeed" | "Failed" | "Terminating") => end,
        _ if failed => "Failed",
        _ if status.completed_jobs.len() == steps => "Succeed",
        "Running" => "Running",
        _ if started => "Running",
        _ => "Pending",
    }
}

/// The times of a Job, with the phases that it was seen in.
fn line(flow: &JobFlow, name: &str, job: &Job, now: Time) -> FlowJob {
    let known = flow.status.job_status_list.iter().find(|line| line.name == name);
    let mut histories = known.map(|line| line.running_histories.clone()).unwrap_or_default();
    let phase = job.status.state.phase;
    if histories.last().is_none_or(|last| last.state != phase) {
        let since = job.status.state.last_transition_time.unwrap_or(now);
        if let Some(last) = histories.last_mut() {
            last.end_timestamp = Some(since);
        }
        let start_timestamp = Some(since);
        histories.push(FlowHistory { start_timestamp, end_timestamp: None, state: phase });
    }
    let ended = job.status.state.last_transition_time.filter(|_| phase.is_final());
    FlowJob {
        name: name.to_owned(),
        state: phase,
        start_timestamp: job.metadata.creation_timestamp,
        end_timestamp: ended,
        restart_count: job.status.retry_count,
        running_histories: histories,
    }
}
