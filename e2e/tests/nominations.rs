//! Nominations on a real API server: written before any eviction, kept as long as it takes, ended
//! when they can't be fulfilled, and found again by the next scheduler.

use std::time::Duration;

use futures::future::join;
use muster_api::keys::{
    EVICTION_OCCURRED, GPU_INDEX, PIPELINED_NODE, PIPELINED_STATUS, PREDICATE_TIME,
};
use muster_e2e::Result;
use muster_e2e::bed::{PREEMPTING, configured};
use muster_e2e::checks::{PATIENCE, group, release, runs, struck};
use muster_e2e::cluster::{Cluster, NODES, pods, wait};
use muster_e2e::controlplane::ControlPlane;
use muster_e2e::proxy::{Ask, Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use serde_json::{Value, json};

const THEIRS: &str = "example.com/note";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A control plane whose pods keep running, three priorities, and a scheduler behind a proxy.
fn preempting(
    config: &str,
    body: impl AsyncFnOnce(&mut ControlPlane, &Proxy, &mut Scheduler) -> Result<()>,
) -> Result<()> {
    configured(config, async |plane, proxy, scheduler| {
        for (name, value) in [("low", 1), ("middle", 5), ("high", 10)] {
            plane.cluster().create_priority(name, value).await?;
        }
        body(plane, proxy, scheduler).await
    })
}

fn gang(name: &str, pods: usize, gpus: usize, class: &str) -> Gang {
    Gang::new(name, pods).gpus(gpus).class(class)
}

/// A gang of one on a given node.
fn on(node: &str, name: &str, class: &str) -> Gang {
    gang(name, 1, 8, class).pod_spec("nodeSelector", json!({ "kubernetes.io/hostname": node }))
}

/// The nomination on a pod: the node, whether pods are evicted for it, and the nominated node.
/// A bind can end it, but not remove the keys.
fn nomination(pod: &Value) -> (Option<&str>, bool, Option<&str>) {
    let note = |key: &str| pod["metadata"]["annotations"][key].as_str();
    if pod["spec"]["nodeName"].is_string() && note(PIPELINED_STATUS) == Some("false") {
        assert_eq!((note(PIPELINED_NODE), note(EVICTION_OCCURRED)), (Some(""), Some("false")));
        return (None, false, None);
    }
    assert_eq!(note(PIPELINED_STATUS), note(PIPELINED_NODE).map(|_| "true"), "{pod}");
    let evicted = note(EVICTION_OCCURRED).inspect(|said| assert_eq!(*said, "true")).is_some();
    (note(PIPELINED_NODE), evicted, pod["status"]["nominatedNodeName"].as_str())
}

/// Waits until a pod is as wanted.
async fn pod(cluster: &Cluster, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let path = format!("{}/{name}", pods("default"));
    wait(PATIENCE, async || {
        let pod: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        if wanted(&pod) { Ok(pod) } else { Err(format!("{} {}", pod["metadata"], pod["status"])) }
    })
    .await
}

fn is_silent(pod: &Value) -> bool {
    nomination(pod) == (None, false, None)
}

/// Waits until exactly this many pods are deleted, and returns their names.
async fn leave(witness: &Witness, count: usize) -> Result<Vec<String>> {
    wait(PATIENCE, async || {
        let leave = witness.names(|life| life.leaves.is_some());
        if leave.len() >= count { Ok(leave) } else { Err(format!("{leave:?} leave")) }
    })
    .await
    .inspect(|leave| assert_eq!(leave.len(), count, "{leave:?}"))
}

/// Nothing happens in a time that is long enough for the scheduler to act.
async fn rest() {
    tokio::time::sleep(Duration::from_millis(1500)).await;
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_nomination_is_written_before_evictions_and_ends_with_the_bind() -> Result<()> {
    preempting(PREEMPTING, async |plane, _, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        cluster.create_gang(&gang("slack", 6, 4, "low").min(3).held()).await?;
        runs(&cluster, "slack", 6).await?;
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 3, 4, "high").annotation(THEIRS, "mine")).await?;
        let leavers = leave(&witness, 3).await?;
        let names = ["urgent-0", "urgent-1", "urgent-2"];
        for name in names {
            let pod = pod(&cluster, name, |_| true).await?;
            let (node, evicted, nominated) = nomination(&pod);
            assert!(node.is_some() && node == nominated && evicted, "{pod}");
            assert_eq!(pod["metadata"]["annotations"][THEIRS], "mine");
        }
        let story = witness.tells().await?;
        let first = story.leavers().iter().filter_map(|life| life.leaves).min();
        for life in story.gang("urgent") {
            let told = life.nominations.first().map(|(version, _)| *version);
            assert!(told.is_some() && told < first, "{life:?}");
        }
        group(&cluster, "urgent", |status| status["conditions"][0]["reason"] == "WaitingForRoom")
            .await?;
        assert_eq!(scheduler.metric("muster_nominations_held", "").await?, 3.0);
        for name in leavers {
            release(&cluster, &name).await?;
        }
        runs(&cluster, "urgent", 3).await?;
        for name in names {
            let pod = pod(&cluster, name, is_silent).await?;
            assert_eq!(pod["metadata"]["annotations"][THEIRS], "mine");
        }
        for life in witness.tells().await?.gang("urgent") {
            let [(_, Some(nominated)), (_, None)] = &*life.nominations else { panic!("{life:?}") };
            assert_eq!(life.bound.as_ref().map(|(_, node)| node), Some(nominated));
        }
        // Nothing is written twice, and the bind needs no second write.
        rest().await;
        assert_eq!(scheduler.metric("muster_writes_total", "kind=\"nomination\"").await?, 3.0);
        assert_eq!(scheduler.metric("muster_writes_total", "kind=\"bind\"").await?, 9.0);
        assert_eq!(scheduler.metric("muster_nominations_total", "result=\"hit\"").await?, 3.0);
        assert!(scheduler.metric("muster_nominations_total", "result=\"miss\"").await? >= 3.0);
        assert_eq!(scheduler.metric("muster_nominations_held", "").await?, 0.0);
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn freed_room_is_kept_for_a_gang_until_the_rest_is_free() -> Result<()> {
    preempting(PREEMPTING, async |plane, _, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2).gpus(8)).await?;
        // Nodes whose pods can all be evicted.
        for name in ["a", "b", "c", "d"] {
            cluster.create_gang(&gang(name, 1, 4, "low").held()).await?;
            runs(&cluster, name, 1).await?;
        }
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 2, 8, "high")).await?;
        let leavers = leave(&witness, 4).await?;
        let (first, rest_of_them) = leavers.split_first().ok_or("four leave")?;
        release(&cluster, first).await?;
        cluster.wait_for_pods("default", PATIENCE, |pods| pods.len() == 5).await?;
        cluster.create_gang(&gang("small", 1, 4, "middle")).await?;
        group(&cluster, "small", |status| status["conditions"][0]["type"] == "Unschedulable")
            .await?;
        rest().await;
        assert!(pod(&cluster, "small-0", |_| true).await?["spec"]["nodeName"].is_null());
        for name in rest_of_them {
            release(&cluster, name).await?;
        }
        runs(&cluster, "urgent", 2).await?;
        for name in ["urgent-0", "urgent-1"] {
            pod(&cluster, name, is_silent).await?;
        }
        let story = witness.tells().await?;
        assert_eq!(story.leavers().len(), 4);
        assert_eq!(story.bound_before("small", u64::MAX), 0);
        assert_eq!(scheduler.metric("muster_evictions_total", "").await?, 4.0);
        Ok(())
    })
}

