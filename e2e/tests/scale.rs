//! 1,000 nodes and 5,000 pods in gangs of all sizes, through to Running.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use muster_api::core::Pod;
use muster_e2e::checks::{group, is_scheduled};
use muster_e2e::cluster::{Definitions, QUEUES, podgroups, wait};
use muster_e2e::controlplane::Options;
use muster_e2e::proxy::{Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(300);
const PODS: usize = 5_000;
const LARGEST: usize = 200;

/// Sizes from 1 to 200 that add up to all pods.
fn sizes() -> Vec<usize> {
    let mut left = PODS;
    let mut sizes = Vec::new();
    for size in [1, 2, 4, 8, 25, 60, LARGEST].into_iter().cycle() {
        if left == 0 {
            return sizes;
        }
        sizes.push(size.min(left));
        left -= size.min(left);
    }
    sizes
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
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
        let run = |pods: &[Pod]| {
            pods.len() == PODS && pods.iter().all(|pod| pod.status.phase == "Running")
        };
        cluster.wait_for_pods("default", PATIENCE, run).await?;

        // The reported status of PodGroups and of the queue becomes true.
        wait(PATIENCE, async || {
            let groups: Value =
                cluster.get(&podgroups("default")).await.map_err(|error| error.to_string())?;
            let groups = groups["items"].as_array().cloned().unwrap_or_default();
            let behind = |group: &&Value| {
                group["status"]["phase"] != "Running"
                    || group["status"]["running"] != group["spec"]["minMember"]
            };
            match groups.iter().find(behind) {
                None if groups.len() == sizes.len() => Ok(()),
                found => Err(format!("{} PodGroups, among them {found:?}", groups.len())),
            }
        })
        .await?;
        wait(PATIENCE, async || {
            let queue: Value = cluster
                .get(&format!("{QUEUES}/default"))
                .await
                .map_err(|error| error.to_string())?;
            let status = &queue["status"];
            let right =
                status["running"] == sizes.len() && status["allocated"]["nvidia.com/gpu"] == "5k";
            if right { Ok(()) } else { Err(status.to_string()) }
        })
        .await?;

        // A replica that starts late reads all of it, although its list expires once.
        let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
        let first = AtomicBool::new(true);
        let lost = proxy.rule(Fault::Refuse(410), 100, move |ask| {
            ask.is_list("pods")
                && ask.query.contains("continue=")
                && first.swap(false, Ordering::Relaxed)
        });
        let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
        let mut late = Scheduler::start(plane, "late", &[&way]).await?;
        assert_eq!(lost.count(), 1);
        assert_eq!(scheduler.server.stop().await?, 0);
        cluster.create_gang(&Gang::new("last", LARGEST).gpus(8)).await?;
        group(&cluster, "last", is_scheduled).await?;
        let story = Witness::start(&cluster).await?.tells().await?;
        assert_eq!(story.crowded(8), Vec::<String>::new());
        assert_eq!(late.server.stop().await?, 0);
        scheduler.replay()?;
        late.replay()
    })
}
