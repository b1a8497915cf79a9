//! The scheduler among rivals, on a bad network, and with an API server that comes and goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::future::{join, try_join};
use muster_api::core::Pod;
use muster_e2e::cluster::{Cluster, Definitions, code, podgroups, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::proxy::{Ask, Fault, Proxy, Rule};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(180);

/// A control plane with our definitions, a proxy, and a scheduler behind it whose journal must replay in the end.
fn behind_a_proxy(
    options: Options,
    body: impl AsyncFnOnce(&mut ControlPlane, &Proxy, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    bed::test(options, async |plane| {
        plane.cluster().install_crds(Definitions::Muster).await?;
        let proxy = Proxy::start(&plane.kubeconfig(), 1)?;
        let way = format!("--kubeconfig={}", proxy.kubeconfig().display());
        let mut scheduler = Scheduler::start(plane, "muster", &[&way]).await?;
        body(plane, &proxy, &mut scheduler).await?;
        proxy.calm();
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM is a clean end");
        scheduler.replay()
    })
}

fn with_kwok() -> Options {
    Options { kwok: true, ..Options::default() }
}

fn bound(pods: &[Pod]) -> usize {
    pods.iter().filter(|pod| pod.spec.node_name.is_some()).count()
}

/// Waits for something in the status of a PodGroup.
async fn group(cluster: &Cluster, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let path = format!("{}/{name}", podgroups("default"));
    wait(PATIENCE, async || {
        let group: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        if wanted(&group["status"]) { Ok(group) } else { Err(format!("{name}: {}", group["status"])) }
    })
    .await
}

fn is_unschedulable(status: &Value) -> bool {
    status["conditions"][0]["type"] == "Unschedulable"
}

fn is_scheduled(status: &Value) -> bool {
    status["conditions"][0]["type"] == "Scheduled" && status["phase"] == "Running"
}

/// Waits until a PodGroup says what is so of a gang that runs as a whole.
async fn runs(cluster: &Cluster, gang: &Gang) -> Result<()> {
    let all = |status: &Value| is_scheduled(status) && status["running"] == gang.pods;
    group(cluster, &gang.group, all).await.map(drop)
}

#[test]
fn in_a_storm_of_refusals_everything_is_bound_once_and_nobody_is_told_a_lie() -> Result<()> {
    behind_a_proxy(with_kwok(), async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        let witness = Witness::start(&cluster).await?;
        cluster.create_nodes(&Nodes::new(40).gpus(8)).await?;
        let whirl = [
            proxy.rule(Fault::Refuse(409), 15, Ask::is_bind),
            proxy.rule(Fault::Refuse(429), 10, Ask::is_bind),
            proxy.rule(Fault::Refuse(500), 5, Ask::is_bind),
            proxy.rule(Fault::Swallow, 20, Ask::is_bind),
            proxy.rule(Fault::Lose, 10, Ask::is_bind),
            proxy.rule(Fault::Hang { forwarded: true }, 2, Ask::is_bind),
            proxy.rule(Fault::Refuse(409), 30, Ask::is_status),
            proxy.rule(Fault::Refuse(429), 15, Ask::is_status),
            proxy.rule(Fault::Swallow, 15, Ask::is_status),
        ];
        let sizes = [40, 30, 20, 20, 20, 20, 20, 20, 10, 10, 10, 10, 10, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5];
        let gangs: Vec<Gang> = sizes
            .iter()
            .enumerate()
            .map(|(at, &pods)| Gang::new(&format!("gang-{at}"), pods).gpus(1))
            .collect();
        let pods: usize = sizes.iter().sum();
        // What is left over does not hold it.
        let large = Gang::new("large", 40).gpus(1);
        for gang in gangs.iter().chain([&large]) {
            cluster.create_gang(gang).await?;
        }
        cluster.wait_for_pods("default", PATIENCE, |now| bound(now) == pods).await?;
        for rule in &whirl {
            assert!(rule.count() > 0, "every fault was met");
        }
        for gang in &gangs {
            runs(&cluster, gang).await?;
        }
        group(&cluster, "large", is_unschedulable).await?;
        let story = witness.tells().await?;
        assert_eq!(story.lies(), Vec::<String>::new());
        assert_eq!(story.crowded(8), Vec::<String>::new());
        assert_eq!(story.bound_before("large", u64::MAX), 0);
        for cause in ["conflict", "too_many_requests", "server", "unknown"] {
            let labels = format!("kind=\"bind\",cause=\"{cause}\"");
            assert!(scheduler.metric("muster_write_errors_total", &labels).await? > 0.0, "{labels}");
        }
        Ok(())
    })
}

/// Removes a gang's pods at once, as a kubelet would after a while, and its PodGroup.
async fn remove(cluster: &Cluster, gang: &Gang) -> Result<()> {
    for index in 0..gang.pods {
        cluster.delete(&format!("{}/{}-{index}?gracePeriodSeconds=0", pods("default"), gang.name)).await?;
    }
    Ok(cluster.delete(&format!("{}/{}", podgroups("default"), gang.group)).await?)
}

/// Where the proxy holds the binds of a gang: once all of them are there, as (pod, node), by pod.
async fn held(rule: &Rule, count: usize) -> Result<Vec<(String, String)>> {
    wait(PATIENCE, async || {
        let mut binds: Vec<(String, String)> = rule.struck().iter().filter_map(Ask::binds).collect();
        binds.sort();
        if binds.len() == count {
            Ok(binds)
        } else {
            Err(format!("{} of {count} binds are held", binds.len()))
        }
    })
    .await
}

fn free_node(binds: &[(String, String)], nodes: usize) -> Option<String> {
    let names = (0..nodes).map(|index| format!("node-{index}"));
    names.into_iter().find(|name| binds.iter().all(|(_, node)| node != name))
}

#[test]
fn a_rival_that_is_faster_is_understood() -> Result<()> {
    behind_a_proxy(Options::default(), async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(4).gpus(8)).await?;
        let all_bound = |count: usize| move |pods: &[Pod]| pods.len() == count && bound(pods) == count;

        // A pod is bound elsewhere: what was kept for it is free again.
        let ring = Gang::new("ring", 2).gpus(8);
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&ring).await?;
        let binds = held(&hold, 2).await?;
        let elsewhere = free_node(&binds, 4).ok_or("two of four nodes are free")?;
        cluster.bind("default", "ring-0", &elsewhere).await?;
        hold.lift();
        let now = cluster.wait_for_pods("default", PATIENCE, all_bound(2)).await?;
        assert_eq!(now[0].spec.node_name.as_ref(), Some(&elsewhere));
        group(&cluster, "ring", is_scheduled).await?;
        let next = Gang::new("next", 2).gpus(8);
        cluster.create_gang(&next).await?;
        cluster.wait_for_pods("default", PATIENCE, all_bound(4)).await?;
        remove(&cluster, &next).await?;

        // Pods are bound where we want them: that is as good as if we had done it.
        let same = Gang::new("same", 2).gpus(8);
        let failed = scheduler.metric("volcano_schedule_attempts_total", "result=\"error\"").await?;
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&same).await?;
        for (pod, node) in held(&hold, 2).await? {
            cluster.bind("default", &pod, &node).await?;
        }
        hold.lift();
        group(&cluster, "same", is_scheduled).await?;
        let label = "kind=\"bind\",cause=\"conflict\"";
        assert_eq!(scheduler.metric("muster_write_errors_total", label).await?, 3.0);
        assert_eq!(
            scheduler.metric("volcano_schedule_attempts_total", "result=\"error\"").await?,
            failed + 2.0
        );
        remove(&cluster, &ring).await?;

        // A foreign pod takes the room: the bind can't be called back, but nothing more is put there.
        let late = Gang::new("late", 1).gpus(8);
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&late).await?;
        let (_, crowded) = held(&hold, 1).await?.remove(0);
        cluster.create_pods(&Gang::new("foreign", 1).gpus(8).scheduler("rival")).await?;
        cluster.bind("default", "foreign-0", &crowded).await?;
        hold.lift();
        cluster.wait_for_pods("default", PATIENCE, all_bound(4)).await?;
        cluster.create_gang(&Gang::new("after", 1).gpus(8)).await?;
        let now = cluster.wait_for_pods("default", PATIENCE, all_bound(5)).await?;
        assert_ne!(now[0].spec.node_name, Some(crowded), "{:?}", now[0].metadata.name);
        cluster.create_gang(&Gang::new("more", 1).gpus(8)).await?;
        group(&cluster, "more", is_unschedulable).await?;
        Ok(())
    })
}

