//! A client that only writes what it is told: what the API server can do, as a measure for
//! schedulers.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http::Request;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::SPACE;
use crate::Result;
use crate::cluster::{Cluster, pods};

/// Numbers of requests under way at once that are tried, to find the best one for the API server.
pub const CONCURRENCIES: [usize; 5] = [8, 16, 32, 64, 128];

/// Sends all requests, and says how long that took.
pub async fn send_all(
    cluster: &Cluster,
    requests: impl IntoIterator<Item = Request<Vec<u8>>>,
    concurrency: usize,
) -> Result<Duration> {
    let client = cluster.client();
    let begin = Instant::now();
    let answers = requests.into_iter().map(|request| client.request_text(request));
    let answers = futures::stream::iter(answers).buffer_unordered(concurrency);
    answers.try_for_each(|_| std::future::ready(Ok(()))).await?;
    Ok(begin.elapsed())
}

/// Binds a pod, as a scheduler does.
pub fn bind(pod: &str, node: &str, annotations: &Value) -> Result<Request<Vec<u8>>> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod, "namespace": SPACE, "annotations": annotations },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    post(&format!("{}/{pod}/binding", pods(SPACE)), &binding)
}

pub fn evict(pod: &str) -> Result<Request<Vec<u8>>> {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": pod, "namespace": SPACE },
    });
    post(&format!("{}/{pod}/eviction", pods(SPACE)), &eviction)
}

fn post(path: &str, body: &Value) -> Result<Request<Vec<u8>>> {
    let request = Request::post(path).header("content-type", "application/json");
    Ok(request.body(body.to_string().into_bytes())?)
}

/// Opens the watches that a scheduler has.
pub async fn hold_watches(cluster: &Cluster) -> Result<Watches> {
    let kinds = [
        "/api/v1/pods",
        "/api/v1/nodes",
        "/apis/scheduling.volcano.sh/v1beta1/podgroups",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "/apis/topology.volcano.sh/v1alpha1/hypernodes",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/policy/v1/poddisruptionbudgets",
        "/api/v1/resourcequotas",
        "/api/v1/namespaces",
        "/api/v1/persistentvolumeclaims",
        "/api/v1/persistentvolumes",
    ];
    let mut tasks = Vec::new();
    for kind in kinds {
        let request = Request::get(format!("{kind}?watch=true")).body(Vec::new())?;
        let stream = cluster.client().request_events::<IgnoredAny>(request).await?;
        tasks.push(tokio::spawn(stream.for_each(|_| std::future::ready(()))).abort_handle());
    }
    Ok(Watches(tasks))
}

/// Open until it is dropped.
pub struct Watches(Vec<AbortHandle>);

impl Drop for Watches {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}
