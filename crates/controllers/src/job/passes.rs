//! What a Job wants to be written in each phase, once nothing else is asked of it.

use muster_api::keys::ROOT_QUEUE;
use muster_api::{JobPhase, JobStatus, QueueState, TaskSpec, Time};

use super::answers::Trouble;
use super::pod::Mould;
use super::work::Work;
use super::{claims, group, parts, status, target};
use crate::known::Known;
use crate::write::{Dependents, Target, What};

/// How many pods of a Job are created or deleted before the answers are waited for: many enough to
/// keep the client busy, few enough that another Job need not wait for long.
const BATCH: usize = 200;

impl Work {
    /// Pending and running: creates what is missing and deletes what is too much.
    pub(super) fn sync(&mut self, known: &Known, now: Time) -> Vec<What> {
        let mut new = self.counted();
        if new.state.last_transition_time.is_none() {
            status::enter(&mut new, &self.job, JobPhase::Pending, "", String::new(), now);
        }
        match self.prepare(known) {
            Err(trouble) => {
                self.trouble = Some(trouble);
                self.follow(&mut new, now);
                self.conclude(new, Vec::new(), now)
            }
            Ok(mut writes) => {
                // Pods come last: they mount what else is made.
                if writes.is_empty() && self.is_let_in() {
                    writes.extend(self.deletions(BATCH));
                    writes.extend(self.creations(BATCH));
                }
                self.follow(&mut new, now);
                self.conclude(new, writes, now)
            }
        }
    }

    /// The pods of the Job, or of a part of it, leave; then it is pending again.
    pub(super) fn restart(&mut self, now: Time) -> Vec<What> {
        let mut new = self.counted();
        let restart = self.restart_under_way();
        let mut writes = Vec::new();
        for (task, index, pod) in self.pods.present() {
            let goes = match &restart {
                Some(restart) => restart.includes(&self.spec, task, index, pod.retry),
                None => pod.version < self.job.status.version,
            };
            if goes && writes.len() < BATCH {
                writes.push(self.delete_pod(&pod.name, &pod.uid));
            }
        }
        if restart.is_none() {
            writes.extend(self.delete_group());
        }
        let stays = self.spec.replicas() - i64::from(new.terminating);
        if writes.is_empty() && stays >= i64::from(self.spec.min_available) {
            let State { reason, message } = State::kept(&new);
            status::enter(&mut new, &self.job, JobPhase::Pending, &reason, message, now);
        }
        self.conclude(new, writes, now)
    }

    /// Pods that have not ended leave, and at the end everything else that was made for the Job.
    pub(super) fn wind_up(&mut self, now: Time) -> Vec<What> {
        let mut new = self.counted();
        let live = self.pods.present().filter(|(_, _, pod)| !pod.phase.has_ended());
        let mut writes: Vec<What> =
            live.take(BATCH).map(|(_, _, pod)| self.delete_pod(&pod.name, &pod.uid)).collect();
        writes.extend(self.delete_group());
        let next = match self.job.status.state.phase {
            JobPhase::Aborting => JobPhase::Aborted,
            JobPhase::Completing => JobPhase::Completed,
            JobPhase::Terminating => JobPhase::Terminated,
            ended => ended,
        };
        let is_over = writes.is_empty() && new.terminating == 0;
        if next.is_final() && is_over {
            writes.extend(parts::removals(&self.job, &self.parts));
        }
        if is_over && next != self.job.status.state.phase {
            let State { reason, message } = State::kept(&new);
            status::enter(&mut new, &self.job, next, &reason, message, now);
        }
        self.conclude(new, writes, now)
    }

    /// Everything that pods need before they can be created. Trouble is what only a user can mend,
    /// or what will be mended by time.
    fn prepare(&self, known: &Known) -> Result<Vec<What>, Trouble> {
        self.check_queue(known)?;
        let mut writes = claims::wanted(&self.job, &self.spec, known)
            .map_err(|message| Trouble::new("ClaimMissing", "PVCError", message))?;
        writes.extend(parts::missing(&self.job, &self.spec, &self.parts));
        let wanted = group::wanted(&self.job, &self.spec, known);
        match &self.group {
            None => writes.push(What::Create(group::object(&self.job, &wanted))),
            // The next one has the same name.
            Some(group) if group.is_leaving => {}
            Some(group) => {
                let object = self.group_target(&group.uid);
                let patch = group::difference(&group.spec, &wanted);
                writes.extend(patch.map(|patch| What::Merge { object, patch }));
            }
        }
        Ok(writes)
    }