/// Binds foreign pods one by one to nodes that have room when it looks, with no regard for anyone who looks at the
/// same time.
async fn rival(cluster: &Cluster, foreign: &Gang, nodes: usize) -> Result<()> {
    for index in 0..foreign.pods {
        cluster.create(&pods("default"), &foreign.pod(index)).await?;
        let now = cluster.pods("default").await?;
        let used = |node: &str| now.iter().filter(|pod| pod.spec.node_name.as_deref() == Some(node)).count();
        // A node of its own choice, the same in every run.
        let choices = (0..nodes).map(|at| format!("node-{}", (index * 7 + at) % nodes));
        let node = choices.into_iter().find(|node| used(node) < 4).ok_or("the rival finds no room")?;
        cluster.bind("default", &format!("{}-{index}", foreign.name), &node).await?;
    }
    Ok(())
}

#[test]
fn room_that_a_rival_is_known_to_have_is_left_alone() -> Result<()> {
    behind_a_proxy(Options::default(), async |plane, proxy, _| {
        let cluster = plane.cluster();
        let witness = Witness::start(&cluster).await?;
        cluster.create_nodes(&Nodes::new(20).gpus(8)).await?;
        // Gives the rival time to come between decision and bind.
        proxy.rule(Fault::Delay(Duration::from_millis(50)), 50, Ask::is_bind);
        let foreign = Gang::new("foreign", 40).gpus(2).scheduler("rival");
        let ours = async {
            for at in 0..15 {
                let gang = Gang::new(&format!("gang-{at}"), 4).gpus(1);
                cluster.create_gang(&gang).await?;
                group(&cluster, &gang.group, is_scheduled).await?;
            }
            Ok(())
        };
        try_join(ours, rival(&cluster, &foreign, 20)).await?;
        let story = witness.tells().await?;
        assert_eq!(story.blind(8, "volcano"), Vec::<String>::new());
        assert_eq!(story.split(|_| 4), Vec::<String>::new());
        Ok(())
    })
}