/// A budget for which no controller has counted pods allows no eviction.
async fn protect(cluster: &Cluster, app: &str) -> Result<()> {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": app } } });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": app }, "spec": spec,
    });
    cluster.create(BUDGETS, &budget).await?;
    Ok(())
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn pods_that_a_budget_protects_are_not_evicted() -> Result<()> {
    preempting(PREEMPTING, async |plane, _, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&gang("kept", 2, 4, "low").min(1).label("app", "kept")).await?;
        runs(&cluster, "kept", 2).await?;
        protect(&cluster, "kept").await?;
        rest().await;
        cluster.create_gang(&gang("urgent", 1, 4, "high")).await?;
        group(&cluster, "urgent", |status| {
            status["conditions"][0]["message"].to_string().contains("kept by a PodDisruptionBudget")
        })
        .await?;
        pod(&cluster, "urgent-0", is_silent).await?;
        assert_eq!(scheduler.metric("muster_evictions_total", "").await?, 0.0);
        assert_eq!(scheduler.metric("muster_writes_total", "kind=\"nomination\"").await?, 0.0);
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn an_impossible_nomination_is_made_elsewhere() -> Result<()> {
    preempting(PREEMPTING, async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2).gpus(8)).await?;
        cluster.create_gang(&on("node-0", "kept", "low")).await?;
        cluster.create_gang(&on("node-1", "dear", "middle")).await?;
        runs(&cluster, "kept", 1).await?;
        runs(&cluster, "dear", 1).await?;
        // A webhook may refuse an eviction for reasons that the scheduler cannot know.
        proxy.rule(Fault::Refuse(403), 100, |ask| {
            ask.is_eviction() && ask.path.contains("/pods/kept-0/")
        });
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 1, 8, "high")).await?;
        runs(&cluster, "urgent", 1).await?;
        pod(&cluster, "urgent-0", is_silent).await?;
        let story = witness.tells().await?;
        let [urgent] = &*story.gang("urgent") else { panic!("{story:?}") };
        let nodes: Vec<&str> =
            urgent.nominations.iter().filter_map(|(_, node)| node.as_deref()).collect();
        assert_eq!(nodes, ["node-0", "node-1"]);
        assert_eq!(urgent.nomination(), None);
        assert_eq!(story.leavers().iter().map(|life| &*life.name).collect::<Vec<_>>(), ["dear-0"]);
        assert!(scheduler.metric("muster_write_errors_total", "cause=\"refused\"").await? >= 1.0);
        runs(&cluster, "kept", 1).await
    })
}