    /// A Job that has its PodGroup goes on, whatever becomes of the queue.
    fn check_queue(&self, known: &Known) -> Result<(), Trouble> {
        let name = &self.spec.queue;
        let trouble = |reason, message| Err(Trouble::new(reason, "PodGroupError", message));
        let Some(queue) = known.queues.get(name) else {
            return trouble("QueueMissing", format!("there is no queue {name}; create it"));
        };
        let state = queue.status.as_ref().map(|status| status.state).unwrap_or_default();
        let has_children =
            || known.queues.values().any(|queue| queue.spec.parent.as_ref() == Some(name));
        match () {
            () if self.group.is_some() => Ok(()),
            () if state != QueueState::Open => trouble(
                "QueueNotOpen",
                format!("queue {name} is {state:?}; open it, or name another"),
            ),
            () if name == ROOT_QUEUE || has_children() => trouble(
                "QueueNotLeaf",
                format!("queue {name} has queues below it; name one of those"),
            ),
            () => Ok(()),
        }
    }

    /// Pods that the Job does not want (any more).
    fn deletions(&self, most: usize) -> Vec<What> {
        self.pods
            .strays()
            .take(most)
            .map(|(_, _, pod)| self.delete_pod(&pod.name, &pod.uid))
            .collect()
    }

    /// Pods that are missing, the lowest indices of each task first. A pod that leaves keeps its
    /// name until it is gone.
    fn creations(&self, most: usize) -> Vec<What> {
        let JobStatus { version, retry_count, .. } = self.job.status;
        let mould = Mould { job: &self.job, spec: &self.spec, version, retry: retry_count };
        let mut pods = Vec::new();
        for task in self.spec.tasks.iter().filter(|task| self.may_start(task)) {
            let left = most - pods.len();
            let missing = self.pods.missing(&task.name, left);
            pods.extend(missing.into_iter().map(|index| What::Create(mould.pod(task, index))));
        }
        pods
    }

    /// Whether the tasks that must run before this one do.
    fn may_start(&self, task: &TaskSpec) -> bool {
        let Some(before) = &task.depends_on else { return true };
        let is_ready = |name: &String| {
            let least = self.spec.task(name).map_or(0, TaskSpec::least);
            i64::from(self.pods.counts(name).ready) >= least
        };
        match before.iteration.as_str() {
            "any" if !before.name.is_empty() => before.name.iter().any(is_ready),
            _ => before.name.iter().all(is_ready),
        }
    }

    /// The phase that follows from the counts.
    fn follow(&self, new: &mut JobStatus, now: Time) {
        let next = status::follows(&self.job, &self.spec, &self.pods);
        if let Some((phase, reason, message)) = next {
            status::enter(new, &self.job, phase, reason, message, now);
        }
    }

    fn delete_pod(&self, name: &str, uid: &str) -> What {
        let object = Target {
            kind: "Pod".to_owned(),
            api_version: "v1".to_owned(),
            namespace: self.job.metadata.namespace.clone(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        };
        What::Delete { object, then: Dependents::Later }
    }

    fn group_target(&self, uid: &str) -> Target {
        Target {
            kind: "PodGroup".to_owned(),
            api_version: "scheduling.volcano.sh/v1beta1".to_owned(),
            namespace: self.job.metadata.namespace.clone(),
            name: group::name(&self.job),
            uid: uid.to_owned(),
        }
    }

    fn delete_group(&self) -> Option<What> {
        let group = self.group.as_ref().filter(|group| !group.is_leaving)?;
        Some(What::Delete { object: self.group_target(&group.uid), then: Dependents::Later })
    }

    /// A finished Job goes when its time is over, and everything that belongs to it before it.
    pub(super) fn delete_job(&self) -> What {
        What::Delete { object: target(&self.job), then: Dependents::First }
    }
}

/// Why the Job is in its phase.
struct State {
    reason: String,
    message: String,
}

impl State {
    /// What led to the phase before led to this one too.
    fn kept(status: &JobStatus) -> State {
        State { reason: status.state.reason.clone(), message: status.state.message.clone() }
    }
}
