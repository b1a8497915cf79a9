//! How many pods per second are bound, at what cost, and how long a large gang takes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http::Request;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::task::AbortHandle;

use super::{
    Bar, BenchArguments, Line, List, PATIENCE, SPACE, cpu_time, median, muster_server, peak_memory,
    progress,
};
use crate::cluster::{Cluster, Definitions, pods, wait};
use crate::controlplane::{ControlPlane, Options};
use crate::guard::Server;
use crate::workload::{Gang, Nodes};
use crate::{Failure, Result};

/// Numbers of requests under way at once that are tried, to find the best one for the API server.
const CONCURRENCIES: [usize; 4] = [8, 16, 32, 64];

/// The results of one scheduler with many equal pods.
#[derive(Copy, Clone, Debug, Default)]
struct Run {
    pods_per_second: f64,
    cpu_per_pod: Duration,
    peak_bytes: u64,
}

pub async fn throughput(arguments: &BenchArguments) -> Result<Vec<Line>> {
    let mut plane = ControlPlane::start(Options::default()).await?;
    let cluster = plane.cluster();
    cluster.install_crds(Definitions::Muster).await?;
    progress(&format!("creating {} nodes", arguments.nodes));
    cluster.create_nodes(&Nodes::new(arguments.nodes).gpus(8)).await?;
    let best = best_concurrency(&cluster, arguments).await?;
    let (mut limits, mut ours, mut theirs, mut gangs) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        let limit = plain_client(&cluster, arguments, best).await?;
        progress(&format!("round {round}: plain client {limit:.0} pods/s"));
        limits.push(limit);
        let mut server = muster_server(&plane)?;
        let run = equal_pods(&cluster, arguments, &mut server.0, Some(&server.1), "muster").await?;
        progress(&format!("round {round}: muster {run:?}"));
        ours.push(run);
        let gang = large_gang(&cluster, &mut muster_server(&plane)?).await?;
        progress(&format!("round {round}: a gang of 1,000 in {gang:?}"));
        gangs.push(gang.as_secs_f64());
        plane.start_kube_scheduler()?;
        let mut server = plane.kube_scheduler.take().ok_or("just started")?;
        let run = equal_pods(&cluster, arguments, &mut server, None, "default-scheduler").await?;
        progress(&format!("round {round}: kube-scheduler {run:?}"));
        theirs.push(run);
    }
    let limit = median(&limits);
    let rate =
        |runs: &[Run]| median(&runs.iter().map(|run| run.pods_per_second).collect::<Vec<f64>>());
    let cpu = |runs: &[Run]| {
        median(&runs.iter().map(|run| run.cpu_per_pod.as_secs_f64()).collect::<Vec<f64>>())
    };
    let memory =
        |runs: &[Run]| median(&runs.iter().map(|run| run.peak_bytes as f64).collect::<Vec<f64>>());
    let gang = median(&gangs);
    let gang_limit = GANG as f64 / limit;
    Ok(vec![
        Line {
            what: "binding throughput, relative to a plain client",
            ratio: rate(&ours) / limit,
            bar: Bar::AtLeast(0.75),
            more: format!("{:.0} of {limit:.0} pods/s (concurrency {best})", rate(&ours)),
        },
        Line {
            what: "a gang of 1,000, last pod created to last bound",
            ratio: gang / gang_limit,
            bar: Bar::AtMost(1.5),
            more: format!("{gang:.2} s, the plain client needs {gang_limit:.2} s"),
        },
        Line {
            what: "pods per second, relative to kube-scheduler",
            ratio: rate(&ours) / rate(&theirs),
            bar: Bar::AtLeast(1.5),
            more: format!("{:.0} against {:.0} pods/s", rate(&ours), rate(&theirs)),
        },
        Line {
            what: "CPU time per pod, relative to kube-scheduler",
            ratio: cpu(&ours) / cpu(&theirs),
            bar: Bar::AtMost(0.25),
            more: format!("{:.0} against {:.0} µs", cpu(&ours) * 1e6, cpu(&theirs) * 1e6),
        },
        Line {
            what: "peak memory, relative to kube-scheduler",
            ratio: memory(&ours) / memory(&theirs),
            bar: Bar::AtMost(0.5),
            more: format!("{:.0} against {:.0} MB", memory(&ours) / 1e6, memory(&theirs) / 1e6),
        },
    ])
}

const GANG: usize = 1_000;

fn equal(count: usize, scheduler: &str) -> Vec<serde_json::Value> {
    let mut gang = Gang::new("equal", count).scheduler(scheduler);
    gang.requests = BTreeMap::from([("cpu".to_owned(), "100m".to_owned())]);
    let alone = |mut pod: serde_json::Value| {
        pod["metadata"]["annotations"] = json!({});
        pod
    };
    gang.pods().map(alone).collect()
}

/// The concurrency with which the API server accepts the most bindings.
async fn best_concurrency(cluster: &Cluster, arguments: &BenchArguments) -> Result<usize> {
    let mut best = (0.0, 0);
    for concurrency in CONCURRENCIES {
        let rate = plain_client(cluster, arguments, concurrency).await?;
        progress(&format!("plain client with {concurrency} at once: {rate:.0} pods/s"));
        if rate > best.0 {
            best = (rate, concurrency);
        }
    }
    Ok(best.1)
}

