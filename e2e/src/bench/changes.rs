//! When pods are bound or gone, as any client can see.

use std::collections::HashSet;
use std::time::Instant;

use futures::StreamExt;
use http::Request;
use kube::core::WatchEvent;
use serde::Deserialize;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::AbortHandle;

use super::{List, PATIENCE};
use crate::cluster::Cluster;
use crate::{Failure, Result};

#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Change {
    Bound,
    Gone,
}

/// Observes a change of pods.
pub struct Changes {
    seen: UnboundedReceiver<Instant>,
    task: AbortHandle,
}

impl Changes {
    /// Of pods whose names begin like this.
    pub async fn watch(cluster: &Cluster, change: Change, prefix: &'static str) -> Result<Changes> {
        let (sender, seen) = unbounded_channel();
        let list: List = cluster.get("/api/v1/pods?limit=1").await?;
        let path =
            format!("/api/v1/pods?watch=true&resourceVersion={}", list.metadata.resource_version);
        let stream =
            cluster.client().request_events::<Slim>(Request::get(path).body(Vec::new())?).await?;
        let task = tokio::spawn(async move {
            let mut changed = HashSet::new();
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                let pod = match event {
                    Ok(WatchEvent::Deleted(pod)) if change == Change::Gone => pod,
                    Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod))
                        if change == Change::Bound && pod.spec.node_name.is_some() =>
                    {
                        pod
                    }
                    _ => continue,
                };
                if pod.metadata.name.starts_with(prefix) && changed.insert(pod.metadata.name) {
                    let _ = sender.send(Instant::now());
                }
            }
        });
        Ok(Changes { seen, task: task.abort_handle() })
    }

    /// When the first and the last of `count` pods were seen.
    pub async fn count(&mut self, pods: usize) -> Result<(Instant, Instant)> {
        let (mut first, mut last) = (None, Instant::now());
        for number in 1..=pods {
            let next = tokio::time::timeout(PATIENCE, self.seen.recv()).await;
            let late = || Failure::from(format!("only {} of {pods} pods have changed", number - 1));
            last = next.map_err(|_| late())?.ok_or_else(late)?;
            first.get_or_insert(last);
        }
        Ok((first.unwrap_or(last), last))
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone, Deserialize)]
struct Slim {
    metadata: SlimMeta,
    spec: SlimSpec,
}

#[derive(Clone, Deserialize)]
struct SlimMeta {
    name: String,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    node_name: Option<String>,
}
