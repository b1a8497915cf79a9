//! A pod's nomination, or its end, and notes on PodGroups. For a pod it is one PATCH of its status,
//! which accepts annotations as well: all is written or nothing, and it needs no more rights than
//! conditions do. A PodGroup's status does not accept annotations, so the object itself is patched.
//! Each patch contains the object's uid and no keys but ours.

use std::sync::Arc;

use http::Request;
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::{Found, Refusal, WriteContext, pod_path};
use crate::nominations::NominationPatch;

/// How often a conflict about a PodGroup is tried again: if it is a different object by now, no
/// retry succeeds.
const CONFLICTS: u32 = 8;

/// The object that carries the annotations, by `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bearer {
    Pod(String),
    Group(String),
}

impl Bearer {
    pub fn key(&self) -> &str {
        match self {
            Bearer::Pod(key) | Bearer::Group(key) => key,
        }
    }

    /// In metrics.
    fn kind(&self) -> &'static str {
        match self {
            Bearer::Pod(_) => "nomination",
            Bearer::Group(_) => "podgroup_note",
        }
    }

    fn path(&self) -> String {
        match self {
            Bearer::Pod(pod) => format!("{}/status", pod_path(pod)),
            Bearer::Group(key) => {
                let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
                format!(
                    "/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}"
                )
            }
        }
    }
}

#[derive(Clone, Debug)]
pub struct NominationWrite {
    pub bearer: Bearer,
    pub uid: String,
    pub patch: NominationPatch,
    attempt: u32,
}

/// The outcome of a write.
#[derive(Debug)]
pub enum Outcome {
    Written,
    /// To be tried again, unless there is a newer one.
    Again,
    /// It can't be written, however often it is tried.
    Refused(String),
    /// We no longer lead; the next leader takes over.
    Deposed,
}

impl NominationWrite {
    pub fn new(pod: String, uid: String, patch: NominationPatch) -> NominationWrite {
        NominationWrite { bearer: Bearer::Pod(pod), uid, patch, attempt: 0 }
    }

    /// Annotations of a PodGroup.
    pub fn note(
        group: String,
        uid: String,
        annotations: &[(&'static str, Option<String>)],
    ) -> NominationWrite {
        let patch =
            NominationPatch { annotations: annotations.iter().cloned().collect(), nominated: None };
        NominationWrite { bearer: Bearer::Group(group), uid, patch, attempt: 0 }
    }

    /// Replaces an older one for the same object. A note contains only changes, so it takes over
    /// the other keys of the older one.
    pub fn replace(&mut self, older: NominationWrite) {
        if matches!(self.bearer, Bearer::Group(_)) && self.uid == older.uid {
            for (key, text) in older.patch.annotations {
                self.patch.annotations.entry(key).or_insert(text);
            }
        }
    }

    pub async fn send(mut self, context: Arc<WriteContext>) -> (NominationWrite, Outcome) {
        let kind = self.bearer.kind();
        let refusal = match context.send(self.request()).await {
            Ok(_) => {
                context.metrics.wrote(kind);
                return (self, Outcome::Written);
            }
            Err(refusal) => refusal,
        };
        context.metrics.write_error(kind, refusal.cause());
        let outcome = match &refusal {
            Refusal::Deposed => Outcome::Deposed,
            Refusal::Unknown(_) | Refusal::Budget(_) => Outcome::Again,
            Refusal::Answer { .. } if refusal.busy() => Outcome::Again,
            // Another writer changed the object; or it is a different object by now, and no retry
            // succeeds.
            Refusal::Answer { code: 409, .. } => self.conflict(&context).await,
            Refusal::Answer { code: 404, .. } => self.gone(),
            Refusal::Answer { .. } => {
                warn!(object = self.bearer.key(), kind, cause = %refusal, "a nomination cannot be written");
                Outcome::Refused(refusal.to_string())
            }
        };
        if matches!(outcome, Outcome::Again) {
            debug!(object = self.bearer.key(), kind, cause = %refusal, "a nomination could not be written, trying again");
            tokio::time::sleep(refusal.pause(self.attempt)).await;
            self.attempt += 1;
        }
        (self, outcome)
    }

    async fn conflict(&self, context: &WriteContext) -> Outcome {
        match &self.bearer {
            Bearer::Pod(pod) => match context.look(pod, &self.uid).await {
                Found::There(_) => Outcome::Again,
                Found::Gone => self.gone(),
                Found::Deposed => Outcome::Deposed,
            },
            Bearer::Group(_) if self.attempt < CONFLICTS => Outcome::Again,
            Bearer::Group(_) => self.gone(),
        }
    }

    fn gone(&self) -> Outcome {
        let what = if matches!(self.bearer, Bearer::Pod(_)) { "pod" } else { "PodGroup" };
        Outcome::Refused(format!("the {what} has gone"))
    }

    fn request(&self) -> Request<Vec<u8>> {
        Request::patch(self.bearer.path())
            .header("content-type", "application/merge-patch+json")
            .body(self.body().to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }

    /// Keys without a value are removed.
    fn body(&self) -> Value {
        let metadata = json!({ "uid": self.uid, "annotations": self.patch.annotations });
        match self.bearer {
            Bearer::Pod(_) => {
                json!({ "metadata": metadata, "status": { "nominatedNodeName": self.patch.nominated } })
            }
            Bearer::Group(_) => json!({ "metadata": metadata }),
        }
    }
}
