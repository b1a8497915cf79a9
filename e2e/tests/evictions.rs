//! Evictions on a real API server: its answers, those of a PodDisruptionBudget, and those of a bad
//! network.

use muster_api::core::Pod;
use muster_e2e::Result;
use muster_e2e::bed::{PREEMPTING, configured};
use muster_e2e::checks::{PATIENCE, all_bound, group, remove_pod, runs};
use muster_e2e::cluster::{Cluster, podgroups, wait};
use muster_e2e::proxy::{Ask, Fault};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::workload::{Gang, Nodes};
use serde_json::{Value, json};

const CONFIG: &str = r#"
actions: "enqueue, allocate, backfill, stalegangeviction"
configurations:
- name: stalegangeviction
  arguments: {gracePeriod: 1s}
tiers:
- plugins:
  - name: gang
  - name: predicates
"#;
const EVENTS: &str = "/apis/events.k8s.io/v1/events";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn refusals(scheduler: &Scheduler, cause: &str, count: usize) -> Result<()> {
    let labels = format!("kind=\"eviction\",cause=\"{cause}\"");
    wait(PATIENCE, async || {
        let seen = scheduler.metric("muster_write_errors_total", &labels).await;
        let seen = seen.map_err(|error| error.to_string())?;
        if seen >= count as f64 {
            Ok(())
        } else {
            Err(format!("{seen} evictions were refused: {cause}"))
        }
    })
    .await
}

/// Waits for the time since which the PodGroup `ring` is reported as stale.
async fn stale_since(cluster: &Cluster, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let path = format!("{}/ring", podgroups("default"));
    wait(PATIENCE, async || {
        let group: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        let since = &group["metadata"]["annotations"]["volcano.sh/stale-since"];
        if wanted(since) { Ok(since.clone()) } else { Err(format!("stale since {since}")) }
    })
    .await
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_broken_gang_is_evicted_as_soon_as_its_budget_allows() -> Result<()> {
    configured(CONFIG, async |plane, _, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&Gang::new("ring", 3).gpus(2).label("app", "ring")).await?;
        runs(&cluster, "ring", 3).await?;
        let spec = json!({ "minAvailable": 2, "selector": { "matchLabels": { "app": "ring" } } });
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "ring" }, "spec": spec,
        });
        cluster.create(BUDGETS, &budget).await?;

        remove_pod(&cluster, "ring-2").await?;
        // No controller has counted pods for the budget yet, so it allows no eviction.
        refusals(scheduler, "disruption_budget", 2).await?;
        let stay = |pods: &[Pod]| {
            pods.len() == 2 && pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_none())
        };
        assert!(stay(&cluster.pods("default").await?), "a pod that may not be evicted stays");
        group(&cluster, "ring", |status| status["phase"] == "Unknown" && status["running"] == 2)
            .await?;
        let since = stale_since(&cluster, |since| since.is_string()).await?;

        let counts = json!({ "status": {
            "observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 2, "desiredHealthy": 0, "expectedPods": 2,
        } });
        cluster.patch(&format!("{BUDGETS}/ring/status"), &counts).await?;
        cluster.wait_for_pods("default", PATIENCE, <[Pod]>::is_empty).await?;
        assert_eq!(scheduler.metric("muster_writes_total", "kind=\"eviction\"").await?, 2.0);
        let told = |events: &Value, pod: &str| {
            events["items"].as_array().is_some_and(|events| {
                events
                    .iter()
                    .any(|event| event["reason"] == "Evict" && event["regarding"]["name"] == pod)
            })
        };
        wait(PATIENCE, async || {
            let events: Value = cluster.get(EVENTS).await.map_err(|error| error.to_string())?;
            let told = told(&events, "ring-0") && told(&events, "ring-1");
            if told { Ok(()) } else { Err(events.to_string()) }
        })
        .await?;
        // The room of the old pod is free, and its successor may use it.
        stale_since(&cluster, Value::is_null).await?;
        assert!(since.as_str().is_some_and(|since| since.ends_with('Z')), "{since}");
        cluster.create_pods(&Gang::new("ring", 3).gpus(2)).await?;
        cluster.wait_for_pods("default", PATIENCE, all_bound(3)).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn evictions_survive_a_bad_network_and_hit_no_other_pod() -> Result<()> {
    configured(CONFIG, async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(5).gpus(8)).await?;
        cluster.create_gang(&Gang::new("ring", 20).gpus(1)).await?;
        cluster.create_gang(&Gang::new("other", 20).gpus(1)).await?;
        for name in ["ring", "other"] {
            runs(&cluster, name, 20).await?;
        }
        proxy.rule(Fault::Refuse(429), 20, Ask::is_eviction);
        proxy.rule(Fault::Refuse(500), 10, Ask::is_eviction);
        proxy.rule(Fault::Refuse(403), 10, Ask::is_eviction);
        proxy.rule(Fault::Swallow, 20, Ask::is_eviction);
        proxy.rule(Fault::Lose, 20, Ask::is_eviction);
        remove_pod(&cluster, "ring-7").await?;
        let others = |pods: &[Pod]| {
            pods.len() == 20 && pods.iter().all(|pod| pod.metadata.name.starts_with("other"))
        };
        cluster.wait_for_pods("default", PATIENCE, others).await?;
        refusals(scheduler, "too_many_requests", 1).await?;
        // The same names again: an old eviction must not hit a new pod.
        cluster.create_pods(&Gang::new("ring", 20).gpus(1)).await?;
        runs(&cluster, "ring", 20).await?;
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn an_urgent_gang_evicts_lower_priorities_and_no_more_than_needed() -> Result<()> {
    configured(PREEMPTING, async |plane, _, scheduler| {
        let cluster = plane.cluster();
        for (name, value) in [("low", 1), ("high", 10)] {
            cluster.create_priority(name, value).await?;
        }
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        let gang =
            |name: &str, pods: usize, class: &str| Gang::new(name, pods).gpus(4).class(class);
        cluster.create_gang(&gang("slack", 6, "low").min(2)).await?;
        runs(&cluster, "slack", 6).await?;
        cluster.create_gang(&gang("urgent", 3, "high")).await?;
        runs(&cluster, "urgent", 3).await?;
        group(&cluster, "slack", |status| status["phase"] == "Running" && status["running"] == 3)
            .await?;
        assert_eq!(scheduler.metric("muster_evictions_total", "action=\"preempt\"").await?, 3.0);
        // Its minimum is safe: nothing more is evicted from it.
        cluster.create_gang(&gang("more", 2, "high")).await?;
        group(&cluster, "more", |status| {
            status["conditions"][0]["message"].to_string().contains("gang at its minimum")
        })
        .await?;
        assert_eq!(scheduler.metric("muster_evictions_total", "action=\"preempt\"").await?, 3.0);
        Ok(())
    })
}
