//! One Job and everything that is known of it, and its turn: what it wants to be written now.

use std::collections::VecDeque;

use muster_api::kinds::Object;
use muster_api::{
    Job, JobPhase, JobSpec, JobStatus, PodGroup, PodGroupPhase, PodGroupSpec, Problem, Time,
};

use super::answers::{Answers, Leave, Trouble};
use super::intent::{Intent, is_possible};
use super::parts::Parts;
use super::pods::{Pod, Pods};
use super::policy::{Action, Happening, verdict};
use super::requests::{PodName, Request, Timer, Timers, happening};
use super::restart::Restart;
use super::unwritten::Unwritten;
use super::{status, target};
use crate::event::{Refusal, SeenPod};
use crate::known::Known;
use crate::write::{Level, Outbox, What, WriteId};

/// Says on a Job that its ttlSecondsAfterFinished also counts from its abortion.
const TTL_WHEN_ABORTED: &str = "muster.sh/ttl-when-aborted";

/// What a Job knows of its PodGroup.
#[derive(Clone, Debug)]
pub struct Group {
    pub uid: String,
    pub spec: PodGroupSpec,
    pub phase: PodGroupPhase,
    pub is_leaving: bool,
}

pub struct Work {
    pub job: Job,
    /// The spec with defaults.
    pub spec: JobSpec,
    problems: Vec<Problem>,
    pub pods: Pods,
    pub group: Option<Group>,
    /// What plugins have made, as far as it is there.
    pub parts: Parts,
    asked: VecDeque<Request>,
    commands: VecDeque<Action>,
    intent: Option<Intent>,
    timers: Timers,
    pub trouble: Option<Trouble>,
    /// The trouble of the last Event.
    told: Option<Trouble>,
    unwritten: Unwritten,
    pub answers: Answers,
}

impl Work {
    pub fn new(job: Job) -> Work {
        let mut work = Work {
            spec: JobSpec::default(),
            problems: Vec::new(),
            pods: Pods::default(),
            group: None,
            parts: Parts::new(),
            asked: VecDeque::new(),
            commands: VecDeque::new(),
            intent: None,
            timers: Timers::default(),
            trouble: None,
            told: None,
            unwritten: Unwritten::default(),
            answers: Answers::default(),
            job: Job::default(),
        };
        work.update(job);
        work
    }

    /// The Job as it is now.
    pub fn update(&mut self, job: Job) {
        self.spec = job.spec.clone();
        self.spec.set_defaults();
        self.problems = Object::from(job.clone()).problems();
        self.job = job;
        self.pods.want(&self.spec, self.job.status.version);
        if self.intent.as_ref().is_some_and(|intent| intent.is_done(&self.job)) {
            self.finish_intent();
        }
    }

    /// A change of phase settles what timers of the Job, or of the part that restarts, waited for.
    fn finish_intent(&mut self) {
        let Some(intent) = self.intent.take() else { return };
        let spec = &self.spec;
        match intent.piece {
            Some(piece) => self.timers.drop_of(|pod| piece.includes(spec, &pod.task, pod.index)),
            None => self.timers.clear(),
        }
    }

    /// A pod of the Job as it is now.
    pub fn pod(&mut self, task: &str, index: u32, seen: &SeenPod, now: Time) {
        let pod = Pod::of(seen);
        let before = self.pods.put(task, index, pod.clone());
        let counts = self.pods.counts(task);
        let what = happening(&self.spec, task, before.as_ref(), &pod, &counts);
        let since = match what {
            Happening::PodPending => pod.created,
            Happening::PodFailed => pod.finished,
            _ => None,
        };
        self.ask(what, task, index, &pod, since.unwrap_or(now));
    }

    /// A pod of the Job is there no more.
    pub fn pod_gone(&mut self, task: &str, index: u32, uid: &str, now: Time) {
        let Some(pod) = self.pods.remove(task, index, uid) else { return };
        let was_live = !pod.is_leaving && !pod.is_marked && !pod.phase.has_ended();
        let what = if was_live { Happening::PodEvicted } else { Happening::OutOfSync };
        self.ask(what, task, index, &pod, now);
    }

    fn ask(&mut self, what: Happening, task: &str, index: u32, pod: &Pod, since: Time) {
        let name = PodName::of(task, index, pod);
        self.timers.settle(what, &name);
        let is_ours = pod.version < self.job.status.version
            || !self.pods.wants(task, index)
            || self.is_restarted(&name, pod.retry);
        if is_ours || matches!(what, Happening::OutOfSync | Happening::PodRunning) {
            return;
        }
        let exit_codes =
            if what == Happening::PodFailed { pod.exit_codes.clone() } else { Vec::new() };
        self.asked.push_back(Request { happening: what, pod: Some(name), exit_codes, since });
    }

