//! Several replicas, of which one decides: if one is frozen, cut off or told to stop, nothing is
//! done twice or left half done.

use std::time::{Duration, Instant};

use http::Method;
use muster_e2e::checks::{PATIENCE, bound, group, is_scheduled, log_of, runs, struck};
use muster_e2e::cluster::{Cluster, Definitions, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::proxy::{Ask, Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use rustix::process::Signal;
use serde_json::Value;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/muster";
/// Short, so that tests are fast; long enough for a busy machine to renew in time.
const SHORT: [&str; 3] = [
    "--leader-elect-lease-duration=8s",
    "--leader-elect-renew-deadline=6s",
    "--leader-elect-retry-period=500ms",
];

/// A control plane with 50 nodes of 8 GPUs.
fn with_nodes(body: impl AsyncFnOnce(&mut ControlPlane, Cluster) -> Result<()>) -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        cluster.create_nodes(&Nodes::new(50).gpus(8)).await?;
        body(plane, cluster).await
    })
}

async fn replica(plane: &ControlPlane, name: &str) -> Result<Scheduler> {
    Scheduler::start(plane, name, &SHORT).await
}

async fn wait_for_holder(cluster: &Cluster, name: &str) -> Result<()> {
    wait(PATIENCE, async || {
        let lease: Value = cluster.get(LEASE).await.map_err(|error| error.to_string())?;
        let holder = &lease["spec"]["holderIdentity"];
        if holder == name { Ok(()) } else { Err(format!("{holder} holds the lease, not {name}")) }
    })
    .await
}

/// Gangs that fill all nodes but one.
fn load() -> Vec<Gang> {
    let sizes = [120, 80, 60, 40, 30, 20, 20, 10, 8, 4];
    sizes
        .iter()
        .enumerate()
        .map(|(at, &pods)| Gang::new(&format!("gang-{at}"), pods).gpus(1))
        .collect()
}

fn size(gangs: &[Gang]) -> usize {
    gangs.iter().map(|gang| gang.pods).sum()
}

/// Everything is bound, no node is overcommitted, and no PodGroup has reported anything false.
async fn all_is_well(cluster: &Cluster, witness: &Witness, gangs: &[Gang]) -> Result<()> {
    cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == size(gangs)).await?;
    let story = witness.tells().await?;
    assert_eq!(story.crowded(8), Vec::<String>::new());
    assert_eq!(story.lies(), Vec::<String>::new());
    Ok(())
}

