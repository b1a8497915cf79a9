//! A pod's eviction, or its deletion where that is configured. The API server may refuse an
//! eviction because of a PodDisruptionBudget. That is a final answer and not tried again: the
//! engine is told and plans again.

use std::sync::Arc;

use http::Request;
use muster_api::kinds::{Kind, Object};
use muster_engine::plan::Eviction;
use muster_engine::{Event, Method};
use serde_json::json;
use tracing::{info, warn};

use super::{ATTEMPTS, Found, Refusal, WriteContext, pod_path};
use crate::clock::wall_clock;

#[derive(Debug)]
pub struct Evict {
    /// `namespace/name`
    pub pod: String,
    pub uid: String,
    pub method: Method,
}

impl Evict {
    pub fn of(eviction: &Eviction) -> Evict {
        let place = &eviction.place;
        Evict { pod: place.pod.to_string(), uid: place.uid.to_string(), method: eviction.method() }
    }

    /// The outcome, unless the watch will show it.
    pub async fn send(self, context: Arc<WriteContext>) -> Option<Event> {
        let mut attempt = 0;
        let refusal = loop {
            match context.send(self.request()).await {
                Ok(_) => {
                    context.metrics.wrote("eviction");
                    return None;
                }
                Err(refusal) => {
                    context.metrics.write_error("eviction", refusal.cause());
                    if !refusal.busy() || attempt + 1 == ATTEMPTS {
                        break refusal;
                    }
                    tokio::time::sleep(refusal.pause(attempt)).await;
                    attempt += 1;
                }
            }
        };
        match context.look(&self.pod, &self.uid).await {
            Found::Deposed => None,
            Found::Gone => Some(Event::Gone { kind: Kind::Pod, key: self.pod, uid: self.uid }),
            Found::There(pod) if pod.metadata.deletion_timestamp.is_some() => {
                Some(Event::Object(Object::Pod(pod)))
            }
            Found::There(_) => {
                let cause = refusal.to_string();
                match refusal {
                    Refusal::Budget(_) => info!(pod = self.pod, %cause, "may not be evicted now"),
                    _ => warn!(pod = self.pod, %cause, "the eviction failed"),
                }
                Some(Event::EvictionRefused {
                    key: self.pod,
                    uid: self.uid,
                    cause,
                    at: wall_clock(),
                })
            }
        }
    }

    fn request(&self) -> Request<Vec<u8>> {
        let path = pod_path(&self.pod);
        // Not another pod of the same name.
        let options = json!({ "preconditions": { "uid": self.uid } });
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let (request, body) = match self.method {
            Method::Evict => {
                let eviction = json!({
                    "apiVersion": "policy/v1",
                    "kind": "Eviction",
                    "metadata": { "name": name, "namespace": namespace },
                    "deleteOptions": options,
                });
                (Request::post(format!("{path}/eviction")), eviction)
            }
            Method::Delete => (Request::delete(path), options),
        };
        request
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn request(method: Method) -> (String, Value) {
        let evict = Evict { pod: "team/p-0".into(), uid: "u1".into(), method };
        let request = evict.request();
        let body = serde_json::from_slice(request.body()).expect("JSON");
        (format!("{} {}", request.method(), request.uri()), body)
    }

    #[test]
    fn evictions_and_deletions_contain_the_uid() {
        let (address, body) = request(Method::Evict);
        assert_eq!(address, "POST /api/v1/namespaces/team/pods/p-0/eviction");
        assert_eq!(body["deleteOptions"]["preconditions"]["uid"], "u1");
        let (address, body) = request(Method::Delete);
        assert_eq!(address, "DELETE /api/v1/namespaces/team/pods/p-0");
        assert_eq!(body["preconditions"]["uid"], "u1");
    }
}
