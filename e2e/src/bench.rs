//! How fast the scheduler is on a real API server, compared with a client that only posts bindings
//! and with Kubernetes' own scheduler: everything in one run on one control plane, medians of
//! three, as ratios.

mod startup;
mod throughput;

use std::fs;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Result;
use crate::cluster::Cluster;
use crate::controlplane::{ControlPlane, free_port};
use crate::guard::Server;
use crate::scheduler::muster;
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
    /// Which measures: throughput, startup
    #[arg(long, value_delimiter = ',', default_values = ["throughput", "startup"])]
    only: Vec<String>,
}

pub async fn run(arguments: &BenchArguments) -> Result<()> {
    let wants = |name: &str| arguments.only.iter().any(|only| only == name);
    let mut lines = Vec::new();
    if wants("throughput") {
        lines.extend(throughput(arguments).await?);
    }
    if wants("startup") {
        lines.extend(startup(arguments).await?);
    }
    println!("\n{:<58} {:>10} {:>8}", "MEASURE", "RATIO", "BAR");
    for Line { what, ratio, bar, more } in lines {
        let verdict = match bar {
            Bar::AtLeast(bar) => (format!("≥ {bar:.2}"), ratio >= bar),
            Bar::AtMost(bar) => (format!("≤ {bar:.2}"), ratio <= bar),
        };
        println!(
            "{what:<58} {ratio:>10.2} {:>8}   {}   {more}",
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
