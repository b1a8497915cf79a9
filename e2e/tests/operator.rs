//! What an operator does: install, configure, investigate.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use muster_api::core::Pod;
use muster_e2e::checks::{
    PATIENCE, bound, group, is_scheduled, is_silent, is_unschedulable, log_of, remove, remove_pod,
};
use muster_e2e::cluster::{Definitions, code, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::proxy::{Ask, Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::{Value, json};

const WHOLE: &str = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: gang
  - name: predicates
";

const TAKING: &str = "actions: \"enqueue, allocate, backfill, preempt\"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
";

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_bad_configuration_is_rejected_and_the_old_one_stays() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let file = plane.folder().join("scheduler.conf");
        fs::write(&file, WHOLE)?;
        let flags = [&*format!("--config={}", file.display()), "--log-format=json"];
        let mut scheduler = Scheduler::start(plane, "muster", &flags).await?;
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;

        fs::write(&file, WHOLE.replace("gang", "gagn"))?;
        wait(PATIENCE, async || {
            let refused = scheduler.metric("muster_refused_configurations_total", "").await;
            if refused.is_ok_and(|count| count == 1.0) {
                Ok(())
            } else {
                Err("not refused".to_owned())
            }
        })
        .await?;
        let note = wait(PATIENCE, async || {
            let events: Value = cluster.get(EVENTS).await.map_err(|error| error.to_string())?;
            let events = events["items"].as_array().map_or(&[][..], Vec::as_slice);
            let refusal = events.iter().find(|event| event["reason"] == "ConfigurationRefused");
            refusal
                .map(|event| event["note"].to_string())
                .ok_or_else(|| format!("{} events", events.len()))
        })
        .await?;
        assert!(note.contains("gagn") && note.contains("scheduler.conf"), "{note}");
        cluster.create_gang(&Gang::new("ring", 2).gpus(2)).await?;
        cluster.create_gang(&Gang::new("large", 8).gpus(1)).await?;
        group(&cluster, "ring", is_scheduled).await?;
        group(&cluster, "large", is_unschedulable).await?;
        assert_eq!(
            bound(&cluster.pods("default").await?),
            2,
            "the old one stays in use: gangs are whole"
        );

        // Without the plugin, pods of a gang start as they fit.
        fs::write(&file, WHOLE.replace("  - name: gang\n", ""))?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 6).await?;

        assert!(!log_of(plane, "muster")?.contains("DEBUG"));
        assert_eq!(scheduler.put("/debug/log-level", "debug").await?, "debug\n");
        assert_eq!(code(&scheduler.put("/debug/log-level", "loud").await), Some(400));
        assert_eq!(scheduler.text("/debug/log-level").await?, "debug\n");
        remove(&cluster, &Gang::new("ring", 2)).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 8).await?;
        let log = log_of(plane, "muster")?;
        let lines: std::result::Result<Vec<Value>, _> =
            log.lines().map(serde_json::from_str).collect();
        let debug: Vec<Value> =
            lines?.into_iter().filter(|line| line["level"] == "DEBUG").collect();
        let binds = |line: &&Value| line["message"] == "binding" && line["gang"] == "default/large";
        let bind = debug.iter().find(binds).ok_or_else(|| format!("no bind in the log:\n{log}"))?;
        assert!(bind["pod"].is_string() && bind["node"] == "node-0", "{bind}");
        assert!(bind["cause"].is_string(), "{bind}");
        let of_libraries = |line: &&Value| !line["target"].to_string().contains("muster");
        assert_eq!(debug.iter().find(of_libraries), None, "requests do not drown decisions");
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}

const EVENTS: &str = "/apis/events.k8s.io/v1/events";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:muster-system:muster";

