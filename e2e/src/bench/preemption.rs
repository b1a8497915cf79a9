//! How long a gang waits that preempts as many pods as it has, compared with a client that only
//! writes the same: first all nominations, then all evictions, then all binds. And how much is
//! written.

use std::time::{Duration, Instant};

use http::Request;
use muster_api::core::Pod;
use muster_api::keys::{EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS};
use serde_json::json;

use super::changes::{Change, Changes};
use super::plain::{CONCURRENCIES, bind, evict, hold_watches, send_all};
use super::{
    Bar, BenchArguments, Line, PATIENCE, SPACE, median, muster_server, progress, ready,
    remove_groups, remove_pods,
};
use crate::Result;
use crate::cluster::{Cluster, Definitions, podgroups, pods};
use crate::controlplane::{ControlPlane, Options};
use crate::workload::{Gang, Nodes};

/// Pods of each gang that is preempted.
const OF_EACH: usize = 10;
const GPUS: usize = 8;
/// The first part of the names of pods.
const LOW: &str = "low-";
const URGENT: &str = "urgent";

/// How long the plain client takes for its nominations, evictions and binds, and until the evicted
/// pods have gone.
#[derive(Copy, Clone, Debug)]
struct Phases {
    nominations: Duration,
    evictions: Duration,
    departures: Duration,
    binds: Duration,
}

/// The result of one scheduler.
#[derive(Copy, Clone, Debug, Default)]
struct Run {
    seconds: f64,
    nominations: f64,
    group_statuses: f64,
}

pub async fn preemption(arguments: &BenchArguments) -> Result<Vec<Line>> {
    let plane = ControlPlane::start(Options { kwok: true, ..Options::default() }).await?;
    let cluster = plane.cluster();
    cluster.install_crds(Definitions::Muster).await?;
    for (name, value) in [("low", 1), ("high", 10)] {
        cluster.create_priority(name, value).await?;
    }
    let size = arguments.nodes;
    progress(&format!("creating {size} nodes"));
    cluster.create_nodes(&Nodes::new(size).gpus(GPUS)).await?;
    let best = best_concurrencies(&cluster, size).await?;
    progress(&format!("fastest with {best:?} nominations, evictions and binds at once"));
    let (mut limits, mut ours) = (Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        let phases = plain_client(&cluster, size, best).await?;
        progress(&format!("round {round}: plain client {phases:.2?}"));
        limits.push(phases);
        let run = preempt(&plane, size).await?;
        progress(&format!("round {round}: muster {run:?}"));
        ours.push(run);
    }
    Ok(lines(size, &limits, &ours))
}

fn lines(size: usize, limits: &[Phases], ours: &[Run]) -> Vec<Line> {
    let sum = |phases: &Phases| {
        let Phases { nominations, evictions, departures, binds } = phases;
        (*nominations + *evictions + *departures + *binds).as_secs_f64()
    };
    let limit = median(&limits.iter().map(sum).collect::<Vec<f64>>());
    let of = |value: fn(&Run) -> f64| median(&ours.iter().map(value).collect::<Vec<f64>>());
    let seconds = of(|run| run.seconds);
    let per_pod = |value: f64| value / size as f64;
    let groups = size.div_ceil(OF_EACH) + 1;
    vec![
        Line {
            what: "a gang that preempts as many pods, relative to a plain client",
            ratio: seconds / limit,
            bar: Bar::AtMost(1.3),
            more: format!("{size} pods: {seconds:.2} s, the plain client needs {limit:.2} s"),
        },
        Line {
            what: "writes of nominations for each of its pods",
            ratio: per_pod(of(|run| run.nominations)),
            bar: Bar::AtMost(1.0),
            more: "a nomination ends with the bind".to_owned(),
        },
        Line {
            what: "writes of PodGroup statuses for each PodGroup",
            ratio: of(|run| run.group_statuses) / groups as f64,
            bar: Bar::AtMost(2.0),
            more: format!("{:.0} for {groups} PodGroups", of(|run| run.group_statuses)),
        },
    ]
}

/// For nominations, evictions and binds.
async fn best_concurrencies(cluster: &Cluster, size: usize) -> Result<[usize; 3]> {
    let mut best = [(Duration::MAX, 0); 3];
    for concurrency in CONCURRENCIES {
        let phases = plain_client(cluster, size, [concurrency; 3]).await?;
        progress(&format!("plain client with {concurrency} at once: {phases:.2?}"));
        let Phases { nominations, evictions, departures, binds } = phases;
        for (best, time) in best.iter_mut().zip([nominations, evictions + departures, binds]) {
            *best = (*best).min((time, concurrency));
        }
    }
    Ok(best.map(|(_, concurrency)| concurrency))
}

