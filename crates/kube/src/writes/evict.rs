//! A pod's eviction. The API server may refuse it for the sake of a PodDisruptionBudget; that is an answer, not a reason
//! to ask again: the engine hears of it and plans anew.

use std::sync::Arc;

use http::Request;
use muster_engine::Event;
use serde_json::json;
use tracing::{info, warn};

use super::{ATTEMPTS, Found, Refusal, Wire, pod_path};
use crate::clock::wall_clock;

#[derive(Debug)]
pub struct Evict {
    /// `namespace/name`
    pub pod: String,
    pub uid: String,
}

impl Evict {
    /// What came of it, unless the watch will tell.
    pub async fn send(self, wire: Arc<Wire>) -> Option<Event> {
        let mut attempt = 0;
        let refusal = loop {
            match wire.send(self.request()).await {
                Ok(_) => {
                    wire.metrics.wrote("eviction");
                    return None;
                }
                Err(refusal) => {
                    wire.metrics.write_error("eviction", refusal.cause());
                    if !refusal.busy() || attempt + 1 == ATTEMPTS {
                        break refusal;
                    }
                    tokio::time::sleep(refusal.pause(attempt)).await;
                    attempt += 1;
                }
            }
        };
        match wire.look(&self.pod, &self.uid).await {
            Found::Deposed => None,
            Found::Gone => Some(Event::PodGone { key: self.pod, uid: self.uid }),
            Found::There(pod) if pod.metadata.deletion_timestamp.is_some() => Some(Event::Pod(pod)),
            Found::There(_) => {
                let cause = refusal.to_string();
                match refusal {
                    Refusal::Budget(_) => info!(pod = self.pod, %cause, "may not be evicted now"),
                    _ => warn!(pod = self.pod, %cause, "the eviction failed"),
                }
                Some(Event::EvictionRefused { key: self.pod, uid: self.uid, cause, at: wall_clock() })
            }
        }
    }

    fn request(&self) -> Request<Vec<u8>> {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("default", &self.pod));
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": namespace },
            "deleteOptions": { "preconditions": { "uid": self.uid } },
        });
        Request::post(format!("{}/eviction", pod_path(&self.pod)))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }
}