    /// Whether the pod leaves because the part that it belongs to is restarted.
    fn is_restarted(&self, pod: &PodName, retry: i32) -> bool {
        Restart::read(&self.job).is_some_and(|restart| {
            restart.retry <= self.job.status.retry_count
                && restart.includes(&self.spec, &pod.task, pod.index, retry)
        })
    }

    /// The PodGroup of the Job as it is now.
    pub fn group(&mut self, group: &PodGroup, now: Time) {
        let phase = group.status.as_ref().map(|status| status.phase).unwrap_or_default();
        let was_broken = self.group.as_ref().is_some_and(|g| g.phase == PodGroupPhase::Unknown);
        if phase == PodGroupPhase::Unknown && !was_broken {
            self.asked.push_back(Request {
                happening: Happening::Unknown,
                pod: None,
                exit_codes: Vec::new(),
                since: now,
            });
        }
        self.group = Some(Group {
            uid: group.metadata.uid.clone(),
            spec: group.spec.clone(),
            phase,
            is_leaving: group.metadata.deletion_timestamp.is_some(),
        });
    }

    pub fn command(&mut self, action: Action) {
        self.commands.push_back(action);
    }

    /// What became of a write.
    pub fn answer(&mut self, id: WriteId, result: Result<(), Refusal>) {
        self.answers.hear(id, result, &self.job.metadata.uid);
    }

    /// What the Job wants to be written now, and when to look at it again though nothing happens.
    pub fn turn(&mut self, known: &Known, now: Time, outbox: &mut Outbox) -> Option<Time> {
        if self.job.metadata.deletion_timestamp.is_some() || !self.answers.waits_for.is_empty() {
            return None;
        }
        let leave = self.answers.conclude(now);
        self.trouble.clone_from(&self.answers.blocked);
        let writes = match leave {
            Leave::Wait(moment) => return Some(moment),
            Leave::Act => self.writes(known, now),
            Leave::Tell => {
                let new = self.counted();
                self.conclude(new, Vec::new(), now)
            }
        };
        outbox.send(writes, &mut self.answers.waits_for);
        let next =
            [self.unwritten.next(), self.timers.next(), self.expiry(), self.answers.next(now)];
        next.into_iter().flatten().min()
    }

    fn writes(&mut self, known: &Known, now: Time) -> Vec<What> {
        for Timer { action, request, .. } in self.timers.due(now) {
            self.intend(action, &request);
        }
        while self.intent.is_none() {
            if let Some(action) = self.commands.pop_front() {
                let phase = self.job.status.state.phase;
                if is_possible(phase, action, self.restart_under_way().is_some()) {
                    let words = "a Command asked for it";
                    let intent =
                        Intent::new(&self.job, &self.spec, action, None, "CommandIssued", words);
                    self.intent = Some(intent);
                }
            } else if let Some(request) = self.asked.pop_front() {
                self.judge(&request, now);
            } else {
                break;
            }
        }
        if let Some(intent) = &self.intent {
            return intent.write(&self.job, &self.spec, self.counted(), now);
        }
        let phase = self.job.status.state.phase;
        if self.expiry().is_some_and(|end| end <= now) {
            return vec![self.delete_job()];
        }
        match phase {
            JobPhase::Pending | JobPhase::Running => self.sync_if_valid(known, now),
            JobPhase::Restarting => self.restart(now),
            _ => self.wind_up(now),
        }
    }

    fn sync_if_valid(&mut self, known: &Known, now: Time) -> Vec<What> {
        let Some(problem) = self.problems.first() else { return self.sync(known, now) };
        let more = self.problems.len() - 1;
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        let message = format!("{}: {}{more}", problem.path, problem.message);
        self.trouble = Some(Trouble::new("InvalidJob", "InvalidJob", message));
        let mut new = self.counted();
        if new.state.last_transition_time.is_none() {
            status::enter(&mut new, &self.job, JobPhase::Pending, "", String::new(), now);
        }
        self.conclude(new, Vec::new(), now)
    }

    /// Finds the action of a request, and takes it or starts its timer.
    fn judge(&mut self, request: &Request, now: Time) {
        let Request { happening, pod, exit_codes, since } = request;
        let task = pod.as_ref().map(|pod| pod.task.as_str());
        let verdict = verdict(&self.spec, task, *happening, exit_codes);
        match verdict.delay.map(|delay| since.plus_ms(delay)) {
            Some(due) if verdict.action != Action::Sync && due > now => {
                self.timers.start(Timer { due, action: verdict.action, request: request.clone() });
            }
            _ => self.intend(verdict.action, request),
        }
    }

