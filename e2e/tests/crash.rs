//! SIGKILL at any moment: the next scheduler finishes what it finds, and no gang is left half done.

use std::time::{Duration, Instant};

use http::Request;
use muster_api::core::Pod;
use muster_e2e::cluster::{Cluster, Definitions, podgroups, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::dice::Dice;
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(180);
const SEEDS: u64 = 20;
const GANG: usize = 500;
const GPUS: i64 = 8;

fn bound(pods: &[Pod], gang: &str) -> usize {
    let of_gang = |pod: &&Pod| pod.metadata.name.starts_with(gang) && pod.spec.node_name.is_some();
    pods.iter().filter(of_gang).count()
}

/// Without a kubelet, deleted pods only disappear without a grace period.
async fn clear(cluster: &Cluster) -> Result<()> {
    let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0 });
    let request = Request::delete(pods("default"))
        .header("content-type", "application/json")
        .body(options.to_string().into_bytes())?;
    cluster.client().request_text(request).await?;
    cluster.delete(&podgroups("default")).await?;
    cluster.wait_for_pods("default", PATIENCE, |pods| pods.is_empty()).await?;
    Ok(())
}

/// Waits until `count` pods are bound, as precisely as a watch can tell.
async fn progress(witness: &Witness, count: usize, life: &mut Scheduler) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while witness.bound() < count {
        life.server.check()?;
        assert!(Instant::now() < deadline, "{} of {count} pods are bound", witness.bound());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Two gangs of which one fits, and a scheduler that is killed up to three times on the way.
async fn history(plane: &ControlPlane, cluster: &Cluster, seed: u64) -> Result<()> {
    let mut dice = Dice(seed);
    let witness = Witness::start(cluster).await?;
    let name = format!("muster-{seed}");
    // The rivals are in one queue in some histories, in two in others.
    let rival = if dice.below(2) == 0 { "default" } else { "other" };
    cluster.create_gang(&Gang::new("one", GANG).gpus(1)).await?;
    cluster.create_gang(&Gang::new("two", GANG).gpus(1).queue(rival)).await?;
    for _ in 0..1 + dice.below(3) {
        let mut life = Scheduler::spawn(plane, &name, &[])?;
        // At the start, on the way, or when all is bound and the status is not yet written.
        let left = (GANG - witness.bound()) as u64;
        let moment = witness.bound() + dice.below(left + 1) as usize;
        progress(&witness, moment, &mut life).await?;
        tokio::time::sleep(Duration::from_millis(dice.below(30))).await;
        life.server.kill().await?;
    }
    let mut last = Scheduler::start(plane, &name, &[]).await?;
    cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods, "") >= GANG).await?;
    for gang in ["one", "two"] {
        said(cluster, gang).await?;
    }
    // Which of the two comes first is the scheduler's choice; the other has nothing.
    let end = cluster.pods("default").await?;
    let counts = [bound(&end, "one"), bound(&end, "two")];
    assert!(counts == [GANG, 0] || counts == [0, GANG], "seed {seed}: {counts:?}");
    let story = witness.tells().await?;
    assert_eq!(story.crowded(GPUS), Vec::<String>::new(), "seed {seed}");
    assert_eq!(story.lies(), Vec::<String>::new(), "seed {seed}");
    assert_eq!(last.server.stop().await?, 0, "seed {seed}");
    last.replay().map_err(|error| format!("seed {seed}: {error}"))?;
    clear(cluster).await
}

/// Waits until a PodGroup reports the outcome.
async fn said(cluster: &Cluster, gang: &str) -> Result<()> {
    let path = format!("{}/{gang}", podgroups("default"));
    wait(PATIENCE, async || {
        let group: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        let word = group["status"]["conditions"][0]["type"].as_str().unwrap_or_default();
        if ["Scheduled", "Unschedulable"].contains(&word) { Ok(()) } else { Err(group.to_string()) }
    })
    .await
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_scheduler_killed_at_any_moment_loses_no_pod_and_splits_no_gang() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        cluster.create_queue("other", json!({})).await?;
        // Room for one of the two gangs, and more than half of the other.
        cluster.create_nodes(&Nodes::new(100).gpus(GPUS as usize)).await?;
        for seed in 1..=SEEDS {
            history(plane, &cluster, seed).await?;
        }
        Ok(())
    })
}
