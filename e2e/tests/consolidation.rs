//! A fragmented cluster is consolidated for a large gang by a scheduler that is killed again and
//! again: every moved pod runs again, no pod is moved twice, and no reserved place is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use muster_api::core::Pod;
use muster_api::keys::{PIPELINED_STATUS, RESERVATIONS};
use muster_e2e::checks::{PATIENCE, group, is_scheduled, is_silent, release};
use muster_e2e::cluster::{Cluster, Definitions, podgroups, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::dice::Dice;
use muster_e2e::proxy::{Ask, Fault, Proxy, Rule};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::{Life, Story, Witness};
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::{Value, json};

/// As in examples/gpu-cluster, for one queue whose pods have all just started.
const CONFIG: &str = r#"
actions: "allocate, consolidate"
configurations:
- name: consolidate
  arguments: {maxMoves: 64}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
- plugins:
  - name: predicates
  - name: capacity
    arguments: {nonPreemptibleWithinDeserved: true}
  - name: nodeorder
    arguments: {leastrequested.weight: 0}
  - name: binpack
    arguments: {binpack.resources: nvidia.com/gpu, binpack.resources.nvidia.com/gpu: 10}
  - name: network-topology-aware
"#;
const NODES: usize = 100;
const GPUS: i64 = 8;
/// How many nodes have two pods of two GPUs, by history; each of the others has one pod that fills
/// it. With 32 there is a place for every pod and not one more.
const FRAGMENTED: [usize; 3] = [60, 44, 32];
const PREEMPTOR: usize = 16;
/// Two pods of each node that the gang gets.
const MOVES: usize = 2 * PREEMPTOR;
/// How long to wait for a moment to kill once a scheduler decides.
const MOMENT: Duration = Duration::from_secs(20);

/// One pod, in a PodGroup of its own. It stays until it is let go.
fn small(at: usize) -> Gang {
    Gang::new(&format!("small-{at}"), 1).gpus(2).held()
}

async fn fill(cluster: &Cluster, fragmented: usize) -> Result<()> {
    let smalls = (0..2 * fragmented).map(|at| (small(at), at / 2));
    let fulls =
        (fragmented..NODES).map(|at| (Gang::new(&format!("full-{at}"), 1).gpus(GPUS as usize), at));
    let gangs: Vec<(Gang, usize)> = smalls.chain(fulls).collect();
    cluster
        .create_all(&podgroups("default"), gangs.iter().map(|(gang, _)| gang.podgroup()))
        .await?;
    let placed = gangs.iter().map(|(gang, node)| {
        let mut pod = gang.pod(0);
        pod["spec"]["nodeName"] = json!(format!("node-{node}"));
        pod
    });
    cluster.create_all(&pods("default"), placed).await?;
    let run = |pods: &[Pod]| {
        pods.len() == gangs.len() && pods.iter().all(|pod| pod.status.phase == "Running")
    };
    cluster.wait_for_pods("default", PATIENCE, run).await.map(drop)
}

/// What controllers do: every other small gang is a Deployment, which creates a pod of another name
/// as soon as one is deleted; the others are StatefulSets, which create one of the same name once
/// the old one is gone.
async fn make_again(cluster: &Cluster, witness: &Witness, smalls: usize) {
    let lacking = witness.look(|story| {
        let mut gangs: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for life in story.pods.values() {
            let (made, leaving) = gangs.entry(&life.gang).or_default();
            *made += 1;
            *leaving += usize::from(
                life.gone.is_some() || (is_deployment(&life.gang) && life.leaves.is_some()),
            );
        }
        let lacking = (0..smalls).filter_map(|at| {
            let gang = small(at);
            let (made, leaving) = *gangs.get(&*gang.name)?;
            let index = if is_deployment(&gang.name) { made } else { 0 };
            (made == leaving).then(|| gang.pod(index))
        });
        lacking.collect::<Vec<Value>>()
    });
    for pod in lacking {
        // It may have been created already, and not been seen yet.
        let _ = cluster.create(&pods("default"), &pod).await;
    }
}

fn is_deployment(gang: &str) -> bool {
    gang.ends_with(['0', '2', '4', '6', '8'])
}

/// What kubelets do when the grace period of moved pods is over.
async fn release_deleted(cluster: &Cluster, witness: &Witness) {
    for name in witness.names(|life| life.leaves.is_some() && life.gone.is_none()) {
        // It may be gone already.
        let _ = release(cluster, &name).await;
    }
}

/// A nomination of a pod or a note on a PodGroup, or the end of one.
fn is_nomination(ask: &Ask) -> bool {
    let body = String::from_utf8_lossy(&ask.body);
    ask.is_status() && [PIPELINED_STATUS, RESERVATIONS].iter().any(|key| body.contains(key))
}

/// Where the life of a scheduler ends: the first `pass` writes of a kind get through, and no more.
struct End {
    writes: fn(&Ask) -> bool,
    pass: usize,
    /// From here on deleted pods terminate.
    release: bool,
}

impl End {
    /// How many pods are at least deleted in this life.
    fn evictions(&self) -> usize {
        let eviction = Ask {
            method: http::Method::POST,
            path: "/eviction".to_owned(),
            query: String::new(),
            body: Default::default(),
        };
        if (self.writes)(&eviction) { self.pass } else { 0 }
    }

    fn hold(&self, proxy: &Proxy) -> Arc<Rule> {
        let (writes, pass, seen) = (self.writes, self.pass, AtomicUsize::new(0));
        proxy.rule(Fault::Hold, 100, move |ask| {
            writes(ask) && seen.fetch_add(1, Ordering::Relaxed) >= pass
        })
    }
}

/// Lives that end while successors are bound.
const LIVES_THAT_FORGET: usize = 4;

fn ends(dice: &mut Dice) -> [End; 7] {
    let mut below = |bound: usize| dice.below(bound as u64) as usize;
    let some_moved = 1 + below(MOVES / 2);
    let release_early = below(2) == 0;
    [
        // Before the first place is reserved; among the nominations.
        End { writes: is_nomination, pass: below(PREEMPTOR), release: false },
        // Some PodGroups have reservations.
        End { writes: is_nomination, pass: PREEMPTOR + below(PREEMPTOR), release: false },
        // All have reservations, and no pod is deleted.
        End { writes: Ask::is_eviction, pass: 0, release: false },
        End { writes: Ask::is_eviction, pass: some_moved, release: false },
        End { writes: Ask::is_eviction, pass: below(MOVES - some_moved), release: release_early },
        // All pods are deleted, and the first reserved places are used.
        End { writes: Ask::is_bind, pass: below(8), release: true },
        End { writes: Ask::is_bind, pass: below(16), release: true },
    ]
}

/// The state when it is killed.
fn state(witness: &Witness) -> String {
    witness.look(|story| {
        let count = |what: fn(&Life) -> bool| story.pods.values().filter(|life| what(life)).count();
        let reserving: BTreeSet<&str> = story
            .sayings
            .iter()
            .map(|saying| &*saying.gang)
            .filter(|gang| story.reservations_before(gang, u64::MAX).is_some())
            .collect();
        format!(
            "{} nominated, {} groups reserve, {} deleted, {} gone, {} back, {} of the gang bound",
            count(|life| life.gang == "large" && life.nomination().is_some()),
            reserving.len(),
            count(|life| life.leaves.is_some()),
            count(|life| life.leaves.is_some() && life.gone.is_some()),
            count(|life| life.gang != "large"
                && life.bound.as_ref().is_some_and(|(at, _)| *at > life.created)),
            count(|life| life.gang == "large" && life.bound.is_some()),
        )
    })
}

async fn history(plane: &ControlPlane, proxy: &Proxy, flags: &[&str], seed: usize) -> Result<()> {
    let cluster = &plane.cluster();
    let mut dice = Dice(seed as u64);
    let fragmented = FRAGMENTED[seed % FRAGMENTED.len()];
    fill(cluster, fragmented).await?;
    let witness = Witness::start(cluster).await?;
    cluster.create_gang(&Gang::new("large", PREEMPTOR).gpus(GPUS as usize)).await?;
    let name = format!("muster-{seed}");
    for end in ends(&mut dice) {
        let held = end.hold(proxy);
        let mut scheduler = Scheduler::start(plane, &name, flags).await?;
        let deadline = Instant::now() + MOMENT;
        // Writes that get through must have been executed, or the kill would cut them off.
        let asked = |witness: &Witness| witness.names(|life| life.leaves.is_some()).len();
        let enough = asked(&witness) + end.evictions();
        while held.count() == 0 || asked(&witness) < enough {
            scheduler.server.check()?;
            assert!(Instant::now() < deadline, "seed {seed}: nothing to hold: {}", state(&witness));
            if end.release {
                release_deleted(cluster, &witness).await;
            }
            make_again(cluster, &witness, 2 * fragmented).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(dice.below(50))).await;
        scheduler.server.kill().await?;
        println!("seed {seed}: killed when {}", state(&witness));
        // Writes that were held end with the connection.
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.calm();
    }
    let mut last = Scheduler::start(plane, &name, flags).await?;
    wait(PATIENCE, async || {
        release_deleted(cluster, &witness).await;
        make_again(cluster, &witness, 2 * fragmented).await;
        let pods = cluster.pods("default").await.map_err(|error| error.to_string())?;
        let there = NODES - fragmented + 2 * fragmented + PREEMPTOR;
        match pods.len() == there && pods.iter().all(runs) {
            true => Ok(()),
            false => {
                Err(format!("seed {seed}: {} of {there} pods: {}", pods.len(), state(&witness)))
            }
        }
    })
    .await?;
    group(cluster, "large", is_scheduled).await?;
    wait(PATIENCE, async || {
        let groups =
            cluster.text(&podgroups("default")).await.map_err(|error| error.to_string())?;
        if groups.contains(RESERVATIONS) {
            Err("places are still reserved".to_owned())
        } else {
            Ok(())
        }
    })
    .await?;
    check(&witness.tells().await?, fragmented, seed);
    assert_eq!(last.server.stop().await?, 0, "seed {seed}");
    last.replay().map_err(|error| format!("seed {seed}: {error}"))?;
    clear(cluster).await
}

/// It is nominated to no node and nothing is required of it.
fn runs(pod: &Pod) -> bool {
    is_silent(pod) && pod.metadata.deletion_timestamp.is_none() && pod.status.phase == "Running"
}

fn check(story: &Story, fragmented: usize, seed: usize) {
    let minimum = |gang: &str| if gang == "large" { PREEMPTOR } else { 1 };
    assert_eq!(story.split(minimum), Vec::<String>::new(), "seed {seed}");
    for at in 0..2 * fragmented {
        let there =
            story.gang(&format!("small-{at}")).iter().filter(|life| life.gone.is_none()).count();
        assert_eq!(there, 1, "seed {seed}: every small gang has its pod");
    }
    // As many as one plan needs, however often it was made; and none of them twice. A reservation
    // is removed from the PodGroup before the bind to it is confirmed, so a life that ends in
    // between forgets it: the successor may take another node, for which one more pod has to move.
    // For the same reason the node of the successor is not checked.
    let leavers = story.leavers();
    let gangs: BTreeSet<&str> = leavers.iter().map(|life| &*life.gang).collect();
    assert_eq!(leavers.len(), gangs.len(), "seed {seed}: a pod of {gangs:?} was moved twice");
    let most = MOVES + LIVES_THAT_FORGET;
    assert!((MOVES..=most).contains(&gangs.len()), "seed {seed}: {gangs:?} were moved");
    for leaver in &leavers {
        let kept =
            leaver.leaves.and_then(|version| story.reservations_before(&leaver.gang, version));
        assert!(
            kept.is_some(),
            "seed {seed}: {} was deleted before its place was reserved",
            leaver.name
        );
    }
    assert_eq!(story.ever_crowded(GPUS), Vec::<String>::new(), "seed {seed}");
    assert_eq!(story.lies(), Vec::<String>::new(), "seed {seed}");
}

async fn clear(cluster: &Cluster) -> Result<()> {
    cluster.delete(&format!("{}?gracePeriodSeconds=0", pods("default"))).await?;
    cluster.delete(&podgroups("default")).await?;
    for pod in cluster.pods("default").await? {
        // Only the held ones still exist.
        let _ = release(cluster, &pod.metadata.name).await;
    }
    cluster.wait_for_pods("default", PATIENCE, <[Pod]>::is_empty).await.map(drop)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_killed_scheduler_consolidates_a_cluster_and_all_pods_run_again() -> Result<()> {
    bed::test(Options { kwok: true, ..Options::default() }, async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        cluster.create_nodes(&Nodes::new(NODES).gpus(GPUS as usize)).await?;
        let file = plane.folder().join("scheduler.conf");
        std::fs::write(&file, CONFIG)?;
        let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
        let flags = [
            format!("--config={}", file.display()),
            format!("--kubeconfig={}", proxy.kubeconfig().display()),
        ];
        for seed in 0..FRAGMENTED.len() {
            history(plane, &proxy, &flags.each_ref().map(String::as_str), seed).await?;
        }
        Ok(())
    })
}
