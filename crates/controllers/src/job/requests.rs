//! What changes of pods ask of their Job.

use std::collections::BTreeMap;

use muster_api::{JobSpec, Time};

use super::pods::{Counts, Pod};
use super::policy::{Action, Happening};
use crate::event::PodPhase;

/// Something that happened to a Job or to a pod of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub happening: Happening,
    /// The pod, unless it happened to the whole Job.
    pub pod: Option<PodName>,
    pub exit_codes: Vec<i32>,
    /// Since when it is so.
    pub since: Time,
}

/// A pod of a Job, and which incarnation of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    pub task: String,
    pub index: u32,
    pub name: String,
    pub uid: String,
    pub version: i32,
}

impl PodName {
    pub fn of(task: &str, index: u32, pod: &Pod) -> PodName {
        PodName {
            task: task.to_owned(),
            index,
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            version: pod.version,
        }
    }
}

/// What a change of a pod means. A pod that is seen for the first time in a state counts as having
/// come to it: a controller that was not there when it happened misses nothing.
pub fn happening(
    spec: &JobSpec,
    task: &str,
    before: Option<&Pod>,
    now: &Pod,
    counts: &Counts,
) -> Happening {
    if now.is_marked {
        return Happening::OutOfSync;
    }
    let came_to = |phase: PodPhase| {
        now.phase == phase
            && before.is_none_or(|before| before.phase != phase || before.uid != now.uid)
    };
    if now.is_leaving {
        let was_live = before.is_none_or(|before| !before.is_leaving && !before.phase.has_ended());
        return match was_live && !now.phase.has_ended() {
            true => Happening::PodEvicted,
            false => Happening::OutOfSync,
        };
    }
    match now.phase {
        PodPhase::Failed if came_to(PodPhase::Failed) => Happening::PodFailed,
        PodPhase::Succeeded if came_to(PodPhase::Succeeded) && is_complete(spec, task, counts) => {
            Happening::TaskCompleted
        }
        PodPhase::Running if came_to(PodPhase::Running) => Happening::PodRunning,
        PodPhase::Pending if came_to(PodPhase::Pending) => Happening::PodPending,
        PodPhase::Pending | PodPhase::Running if has_failed(spec, task, counts) => {
            Happening::TaskFailed
        }
        _ => Happening::OutOfSync,
    }
}

/// All pods of the task have succeeded.
fn is_complete(spec: &JobSpec, task: &str, counts: &Counts) -> bool {
    spec.task(task).is_some_and(|task| task.replicas > 0 && counts.succeeded >= task.replicas)
}

/// The containers of the task were restarted too often.
fn has_failed(spec: &JobSpec, task: &str, counts: &Counts) -> bool {
    spec.task(task).is_some_and(|task| task.max_retry >= 0 && counts.restarts >= task.max_retry)
}

/// Actions that are taken if what they are about lasts. At most one for each pod, and one for the
/// Job itself.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    set: BTreeMap<String, Timer>,
}

#[derive(Clone, Debug)]
pub struct Timer {
    pub due: Time,
    pub action: Action,
    pub request: Request,
}

impl Timers {
    /// A second request for the same action does not begin again; another action takes its place.
    pub fn start(&mut self, timer: Timer) {
        let name = timer.request.pod.as_ref().map(|pod| pod.name.clone()).unwrap_or_default();
        match self.set.get(&name) {
            Some(set) if set.action == timer.action && set.request.pod == timer.request.pod => {}
            _ => drop(self.set.insert(name, timer)),
        }
    }

    /// What happened to the pod since may have settled what a timer waits for.
    pub fn settle(&mut self, happening: Happening, pod: &PodName) {
        let Some(timer) = self.set.get(&pod.name) else { return };
        let settled = match timer.request.happening {
            Happening::PodPending => {
                timer.request.pod.as_ref().is_some_and(|waiting| waiting.uid == pod.uid)
                    && happening != Happening::PodPending
            }
            Happening::PodFailed | Happening::PodEvicted => happening == Happening::PodRunning,
            _ => false,
        };
        if settled {
            self.set.remove(&pod.name);
        }
    }

    /// Drops the timers of the pods that an action has dealt with.
    pub fn drop_of(&mut self, includes: impl Fn(&PodName) -> bool) {
        self.set.retain(|_, timer| !timer.request.pod.as_ref().is_some_and(&includes));
    }

    pub fn clear(&mut self) {
        self.set.clear();
    }

    pub fn next(&self) -> Option<Time> {
        self.set.values().map(|timer| timer.due).min()
    }

    /// The timers that are due, the earliest first.
    pub fn due(&mut self, now: Time) -> Vec<Timer> {
        let mut due: Vec<Timer> =
            self.set.extract_if(.., |_, timer| timer.due <= now).map(|(_, timer)| timer).collect();
        due.sort_by_key(|timer| timer.due);
        due
    }
}
