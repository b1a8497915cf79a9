//! Gangs, queues and their statuses on a real API server.

use std::process::Command;

use muster_api::core::Pod;
use muster_e2e::bed;
use muster_e2e::checks::{PATIENCE, bound, group, is_unschedulable};
use muster_e2e::cluster::{Definitions, QUEUES, podgroups, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Failure, Result};
use serde_json::{Value, json};

fn with_kwok() -> Options {
    Options { kwok: true, ..Options::default() }
}

/// A control plane with our definitions and a scheduler, whose journal must replay at the end.
fn scheduled(
    body: impl AsyncFnOnce(&mut ControlPlane, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    scheduled_with(Definitions::Muster, &[], body)
}

fn scheduled_with(
    definitions: Definitions,
    flags: &[&str],
    body: impl AsyncFnOnce(&mut ControlPlane, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        plane.cluster().install_crds(definitions).await?;
        let mut scheduler = Scheduler::start(plane, "muster", flags).await?;
        body(plane, &mut scheduler).await?;
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}

fn all_run(count: usize) -> impl Fn(&[Pod]) -> bool {
    move |pods| pods.len() == count && pods.iter().all(|pod| pod.status.phase == "Running")
}

/// The condition PodScheduled of each pod that has one, as (status, reason).
fn marks(pods: &[Pod]) -> Vec<(String, String)> {
    let scheduled = |pod: &Pod| {
        let condition =
            pod.status.conditions.iter().find(|condition| condition.kind == "PodScheduled")?;
        Some((condition.status.clone(), condition.reason.clone()))
    };
    pods.iter().filter_map(scheduled).collect()
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_gang_binds_all_or_nothing_and_says_why() -> Result<()> {
    scheduled(async |plane, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        cluster.create_gang(&Gang::new("large", 4).gpus(8)).await?;
        let waits = group(&cluster, "large", is_unschedulable).await?;
        let condition = &waits["status"]["conditions"][0];
        assert_eq!(condition["reason"], "NotEnoughResources");
        assert!(
            condition["message"].as_str().unwrap_or_default().contains("nvidia.com/gpu"),
            "{condition}"
        );
        // Every pod of the gang has the condition, with the reason that cluster autoscalers look
        // for.
        let marked =
            |pods: &[Pod]| marks(pods) == vec![("False".to_owned(), "Unschedulable".to_owned()); 4];
        let pods_now = cluster.wait_for_pods("default", PATIENCE, marked).await?;
        assert_eq!(bound(&pods_now), 0, "a gang that does not fit uses nothing");
        let facts = scheduler.explain("default", "large").await?;
        assert!(facts.to_string().contains("nvidia.com/gpu"), "{facts}");

        cluster.create_nodes(&Nodes::new(1).prefix("late").gpus(8)).await?;
        cluster.wait_for_pods("default", PATIENCE, all_run(4)).await?;
        let runs = group(&cluster, "large", |status| status["running"] == 4).await?;
        assert_eq!(runs["status"]["phase"], "Running");
        assert_eq!(runs["status"]["conditions"][0]["type"], "Scheduled");
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_minimum_starts_with_its_roles_before_the_elastic_rest() -> Result<()> {
    scheduled(async |plane, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2).gpus(8)).await?;
        // Five of eight fit; two are enough.
        cluster.create_gang(&Gang::new("elastic", 8).min(2).gpus(3)).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 4).await?;
        let status = group(&cluster, "elastic", |status| status["phase"] == "Running").await?;
        assert_eq!(status["spec"]["minMember"], 2);

        // The role `server` has one pod and needs two: nothing of the gang starts until the second
        // is created.
        let servers = Gang::new("server", 1).group("ring").label("volcano.sh/task-spec", "server");
        let workers = Gang::new("worker", 2).group("ring").label("volcano.sh/task-spec", "worker");
        let ring =
            Gang::new("ring", 0).min(4).spec("minTaskMember", json!({ "server": 2, "worker": 2 }));
        cluster.create(&podgroups("default"), &ring.podgroup()).await?;
        cluster.create_pods(&servers).await?;
        cluster.create_pods(&workers).await?;
        group(&cluster, "ring", is_unschedulable).await?;
        assert_eq!(bound(&cluster.pods("default").await?), 4);
        let second = Gang::new("server-b", 1).group("ring").label("volcano.sh/task-spec", "server");
        cluster.create_pods(&second).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 8).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn two_queues_share_and_report_their_use() -> Result<()> {
    scheduled(async |plane, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(4).gpus(8)).await?;
        for (queue, most) in [("left", 8), ("right", 24)] {
            cluster
                .create_queue(queue, json!({ "capability": { "nvidia.com/gpu": most } }))
                .await?;
        }
        for queue in ["left", "right"] {
            for index in 0..4 {
                let gang = Gang::new(&format!("{queue}-{index}"), 2).gpus(4).queue(queue);
                cluster.create_gang(&gang).await?;
            }
        }
        let used = |pods: &[Pod], queue: &str| {
            pods.iter()
                .filter(|pod| pod.metadata.name.starts_with(queue) && pod.spec.node_name.is_some())
                .count()
        };
        cluster
            .wait_for_pods("default", PATIENCE, |pods| {
                used(pods, "left") == 2 && used(pods, "right") == 6
            })
            .await?;
        let path = format!("{QUEUES}/left");
        let left = wait(PATIENCE, async || {
            let left: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
            let said = left["status"]["allocated"]["nvidia.com/gpu"] == "8"
                && left["status"]["running"] == 1;
            if said { Ok(left) } else { Err(left["status"].to_string()) }
        })
        .await?;
        assert_eq!(left["status"]["state"], "Open");
        let waits = group(&cluster, "left-3", is_unschedulable).await?;
        let reason =
            waits["status"]["conditions"][0]["reason"].as_str().unwrap_or_default().to_owned();
        assert_eq!(reason, "QueueQuotaReached");
        // A new node would not help these pods, so cluster autoscalers get no signal.
        let pods_now =
            cluster.wait_for_pods("default", PATIENCE, |pods| marks(pods).len() == 16).await?;
        assert!(
            marks(&pods_now).iter().all(|(_, reason)| reason != "Unschedulable"),
            "{:?}",
            marks(&pods_now)
        );
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_podgroup_may_come_after_its_pods_and_a_plain_pod_needs_none() -> Result<()> {
    scheduled(async |plane, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2).gpus(8)).await?;
        let late = Gang::new("late", 3).gpus(2);
        cluster.create_pods(&late).await?;
        cluster.create(&pods("default"), &json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "plain" },
            "spec": { "schedulerName": "muster", "containers": [{ "name": "main", "image": "none" }] },
        })).await?;
        let plain = |pods: &[Pod]| {
            pods.iter().any(|pod| pod.metadata.name == "plain" && pod.spec.node_name.is_some())
        };
        let pods_now = cluster.wait_for_pods("default", PATIENCE, plain).await?;
        assert_eq!(bound(&pods_now), 1, "the others wait for their PodGroup");
        cluster.create(&podgroups("default"), &late.podgroup()).await?;
        cluster.wait_for_pods("default", PATIENCE, all_run(4)).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_cluster_with_volcanos_definitions_works_the_same() -> Result<()> {
    scheduled_with(Definitions::Volcano, &[], async |plane, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&Gang::new("ring", 2).gpus(4)).await?;
        group(&cluster, "ring", |status| status["phase"] == "Running" && status["running"] == 2)
            .await?;
        cluster.create_gang(&Gang::new("rest", 2).gpus(4)).await?;
        group(&cluster, "rest", is_unschedulable).await?;
        assert_eq!(scheduler.metric("muster_write_errors_total", "podgroup_status").await?, 0.0);
        // Volcano's API server accepts an empty PodGroup.
        cluster.create_nodes(&Nodes::new(1).prefix("late").gpus(4)).await?;
        let bare = Gang::new("bare", 1).gpus(4);
        let mut said = bare.podgroup();
        said.as_object_mut().ok_or("an object")?.remove("spec");
        cluster.create(&podgroups("default"), &said).await?;
        cluster.create_pods(&bare).await?;
        group(&cluster, "bare", |status| status["running"] == 1).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn pods_of_other_schedulers_are_ours_only_if_configured() -> Result<()> {
    let flags = ["--scheduler-name=one", "--scheduler-name=two"];
    scheduled_with(Definitions::Muster, &flags, async |plane, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        for (name, scheduler) in [("a", "one"), ("b", "two"), ("c", "volcano")] {
            cluster.create_gang(&Gang::new(name, 1).gpus(1).scheduler(scheduler)).await?;
        }
        let pods_now = cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 2).await?;
        let foreign =
            pods_now.iter().find(|pod| pod.metadata.name == "c-0").ok_or("c-0 is there")?;
        assert_eq!(foreign.spec.node_name, None);
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn kubectl_shows_useful_columns() -> Result<()> {
    scheduled(async |plane, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&Gang::new("ring", 2).gpus(4)).await?;
        group(&cluster, "ring", |status| status["running"] == 2).await?;
        let policy = json!([{"name": "pair", "subGroupSize": 2}]);
        cluster.create_gang(&Gang::new("rest", 2).gpus(4).spec("subGroupPolicy", policy)).await?;
        group(&cluster, "rest", is_unschedulable).await?;
        let kubectl = async |arguments: &[&str]| -> Result<String> {
            let mut command = Command::new(plane.kubectl());
            let output =
                command.arg("--kubeconfig").arg(plane.kubeconfig()).args(arguments).output()?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let table = kubectl(&["get", "pg,queue", "--no-headers"]).await?;
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        let row = |name: &str| {
            rows.iter().find(|row| row.first().is_some_and(|found| found.ends_with(name)))
        };
        assert_eq!(row("/ring").map(|row| &row[1..4]), Some(&["Running", "2", "2"][..]), "{table}");
        assert_eq!(row("/rest").map(|row| &row[1..4]), Some(&["Inqueue", "2", "0"][..]), "{table}");
        assert!(row("/default").is_some_and(|row| row.contains(&"Open")), "{table}");

        let described = wait(PATIENCE, async || {
            let text = kubectl(&["describe", "pg", "rest"])
                .await
                .map_err(|error: Failure| error.to_string())?;
            if text.contains("FailedScheduling") && text.contains("Remark") {
                Ok(text)
            } else {
                Err(text)
            }
        })
        .await?;
        assert!(described.contains("short of nvidia.com/gpu"), "{described}");
        assert!(described.contains("subGroupPolicy pair has no matchLabelKeys"), "{described}");
        let pod = kubectl(&["describe", "pod", "rest-0"]).await?;
        assert!(pod.contains("PodScheduled") && pod.contains("False"), "{pod}");
        Ok(())
    })
}
