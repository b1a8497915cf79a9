//! 1,000 nodes and 5,000 pods in gangs of all sizes, through to Running.

use std::time::Duration;

use muster_api::core::Pod;
use muster_e2e::cluster::{Definitions, QUEUES, podgroups, wait};
use muster_e2e::controlplane::Options;
use muster_e2e::scheduler::Scheduler;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(300);
const PODS: usize = 5_000;

/// Sizes from 1 to 200 that add up to all pods.
fn sizes() -> Vec<usize> {
    let mut left = PODS;
    let mut sizes = Vec::new();
    for size in [1, 2, 4, 8, 25, 60, 200].into_iter().cycle() {
        if left == 0 {
            return sizes;
        }
        sizes.push(size.min(left));
        left -= size.min(left);
    }
    sizes
}

#[test]
fn five_thousand_pods_run_on_a_thousand_nodes() -> Result<()> {
    bed::test(Options { kwok: true, ..Options::default() }, async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        cluster.create_nodes(&Nodes::new(1_000).gpus(8)).await?;
        let mut scheduler = Scheduler::start(plane, "muster", &[]).await?;
        let sizes = sizes();
        for (index, &pods) in sizes.iter().enumerate() {
            cluster.create_gang(&Gang::new(&format!("gang-{index}"), pods).gpus(1)).await?;
        }
        let run = |pods: &[Pod]| pods.len() == PODS && pods.iter().all(|pod| pod.status.phase == "Running");
        cluster.wait_for_pods("default", PATIENCE, run).await?;

        // What PodGroups and the queue say comes to agree with what is.
        wait(PATIENCE, async || {
            let groups: Value = cluster.get(&podgroups("default")).await.map_err(|error| error.to_string())?;
            let groups = groups["items"].as_array().cloned().unwrap_or_default();
            let behind = |group: &&Value| {
                group["status"]["phase"] != "Running" || group["status"]["running"] != group["spec"]["minMember"]
            };
            match groups.iter().find(behind) {
                None if groups.len() == sizes.len() => Ok(()),
                found => Err(format!("{} PodGroups, among them {found:?}", groups.len())),
            }
        })
        .await?;
        wait(PATIENCE, async || {
            let queue: Value =
                cluster.get(&format!("{QUEUES}/default")).await.map_err(|error| error.to_string())?;
            let status = &queue["status"];
            let right = status["running"] == sizes.len() && status["allocated"]["nvidia.com/gpu"] == "5k";
            if right { Ok(()) } else { Err(status.to_string()) }
        })
        .await?;
        assert_eq!(scheduler.server.stop().await?, 0);
        scheduler.replay()
    })
}
