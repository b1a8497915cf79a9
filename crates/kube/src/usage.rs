//! The past usage of queues, stored in a ConfigMap of ours, so that the next leader knows it too.

use std::collections::BTreeMap;

use http::Request;
use kube::Client;
use muster_api::Time;
use muster_engine::Engine;
use muster_engine::config::Config;
use muster_engine::model::usage::Record;
use serde::Deserialize;
use serde_json::json;
use tracing::warn;

use crate::writes::Usage;

const NAME: &str = "muster-usage";
const KEY: &str = "usage";
/// How often it is written at most.
const PAUSE_MS: i64 = 60_000;
/// An API server accepts objects of about a mebibyte.
const LARGEST: usize = 900_000;

#[derive(Deserialize)]
struct ConfigMap {
    #[serde(default)]
    data: BTreeMap<String, String>,
}

/// When it was last written.
#[derive(Default)]
pub struct UsageWriteTimes {
    written: Option<(Time, String)>,
}

impl UsageWriteTimes {
    /// What is to be written now, if it has changed; at the end also if it was written a moment
    /// ago.
    pub fn entry(&mut self, engine: &Engine, now: Time, end: bool) -> Option<Usage> {
        let recent = self.written.as_ref().is_some_and(|(time, _)| now < time.plus_ms(PAUSE_MS));
        if !remembers(engine.config()) || recent && !end {
            return None;
        }
        let record = engine.cluster().usage_record();
        let text = serde_json::to_string(&record).expect("names and numbers");
        let known = self.written.as_ref().is_some_and(|(_, known)| *known == text);
        if record.spans.is_empty() || known {
            return None;
        }
        self.written = Some((now, text.clone()));
        if text.len() > LARGEST {
            warn!(
                bytes = text.len(),
                "the usage of the queues is too large for one object and is not stored"
            );
            return None;
        }
        Some(Usage { text })
    }
}

/// Whether shares depend on past usage.
pub fn remembers(config: &Config) -> bool {
    config.policy.fairness().is_some_and(|rules| rules.memory.is_some())
}

fn path(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// The last stored usage, if any. If it can't be read, or may not be, shares start from zero.
pub async fn read(client: &Client, namespace: &str) -> Result<Option<Record>, kube::Error> {
    let request = Request::get(format!("{}/{NAME}", path(namespace)));
    let request = request.body(Vec::new()).map_err(kube::Error::HttpError)?;
    let map = match client.request::<ConfigMap>(request).await {
        Ok(map) => map,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            warn!(
                cause = status.message,
                "no permission to read the past usage of queues: see deploy/muster.yaml"
            );
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let record = map.data.get(KEY).map(|text| serde_json::from_str(text)).transpose();
    Ok(record.unwrap_or_else(|cause| {
        warn!(%cause, namespace, name = NAME, "the ConfigMap can't be read: the past usage of queues is lost");
        None
    }))
}

/// The patch of the ConfigMap, and the request that creates it if there is none.
pub fn requests(namespace: &str, text: &str) -> [Request<Vec<u8>>; 2] {
    let data = json!({ KEY: text });
    let change = Request::patch(format!("{}/{NAME}", path(namespace)))
        .header("content-type", "application/merge-patch+json")
        .body(json!({ "data": data }).to_string().into_bytes());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": namespace },
        "data": data,
    });
    let create = Request::post(path(namespace))
        .header("content-type", "application/json")
        .body(map.to_string().into_bytes());
    [change, create].map(|request| request.expect("names of objects are valid in an address"))
}

#[cfg(test)]
mod tests;
