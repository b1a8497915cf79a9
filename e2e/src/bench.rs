//! How fast the scheduler is on a real API server, compared with a client that only posts bindings
//! and with Kubernetes' own scheduler: everything in one run on one control plane, medians of
//! three, as ratios.

mod changes;
mod plain;
mod preemption;
mod startup;
mod throughput;

use std::fs;
use std::time::Duration;

use http::Request;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::Result;
use crate::cluster::{Cluster, podgroups, pods, wait};
use crate::controlplane::{ControlPlane, free_port};
use crate::guard::Server;
use crate::scheduler::muster;
use preemption::preemption;
use startup::startup;
use throughput::throughput;

const SPACE: &str = "default";
const PATIENCE: Duration = Duration::from_secs(300);
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArguments {
    /// Nodes of the throughput measures
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// Pods of the throughput measures
    #[arg(long, default_value_t = 3_000)]
    pods: usize,
    /// How often each measure is taken
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Nodes and running pods of the start-up measure
    #[arg(long, default_value_t = 5_000)]
    many_nodes: usize,
    #[arg(long, default_value_t = 40_000)]
    many_pods: usize,
    /// Which measures: throughput, preemption, startup
    #[arg(long, value_delimiter = ',', default_values = ["throughput", "preemption", "startup"])]
    only: Vec<String>,
}

pub async fn run(arguments: &BenchArguments) -> Result<()> {
    let wants = |name: &str| arguments.only.iter().any(|only| only == name);
    let mut lines = Vec::new();
    if wants("throughput") {
        lines.extend(throughput(arguments).await?);
    }
    if wants("preemption") {
        lines.extend(preemption(arguments).await?);
    }
    if wants("startup") {
        lines.extend(startup(arguments).await?);
    }
    println!("\n{:<64} {:>10} {:>8}", "MEASURE", "RATIO", "BAR");
    for Line { what, ratio, bar, more } in lines {
        let verdict = match bar {
            Bar::AtLeast(bar) => (format!("≥ {bar:.2}"), ratio >= bar),
            Bar::AtMost(bar) => (format!("≤ {bar:.2}"), ratio <= bar),
        };
        println!(
            "{what:<64} {ratio:>10.2} {:>8}   {}   {more}",
            verdict.0,
            if verdict.1 { "ok  " } else { "MISS" }
        );
    }
    Ok(())
}

struct Line {
    what: &'static str,
    ratio: f64,
    bar: Bar,
    more: String,
}

enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Deserialize)]
struct List {
    metadata: ListMeta,
    #[allow(dead_code, reason = "read, as a client would")]
    items: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    resource_version: String,
    #[serde(rename = "continue", default)]
    next: String,
}

fn muster_server(plane: &ControlPlane) -> Result<(Server, Cluster)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let flags = vec![
        "scheduler".to_owned(),
        format!("--kubeconfig={}", plane.kubeconfig().display()),
        format!("--listen={address}"),
        "--leader-elect=false".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    let mut server = Server::new("muster", &muster()?, flags, plane.folder());
    server.start()?;
    Ok((server, Cluster::plain(&format!("http://{address}"))?))
}

async fn ready(page: &Cluster) -> Result<()> {
    let ask = async || page.text("/readyz").await.map_err(|error| error.to_string());
    wait(PATIENCE, ask).await.map(drop)
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

async fn remove_groups(cluster: &Cluster) -> Result<()> {
    Ok(cluster.delete(&podgroups(SPACE)).await?)
}

/// User and system time of a process so far.
fn cpu_time(pid: i32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    // Linux counts in hundredths of a second here, whatever its own clock does.
    Ok(Duration::from_millis(ticks * 10))
}

fn peak_memory(pid: i32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("there is no peak")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn progress(text: &str) {
    eprintln!("{text}");
}