async fn set_ready(cluster: &Cluster, node: &str, ready: &str) -> Result<()> {
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": ready, "reason": "Test" }] } });
    cluster.patch(&format!("{NODES}/{node}/status"), &status).await?;
    Ok(())
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_nomination_to_a_dead_node_moves_or_waits_with_a_reason() -> Result<()> {
    preempting(PREEMPTING, async |plane, _, _| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        cluster.create_gang(&on("node-0", "cheap", "low").held()).await?;
        cluster.create_gang(&on("node-1", "dear", "middle").held()).await?;
        cluster
            .create_gang(&on("node-2", "safe", "low").annotation("volcano.sh/preemptable", "false"))
            .await?;
        for name in ["cheap", "dear", "safe"] {
            runs(&cluster, name, 1).await?;
        }
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 1, 8, "high")).await?;
        leave(&witness, 1).await?;
        let at = |node: &'static str| {
            move |pod: &Value| nomination(pod) == (Some(node), true, Some(node))
        };
        pod(&cluster, "urgent-0", at("node-0")).await?;
        set_ready(&cluster, "node-0", "False").await?;
        pod(&cluster, "urgent-0", at("node-1")).await?;
        leave(&witness, 2).await?;
        cluster.delete(&format!("{NODES}/node-1")).await?;
        pod(&cluster, "urgent-0", is_silent).await?;
        group(&cluster, "urgent", |status| {
            status["conditions"][0]["reason"] == "NotEnoughResources"
        })
        .await?;
        // The pods that were evicted for the first one still terminate: no other pod has to be
        // evicted.
        set_ready(&cluster, "node-0", "True").await?;
        pod(&cluster, "urgent-0", |pod| nomination(pod) == (Some("node-0"), false, None)).await?;
        release(&cluster, "cheap-0").await?;
        runs(&cluster, "urgent", 1).await?;
        let end = pod(&cluster, "urgent-0", is_silent).await?;
        assert_eq!(end["spec"]["nodeName"], "node-0");
        let story = witness.tells().await?;
        assert_eq!(
            story.leavers().iter().map(|life| &*life.name).collect::<Vec<_>>(),
            ["cheap-0", "dear-0"]
        );
        release(&cluster, "dear-0").await
    })
}

