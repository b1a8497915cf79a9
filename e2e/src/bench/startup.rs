//! How long a scheduler takes to read a large cluster, and how much memory it needs.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use http::Request;
use serde_json::json;

use super::{
    Bar, BenchArguments, Line, List, PATIENCE, SPACE, median, muster_server, peak_memory, progress,
};
use crate::Result;
use crate::cluster::{Cluster, Definitions, NODES, pods, wait};
use crate::controlplane::{ControlPlane, Options};
use crate::workload::{Gang, Nodes};

pub async fn startup(arguments: &BenchArguments) -> Result<Vec<Line>> {
    let plane = ControlPlane::start(Options::default()).await?;
    let cluster = plane.cluster();
    cluster.install_crds(Definitions::Muster).await?;
    let (nodes, running) = (arguments.many_nodes, arguments.many_pods);
    progress(&format!("creating {nodes} nodes and {running} running pods"));
    cluster.create_nodes(&Nodes::new(nodes).gpus(8)).await?;
    create_running(&cluster, nodes, running).await?;
    let (mut lists, mut starts, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=arguments.rounds {
        let begin = Instant::now();
        list(&cluster, NODES, nodes).await?;
        list(&cluster, "/api/v1/pods", running).await?;
        lists.push(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        let (mut server, page) = muster_server(&plane)?;
        wait(PATIENCE, async || page.text("/readyz").await.map_err(|error| error.to_string()))
            .await?;
        starts.push(begin.elapsed().as_secs_f64());
        // The first cycles contribute to the peak.
        tokio::time::sleep(Duration::from_secs(2)).await;
        peaks.push(peak_memory(server.pid().ok_or("the scheduler has ended")?)? as f64 / 1e6);
        server.stop().await?;
        let last = |values: &[f64]| values.last().copied().unwrap_or_default();
        progress(&format!(
            "round {round}: listed in {:.2} s, ready in {:.2} s, {:.0} MB",
            last(&lists),
            last(&starts),
            last(&peaks)
        ));
    }
    let (listed, ready, peak) = (median(&lists), median(&starts), median(&peaks));
    Ok(vec![
        Line {
            what: "ready with many pods, relative to listing them",
            ratio: ready / listed,
            bar: Bar::AtMost(3.0),
            more: format!("{ready:.2} s, a plain client lists in {listed:.2} s"),
        },
        Line {
            what: "peak memory with many pods, of 400 MB",
            ratio: peak / 400.0,
            bar: Bar::AtMost(1.0),
            more: format!("{peak:.0} MB"),
        },
    ])
}

async fn create_running(cluster: &Cluster, nodes: usize, count: usize) -> Result<()> {
    let gangs = Gang::new("busy", count).gpus(1);
    let placed = gangs.pods().enumerate().map(|(index, mut pod)| {
        pod["spec"]["nodeName"] = json!(format!("node-{}", index % nodes));
        pod["metadata"]["annotations"] = json!({});
        pod
    });
    cluster.create_all(&pods(SPACE), placed).await?;
    let body = json!({ "status": { "phase": "Running", "startTime": "2026-11-01T00:00:00Z" } })
        .to_string();
    let client = cluster.client();
    let patches = (0..count).map(|index| {
        let request = Request::patch(format!("{}/busy-{index}/status", pods(SPACE)))
            .header("content-type", "application/merge-patch+json")
            .body(body.clone().into_bytes())
            .expect("a valid path");
        client.request_text(request)
    });
    let done = futures::stream::iter(patches).buffer_unordered(64);
    Ok(done.try_for_each(|_| std::future::ready(Ok(()))).await?)
}

/// Reads a list as clients do, in pages.
async fn list(cluster: &Cluster, path: &str, expected: usize) -> Result<()> {
    let (mut next, mut found) = (String::new(), 0);
    loop {
        let page: List = cluster.get(&format!("{path}?limit=500&continue={next}")).await?;
        found += page.items.len();
        next = page.metadata.next;
        if next.is_empty() {
            break;
        }
    }
    if found == expected { Ok(()) } else { Err(format!("{found} of {expected} in {path}").into()) }
}
