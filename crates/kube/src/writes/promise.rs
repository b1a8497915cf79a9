//! A pod's promise, or the end of one. It is one PATCH of the pod's status, which takes annotations as well: all is written or
//! nothing, and no more rights are needed than for conditions. It names the pod's uid and touches no keys but ours.

use std::sync::Arc;

use http::Request;
use serde_json::{Value, json};
use tracing::{debug, warn};

use super::{Found, Refusal, Wire, pod_path};
use crate::promises::Wish;

/// In metrics.
const KIND: &str = "nomination";

#[derive(Clone, Debug)]
pub struct Promise {
    /// `namespace/name`
    pub pod: String,
    pub uid: String,
    pub wish: Wish,
    attempt: u32,
}

/// What came of a write.
#[derive(Debug)]
pub enum Outcome {
    Written,
    /// To be tried again, unless there is something newer to say.
    Again,
    /// It can't be written, however often it is tried.
    Refused(String),
    /// We don't lead any more: another's business.
    Deposed,
}

impl Promise {
    pub fn new(pod: String, uid: String, wish: Wish) -> Promise {
        Promise { pod, uid, wish, attempt: 0 }
    }

    pub async fn send(mut self, wire: Arc<Wire>) -> (Promise, Outcome) {
        let refusal = match wire.send(self.request()).await {
            Ok(_) => {
                wire.metrics.wrote(KIND);
                return (self, Outcome::Written);
            }
            Err(refusal) => refusal,
        };
        wire.metrics.write_error(KIND, refusal.cause());
        let outcome = match &refusal {
            Refusal::Deposed => Outcome::Deposed,
            Refusal::Unknown(_) | Refusal::Budget(_) => Outcome::Again,
            Refusal::Answer { .. } if refusal.busy() => Outcome::Again,
            // Others write to the pod too; or it is another pod by now, which no patience helps.
            Refusal::Answer { code: 409, .. } => match wire.look(&self.pod, &self.uid).await {
                Found::There(_) => Outcome::Again,
                Found::Gone => Outcome::Refused("the pod has gone".to_owned()),
                Found::Deposed => Outcome::Deposed,
            },
            Refusal::Answer { code: 404, .. } => Outcome::Refused("the pod has gone".to_owned()),
            Refusal::Answer { .. } => {
                warn!(pod = self.pod, cause = %refusal, "what was promised to a pod can't be written on it");
                Outcome::Refused(refusal.to_string())
            }
        };
        if matches!(outcome, Outcome::Again) {
            debug!(pod = self.pod, cause = %refusal, "a promise could not be written, trying again");
            tokio::time::sleep(refusal.pause(self.attempt)).await;
            self.attempt += 1;
        }
        (self, outcome)
    }

    fn request(&self) -> Request<Vec<u8>> {
        Request::patch(format!("{}/status", pod_path(&self.pod)))
            .header("content-type", "application/merge-patch+json")
            .body(self.body().to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }

    /// Keys without a value are removed.
    fn body(&self) -> Value {
        json!({
            "metadata": { "uid": self.uid, "annotations": self.wish.annotations },
            "status": { "nominatedNodeName": self.wish.nominated },
        })
    }
}
