//! A pod's bind. It is posted once; if the answer is anything but yes, the pod is looked at before anyone is told.

use std::sync::Arc;
use std::time::Instant;

use http::Request;
use muster_api::core::Pod;
use muster_engine::Event;
use serde_json::json;
use tracing::{debug, warn};

use super::{Refusal, Wire};
use crate::clock::wall_clock;
use crate::metrics::in_ms;

/// How often a busy server is asked to bind before the gang goes on a backoff.
const ATTEMPTS: u32 = 6;

#[derive(Debug)]
pub struct Bind {
    /// `namespace/name`
    pub pod: String,
    pub uid: String,
    pub node: String,
}

impl Bind {
    /// What came of it; nothing if we stopped leading, since then it is another's business.
    pub async fn send(self, wire: Arc<Wire>) -> Option<Event> {
        let begin = Instant::now();
        let mut attempt = 0;
        let refusal = loop {
            match wire.send(self.request()).await {
                Ok(_) => {
                    wire.metrics.bind.observe(in_ms(begin.elapsed()));
                    wire.metrics.attempt("scheduled");
                    return Some(Event::Bound { key: self.pod, uid: self.uid, node: self.node });
                }
                Err(refusal) => {
                    wire.metrics.write_error("bind", refusal.cause());
                    if !refusal.busy() || attempt + 1 == ATTEMPTS {
                        break refusal;
                    }
                    tokio::time::sleep(refusal.pause(attempt)).await;
                    attempt += 1;
                }
            }
        };
        wire.metrics.attempt(if refusal.cause() == "refused" { "unschedulable" } else { "error" });
        self.look(&wire, refusal).await
    }

    fn request(&self) -> Request<Vec<u8>> {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name, "namespace": namespace, "uid": self.uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.node },
        });
        Request::post(format!("/api/v1/namespaces/{namespace}/pods/{name}/binding"))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }

    /// The bind was refused or its end is unknown: what does the server say of the pod? Asked until it answers.
    async fn look(self, wire: &Wire, refusal: Refusal) -> Option<Event> {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
        let mut attempt = 0;
        loop {
            let request =
                Request::get(&path).body(Vec::new()).expect("names of objects are valid in an address");
            let pod = match wire.send(request).await {
                Ok(text) => {
                    serde_json::from_str::<Pod>(&text).ok().filter(|pod| pod.metadata.uid == self.uid)
                }
                Err(Refusal::Deposed) => return None,
                Err(Refusal::Answer { code: 404, .. }) => None,
                Err(again) => {
                    wire.metrics.write_error("look", again.cause());
                    tokio::time::sleep(again.pause(attempt)).await;
                    attempt += 1;
                    continue;
                }
            };
            let Some(pod) = pod else {
                debug!(pod = self.pod, "gone before it could be bound");
                return Some(Event::PodGone { key: self.pod, uid: self.uid });
            };
            if let Some(node) = pod.spec.node_name.as_ref().filter(|node| !node.is_empty()) {
                if *node != self.node {
                    warn!(pod = self.pod, node, wanted = self.node, "bound elsewhere by another");
                }
                return Some(Event::Pod(Box::new(pod)));
            }
            let cause = refusal.to_string();
            warn!(pod = self.pod, node = self.node, %cause, "the bind failed");
            return Some(Event::BindFailed { key: self.pod, uid: self.uid, cause, at: wall_clock() });
        }
    }
}
