//! A pod's bind. It is posted once; if the answer is anything but yes, the pod is looked at before anyone is told.

use std::sync::Arc;
use std::time::Instant;

use http::Request;
use muster_engine::Event;
use serde_json::json;
use tracing::{debug, warn};

use super::{ATTEMPTS, Found, Refusal, Wire, pod_path};
use crate::clock::wall_clock;
use crate::metrics::in_ms;

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
        match wire.look(&self.pod, &self.uid).await {
            Found::Deposed => None,
            Found::Gone => {
                debug!(pod = self.pod, "gone before it could be bound");
                Some(Event::PodGone { key: self.pod, uid: self.uid })
            }
            Found::There(pod) => match pod.spec.node_name.as_ref().filter(|node| !node.is_empty()) {
                Some(node) => {
                    if *node != self.node {
                        warn!(pod = self.pod, node, wanted = self.node, "bound elsewhere by another");
                    }
                    Some(Event::Pod(pod))
                }
                None => Some(self.failed(&refusal)),
            },
        }
    }

    fn failed(self, refusal: &Refusal) -> Event {
        let cause = refusal.to_string();
        warn!(pod = self.pod, node = self.node, %cause, "the bind failed");
        Event::BindFailed { key: self.pod, uid: self.uid, cause, at: wall_clock() }
    }

    fn request(&self) -> Request<Vec<u8>> {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name, "namespace": namespace, "uid": self.uid },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.node },
        });
        Request::post(format!("{}/binding", pod_path(&self.pod)))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }
}