/// Creates a gang although the API server may be away in between.
async fn create_stubbornly(cluster: &Cluster, gang: &Gang) -> Result<()> {
    let group = (podgroups("default"), gang.podgroup());
    for (path, object) in [group].into_iter().chain(gang.pods().map(|pod| (pods("default"), pod))) {
        wait(PATIENCE, async || {
            let answer = cluster.create(&path, &object).await;
            let there = answer.is_ok() || code(&answer) == Some(409);
            if there { Ok(()) } else { Err(format!("{:?}", answer.err())) }
        })
        .await?;
    }
    Ok(())
}

#[test]
fn the_api_server_restarts_in_the_middle_of_a_load() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let mut scheduler = Scheduler::start(plane, "muster", &[]).await?;
        cluster.create_nodes(&Nodes::new(30).gpus(8)).await?;
        let gangs: Vec<Gang> = (0..10).map(|at| Gang::new(&format!("gang-{at}"), 20).gpus(1)).collect();
        let load = async {
            for gang in &gangs {
                create_stubbornly(&cluster, gang).await?;
            }
            Result::Ok(())
        };
        let restarts = async {
            cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) >= 30).await?;
            plane.restart_api_server().await?;
            cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) >= 90).await?;
            plane.compact().await?;
            plane.api_server.kill().await?;
            plane.start_api_server().await
        };
        let (load, restarts) = join(load, restarts).await;
        load.and(restarts)?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 200).await?;
        for gang in &gangs {
            runs(&cluster, gang).await?;
        }
        let story = Witness::start(&cluster).await?.tells().await?;
        assert_eq!(story.crowded(8), Vec::<String>::new());
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM is a clean end");
        scheduler.replay()
    })
}

#[test]
fn broken_watches_and_lost_history_lose_nothing() -> Result<()> {
    behind_a_proxy(Options::default(), async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        proxy.rule(Fault::Expire, 15, Ask::is_watch);
        proxy.rule(Fault::Refuse(410), 15, Ask::is_watch);
        proxy.rule(Fault::Refuse(500), 10, Ask::is_watch);
        proxy.rule(Fault::Lose, 5, |ask| ask.is_list("pods"));
        proxy.rule(Fault::Break { after: 5 }, 80, Ask::is_watch);
        proxy.cut();
        // Each round has one node more and fills all of them, under the names of the round before.
        for round in 1..=8 {
            cluster.create_nodes(&Nodes::new(1).prefix(&format!("round-{round}")).gpus(8)).await?;
            let gangs = [Gang::new("one", 4 * round).gpus(1), Gang::new("two", 2 * round).gpus(2)];
            for gang in &gangs {
                cluster.create_gang(gang).await?;
            }
            let filled = |pods: &[Pod]| pods.len() == 6 * round && bound(pods) == pods.len();
            cluster.wait_for_pods("default", PATIENCE, filled).await?;
            plane.compact().await?;
            proxy.cut();
            for gang in &gangs {
                group(&cluster, &gang.group, is_scheduled).await?;
                remove(&cluster, gang).await?;
            }
        }
        // A node that went away in a gap is not used again, once a later one is known.
        let quiet = proxy.rule(Fault::Lose, 100, Ask::is_watch);
        proxy.cut();
        cluster.delete("/api/v1/nodes/round-1-0").await?;
        cluster.create_nodes(&Nodes::new(1).prefix("later").label("later", "yes")).await?;
        quiet.lift();
        cluster
            .create_gang(&Gang::new("later", 1).pod_spec("nodeSelector", json!({ "later": "yes" })))
            .await?;
        group(&cluster, "later", is_scheduled).await?;
        cluster.create_gang(&Gang::new("seven", 7).gpus(8)).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| bound(pods) == 8).await?;
        cluster.create_gang(&Gang::new("eighth", 1).gpus(8)).await?;
        group(&cluster, "eighth", is_unschedulable).await?;
        assert!(scheduler.metric("muster_relists_total", "").await? > 0.0);
        assert!(scheduler.metric("muster_watch_errors_total", "kind=\"Pod\"").await? > 0.0);
        Ok(())
    })
}

