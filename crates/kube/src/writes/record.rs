//! Kubernetes Events: what happened to an object, for `kubectl describe`. Written when there is
//! time, never repeated.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use serde_json::json;
use tracing::{debug, warn};

use super::{Refusal, WriteContext};
use crate::clock::wall_clock;
use crate::lease::micro_time;

/// The API server accepts notes up to this length.
const LONGEST_NOTE: usize = 1_000;
/// When the process ends: events under way at once, and how long writing them may take.
const REST: usize = 8;
const REST_TIME: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct Record {
    pub kind: &'static str,
    pub api_version: &'static str,
    /// `namespace/name`, or the name of an object without a namespace.
    pub key: String,
    pub uid: String,
    pub warning: bool,
    pub reason: &'static str,
    pub note: String,
}

/// Writes the events that were left when the lease was released, as far as there is time. They
/// decide nothing, so that another may lead by now.
pub async fn write_rest(records: Vec<Record>, context: &WriteContext) {
    let count = records.len();
    let mut written = 0;
    let writing = async {
        let writes = records.into_iter().map(|record| async move {
            let sent = context.send_anyway(record.request(context)).await;
            record.count(context, &sent);
        });
        let mut done = futures::stream::iter(writes).buffer_unordered(REST);
        while done.next().await.is_some() {
            written += 1;
        }
    };
    let _ = tokio::time::timeout(REST_TIME, writing).await;
    let dropped = count - written;
    context.metrics.dropped_events.inc_by(dropped as u64);
    if dropped > 0 {
        warn!(dropped, written, "there was no time to write all events");
    }
}

impl Record {
    pub async fn send(self, context: Arc<WriteContext>) {
        let sent = context.send(self.request(&context)).await;
        self.count(&context, &sent);
    }

    fn count(&self, context: &WriteContext, sent: &Result<String, Refusal>) {
        match sent {
            Ok(_) => context.metrics.wrote("event"),
            Err(refusal) => {
                context.metrics.write_error("event", refusal.cause());
                debug!(object = self.key, cause = %refusal, "an event was not written");
            }
        }
    }

    fn request(&self, context: &WriteContext) -> Request<Vec<u8>> {
        let (namespace, name) = self.key.split_once('/').unwrap_or(("", &self.key));
        let now = wall_clock();
        let mut regarding =
            json!({ "apiVersion": self.api_version, "kind": self.kind, "name": name });
        if !self.uid.is_empty() {
            regarding["uid"] = json!(self.uid);
        }
        if !namespace.is_empty() {
            regarding["namespace"] = json!(namespace);
        }
        // Events about objects without a namespace are stored in this one.
        let space = if namespace.is_empty() { "default" } else { namespace };
        let number = context.records.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let body = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": format!("{name}.{:x}{:x}", now.0, number), "namespace": space },
            "eventTime": micro_time(now),
            "reportingController": "muster",
            "reportingInstance": context.identity,
            "action": "Scheduling",
            "type": if self.warning { "Warning" } else { "Normal" },
            "reason": self.reason,
            "note": shortened(&self.note),
            "regarding": regarding,
        });
        Request::post(format!("/apis/events.k8s.io/v1/namespaces/{space}/events"))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of objects are valid in an address")
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_NOTE {
        return text.to_owned();
    }
    let mut end = LONGEST_NOTE - 3;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(LONGEST_NOTE);
        assert!(shortened(&long).len() <= LONGEST_NOTE);
        assert!(shortened(&long).ends_with("é…"));
    }
}