    /// Makes an action the Job's intent, unless it is about pods that are the past.
    fn intend(&mut self, action: Action, request: &Request) {
        let phase = self.job.status.state.phase;
        let is_past = request.pod.as_ref().is_some_and(|pod| {
            pod.version < self.job.status.version
                || self.pods.get(&pod.task, pod.index).is_some_and(|there| {
                    there.uid == pod.uid && self.is_restarted(pod, there.retry)
                })
        });
        if is_past || !is_possible(phase, action, self.restart_under_way().is_some()) {
            return;
        }
        let reason = request.happening.name();
        let cause = cause(request);
        let pod = request.pod.as_ref();
        let intent = Intent::new(&self.job, &self.spec, action, pod, reason, &cause);
        if self.intent.is_none() && !intent.is_done(&self.job) {
            self.intent = Some(intent);
        }
    }

    /// The part that restarts, if not the whole Job does.
    pub(super) fn restart_under_way(&self) -> Option<Restart> {
        let JobStatus { state, retry_count, version, .. } = &self.job.status;
        let restart = Restart::read(&self.job)?;
        let is_this = restart.retry == *retry_count && restart.version == *version;
        (state.phase == JobPhase::Restarting && is_this).then_some(restart)
    }

    pub(super) fn counted(&self) -> JobStatus {
        status::counted(&self.job, &self.spec, &self.pods)
    }

    /// Whether the scheduler lets the Job have pods.
    pub(super) fn is_let_in(&self) -> bool {
        let group = self.group.as_ref().filter(|group| !group.is_leaving);
        group.is_some_and(|group| group.phase != PodGroupPhase::Pending)
    }

    /// When the finished Job is to be deleted.
    fn expiry(&self) -> Option<Time> {
        let ttl = self.job.spec.ttl_seconds_after_finished?;
        let state = &self.job.status.state;
        let asked = self.job.metadata.annotations.get(TTL_WHEN_ABORTED).map(String::as_str);
        let ends =
            state.phase.is_final() || state.phase == JobPhase::Aborted && asked == Some("true");
        let since = state.last_transition_time.filter(|_| ends)?;
        Some(since.plus_ms(i64::from(ttl) * 1000))
    }

    /// Adds the status to the writes if it has to be written, and tells of new trouble.
    pub(super) fn conclude(
        &mut self,
        mut new: JobStatus,
        mut writes: Vec<What>,
        now: Time,
    ) -> Vec<What> {
        if let Some(trouble) = &self.trouble {
            trouble.reason.clone_into(&mut new.state.reason);
            trouble.message.clone_into(&mut new.state.message);
            if self.told.as_ref() != Some(trouble) {
                writes.push(What::Tell {
                    object: target(&self.job),
                    level: Level::Warning,
                    reason: trouble.event,
                    message: trouble.message.clone(),
                });
            }
        } else if self.told.is_some() && new.state.phase == self.job.status.state.phase {
            new.state.reason.clear();
            new.state.message.clear();
        }
        self.told.clone_from(&self.trouble);
        // A write to the Job itself makes this version of its status out of date.
        let renames = writes.iter().any(|write| {
            matches!(write, What::Merge { object, .. } if object.uid == self.job.metadata.uid)
        });
        if !renames && self.unwritten.is_due(&new, &self.job.status, now) {
            let version = self.job.metadata.resource_version.clone();
            let status = serde_json::to_value(new).expect("a status is JSON");
            writes.push(What::SetStatus { object: target(&self.job), status, version });
        }
        writes
    }
}

/// What happened, in words.
fn cause(request: &Request) -> String {
    let Some(pod) = &request.pod else {
        return "some of its pods have lost their nodes".to_owned();
    };
    let name = &pod.name;
    match request.happening {
        Happening::PodFailed => match request.exit_codes.first() {
            Some(code) => format!("pod {name} failed with exit code {code}"),
            None => format!("pod {name} failed"),
        },
        Happening::PodEvicted => format!("pod {name} was evicted or deleted"),
        Happening::PodPending => format!("pod {name} was pending for too long"),
        Happening::TaskCompleted => format!("all pods of task {} succeeded", pod.task),
        Happening::TaskFailed => {
            format!("the containers of task {} were restarted too often", pod.task)
        }
        _ => format!("something happened to pod {name}"),
    }
}
