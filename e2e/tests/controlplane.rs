//! The test bed itself: what other tests rely on.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use muster_e2e::Result;
use muster_e2e::bed;
use muster_e2e::cluster::{code, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::guard::Server;
use muster_e2e::workload::{Gang, Nodes};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

fn with_kwok() -> Options {
    Options { kwok: true, ..Options::default() }
}

/// Whether a process is alive rather than a zombie.
fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

/// The processes below one, all the way down.
fn descendants(of: i32) -> Vec<i32> {
    let children =
        std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    children.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_bound_pod_runs_and_ends_and_a_deleted_pod_disappears() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        cluster.create_pods(&Gang::new("lone", 2).gpus(1)).await?;
        let short = Gang::new("short", 1).runs_for("100ms");
        cluster.create_pods(&short).await?;
        for (pod, node) in [("lone-0", "node-2"), ("lone-1", "node-2"), ("short-0", "node-0")] {
            cluster.bind("default", pod, node).await?;
        }
        let again = cluster.bind("default", "lone-0", "node-1").await;
        assert_eq!(code(&again), Some(409), "a pod is bound once");

        let phases = |wanted: &'static [(&str, &str)]| {
            move |pods: &[muster_api::core::Pod]| {
                pods.iter()
                    .map(|pod| (&*pod.metadata.name, &*pod.status.phase))
                    .eq(wanted.iter().copied())
            }
        };
        let wanted =
            phases(&[("lone-0", "Running"), ("lone-1", "Running"), ("short-0", "Succeeded")]);
        cluster.wait_for_pods("default", PATIENCE, wanted).await?;
        cluster.delete(&format!("{}/lone-0", pods("default"))).await?;
        let wanted = phases(&[("lone-1", "Running"), ("short-0", "Succeeded")]);
        cluster.wait_for_pods("default", PATIENCE, wanted).await?;
        cluster.delete(&pods("default")).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| pods.is_empty()).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_restarted_api_server_keeps_objects_and_rejects_old_watches() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1)).await?;
        let before: Value = cluster.get("/api/v1/pods").await?;
        let before =
            before["metadata"]["resourceVersion"].as_str().ok_or("a list has a version")?;
        cluster.create_pods(&Gang::new("lone", 5)).await?;
        plane.compact().await?;
        plane.restart_api_server().await?;

        // A client's open connections may break once.
        let pods = cluster.wait_for_pods("default", PATIENCE, |pods| pods.len() == 5).await?;
        assert_eq!(pods[4].metadata.name, "lone-4");
        let path = format!("/api/v1/pods?watch=true&timeoutSeconds=5&resourceVersion={before}");
        let watch = cluster.text(&path).await;
        let refused =
            code(&watch) == Some(410) || watch.is_ok_and(|events| events.contains("\"code\":410"));
        assert!(refused, "a watch from before must be refused");

        plane.api_server.kill().await?;
        plane.start_api_server().await?;
        wait(PATIENCE, async || {
            cluster.bind("default", "lone-0", "node-0").await.map_err(|error| error.to_string())
        })
        .await?;
        let runs =
            |pods: &[muster_api::core::Pod]| pods.iter().any(|pod| pod.status.phase == "Running");
        cluster.wait_for_pods("default", PATIENCE, runs).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_frozen_api_server_does_not_answer_until_it_is_thawed() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        plane.api_server.pause()?;
        // The signal takes a moment to reach all of its threads.
        wait(PATIENCE, async || {
            let answer =
                tokio::time::timeout(Duration::from_secs(1), cluster.text("/readyz")).await;
            if matches!(answer, Ok(Ok(_))) { Err("it answers".to_owned()) } else { Ok(()) }
        })
        .await?;
        plane.api_server.resume()?;
        wait(PATIENCE, async || cluster.text("/readyz").await.map_err(|error| error.to_string()))
            .await?;
        plane.etcd.stop().await?;
        assert!(plane.check().is_ok(), "a server that was stopped has not ended by itself");
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn kubernetes_own_scheduler_binds_pods_that_are_not_ours() -> Result<()> {
    bed::test(Options { kube_scheduler: true, ..with_kwok() }, async |plane| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2)).await?;
        cluster.create_pods(&Gang::new("plain", 10).scheduler("default-scheduler")).await?;
        let run =
            |pods: &[muster_api::core::Pod]| pods.iter().all(|pod| pod.status.phase == "Running");
        cluster.wait_for_pods("default", PATIENCE, run).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn dropping_a_control_plane_leaves_nothing_behind() -> Result<()> {
    let mut left = (Vec::new(), Vec::new());
    let there = bed::test(Options { kube_scheduler: true, ..with_kwok() }, async |plane| {
        let servers = [
            Some(&plane.etcd),
            Some(&plane.api_server),
            plane.kwok.as_ref(),
            plane.kube_scheduler.as_ref(),
        ];
        left.0 = servers.into_iter().flatten().filter_map(Server::pid).collect();
        left.1 = vec![plane.folder().to_owned()];
        assert!(left.0.len() == 4 && left.0.iter().all(|&pid| lives(pid)), "all servers run");
        Ok(())
    });
    there?;
    assert_eq!(left.0.iter().filter(|&&pid| lives(pid)).count(), 0);
    assert_eq!(left.1.iter().filter(|folder| folder.exists()).count(), 0);
    Ok(())
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_start_that_fails_says_why_and_leaves_nothing_behind() -> Result<()> {
    let _place = bed::place()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let options = Options {
        folder: Some(folder.path().to_owned()),
        api_server_flags: vec!["--no-such-flag".to_owned()],
        ..Options::default()
    };
    let failure =
        runtime.block_on(ControlPlane::start(options)).err().map(|error| error.to_string());
    let failure = failure.ok_or("it started")?;
    assert!(failure.contains("unknown flag: --no-such-flag"), "{failure}");
    let below: Vec<i32> = descendants(std::process::id() as i32);
    let path = folder.path().to_string_lossy().into_owned();
    let ours = |pid: &&i32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains(&path) && lives(**pid)
    };
    assert_eq!(below.iter().filter(ours).count(), 0);
    Ok(())
}

/// Starts the developer's command, ends it by a signal once it is up, and returns what it left
/// behind.
fn left_after(signal: Signal) -> Result<(Vec<i32>, bool)> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster-e2e"));
    command.args(["cluster", "--nodes", "3", "--dir"]).arg(folder.path());
    let mut harness = command.stdout(Stdio::piped()).spawn()?;
    // Held to the end: a command whose output is no longer read ends by itself.
    let mut lines = BufReader::new(harness.stdout.take().ok_or("no output")?)
        .lines()
        .map_while(|line| line.ok());
    let up = lines.any(|line| line.contains("export KUBECONFIG="));
    let below = descendants(harness.id() as i32);
    kill_process(Pid::from_child(&harness), signal)?;
    let status = harness.wait()?;
    assert!(up && below.len() == 6, "three servers and their guards: {below:?}");
    // After a kill, the guards clean up; they take no longer than a server may take to end.
    let deadline = std::time::Instant::now() + PATIENCE;
    while below.iter().any(|&pid| lives(pid)) && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!Path::new("/proc").join(harness.id().to_string()).exists(), "the harness has ended");
    Ok((below.into_iter().filter(|&pid| lives(pid)).collect(), status.success()))
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_developers_cluster_leaves_nothing_behind_however_it_ends() -> Result<()> {
    let _place = bed::place()?;
    for (signal, success) in [(Signal::INT, true), (Signal::TERM, true), (Signal::KILL, false)] {
        assert_eq!(left_after(signal)?, (vec![], success), "{signal:?}");
    }
    Ok(())
}
