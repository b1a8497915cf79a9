//! How many pods per second are bound, at what cost, and how long a large gang takes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;

use super::changes::{Change, Changes};
use super::plain::{CONCURRENCIES, bind, hold_watches, send_all};
use super::{
    Bar, BenchArguments, Line, PATIENCE, SPACE, cpu_time, median, muster_server, peak_memory,
    progress, ready, remove_groups, remove_pods,
};
use crate::Result;
use crate::cluster::{Cluster, Definitions, podgroups, pods};
use crate::controlplane::{ControlPlane, Options};
use crate::guard::Server;
use crate::workload::{Gang, Nodes};

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
        (Vec::new(), Vec::new(), Vec::new(), GangTimes::default());
    for round in 1..=arguments.rounds {
        let limit = plain_client(&cluster, arguments, best).await?;
        progress(&format!("round {round}: plain client {limit:.0} pods/s"));
        limits.push(limit);
        let mut server = muster_server(&plane)?;
        let run = equal_pods(&cluster, arguments, &mut server.0, Some(&server.1), "muster").await?;
        progress(&format!("round {round}: muster {run:?}"));
        ours.push(run);
        let times = gangs_of_a_process(&cluster, muster_server(&plane)?).await?;
        progress(&format!("round {round}: gangs of 1,000, again, 500 of 10: {times:.2?} s"));
        gangs.push(times);
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
    let mut lines = gangs.lines(limit);
    lines.extend([
        Line {
            what: "binding throughput, relative to a plain client",
            ratio: rate(&ours) / limit,
            bar: Bar::AtLeast(0.75),
            more: format!("{:.0} of {limit:.0} pods/s (concurrency {best})", rate(&ours)),
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
    ]);
    Ok(lines)
}

const GANG: usize = 1_000;
/// Many gangs at once.
const GANGS: usize = 500;
const OF_EACH: usize = 10;

/// In seconds, for each round: a process's first gang of 1,000, its second, and many gangs at once.
#[derive(Default)]
struct GangTimes([Vec<f64>; 3]);

impl GangTimes {
    fn push(&mut self, times: [f64; 3]) {
        self.0.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
    }

    fn lines(&self, limit: f64) -> Vec<Line> {
        let [first, again, many] = self.0.each_ref().map(|times| median(times));
        let line = |what, pods: usize, seconds: f64| {
            let needed = pods as f64 / limit;
            Line {
                what,
                ratio: seconds / needed,
                bar: Bar::AtMost(1.2),
                more: format!("{seconds:.2} s, the plain client needs {needed:.2} s"),
            }
        };
        vec![
            line("a fresh process's gang of 1,000, last created to last bound", GANG, first),
            line("the same process's next gang of 1,000", GANG, again),
            line("500 gangs of 10 at once", GANGS * OF_EACH, many),
        ]
    }
}

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
    let node = |index| format!("node-{}", index % arguments.nodes);
    let binds = (0..arguments.pods)
        .map(|index| bind(&format!("equal-{index}"), &node(index), &json!({})))
        .collect::<Result<Vec<_>>>()?;
    let took = send_all(cluster, binds, concurrency).await?;
    drop(watches);
    remove_pods(cluster).await?;
    Ok(arguments.pods as f64 / took.as_secs_f64())
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
        Some(page) => ready(page).await?,
        // Kubernetes' own scheduler has no page here: it is ready when it has bound a pod.
        None => warm_up(cluster, scheduler).await?,
    }
    server.pause()?;
    cluster.create_all(&pods(SPACE), equal(arguments.pods, scheduler)).await?;
    let mut binds = Changes::watch(cluster, Change::Bound, "equal-").await?;
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

/// What one process needs for its first gang, for its second, and for many at once.
async fn gangs_of_a_process(
    cluster: &Cluster,
    (mut server, page): (Server, Cluster),
) -> Result<[f64; 3]> {
    ready(&page).await?;
    let first = large_gang(cluster).await?;
    let again = large_gang(cluster).await?;
    let many = many_gangs(cluster, &mut server).await?;
    server.stop().await?;
    Ok([first, again, many].map(|time| time.as_secs_f64()))
}

async fn large_gang(cluster: &Cluster) -> Result<Duration> {
    let mut binds = Changes::watch(cluster, Change::Bound, "large-").await?;
    let gang = Gang::new("large", GANG).gpus(8);
    cluster.create_gang(&gang).await?;
    let created = Instant::now();
    let (_, last) = binds.count(GANG).await?;
    remove_pods(cluster).await?;
    remove_groups(cluster).await?;
    Ok(last.saturating_duration_since(created))
}

/// The scheduler is frozen while they are created, so that they come at once.
async fn many_gangs(cluster: &Cluster, server: &mut Server) -> Result<Duration> {
    let gangs: Vec<Gang> =
        (0..GANGS).map(|at| Gang::new(&format!("small-{at}"), OF_EACH).gpus(1)).collect();
    server.pause()?;
    cluster.create_all(&podgroups(SPACE), gangs.iter().map(Gang::podgroup)).await?;
    cluster.create_all(&pods(SPACE), gangs.iter().flat_map(Gang::pods)).await?;
    let mut binds = Changes::watch(cluster, Change::Bound, "small-").await?;
    let begin = Instant::now();
    server.resume()?;
    let (_, last) = binds.count(GANGS * OF_EACH).await?;
    remove_pods(cluster).await?;
    remove_groups(cluster).await?;
    Ok(last.saturating_duration_since(begin))
}
