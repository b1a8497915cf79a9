//! What a Job is about to do because of an event, a command or a timer. It stays until the Job's
//! status says that it is done, whatever becomes of the writes in between.

use muster_api::{Job, JobPhase, JobSpec, JobStatus, Time};
use serde_json::json;

use super::policy::Action;
use super::requests::PodName;
use super::restart::{Piece, Restart};
use super::{status, target};
use crate::names::{RESTART, RESUMED_AT};
use crate::write::{Level, What};

#[derive(Clone, Debug)]
pub struct Intent {
    pub action: Action,
    /// The part that is restarted, if it is not the whole Job.
    pub piece: Option<Piece>,
    /// One word for why, and the whole story.
    pub reason: &'static str,
    pub message: String,
    /// Where the Job stood when this was decided.
    base: (JobPhase, i32, i32),
}

/// Whether the action changes anything in this phase.
pub fn is_possible(phase: JobPhase, action: Action, restarts_part: bool) -> bool {
    use Action as A;
    use JobPhase as P;
    match (phase, action) {
        (_, A::Sync) => false,
        (P::Pending | P::Running, A::ResumeJob) => false,
        (P::Pending | P::Running, _) => true,
        (P::Restarting, A::AbortJob | A::CompleteJob | A::TerminateJob) => true,
        // What restarts a part may become larger; the whole Job is restarting already.
        (P::Restarting, A::RestartJob | A::RestartTask | A::RestartPod | A::RestartPartition) => {
            restarts_part
        }
        (P::Aborting | P::Aborted, A::ResumeJob) => true,
        _ => false,
    }
}

/// The values of retryCount that came from resuming.
fn resumed_at(job: &Job) -> Vec<i32> {
    let text = job.metadata.annotations.get(RESUMED_AT).map_or("", String::as_str);
    text.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

/// How often the Job was restarted because something had failed.
pub fn failures(job: &Job) -> i32 {
    let retries = job.status.retry_count;
    let resumed = resumed_at(job).into_iter().filter(|count| *count <= retries).count();
    retries - resumed as i32
}

impl Intent {
    pub fn new(
        job: &Job,
        spec: &JobSpec,
        action: Action,
        pod: Option<&PodName>,
        reason: &'static str,
        cause: &str,
    ) -> Intent {
        let piece = pod.and_then(|pod| Piece::of(spec, action, pod));
        let message = match &piece {
            Some(piece) => format!("{}: {cause}; restarting {}", action.name(), piece.words()),
            None => format!("{}: {cause}", action.name()),
        };
        let JobStatus { state, retry_count, version, .. } = &job.status;
        let base = (state.phase, *retry_count, *version);
        Intent { action, piece, reason, message, base }
    }

    /// Whether the Job has gone on since.
    pub fn is_done(&self, job: &Job) -> bool {
        let JobStatus { state, retry_count, version, .. } = &job.status;
        let widened = self.base.0 == JobPhase::Restarting
            && self.piece.as_ref().is_some_and(|piece| {
                Restart::read(job).is_some_and(|restart| {
                    restart.retry == *retry_count && restart.parts.contains(piece)
                })
            });
        self.base != (state.phase, *retry_count, *version) || widened
    }

    /// The next write on the way: what another controller must know first, then the status.
    pub fn write(&self, job: &Job, spec: &JobSpec, counted: JobStatus, now: Time) -> Vec<What> {
        if let Some(note) = self.note(job) {
            let patch = json!({ "metadata": { "annotations": note } });
            return vec![What::Merge { object: target(job), patch }];
        }
        let mut new = counted;
        let phase = match self.action {
            Action::AbortJob => JobPhase::Aborting,
            Action::CompleteJob => JobPhase::Completing,
            Action::TerminateJob => JobPhase::Terminating,
            Action::ResumeJob => {
                new.retry_count += 1;
                new.version += 1;
                JobPhase::Restarting
            }
            _ if job.status.state.phase == JobPhase::Restarting => {
                // A part was restarting; now it is the whole Job.
                new.version += 1;
                JobPhase::Restarting
            }
            action => {
                new.retry_count += 1;
                match failures(job) + 1 >= spec.max_retry {
                    true => JobPhase::Failed,
                    false => {
                        new.version += i32::from(action == Action::RestartJob);
                        JobPhase::Restarting
                    }
                }
            }
        };
        let message = match phase {
            JobPhase::Failed => {
                format!("{}; failed as often as maxRetry allows: {}", self.message, spec.max_retry)
            }
            _ => self.message.clone(),
        };
        status::enter(&mut new, job, phase, self.reason, message.clone(), now);
        let level = if phase == JobPhase::Failed { Level::Warning } else { Level::Normal };
        let version = job.metadata.resource_version.clone();
        let new = serde_json::to_value(new).expect("a status is JSON");
        vec![
            What::SetStatus { object: target(job), status: new, version },
            What::Tell { object: target(job), level, reason: "ExecuteAction", message },
        ]
    }

    /// Annotations that must be written before the status.
    fn note(&self, job: &Job) -> Option<serde_json::Value> {
        let JobStatus { state, retry_count, version, .. } = &job.status;
        if self.action == Action::ResumeJob {
            let mut resumed = resumed_at(job);
            if resumed.contains(&(retry_count + 1)) {
                return None;
            }
            resumed.push(retry_count + 1);
            let texts: Vec<String> = resumed.iter().map(ToString::to_string).collect();
            return Some(json!({ RESUMED_AT: texts.join(",") }));
        }
        let piece = self.piece.as_ref()?;
        let widens = state.phase == JobPhase::Restarting;
        let retry = if widens { *retry_count } else { retry_count + 1 };
        let mut restart = Restart::read(job)
            .filter(|restart| restart.retry == retry && restart.version == *version)
            .unwrap_or(Restart { retry, version: *version, parts: Vec::new() });
        if restart.parts.contains(piece) {
            return None;
        }
        restart.parts.push(piece.clone());
        Some(json!({ RESTART: restart.text() }))
    }
}
