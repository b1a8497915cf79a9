//! SIGKILL while a gang makes room by evictions: between nominations, evictions, terminations and
//! binds. The next scheduler finishes what the killed one began, no pod is evicted in vain, and no
//! nomination is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use muster_api::core::Pod;
use muster_e2e::checks::{PATIENCE, bound, group, is_scheduled, is_silent, remove_pod};
use muster_e2e::cluster::{Cluster, Definitions, podgroups, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::dice::Dice;
use muster_e2e::proxy::{Ask, Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::{Life, Story, Witness};
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::json;

const CONFIG: &str = r#"
actions: "enqueue, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"#;
const WHOLE_GANGS: &str = r#"
actions: "enqueue, allocate, backfill, preempt"
configurations:
- name: preempt
  arguments: {mode: gang}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
"#;
const SEEDS: u64 = 32;
const TAKING_SEEDS: u64 = 6;
const NODES: usize = 6;
const GPUS: i64 = 8;
/// How long to wait for a moment to kill; if no pod terminates, the last moments don't come.
const MOMENT: Duration = Duration::from_millis(600);

fn gang(name: &str, pods: usize, class: &str) -> Gang {
    Gang::new(name, pods).gpus(4).class(class)
}

/// Two pods on each node, of which one can be evicted.
async fn fill(cluster: &Cluster) -> Result<()> {
    for node in 0..NODES {
        let small = format!("small-{node}");
        cluster.create_gang(&gang(&small, 2, "low").min(1)).await?;
        for index in 0..2 {
            cluster.bind("default", &format!("{small}-{index}"), &format!("node-{node}")).await?;
        }
    }
    Ok(())
}

/// The progress: each pod of the gang is nominated and bound, each victim is deleted and
/// disappears.
fn steps(witness: &Witness) -> usize {
    let count = |what: fn(&Life) -> bool| witness.names(what).len();
    count(|life| life.gang == "urgent" && !life.nominations.is_empty())
        + count(|life| life.gang == "urgent" && life.bound.is_some())
        + count(|life| life.leaves.is_some())
        + count(|life| life.leaves.is_some() && life.gone.is_some())
}

/// What kubelets do when the grace period of the victims is over.
async fn reap(cluster: &Cluster, witness: &Witness) {
    for name in witness.names(|life| life.leaves.is_some() && life.gone.is_none()) {
        // It may be gone already.
        let _ = remove_pod(cluster, &name).await;
    }
}

/// Writes take different times, so that there are moments between them.
fn slow(plane: &ControlPlane) -> Result<Proxy> {
    let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
    for (share, delay) in [(25, 40), (33, 25), (50, 10)] {
        let writes = |ask: &Ask| ask.is_status() || ask.is_eviction() || ask.is_bind();
        proxy.rule(Fault::Delay(Duration::from_millis(delay)), share, writes);
    }
    Ok(proxy)
}

/// The state when it is killed, in counts: nominated, deleted, bound.
fn state(witness: &Witness, size: usize) -> String {
    let share = |what: fn(&Life) -> bool| match witness.names(what).len() {
        0 => "none",
        count if count < size => "some",
        _ => "all",
    };
    let nominated = share(|life| life.gang == "urgent" && !life.nominations.is_empty());
    let leave = share(|life| life.leaves.is_some());
    let bound = share(|life| life.gang == "urgent" && life.bound.is_some());
    format!("{nominated} nominated, {leave} deleted, {bound} bound")
}

/// A moment later than it was decided, as every kill is.
async fn kill(mut scheduler: Scheduler, dice: &mut Dice) -> Result<()> {
    tokio::time::sleep(Duration::from_millis(dice.below(12))).await;
    scheduler.server.kill().await
}

/// The last scheduler stops in order, the journal of all of them replays, and the cluster is empty
/// again.
async fn conclude(cluster: &Cluster, mut last: Scheduler, seed: u64) -> Result<()> {
    assert_eq!(last.server.stop().await?, 0, "seed {seed}");
    last.replay().map_err(|error| format!("seed {seed}: {error}"))?;
    cluster.delete(&format!("{}?gracePeriodSeconds=0", pods("default"))).await?;
    cluster.delete(&podgroups("default")).await?;
    cluster.wait_for_pods("default", PATIENCE, <[Pod]>::is_empty).await.map(drop)
}

async fn history(
    plane: &ControlPlane,
    flags: &[&str],
    seed: u64,
    kills: &mut BTreeMap<String, usize>,
) -> Result<()> {
    let cluster = &plane.cluster();
    let mut dice = Dice(seed);
    fill(cluster).await?;
    let witness = Witness::start(cluster).await?;
    let size = 4 + dice.below(3) as usize;
    cluster.create_gang(&gang("urgent", size, "high")).await?;
    let name = format!("muster-{seed}");
    let lives = 1 + dice.below(3);
    // From this life on victims disappear; before, their grace period goes on.
    let patience = dice.below(lives + 1);
    for life in 0..lives {
        let mut scheduler = Scheduler::spawn(plane, &name, flags)?;
        let moment = steps(&witness) + dice.below(2 * size as u64 + 1) as usize;
        let mut deadline = None;
        while steps(&witness) < moment && deadline.is_none_or(|deadline| Instant::now() < deadline)
        {
            scheduler.server.check()?;
            if life >= patience {
                reap(cluster, &witness).await;
            }
            if deadline.is_none() && scheduler.text("/readyz").await.is_ok() {
                deadline = Some(Instant::now() + MOMENT);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        kill(scheduler, &mut dice).await?;
        *kills.entry(state(&witness, size)).or_default() += 1;
    }
    let mut last = Scheduler::start(plane, &name, flags).await?;
    let whole = |pods: &[Pod]| bound(pods) == pods.len() && pods.len() == 2 * NODES;
    let deadline = Instant::now() + PATIENCE;
    while !whole(&cluster.pods("default").await?) {
        last.server.check()?;
        reap(cluster, &witness).await;
        assert!(
            Instant::now() < deadline,
            "seed {seed}: {:#?}",
            witness.tells().await?.gang("urgent")
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cluster.wait_for_pods("default", PATIENCE, |pods| pods.iter().all(is_silent)).await?;
    group(cluster, "urgent", is_scheduled).await?;
    check(&witness.tells().await?, size, seed);
    conclude(cluster, last, seed).await
}

fn check(story: &Story, size: usize, seed: u64) {
    let urgent = story.gang("urgent");
    assert_eq!(
        story.split(|gang| if gang == "urgent" { size } else { 1 }),
        Vec::<String>::new(),
        "seed {seed}"
    );
    assert_eq!(urgent.len(), size, "seed {seed}");
    // As many as one plan needs: no pod is evicted because a restart forgot something.
    let leavers = story.leavers();
    let names: Vec<&str> = leavers.iter().map(|life| &*life.name).collect();
    assert_eq!(leavers.len(), size, "seed {seed}: {names:?} left");
    for leaver in &leavers {
        let (Some(version), Some((_, node))) = (leaver.leaves, &leaver.bound) else { continue };
        let preemptors: Vec<&&Life> =
            urgent.iter().filter(|life| life.nominated_at(version) == Some(node)).collect();
        assert!(!preemptors.is_empty(), "seed {seed}: {} left {node} in vain", leaver.name);
        for life in preemptors {
            let at = life.bound.as_ref().map(|(_, node)| node);
            assert_eq!(at, Some(node), "seed {seed}: a nomination was lost: {life:?}");
        }
    }
    check_order(story, &leavers, seed);
}

/// All nominations of a gang are written before the first eviction for it, and what was written was
/// true at that moment.
fn check_order(story: &Story, leavers: &[&Life], seed: u64) {
    let first = leavers.iter().filter_map(|life| life.leaves).min();
    for life in story.gang("urgent") {
        let told = life.nominations.first().map(|(version, _)| *version);
        assert!(told.is_some() && told < first, "seed {seed}: {life:?}");
    }
    assert_eq!(story.crowded(GPUS), Vec::<String>::new(), "seed {seed}");
    assert_eq!(story.lies(), Vec::<String>::new(), "seed {seed}");
}

/// A cluster full of gangs of four, one pod on each node; one gang is to get half of it.
const LARGE: usize = 200;
const FOUR: usize = 4;
const PREEMPTOR: usize = 100;

/// The nodes of each gang are far apart, so that no gang can replace another.
async fn fill_with_fours(cluster: &Cluster) -> Result<()> {
    let fours: Vec<Gang> = (0..LARGE / FOUR)
        .map(|at| gang(&format!("four-{at}"), FOUR, "low").gpus(GPUS as usize))
        .collect();
    cluster.create_all(&podgroups("default"), fours.iter().map(Gang::podgroup)).await?;
    let placed = fours.iter().enumerate().flat_map(|(at, four)| {
        four.pods().enumerate().map(move |(index, mut pod)| {
            pod["spec"]["nodeName"] = json!(format!("node-{}", at + index * (LARGE / FOUR)));
            pod
        })
    });
    cluster.create_all(&pods("default"), placed).await
}

/// When a life ends, by how many pods of the preemptor are nominated or bound, and how many other
/// pods are deleted.
#[derive(Copy, Clone, Debug, Default)]
struct Moment {
    nominated: usize,
    leaves: usize,
    bound: usize,
}

impl Moment {
    fn has_come(self, witness: &Witness) -> bool {
        let count = |what: fn(&Life) -> bool| witness.names(what).len();
        count(|life| life.gang == "urgent" && !life.nominations.is_empty()) >= self.nominated
            && count(|life| life.leaves.is_some()) >= self.leaves
            && count(|life| life.gang == "urgent" && life.bound.is_some()) >= self.bound
    }
}

/// From now on pods that were not evicted have a lower priority: a plan that forgets which gangs it
/// has begun to evict would evict these instead.
async fn lower_the_rest(cluster: &Cluster, witness: &Witness) -> Result<()> {
    let broken: BTreeSet<String> = witness
        .names(|life| life.leaves.is_some())
        .iter()
        .filter_map(|name| Some(name.rsplit_once('-')?.0.to_owned()))
        .collect();
    for four in
        (0..LARGE / FOUR).map(|at| format!("four-{at}")).filter(|four| !broken.contains(four))
    {
        let lowest = json!({ "spec": { "priorityClassName": "lowest" } });
        cluster.patch(&format!("{}/{four}", podgroups("default")), &lowest).await?;
    }
    Ok(())
}

async fn taking_history(
    plane: &ControlPlane,
    flags: &[&str],
    seed: u64,
    kills: &mut BTreeMap<String, usize>,
) -> Result<()> {
    let cluster = &plane.cluster();
    let mut dice = Dice(seed);
    fill_with_fours(cluster).await?;
    let witness = Witness::start(cluster).await?;
    cluster.create_gang(&gang("urgent", PREEMPTOR, "high").gpus(GPUS as usize)).await?;
    let name = format!("muster-{seed}");
    let mut some = || 1 + dice.below(PREEMPTOR as u64 - 2) as usize;
    let moments = [
        Moment { nominated: some(), ..Moment::default() },
        Moment { nominated: PREEMPTOR, ..Moment::default() },
        Moment { leaves: some(), ..Moment::default() },
        Moment { bound: some(), ..Moment::default() },
    ];
    for moment in moments {
        let mut scheduler = Scheduler::spawn(plane, &name, flags)?;
        let deadline = Instant::now() + PATIENCE;
        while !(moment.has_come(&witness) && scheduler.text("/readyz").await.is_ok()) {
            scheduler.server.check()?;
            assert!(
                Instant::now() < deadline,
                "seed {seed}: {moment:?} doesn't come: {}",
                state(&witness, PREEMPTOR)
            );
            if moment.bound > 0 {
                reap(cluster, &witness).await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        kill(scheduler, &mut dice).await?;
        *kills.entry(state(&witness, PREEMPTOR)).or_default() += 1;
        if moment.leaves > 0 {
            lower_the_rest(cluster, &witness).await?;
        }
    }
    let last = Scheduler::start(plane, &name, flags).await?;
    wait(PATIENCE, async || {
        reap(cluster, &witness).await;
        let pods = cluster.pods("default").await.map_err(|error| error.to_string())?;
        let at_rest = |pod: &Pod| is_silent(pod) && pod.metadata.deletion_timestamp.is_none();
        let whole = bound(&pods) == pods.len() && pods.iter().all(at_rest);
        if whole { Ok(()) } else { Err(format!("seed {seed}: {}", state(&witness, PREEMPTOR))) }
    })
    .await?;
    group(cluster, "urgent", is_scheduled).await?;
    check_evictions(&witness.tells().await?, seed);
    conclude(cluster, last, seed).await
}

fn check_evictions(story: &Story, seed: u64) {
    let urgent = story.gang("urgent");
    assert_eq!(urgent.len(), PREEMPTOR, "seed {seed}");
    let minimum = |gang: &str| if gang == "urgent" { PREEMPTOR } else { FOUR };
    assert_eq!(story.split(minimum), Vec::<String>::new(), "seed {seed}: gangs are there or gone");
    // As many gangs as one plan needs, however often it was made.
    let leavers = story.leavers();
    let broken: BTreeSet<&str> = leavers.iter().map(|life| &*life.gang).collect();
    assert_eq!(
        (broken.len(), leavers.len()),
        (PREEMPTOR / FOUR, PREEMPTOR),
        "seed {seed}: {broken:?} left"
    );
    let node = |life: &&Life| life.bound.as_ref().map(|(_, node)| node.clone());
    let left: BTreeSet<String> = leavers.iter().filter_map(node).collect();
    let taken: BTreeSet<String> = urgent.iter().filter_map(node).collect();
    assert_eq!(left, taken, "seed {seed}: the gang runs on the freed nodes");
    check_order(story, &leavers, seed);
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_scheduler_killed_while_gangs_are_evicted_breaks_no_more_gangs() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let flags = prepare(plane, WHOLE_GANGS, LARGE).await?;
        let proxy = slow(plane)?;
        // There is also a moment between the last nomination and the first eviction.
        proxy.rule(Fault::Delay(Duration::from_millis(50)), 100, Ask::is_eviction);
        let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
        let mut kills = BTreeMap::new();
        for seed in 1..=TAKING_SEEDS {
            taking_history(plane, &[&flags, &way], seed, &mut kills).await?;
        }
        println!("killed when {kills:#?}");
        Ok(())
    })
}

/// The beginning of both histories; and the flag that names the configuration.
async fn prepare(plane: &ControlPlane, config: &str, nodes: usize) -> Result<String> {
    let cluster = plane.cluster();
    cluster.install_crds(Definitions::Muster).await?;
    for (name, value) in [("lowest", 0), ("low", 1), ("high", 10)] {
        cluster.create_priority(name, value).await?;
    }
    cluster.create_nodes(&Nodes::new(nodes).gpus(GPUS as usize)).await?;
    let file = plane.folder().join("scheduler.conf");
    std::fs::write(&file, config)?;
    Ok(format!("--config={}", file.display()))
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_scheduler_killed_while_it_evicts_keeps_nominations_and_evicts_no_more() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let flags = prepare(plane, CONFIG, NODES).await?;
        let proxy = slow(plane)?;
        let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
        let mut kills = BTreeMap::new();
        for seed in 1..=SEEDS {
            history(plane, &[&flags, &way], seed, &mut kills).await?;
        }
        println!("killed when {kills:#?}");
        Ok(())
    })
}