/// A nomination or its end, rather than a condition.
fn is_nomination(ask: &Ask) -> bool {
    ask.is_status() && String::from_utf8_lossy(&ask.body).contains(PIPELINED_NODE)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_refused_nomination_evicts_no_pod() -> Result<()> {
    preempting(PREEMPTING, async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(2).gpus(8)).await?;
        cluster.create_gang(&gang("slack", 4, 4, "low").min(2)).await?;
        runs(&cluster, "slack", 4).await?;
        let refusal = proxy.rule(Fault::Refuse(403), 100, |ask| {
            is_nomination(ask) && ask.path.contains("/pods/urgent-1/")
        });
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 2, 4, "high")).await?;
        group(&cluster, "urgent", |status| status["conditions"][0]["reason"] == "BackingOff")
            .await?;
        struck(&refusal, 2).await?;
        pod(&cluster, "urgent-0", is_silent).await?;
        pod(&cluster, "urgent-1", is_silent).await?;
        assert_eq!(witness.tells().await?.leavers().len(), 0);
        assert_eq!(scheduler.metric("muster_writes_total", "kind=\"eviction\"").await?, 0.0);
        let refused = "kind=\"nomination\",cause=\"refused\"";
        assert!(scheduler.metric("muster_write_errors_total", refused).await? >= 2.0);
        refusal.lift();
        runs(&cluster, "urgent", 2).await?;
        assert_eq!(witness.tells().await?.leavers().len(), 2);
        pod(&cluster, "urgent-0", is_silent).await?;
        pod(&cluster, "urgent-1", is_silent).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn nominations_survive_a_bad_network_and_precede_evictions() -> Result<()> {
    preempting(PREEMPTING, async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(6).gpus(8)).await?;
        cluster.create_gang(&gang("slack", 48, 1, "low").min(8)).await?;
        runs(&cluster, "slack", 48).await?;
        let storm = [
            proxy.rule(Fault::Refuse(409), 20, is_nomination),
            proxy.rule(Fault::Refuse(429), 10, is_nomination),
            proxy.rule(Fault::Refuse(500), 10, is_nomination),
            proxy.rule(Fault::Swallow, 20, is_nomination),
            proxy.rule(Fault::Lose, 20, is_nomination),
            proxy.rule(Fault::Refuse(409), 20, Ask::is_bind),
            proxy.rule(Fault::Swallow, 20, Ask::is_bind),
        ];
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&gang("urgent", 40, 1, "high")).await?;
        runs(&cluster, "urgent", 40).await?;
        for index in 0..40 {
            pod(&cluster, &format!("urgent-{index}"), is_silent).await?;
        }
        assert!(storm.iter().all(|rule| rule.count() > 0), "every fault was met");
        let story = witness.tells().await?;
        let first = story.leavers().iter().filter_map(|life| life.leaves).min();
        assert_eq!(story.leavers().len(), 40);
        for life in story.gang("urgent") {
            let told = life.nominations.first().map(|(version, _)| *version);
            assert!(told.is_some() && told < first, "{life:?}");
        }
        assert_eq!(story.lies(), Vec::<String>::new());
        // A bind whose answer was lost counts once, as the success that it was.
        assert_eq!(
            scheduler.metric("volcano_schedule_attempts_total", "result=\"scheduled\"").await?,
            88.0
        );
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_stopping_scheduler_still_writes_nominations_before_evictions() -> Result<()> {
    let hold = Duration::from_millis(500);
    preempting(PREEMPTING, async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&gang("slack", 2, 4, "low").min(1).held()).await?;
        runs(&cluster, "slack", 2).await?;
        let witness = Witness::start(&cluster).await?;
        let rule = proxy.rule(Fault::Hold, 100, is_nomination);
        cluster.create_gang(&gang("urgent", 1, 4, "high")).await?;
        struck(&rule, 1).await?;
        let lift = async {
            tokio::time::sleep(hold).await;
            assert_eq!(witness.names(|life| life.leaves.is_some()), Vec::<String>::new());
            rule.lift();
        };
        let (code, ()) = join(scheduler.server.stop(), lift).await;
        assert_eq!(code?, 0, "SIGTERM ends it cleanly");
        let leavers = leave(&witness, 1).await?;
        pod(&cluster, "urgent-0", |pod| nomination(pod) == (Some("node-0"), true, Some("node-0")))
            .await?;
        // The next one keeps the nomination.
        scheduler.server.start()?;
        scheduler.ready().await?;
        release(&cluster, &leavers[0]).await?;
        runs(&cluster, "urgent", 1).await?;
        pod(&cluster, "urgent-0", is_silent).await?;
        assert_eq!(witness.tells().await?.leavers().len(), 1);
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_card_of_a_pod_is_written_with_its_nomination_and_its_bind() -> Result<()> {
    let shared = format!(
        "{PREEMPTING}  - name: deviceshare\n    arguments: {{deviceshare.GPUSharingEnable: true}}\n"
    );
    preempting(&shared, async |plane, proxy, _| {
        let cluster = plane.cluster();
        let memory = "volcano.sh/gpu-memory";
        cluster
            .create_nodes(&Nodes::new(1).capacity(memory, 16).capacity("volcano.sh/gpu-number", 2))
            .await?;
        let binds = proxy.rule(Fault::Delay(Duration::ZERO), 100, Ask::is_bind);
        let one = |name: &str, class: &str| {
            let mut gang = gang(name, 1, 0, class).request(memory, 6);
            gang.requests.remove("nvidia.com/gpu");
            gang
        };
        cluster.create_gang(&one("a", "low").held()).await?;
        runs(&cluster, "a", 1).await?;
        cluster.create_gang(&one("b", "middle").held()).await?;
        runs(&cluster, "b", 1).await?;
        let card = |pod: &Value| pod["metadata"]["annotations"][GPU_INDEX].clone();
        let cards = [
            card(&pod(&cluster, "a-0", |_| true).await?),
            card(&pod(&cluster, "b-0", |_| true).await?),
        ];
        assert_eq!(cards, ["0", "1"]);
        let witness = Witness::start(&cluster).await?;
        cluster.create_gang(&one("urgent", "high")).await?;
        assert_eq!(leave(&witness, 1).await?, ["a-0"]);
        let waits = pod(&cluster, "urgent-0", |pod| !is_silent(pod)).await?;
        assert_eq!(card(&waits), "0");
        assert!(waits["metadata"]["annotations"][PREDICATE_TIME].is_null());
        release(&cluster, "a-0").await?;
        runs(&cluster, "urgent", 1).await?;
        let bound = pod(&cluster, "urgent-0", is_silent).await?;
        assert_eq!(card(&bound), "0");
        assert!(bound["metadata"]["annotations"][PREDICATE_TIME].is_string());
        // The node never sees the pod without its card: the server writes both at once.
        for bind in binds.struck() {
            let body: Value = serde_json::from_slice(&bind.body)?;
            assert!(body["metadata"]["annotations"][PREDICATE_TIME].is_string(), "{body}");
        }
        release(&cluster, "b-0").await
    })
}
