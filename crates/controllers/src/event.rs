//! What controllers are told: objects as they are, objects that have gone, and what became of
//! writes. The same object may come twice, and an older version after a newer one.

use muster_api::Time;
use muster_api::core::{Meta, Pod};
use muster_api::kinds::{Kind, Object};

use crate::write::WriteId;

#[derive(Clone, Debug)]
pub enum Event {
    /// An object as it is now. Kinds that no controller reads change nothing.
    Object(Object),
    Pod(SeenPod),
    /// An object that was made for a Job beside its pods and PodGroup.
    Part(Part),
    Gone {
        kind: Kind,
        key: String,
        uid: String,
    },
    /// Such an object is there no more.
    PartGone {
        kind: String,
        key: String,
        uid: String,
    },
    /// What became of a write. If it changed an object, that object has come before.
    Answer {
        id: WriteId,
        result: Result<(), Refusal>,
    },
}

impl<T: Into<Object>> From<T> for Event {
    fn from(object: T) -> Event {
        Event::Object(object.into())
    }
}

/// What controllers read of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenPod {
    pub metadata: Meta,
    pub phase: PodPhase,
    /// Whether all its containers are ready.
    pub ready: bool,
    /// How often its containers were restarted, in all.
    pub restarts: i32,
    /// The exit codes of its containers that failed.
    pub exit_codes: Vec<i32>,
    /// When its last container ended.
    pub finished_at: Option<Time>,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PodPhase {
    #[default]
    Pending,
    Running,
    Succeeded,
    Failed,
    /// Its node is out of reach.
    Unknown,
}

impl PodPhase {
    pub fn read(text: &str) -> PodPhase {
        match text {
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            "Unknown" => PodPhase::Unknown,
            _ => PodPhase::Pending,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            PodPhase::Pending => "Pending",
            PodPhase::Running => "Running",
            PodPhase::Succeeded => "Succeeded",
            PodPhase::Failed => "Failed",
            PodPhase::Unknown => "Unknown",
        }
    }

    pub fn has_ended(self) -> bool {
        matches!(self, PodPhase::Succeeded | PodPhase::Failed)
    }
}

impl SeenPod {
    /// A pod without statuses of containers, as the embedded cluster has them.
    pub fn of(pod: &Pod) -> SeenPod {
        let phase = PodPhase::read(&pod.status.phase);
        let ready = phase == PodPhase::Running;
        SeenPod { metadata: pod.metadata.clone(), phase, ready, ..SeenPod::default() }
    }
}

/// An object that was made for a Job beside its pods and PodGroup: a Service, a ConfigMap, ….
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub kind: String,
    pub metadata: Meta,
}

/// Why the API server did not take a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An object of that name is there; this is the UID of its owner, if it has one. If that is the
    /// object for which it was to be created, it has come as an event before.
    Exists {
        owner: Option<String>,
    },
    NotFound,
    /// The object has changed in the meantime.
    Conflict,
    /// The server says what is wrong, for example that a quota is used up.
    Refused(String),
    /// It is not known whether the write was carried out.
    Unknown(String),
}
