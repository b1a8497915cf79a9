//! What controllers want to be written.

use std::collections::BTreeMap;

use serde_json::Value;

/// Numbers writes, so that answers can name them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteId(pub u64);

#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub id: WriteId,
    pub what: What,
}

/// An object to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    pub kind: String,
    pub api_version: String,
    pub namespace: String,
    pub name: String,
    /// Only the object with this UID is meant.
    pub uid: String,
}

impl Target {
    /// `namespace/name`, or the bare name of an object without a namespace.
    pub fn key(&self) -> String {
        match self.namespace.as_str() {
            "" => self.name.clone(),
            namespace => format!("{namespace}/{}", self.name),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Create(Value),
    /// Creates a Secret with new keys in `id_rsa`, `id_rsa.pub` and `authorized_keys`. They are made
    /// where it is written, so that no controller, log or test ever holds them.
    CreateWithKeys {
        object: Value,
        keys: Keys,
    },
    /// Replaces the status, if the object still has this version.
    SetStatus {
        object: Target,
        status: Value,
        version: Option<String>,
    },
    /// A JSON merge patch.
    Merge {
        object: Target,
        patch: Value,
    },
    Delete {
        object: Target,
        then: Dependents,
    },
    /// An Event of Kubernetes about an object. Nothing waits for it.
    Tell {
        object: Target,
        level: Level,
        reason: &'static str,
        message: String,
    },
}

impl What {
    /// The reason of the Event that tells of a refusal; none where nothing waits for the answer.
    fn failure(&self) -> Option<&'static str> {
        let kind = match self {
            What::Tell { .. } => return None,
            What::SetStatus { .. } => return Some("JobStatusError"),
            What::Create(object) | What::CreateWithKeys { object, .. } => {
                object["kind"].as_str().unwrap_or_default()
            }
            What::Merge { object, .. } | What::Delete { object, .. } => &object.kind,
        };
        Some(match (kind, self) {
            ("Pod", What::Delete { .. }) => "FailedDeletePod",
            ("Pod", _) => "FailedCreatePod",
            ("PodGroup", _) => "PodGroupError",
            ("PersistentVolumeClaim", _) => "PVCError",
            ("Job", _) => "JobStatusError",
            _ => "PluginError",
        })
    }
}

/// A kind of key pair.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    Ed25519,
    Rsa2048,
}

/// What becomes of the objects that belong to a deleted one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// They go after it.
    Later,
    /// They go before it.
    First,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Level {
    Normal,
    Warning,
}

/// Collects writes and numbers them.
#[derive(Debug, Default)]
pub struct Outbox {
    next: u64,
    pub writes: Vec<Write>,
}

impl Outbox {
    /// Wants a write; the answer will have the number that is returned.
    pub fn push(&mut self, what: What) -> WriteId {
        let id = WriteId(self.next);
        self.next += 1;
        self.writes.push(Write { id, what });
        id
    }

    /// Wants writes on behalf of a controller that waits for their answers.
    pub fn send(&mut self, writes: Vec<What>, waits_for: &mut BTreeMap<WriteId, &'static str>) {
        for what in writes {
            let failure = what.failure();
            let id = self.push(what);
            waits_for.extend(failure.map(|failure| (id, failure)));
        }
    }
}