/// Installs `deploy/muster.yaml` and returns a kubeconfig of the service account in it.
fn install(plane: &ControlPlane) -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/muster.yaml");
    let mut command = Command::new(plane.kubectl());
    command.arg("--kubeconfig").arg(plane.kubeconfig()).args(["apply", "-f"]).arg(manifest);
    let output = command.output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut config: Value = serde_json::from_str(&fs::read_to_string(plane.kubeconfig())?)?;
    config["users"][0]["user"]["as"] = json!(SERVICE_ACCOUNT);
    config["users"][0]["user"]["as-groups"] =
        json!(["system:serviceaccounts", "system:authenticated"]);
    let file = plane.folder().join("service-account.kubeconfig");
    fs::write(&file, config.to_string())?;
    Ok(file)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_rights_in_the_manifest_are_enough() -> Result<()> {
    rights_are_enough(Definitions::Muster)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_rights_in_the_manifest_are_enough_beside_volcano() -> Result<()> {
    rights_are_enough(Definitions::Volcano)
}

fn rights_are_enough(definitions: Definitions) -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(definitions).await?;
        let proxy = Proxy::start(&install(plane)?, 2)?;
        let config = plane.folder().join("scheduler.conf");
        let map: Value = cluster.get("/api/v1/namespaces/muster-system/configmaps/muster").await?;
        fs::write(
            &config,
            map["data"]["scheduler.conf"].as_str().ok_or("it has a configuration")?,
        )?;
        let flags = [
            &*format!("--kubeconfig={}", proxy.kubeconfig().display()),
            &format!("--config={}", config.display()),
            "--leader-elect-namespace=muster-system",
        ];
        let may_evict = Command::new(plane.kubectl())
            .arg("--kubeconfig")
            .arg(install(plane)?)
            .args(["auth", "can-i", "create", "pods", "--subresource=eviction", "--all-namespaces"])
            .status()?;
        assert!(may_evict.success(), "it may evict");
        let mut first = Scheduler::start(plane, "first", &flags).await?;
        let mut second = Scheduler::start(plane, "second", &flags).await?;
        cluster.create_nodes(&Nodes::new(10).gpus(8)).await?;
        proxy.rule(Fault::Refuse(409), 20, Ask::is_bind);
        proxy.rule(Fault::Swallow, 20, Ask::is_bind);
        cluster.create_gang(&Gang::new("ring", 40).gpus(1)).await?;
        let mut lone = Gang::new("lone", 1).gpus(1).pod(0);
        lone["metadata"]["annotations"] = json!({});
        cluster.create(&pods("default"), &lone).await?;
        group(&cluster, "ring", is_scheduled).await?;
        cluster.create_gang(&Gang::new("large", 60).gpus(1)).await?;
        group(&cluster, "large", is_unschedulable).await?;
        fs::write(&config, "actions: nothing")?;
        wait(PATIENCE, async || {
            let events: Value = cluster.get(EVENTS).await.map_err(|error| error.to_string())?;
            let refused = events.to_string().contains("ConfigurationRefused");
            if refused { Ok(()) } else { Err(events.to_string()) }
        })
        .await?;
        assert_eq!(first.server.stop().await?, 0, "SIGTERM ends it cleanly");
        cluster.create_gang(&Gang::new("next", 10).gpus(1)).await?;
        group(&cluster, "next", is_scheduled).await?;
        // A pod of higher priority evicts another.
        fs::write(&config, TAKING)?;
        cluster.create_priority("high", 10).await?;
        let urgent = Gang::new("urgent", 30).gpus(1).pod_spec("priorityClassName", json!("high"));
        cluster.create_gang(&urgent).await?;
        let leaves =
            |pods: &[Pod]| pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
        cluster.wait_for_pods("default", PATIENCE, leaves).await?;
        remove_pod(&cluster, "lone-0").await?;
        group(&cluster, "urgent", is_scheduled).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| pods.iter().all(is_silent)).await?;
        assert!(second.metric("muster_writes_total", "kind=\"nomination\"").await? >= 30.0);
        assert_eq!(second.metric("muster_write_errors_total", "cause=\"refused\"").await?, 0.0);
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        for name in ["first", "second"] {
            let log = log_of(plane, name)?.to_lowercase();
            assert!(!log.contains("forbidden") && !log.contains("(403)"), "{log}");
        }
        first.replay()?;
        second.replay()
    })
}