/// Gangs of low priority run on all nodes.
async fn fill(cluster: &Cluster, size: usize) -> Result<()> {
    let gangs: Vec<Gang> = (0..size.div_ceil(OF_EACH))
        .map(|at| {
            let pods = OF_EACH.min(size - at * OF_EACH);
            Gang::new(&format!("{LOW}{at}"), pods).gpus(GPUS).class("low")
        })
        .collect();
    cluster.create_all(&podgroups(SPACE), gangs.iter().map(Gang::podgroup)).await?;
    let placed = gangs.iter().flat_map(Gang::pods).enumerate().map(|(at, mut pod)| {
        pod["spec"]["nodeName"] = json!(format!("node-{at}"));
        pod
    });
    cluster.create_all(&pods(SPACE), placed).await?;
    let run = |pods: &[Pod]| pods.iter().all(|pod| pod.status.phase == "Running");
    cluster.wait_for_pods(SPACE, PATIENCE, run).await?;
    Ok(())
}

fn urgent(size: usize) -> Gang {
    Gang::new(URGENT, size).gpus(GPUS).class("high")
}

async fn plain_client(cluster: &Cluster, size: usize, at_once: [usize; 3]) -> Result<Phases> {
    fill(cluster, size).await?;
    cluster.create_gang(&urgent(size).scheduler("no-scheduler")).await?;
    let watches = hold_watches(cluster).await?;
    let mut low = Vec::new();
    for pod in cluster.pods(SPACE).await? {
        low.extend(Some(pod.metadata.name).filter(|name| name.starts_with(LOW)));
    }
    let pod = |at| format!("{URGENT}-{at}");
    let node = |at| format!("node-{at}");
    let requests = |make: &dyn Fn(usize) -> Result<Request<Vec<u8>>>| {
        (0..size).map(make).collect::<Result<Vec<_>>>()
    };
    let nominations = requests(&|at| nominate(&pod(at), &node(at)))?;
    let evictions = requests(&|at| evict(&low[at]))?;
    let ended =
        json!({ PIPELINED_STATUS: "false", PIPELINED_NODE: "", EVICTION_OCCURRED: "false" });
    let binds = requests(&|at| bind(&pod(at), &node(at), &ended))?;
    let nominations = send_all(cluster, nominations, at_once[0]).await?;
    let mut gone = Changes::watch(cluster, Change::Gone, LOW).await?;
    let evictions = send_all(cluster, evictions, at_once[1]).await?;
    let begin = Instant::now();
    let (_, last) = gone.count(size).await?;
    let departures = last.saturating_duration_since(begin);
    let binds = send_all(cluster, binds, at_once[2]).await?;
    drop(watches);
    empty(cluster).await?;
    Ok(Phases { nominations, evictions, departures, binds })
}

fn nominate(pod: &str, node: &str) -> Result<Request<Vec<u8>>> {
    let annotations =
        json!({ PIPELINED_STATUS: "true", PIPELINED_NODE: node, EVICTION_OCCURRED: "true" });
    let body = json!({
        "metadata": { "annotations": annotations },
        "status": { "nominatedNodeName": node },
    });
    let request = Request::patch(format!("{}/{pod}/status", pods(SPACE)))
        .header("content-type", "application/merge-patch+json");
    Ok(request.body(body.to_string().into_bytes())?)
}

/// A fresh scheduler with the default configuration.
async fn preempt(plane: &ControlPlane, size: usize) -> Result<Run> {
    let cluster = &plane.cluster();
    fill(cluster, size).await?;
    let (mut server, page) = muster_server(plane)?;
    ready(&page).await?;
    // What it tells of the gangs that run is not part of the measure.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = Run::of(&page).await?;
    let mut binds = Changes::watch(cluster, Change::Bound, URGENT).await?;
    cluster.create_gang(&urgent(size)).await?;
    let created = Instant::now();
    let (_, last) = binds.count(size).await?;
    // Until what is told of it has been written too.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = Run::of(&page).await?;
    server.stop().await?;
    empty(cluster).await?;
    Ok(Run {
        seconds: last.saturating_duration_since(created).as_secs_f64(),
        nominations: after.nominations - before.nominations,
        group_statuses: after.group_statuses - before.group_statuses,
    })
}

impl Run {
    /// The writes so far, from the scheduler's metrics.
    async fn of(page: &Cluster) -> Result<Run> {
        let text = page.text("/metrics").await?;
        let count = |kind: &str| {
            let sample = format!("muster_writes_total{{kind=\"{kind}\"}} ");
            let found = text.lines().find_map(|line| line.strip_prefix(&*sample));
            found.map_or(Ok(0.0), str::parse::<f64>)
        };
        let (nominations, group_statuses) = (count("nomination")?, count("podgroup_status")?);
        Ok(Run { seconds: 0.0, nominations, group_statuses })
    }
}

async fn empty(cluster: &Cluster) -> Result<()> {
    remove_pods(cluster).await?;
    remove_groups(cluster).await
}