/// Opens the watches that a scheduler has, and binds existing pods. Pods per second.
async fn plain_client(
    cluster: &Cluster,
    arguments: &BenchArguments,
    concurrency: usize,
) -> Result<f64> {
    cluster.create_all(&pods(SPACE), equal(arguments.pods, "no-scheduler")).await?;
    let watches = hold_watches(cluster).await?;
    let begin = Instant::now();
    let binds = (0..arguments.pods).map(|index| async move {
        let node = format!("node-{}", index % arguments.nodes);
        bind(cluster, &format!("equal-{index}"), &node).await
    });
    let done = futures::stream::iter(binds).buffer_unordered(concurrency);
    done.try_for_each(|()| std::future::ready(Ok(()))).await?;
    let took = begin.elapsed();
    watches.iter().for_each(AbortHandle::abort);
    remove_pods(cluster).await?;
    Ok(arguments.pods as f64 / took.as_secs_f64())
}

async fn bind(cluster: &Cluster, pod: &str, node: &str) -> kube::Result<()> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod, "namespace": SPACE },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let request = Request::post(format!("{}/{pod}/binding", pods(SPACE)))
        .header("content-type", "application/json")
        .body(binding.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    cluster.client().request_text(request).await.map(drop)
}

async fn hold_watches(cluster: &Cluster) -> Result<Vec<AbortHandle>> {
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
    Ok(tasks)
}

/// Without a kubelet, deleted pods only disappear without a grace period.
async fn remove_pods(cluster: &Cluster) -> Result<()> {
    let request = Request::delete(pods(SPACE)).header("content-type", "application/json").body(
        json!({ "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0 })
            .to_string()
            .into_bytes(),
    )?;
    cluster.client().request_text(request).await?;
    cluster.wait_for_pods(SPACE, PATIENCE, |pods| pods.is_empty()).await?;
    Ok(())
}

/// A scheduler that is frozen while the pods are created, so that only its own work is measured.
async fn equal_pods(
    cluster: &Cluster,
    arguments: &BenchArguments,
    server: &mut Server,
    page: Option<&Cluster>,
    scheduler: &str,
) -> Result<Run> {
    match page {
        Some(page) => drop(
            wait(PATIENCE, async || page.text("/readyz").await.map_err(|e| e.to_string())).await?,
        ),
        // Kubernetes' own scheduler has no page here: it is ready when it has bound a pod.
        None => warm_up(cluster, scheduler).await?,
    }
    server.pause()?;
    cluster.create_all(&pods(SPACE), equal(arguments.pods, scheduler)).await?;
    let mut binds = Binds::watch(cluster).await?;
    let pid = server.pid().ok_or("the scheduler has ended")?;
    let before = cpu_time(pid)?;
    server.resume()?;
    let (first, last) = binds.count(arguments.pods).await?;
    let cpu = cpu_time(pid)?.saturating_sub(before);
    let run = Run {
        pods_per_second: (arguments.pods - 1) as f64 / (last - first).as_secs_f64(),
        cpu_per_pod: cpu / arguments.pods as u32,
        peak_bytes: peak_memory(pid)?,
    };
    server.stop().await?;
    remove_pods(cluster).await?;
    Ok(run)
}

async fn warm_up(cluster: &Cluster, scheduler: &str) -> Result<()> {
    cluster.create_all(&pods(SPACE), equal(1, scheduler)).await?;
    cluster
        .wait_for_pods(SPACE, PATIENCE, |pods| pods.iter().all(|pod| pod.spec.node_name.is_some()))
        .await?;
    remove_pods(cluster).await
}

async fn large_gang(cluster: &Cluster, (server, page): &mut (Server, Cluster)) -> Result<Duration> {
    wait(PATIENCE, async || page.text("/readyz").await.map_err(|error| error.to_string())).await?;
    let mut binds = Binds::watch(cluster).await?;
    let gang = Gang::new("large", GANG).gpus(8);
    cluster.create_gang(&gang).await?;
    let created = Instant::now();
    let (_, last) = binds.count(GANG).await?;
    server.stop().await?;
    remove_pods(cluster).await?;
    cluster.delete(&format!("{}/large", crate::cluster::podgroups(SPACE))).await?;
    Ok(last.saturating_duration_since(created))
}

/// Observes pods being bound.
struct Binds {
    seen: tokio::sync::mpsc::UnboundedReceiver<Instant>,
    task: AbortHandle,
}

impl Binds {
    async fn watch(cluster: &Cluster) -> Result<Binds> {
        let (sender, seen) = tokio::sync::mpsc::unbounded_channel();
        let list: List = cluster.get("/api/v1/pods?limit=1").await?;
        let path =
            format!("/api/v1/pods?watch=true&resourceVersion={}", list.metadata.resource_version);
        let stream =
            cluster.client().request_events::<Slim>(Request::get(path).body(Vec::new())?).await?;
        let task = tokio::spawn(async move {
            let mut bound = std::collections::HashSet::new();
            let mut stream = std::pin::pin!(stream);
            while let Some(event) = stream.next().await {
                if let Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event
                    && pod.spec.node_name.is_some()
                    && bound.insert(pod.metadata.name)
                {
                    let _ = sender.send(Instant::now());
                }
            }
        });
        Ok(Binds { seen, task: task.abort_handle() })
    }

    /// When the first and the last of `count` pods were seen.
    async fn count(&mut self, pods: usize) -> Result<(Instant, Instant)> {
        let (mut first, mut last) = (None, Instant::now());
        for number in 1..=pods {
            let next = tokio::time::timeout(PATIENCE, self.seen.recv()).await;
            let late = || Failure::from(format!("only {} of {pods} pods were bound", number - 1));
            last = next.map_err(|_| late())?.ok_or_else(late)?;
            first.get_or_insert(last);
        }
        Ok((first.unwrap_or(last), last))
    }
}

impl Drop for Binds {
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
