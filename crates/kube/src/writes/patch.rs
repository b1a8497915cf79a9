//! Patches of statuses and conditions. Each contains the uid of its object, so that an object which
//! was replaced in the meantime is left alone; repeated until it succeeds, unless there is a newer
//! one for the same object.

use std::sync::Arc;

use http::Request;
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::{Refusal, WriteContext};

/// How often a conflict is tried again.
const CONFLICTS: u32 = 8;

/// The object whose status it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Pod(String),
    PodGroup(String),
    Queue(String),
    HyperNode(String),
}

#[derive(Clone, Debug)]
pub struct Patch {
    pub target: Target,
    pub uid: String,
    /// What goes under `status`.
    pub status: Value,
    /// The version of the object that it was made from. A patch of any other version would
    /// overwrite changes by other writers.
    pub version: Option<String>,
    pub attempt: u32,
}

impl Target {
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Pod(_) => "pod_condition",
            Target::PodGroup(_) => "podgroup_status",
            Target::Queue(_) => "queue_status",
            Target::HyperNode(_) => "hypernode_status",
        }
    }

    fn key(&self) -> &str {
        match self {
            Target::Pod(key)
            | Target::PodGroup(key)
            | Target::Queue(key)
            | Target::HyperNode(key) => key,
        }
    }

    fn path(&self, context: &WriteContext) -> String {
        let (namespace, name) = self.key().split_once('/').unwrap_or(("", self.key()));
        match self {
            Target::Pod(_) => format!("/api/v1/namespaces/{namespace}/pods/{name}/status"),
            Target::PodGroup(_) => {
                let tail = if context.podgroup_status.has() { "/status" } else { "" };
                format!(
                    "/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}{tail}"
                )
            }
            Target::Queue(_) => format!("/apis/scheduling.volcano.sh/v1beta1/queues/{name}/status"),
            Target::HyperNode(_) => {
                format!("/apis/topology.volcano.sh/v1alpha1/hypernodes/{name}/status")
            }
        }
    }

    /// Pods have conditions of many writers: this kind of patch touches only ours.
    fn content_type(&self) -> &'static str {
        match self {
            Target::Pod(_) => "application/strategic-merge-patch+json",
            _ => "application/merge-patch+json",
        }
    }
}

impl Patch {
    pub fn new(target: Target, uid: &str, status: Value) -> Patch {
        Patch { target, uid: uid.to_owned(), status, version: None, attempt: 0 }
    }

    pub fn at(mut self, version: Option<String>) -> Patch {
        self.version = version;
        self
    }

    /// The target, and the patch itself if it must be tried again.
    pub async fn send(mut self, context: Arc<WriteContext>) -> (Target, Option<Patch>) {
        let kind = self.target.kind();
        let mut metadata = json!({});
        if !self.uid.is_empty() {
            metadata["uid"] = json!(self.uid);
        }
        if let Some(version) = &self.version {
            metadata["resourceVersion"] = json!(version);
        }
        let body = json!({ "metadata": metadata, "status": self.status });
        let request = Request::patch(self.target.path(&context))
            .header("content-type", self.target.content_type())
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address");
        let refusal = match context.send(request).await {
            Ok(_) => {
                context.metrics.wrote(kind);
                return (self.target, None);
            }
            Err(refusal) => refusal,
        };
        context.metrics.write_error(kind, refusal.cause());
        let again = match &refusal {
            Refusal::Deposed | Refusal::Budget(_) => false,
            Refusal::Unknown(_) => true,
            Refusal::Answer { .. } if refusal.busy() => true,
            // The object is gone, or another one by now: its watch will show it. Or the CRD was
            // replaced by one of the other sort.
            Refusal::Answer { code: 404, .. } if matches!(self.target, Target::PodGroup(_)) => {
                context.podgroup_status.look(&context.client).await.unwrap_or(true)
            }
            Refusal::Answer { code: 404, .. } => false,
            // Another writer changed the object; or it is a different object by now, and no retry
            // succeeds. Nor does one if the patch was made for one version: the watch will show the
            // next.
            Refusal::Answer { code: 409, .. } => self.version.is_none() && self.attempt < CONFLICTS,
            Refusal::Answer { .. } => {
                warn!(object = self.target.key(), kind, cause = %refusal, "a status was refused");
                false
            }
        };
        if !again {
            return (self.target, None);
        }
        debug!(object = self.target.key(), kind, cause = %refusal, "a status could not be written, trying again");
        tokio::time::sleep(refusal.pause(self.attempt)).await;
        self.attempt += 1;
        (self.target.clone(), Some(self))
    }
}
