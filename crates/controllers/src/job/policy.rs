//! Which action an event leads to: the policies of the pod's task, then those of the Job, and the
//! first that matches decides.

use muster_api::{JobSpec, LifecyclePolicy, parse_duration};

/// What happened to a Job or to one of its pods.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    PodFailed,
    PodEvicted,
    PodPending,
    PodRunning,
    /// The PodGroup's phase became Unknown: some of the gang's pods have lost their nodes.
    Unknown,
    TaskCompleted,
    TaskFailed,
    /// Anything that only asks for a look.
    OutOfSync,
}

impl Happening {
    pub fn name(self) -> &'static str {
        match self {
            Happening::PodFailed => "PodFailed",
            Happening::PodEvicted => "PodEvicted",
            Happening::PodPending => "PodPending",
            Happening::PodRunning => "PodRunning",
            Happening::Unknown => "Unknown",
            Happening::TaskCompleted => "TaskCompleted",
            Happening::TaskFailed => "TaskFailed",
            Happening::OutOfSync => "OutOfSync",
        }
    }

    /// No policy is about these.
    fn is_internal(self) -> bool {
        matches!(self, Happening::PodRunning | Happening::OutOfSync)
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    Sync,
    AbortJob,
    RestartJob,
    RestartTask,
    RestartPod,
    RestartPartition,
    TerminateJob,
    CompleteJob,
    ResumeJob,
}

impl Action {
    pub fn read(text: &str) -> Action {
        match text {
            "AbortJob" => Action::AbortJob,
            "RestartJob" => Action::RestartJob,
            "RestartTask" => Action::RestartTask,
            "RestartPod" => Action::RestartPod,
            "RestartPartition" => Action::RestartPartition,
            "TerminateJob" => Action::TerminateJob,
            "CompleteJob" => Action::CompleteJob,
            "ResumeJob" => Action::ResumeJob,
            _ => Action::Sync,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Action::Sync => "SyncJob",
            Action::AbortJob => "AbortJob",
            Action::RestartJob => "RestartJob",
            Action::RestartTask => "RestartTask",
            Action::RestartPod => "RestartPod",
            Action::RestartPartition => "RestartPartition",
            Action::TerminateJob => "TerminateJob",
            Action::CompleteJob => "CompleteJob",
            Action::ResumeJob => "ResumeJob",
        }
    }
}

/// What a policy wants: the action, and how long the event must last first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub action: Action,
    /// In milliseconds.
    pub delay: Option<i64>,
}

/// The first policy of the task, else of the Job, that is about the event or about one of the exit
/// codes.
pub fn verdict(
    spec: &JobSpec,
    task: Option<&str>,
    happening: Happening,
    exit_codes: &[i32],
) -> Verdict {
    let own = task.and_then(|task| spec.task(task)).map_or(&[][..], |task| &task.policies);
    let matching = own
        .iter()
        .chain(&spec.policies)
        .find(|policy| !happening.is_internal() && matches(policy, happening, exit_codes));
    let Some(policy) = matching else { return Verdict { action: Action::Sync, delay: None } };
    let delay = policy.timeout.as_deref().and_then(|text| parse_duration(text).ok());
    Verdict { action: Action::read(&policy.action), delay }
}

fn matches(policy: &LifecyclePolicy, happening: Happening, exit_codes: &[i32]) -> bool {
    let by_event = policy
        .all_events()
        .into_iter()
        .any(|event| event == happening.name() || event == "*")
        // A pod is pending at first; only a policy that says for how long can mean it.
        && (happening != Happening::PodPending || policy.timeout.is_some());
    // 0 is no failure, so no policy can be about it.
    let by_code = policy.exit_code.is_some_and(|code| code != 0 && exit_codes.contains(&code));
    by_event || by_code
}