/// A replica that reaches the API server through a proxy.
async fn replica_behind(
    proxy: &Proxy,
    plane: &ControlPlane,
    name: &str,
    flags: &[&str],
) -> Result<Scheduler> {
    let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
    Scheduler::start(plane, name, &[&[&*way], flags].concat()).await
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_frozen_leader_is_replaced_and_writes_nothing_when_it_thaws() -> Result<()> {
    with_nodes(async |plane, cluster| {
        let witness = Witness::start(&cluster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
        let mut first = replica_behind(&proxy, plane, "first", &SHORT).await?;
        wait_for_holder(&cluster, "first").await?;
        let mut second = replica(plane, "second").await?;
        wait(PATIENCE, async || {
            let leads = first.metric("muster_leading", "").await.is_ok_and(|leads| leads == 1.0);
            if leads { Ok(()) } else { Err("the first does not report that it leads".to_owned()) }
        })
        .await?;
        let pages = [first.text("/readyz?verbose").await?, second.text("/readyz?verbose").await?];
        assert!(
            pages[0].contains("leading") && pages[1].contains("another replica leads"),
            "{pages:?}"
        );
        assert_eq!(second.metric("muster_leading", "").await?, 0.0);

        // Some binds of the first gang are on their way, the rest waits in the frozen process.
        let gangs = load();
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&gangs[0]).await?;
        struck(&hold, 20).await?;
        first.server.pause()?;
        for gang in &gangs[1..] {
            cluster.create_gang(gang).await?;
        }
        hold.lift();
        wait_for_holder(&cluster, "second").await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == size(&gangs)).await?;
        let writes = proxy.rule(Fault::Delay(Duration::ZERO), 100, |ask| ask.method != Method::GET);
        first.server.resume()?;
        assert_ne!(first.server.ended(PATIENCE).await?, 0, "losing the lease is an exit code");
        assert_eq!(writes.count(), 0, "{:?}", writes.struck());
        let log = log_of(plane, "first")?;
        assert!(log.contains("the lease was lost"), "{log}");
        all_is_well(&cluster, &witness, &gangs).await?;
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;
        second.replay()
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_leader_that_was_frozen_but_not_replaced_finishes_its_work() -> Result<()> {
    with_nodes(async |plane, cluster| {
        let witness = Witness::start(&cluster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 2)?;
        let mut only = replica_behind(&proxy, plane, "only", &SHORT).await?;
        let gangs = load();
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&gangs[0]).await?;
        struck(&hold, 20).await?;
        only.server.pause()?;
        for gang in &gangs[1..] {
            cluster.create_gang(gang).await?;
        }
        hold.lift();
        // Longer than it may write without renewing.
        tokio::time::sleep(Duration::from_secs(7)).await;
        only.server.resume()?;
        // It continues, or it ends and is restarted, as by a Deployment.
        let deadline = Instant::now() + PATIENCE;
        while bound(&cluster.pods("default").await?) < size(&gangs) {
            assert!(
                Instant::now() < deadline,
                "some pods are not bound: {}",
                only.server.log_end()
            );
            if !only.server.is_running() {
                only.server.start()?;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        all_is_well(&cluster, &witness, &gangs).await?;
        assert_eq!(only.server.stop().await?, 0, "SIGTERM ends it cleanly");
        only.replay()
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_leader_that_is_told_to_stop_finishes_its_binds_and_hands_over_at_once() -> Result<()> {
    with_nodes(async |plane, cluster| {
        let witness = Witness::start(&cluster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 3)?;
        // If the lease were not released, the other would wait longer than this test does.
        let long = ["--leader-elect-lease-duration=1000s", "--leader-elect-renew-deadline=60s"];
        let mut first = replica_behind(&proxy, plane, "first", &long).await?;
        wait_for_holder(&cluster, "first").await?;
        let mut second = Scheduler::start(plane, "second", &long).await?;
        let gangs = load();
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&gangs[0]).await?;
        struck(&hold, 20).await?;
        first.server.signal(Signal::TERM)?;
        wait(PATIENCE, async || {
            let log = log_of(plane, "first").map_err(|error| error.to_string())?;
            if log.contains("stopping") { Ok(()) } else { Err(log) }
        })
        .await?;
        hold.lift();
        assert_eq!(first.server.ended(PATIENCE).await?, 0, "SIGTERM ends it cleanly");
        assert!(log_of(plane, "first")?.contains("the lease is released"));
        let release = version(&cluster, LEASE).await?;
        let story = witness.tells().await?;
        assert_eq!(story.bound_before("gang-0", release), 120, "what was decided is done");
        for gang in &gangs[1..] {
            cluster.create_gang(gang).await?;
        }
        wait_for_holder(&cluster, "second").await?;
        all_is_well(&cluster, &witness, &gangs).await?;
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;
        second.replay()
    })
}

/// Pods that a gang of the same size preempts.
const PREEMPTED: usize = 400;

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_leader_that_is_told_to_stop_hands_over_before_its_events_are_written() -> Result<()> {
    let options = Options { kwok: true, ..Options::default() };
    bed::test(options, async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        for (name, value) in [("low", 1), ("high", 10)] {
            cluster.create_priority(name, value).await?;
        }
        let node = Nodes::new(1).gpus(PREEMPTED + 1).capacity("pods", 2 * PREEMPTED);
        let node = node.capacity("cpu", 2 * PREEMPTED).capacity("memory", "1Ti");
        cluster.create_nodes(&node).await?;
        let config = plane.folder().join("scheduler.conf");
        std::fs::write(&config, bed::PREEMPTING)?;
        let flags = [
            &*format!("--config={}", config.display()),
            "--leader-elect-lease-duration=1000s",
            "--leader-elect-renew-deadline=60s",
            "--leader-elect-retry-period=500ms",
        ];
        let mut first = Scheduler::start(plane, "first", &flags).await?;
        wait_for_holder(&cluster, "first").await?;
        let mut second = Scheduler::start(plane, "second", &flags).await?;
        // One more that must stay.
        let size = PREEMPTED + 1;
        cluster.create_gang(&Gang::new("slack", size).min(1).gpus(1).class("low")).await?;
        runs(&cluster, "slack", size).await?;
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&Gang::new("urgent", PREEMPTED).gpus(1).class("high")).await?;
        wait(PATIENCE, async || {
            let leave = witness.names(|life| life.leaves.is_some()).len();
            if leave > 0 { Ok(()) } else { Err("no pod leaves".to_owned()) }
        })
        .await?;
        let decided = first.metric("muster_evictions_total", "").await?;
        let begin = Instant::now();
        first.server.signal(Signal::TERM)?;
        wait_for_holder(&cluster, "second").await?;
        let handed_over = begin.elapsed();
        assert_eq!(first.server.ended(PATIENCE).await?, 0, "SIGTERM ends it cleanly");
        // Writing the events would take 8 s.
        assert!(handed_over < Duration::from_secs(6), "{handed_over:?}");
        // Those under way at the end count as dropped, and may have been written all the same.
        let (written, dropped) = (evict_events(&cluster).await?, dropped_events(plane)?);
        assert!((written + dropped) as f64 >= decided, "{written} written, {dropped} dropped");
        group(&cluster, "urgent", is_scheduled).await?;
        let minimum = |gang: &str| if gang == "urgent" { PREEMPTED } else { 1 };
        assert_eq!(witness.tells().await?.split(minimum), Vec::<String>::new());
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;
        second.replay()
    })
}

/// How many evictions the first replica has reported.
async fn evict_events(cluster: &Cluster) -> Result<usize> {
    let events: Value = cluster.get("/apis/events.k8s.io/v1/namespaces/default/events").await?;
    let events = events["items"].as_array().map_or(&[][..], Vec::as_slice);
    let is_ours =
        |event: &&Value| event["reason"] == "Evict" && event["reportingInstance"] == "first";
    Ok(events.iter().filter(is_ours).count())
}

/// How many events the first replica says that it has dropped.
fn dropped_events(plane: &ControlPlane) -> Result<usize> {
    let log = log_of(plane, "first")?;
    let line = log.lines().find(|line| line.contains("there was no time to write all events"));
    let Some(line) = line else { return Ok(0) };
    let dropped = line.split_whitespace().find_map(|word| word.strip_prefix("dropped="));
    Ok(dropped.ok_or("it does not say how many")?.parse()?)
}

/// The current version of an object.
async fn version(cluster: &Cluster, path: &str) -> Result<u64> {
    let object: Value = cluster.get(path).await?;
    Ok(object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_leader_that_cannot_reach_the_api_server_stops_by_itself() -> Result<()> {
    with_nodes(async |plane, cluster| {
        let witness = Witness::start(&cluster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 4)?;
        let mut first = replica_behind(&proxy, plane, "first", &SHORT).await?;
        wait_for_holder(&cluster, "first").await?;
        let mut second = replica(plane, "second").await?;
        let gangs = load();
        cluster.create_gang(&gangs[0]).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) >= 20).await?;
        let silence = proxy.rule(Fault::Hang { forwarded: false }, 100, Ask::is_any);
        let begin = Instant::now();
        for gang in &gangs[1..] {
            cluster.create_gang(gang).await?;
        }
        assert_ne!(first.server.ended(PATIENCE).await?, 0, "it has lost the lease");
        assert!(silence.count() > 0);
        // The deadline, a retry, and as much again for a busy machine.
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
        assert!(log_of(plane, "first")?.contains("the lease was lost"));
        wait_for_holder(&cluster, "second").await?;
        all_is_well(&cluster, &witness, &gangs).await?;
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;
        second.replay()
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_replica_with_lost_requests_still_takes_over() -> Result<()> {
    with_nodes(async |plane, cluster| {
        let proxy = Proxy::start(&plane.kubeconfig(), 5)?;
        let mut first = replica(plane, "first").await?;
        wait_for_holder(&cluster, "first").await?;
        let mut second = replica_behind(&proxy, plane, "second", &SHORT).await?;
        // The network swallows its requests for the lease for a while.
        let silence = proxy.rule(Fault::Hang { forwarded: false }, 100, Ask::is_lease);
        struck(&silence, 1).await?;
        silence.lift();
        first.server.kill().await?;
        wait_for_holder(&cluster, "second").await?;
        let gang = Gang::new("ring", 8).gpus(8);
        cluster.create_gang(&gang).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 8).await?;
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;
        second.replay()
    })
}
