//! The nomination of a pod or the end of one, and what is noted on PodGroups. For a pod it is one
//! PATCH of its status, which takes annotations as well: all is written or nothing, and no more
//! rights are needed than for conditions. A PodGroup's status takes none, so that the object itself
//! is patched. Each names the object's uid and touches no keys but ours.

use std::sync::Arc;

use http::Request;
use muster_write_order::{AnnotationWrite, ObjectName, Outcome};
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::{Found, Refusal, WriteContext, pod_path};

/// How often a conflict about a PodGroup is tried again: if it is a different object by now, no
/// retry succeeds.
const CONFLICTS: u32 = 8;

pub async fn send(
    mut write: AnnotationWrite,
    context: Arc<WriteContext>,
) -> (AnnotationWrite, Outcome) {
    let (kind, object) = (kind(&write.object), write.object.key());
    let refusal = match context.send(request(&write)).await {
        Ok(_) => {
            context.metrics.wrote(kind);
            return (write, Outcome::Written);
        }
        Err(refusal) => refusal,
    };
    context.metrics.write_error(kind, refusal.cause());
    let outcome = match &refusal {
        Refusal::Deposed => Outcome::NotLeading,
        Refusal::Unknown(_) | Refusal::Budget(_) => Outcome::Again,
        Refusal::Answer { .. } if refusal.busy() => Outcome::Again,
        // Others write to the object too; or it is another by now, which no patience helps.
        Refusal::Answer { code: 409, .. } => conflict(&write, &context).await,
        Refusal::Answer { code: 404, .. } => gone(&write),
        Refusal::Answer { .. } => {
            warn!(object, kind, cause = %refusal, "a nomination cannot be written");
            Outcome::Refused(refusal.to_string())
        }
    };
    if matches!(outcome, Outcome::Again) {
        debug!(object, kind, cause = %refusal, "a nomination could not be written, trying again");
        tokio::time::sleep(refusal.pause(write.attempts)).await;
        write.attempts += 1;
    }
    (write, outcome)
}

/// In metrics.
fn kind(object: &ObjectName) -> &'static str {
    match object {
        ObjectName::Pod(_) => "nomination",
        ObjectName::PodGroup(_) => "podgroup_note",
    }
}

fn path(object: &ObjectName) -> String {
    match object {
        ObjectName::Pod(pod) => format!("{}/status", pod_path(pod)),
        ObjectName::PodGroup(key) => {
            let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
            format!("/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups/{name}")
        }
    }
}

async fn conflict(write: &AnnotationWrite, context: &WriteContext) -> Outcome {
    match &write.object {
        ObjectName::Pod(pod) => match context.look(pod, &write.uid).await {
            Found::There(_) => Outcome::Again,
            Found::Gone => gone(write),
            Found::Deposed => Outcome::NotLeading,
        },
        ObjectName::PodGroup(_) if write.attempts < CONFLICTS => Outcome::Again,
        ObjectName::PodGroup(_) => gone(write),
    }
}

fn gone(write: &AnnotationWrite) -> Outcome {
    let what = if matches!(write.object, ObjectName::Pod(_)) { "pod" } else { "PodGroup" };
    Outcome::Refused(format!("the {what} has gone"))
}

fn request(write: &AnnotationWrite) -> Request<Vec<u8>> {
    Request::patch(path(&write.object))
        .header("content-type", "application/merge-patch+json")
        .body(body(write).to_string().into_bytes())
        .expect("names of objects are valid in an address")
}

/// Keys without a value are removed.
fn body(write: &AnnotationWrite) -> Value {
    let desired = &write.desired;
    let metadata = json!({ "uid": write.uid, "annotations": desired.annotations });
    match write.object {
        ObjectName::Pod(_) => {
            json!({ "metadata": metadata, "status": { "nominatedNodeName": desired.nominated_node } })
        }
        ObjectName::PodGroup(_) => json!({ "metadata": metadata }),
    }
}
