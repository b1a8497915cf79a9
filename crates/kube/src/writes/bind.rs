//! A pod's bind. Unless the answer is success, the pod is looked up before the engine is told: if
//! it is already bound to the node, the bind succeeded. The pod's cards are part of the request:
//! the API server writes a Binding's annotations and its node at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use http::Request;
use muster_api::core::Pod;
use muster_api::kinds::{Kind, Object};
use muster_engine::Event;
use serde_json::json;
use tracing::{debug, warn};

use super::{ATTEMPTS, Found, Refusal, WriteContext, pod_path};
use crate::clock::wall_clock;
use crate::metrics::in_ms;

#[derive(Debug)]
pub struct Bind {
    /// `namespace/name`
    pub pod: String,
    pub uid: String,
    pub node: String,
    /// Annotations for the node's device plugin.
    pub annotations: Vec<(&'static str, String)>,
}

impl Bind {
    /// The outcome; nothing if we stopped leading, since the next leader takes over.
    pub async fn send(self, context: Arc<WriteContext>) -> Option<Event> {
        let begin = Instant::now();
        let mut attempt = 0;
        while let Err(refusal) = context.send(self.request()).await {
            context.metrics.write_error("bind", refusal.cause());
            let patient = attempt + 1 < ATTEMPTS;
            if !(patient && refusal.busy()) {
                match context.look(&self.pod, &self.uid).await {
                    Found::There(pod) if node_of(&pod) == Some(&self.node) => break,
                    // Others write to the pod too.
                    Found::There(pod)
                        if patient && refusal.cause() == "conflict" && is_free(&pod) => {}
                    found => return self.failed(&context, found, &refusal),
                }
            }
            tokio::time::sleep(refusal.pause(attempt)).await;
            attempt += 1;
        }
        context.metrics.wrote("bind");
        context.metrics.bind.observe(in_ms(begin.elapsed()));
        context.metrics.attempt("scheduled");
        Some(Event::Bound { key: self.pod, uid: self.uid, node: self.node })
    }

    /// The server refused it for good: what state is the pod in?
    fn failed(self, context: &WriteContext, found: Found, refusal: &Refusal) -> Option<Event> {
        context.metrics.attempt(if refusal.cause() == "refused" {
            "unschedulable"
        } else {
            "error"
        });
        match found {
            Found::Deposed => None,
            Found::Gone => {
                debug!(pod = self.pod, "gone before it could be bound");
                Some(Event::Gone { kind: Kind::Pod, key: self.pod, uid: self.uid })
            }
            Found::There(pod) if node_of(&pod).is_some() => {
                let node = node_of(&pod);
                warn!(pod = self.pod, node, wanted = self.node, "bound elsewhere by another");
                Some(Event::Object(Object::Pod(pod)))
            }
            Found::There(_) => {
                let cause = refusal.to_string();
                warn!(pod = self.pod, node = self.node, %cause, "the bind failed");
                Some(Event::BindFailed { key: self.pod, uid: self.uid, cause, at: wall_clock() })
            }
        }
    }

    fn request(&self) -> Request<Vec<u8>> {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let annotations: BTreeMap<&str, &String> =
            self.annotations.iter().map(|(key, text)| (*key, text)).collect();
        let body = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "name": name, "namespace": namespace, "uid": self.uid, "annotations": annotations },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.node },
        });
        Request::post(format!("{}/binding", pod_path(&self.pod)))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }
}

fn node_of(pod: &Pod) -> Option<&String> {
    pod.spec.node_name.as_ref().filter(|node| !node.is_empty())
}

/// It can still be bound.
fn is_free(pod: &Pod) -> bool {
    node_of(pod).is_none() && pod.metadata.deletion_timestamp.is_none()
}