fn log_of(plane: &ControlPlane, name: &str) -> Result<String> {
    Ok(fs::read_to_string(plane.folder().join(format!("{name}.log")))?)
}

const WHOLE: &str = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins:
  - name: gang
  - name: predicates
";

#[test]
fn a_bad_configuration_is_refused_while_the_old_one_goes_on() -> Result<()> {
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
            if refused.is_ok_and(|count| count == 1.0) { Ok(()) } else { Err("not refused".to_owned()) }
        })
        .await?;
        let note = wait(PATIENCE, async || {
            let events: Value = cluster.get(EVENTS).await.map_err(|error| error.to_string())?;
            let events = events["items"].as_array().map_or(&[][..], Vec::as_slice);
            let refusal = events.iter().find(|event| event["reason"] == "ConfigurationRefused");
            refusal.map(|event| event["note"].to_string()).ok_or_else(|| format!("{} events", events.len()))
        })
        .await?;
        assert!(note.contains("gagn") && note.contains("scheduler.conf"), "{note}");
        cluster.create_gang(&Gang::new("ring", 2).gpus(2)).await?;
        cluster.create_gang(&Gang::new("large", 8).gpus(1)).await?;
        group(&cluster, "ring", is_scheduled).await?;
        group(&cluster, "large", is_unschedulable).await?;
        assert_eq!(bound(&cluster.pods("default").await?), 2, "the old one goes on: gangs are whole");

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
        let lines: std::result::Result<Vec<Value>, _> = log.lines().map(serde_json::from_str).collect();
        assert!(lines?.iter().any(|line| line["level"] == "DEBUG"), "{log}");
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM is a clean end");
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
    config["users"][0]["user"]["as-groups"] = json!(["system:serviceaccounts", "system:authenticated"]);
    let file = plane.folder().join("service-account.kubeconfig");
    fs::write(&file, config.to_string())?;
    Ok(file)
}

#[test]
fn the_rights_in_the_manifest_are_enough() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let proxy = Proxy::start(&install(plane)?, 2)?;
        let config = plane.folder().join("scheduler.conf");
        let map: Value = cluster.get("/api/v1/namespaces/muster-system/configmaps/muster").await?;
        fs::write(&config, map["data"]["scheduler.conf"].as_str().ok_or("it has a configuration")?)?;
        let flags = [
            &*format!("--kubeconfig={}", proxy.kubeconfig().display()),
            &format!("--config={}", config.display()),
            "--leader-elect-namespace=muster-system",
            "--leader-elect-lease-duration=4s",
            "--leader-elect-renew-deadline=3s",
            "--leader-elect-retry-period=500ms",
        ];
        let mut first = Scheduler::start(plane, "first", &flags).await?;
        let mut second = Scheduler::start(plane, "second", &flags).await?;
        cluster.create_nodes(&Nodes::new(10).gpus(8)).await?;
        proxy.rule(Fault::Refuse(409), 20, Ask::is_bind);
        proxy.rule(Fault::Swallow, 20, Ask::is_bind);
        cluster.create_gang(&Gang::new("ring", 40).gpus(1)).await?;
        cluster.create_gang(&Gang::new("large", 60).gpus(1)).await?;
        let mut lone = Gang::new("lone", 1).gpus(1).pod(0);
        lone["metadata"]["annotations"] = json!({});
        cluster.create(&pods("default"), &lone).await?;
        group(&cluster, "ring", is_scheduled).await?;
        group(&cluster, "large", is_unschedulable).await?;
        fs::write(&config, "actions: nothing")?;
        wait(PATIENCE, async || {
            let events: Value = cluster.get(EVENTS).await.map_err(|error| error.to_string())?;
            let refused = events.to_string().contains("ConfigurationRefused");
            if refused { Ok(()) } else { Err(events.to_string()) }
        })
        .await?;
        assert_eq!(first.server.stop().await?, 0, "SIGTERM is a clean end");
        cluster.create_gang(&Gang::new("next", 10).gpus(1)).await?;
        group(&cluster, "next", is_scheduled).await?;
        assert_eq!(second.metric("muster_write_errors_total", "cause=\"refused\"").await?, 0.0);
        assert_eq!(second.server.stop().await?, 0, "SIGTERM is a clean end");
        for name in ["first", "second"] {
            let log = log_of(plane, name)?.to_lowercase();
            assert!(!log.contains("forbidden") && !log.contains("403"), "{log}");
        }
        first.replay()?;
        second.replay()
    })
}
