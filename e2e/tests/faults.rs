//! The scheduler on a bad network, and with an API server that is down at times.

use futures::future::join;
use muster_api::core::Pod;
use muster_e2e::Result;
use muster_e2e::bed::{self, behind_a_proxy};
use muster_e2e::checks::{
    PATIENCE, bound, group, is_scheduled, is_unschedulable, log_of, remove, struck,
};
use muster_e2e::cluster::{Cluster, Definitions, code, podgroups, pods, wait};
use muster_e2e::controlplane::Options;
use muster_e2e::proxy::{Ask, Fault};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use serde_json::{Value, json};

fn with_kwok() -> Options {
    Options { kwok: true, ..Options::default() }
}

/// Waits until a PodGroup reports that its whole gang runs.
async fn runs(cluster: &Cluster, gang: &Gang) -> Result<()> {
    let all = |status: &Value| is_scheduled(status) && status["running"] == gang.pods;
    group(cluster, &gang.group, all).await.map(drop)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn many_refusals_still_bind_every_pod_once_and_report_the_truth() -> Result<()> {
    behind_a_proxy(with_kwok(), &[], async |plane, proxy, scheduler| {
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
        let sizes =
            [40, 30, 20, 20, 20, 20, 20, 20, 10, 10, 10, 10, 10, 10, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5];
        let gangs: Vec<Gang> = sizes
            .iter()
            .enumerate()
            .map(|(at, &pods)| Gang::new(&format!("gang-{at}"), pods).gpus(1))
            .collect();
        let pods: usize = sizes.iter().sum();
        // The leftover pods do not keep it waiting.
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
            assert!(
                scheduler.metric("muster_write_errors_total", &labels).await? > 0.0,
                "{labels}"
            );
        }
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_gang_with_refused_binds_backs_off_and_keeps_no_room() -> Result<()> {
    behind_a_proxy(Options::default(), &[], async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        let refusal = proxy
            .rule(Fault::Refuse(409), 100, |ask| ask.is_bind() && ask.path.contains("/unlucky-"));
        let unlucky = Gang::new("unlucky", 3).gpus(2);
        cluster.create_gang(&unlucky).await?;
        group(&cluster, "unlucky", |status| status["conditions"][0]["reason"] == "BackingOff")
            .await?;
        struck(&refusal, 3 * unlucky.pods).await?;
        wait(PATIENCE, async || {
            let facts =
                scheduler.explain("default", "unlucky").await.map_err(|error| error.to_string())?;
            let said = facts.to_string().contains("a write for it failed");
            if said { Ok(()) } else { Err(facts.to_string()) }
        })
        .await?;
        // Meanwhile another gang uses the room, and this one waits for it after its backoff.
        let other = Gang::new("other", 2).gpus(4);
        cluster.create_gang(&other).await?;
        group(&cluster, "other", is_scheduled).await?;
        refusal.lift();
        group(&cluster, "unlucky", |status| {
            status["conditions"][0]["reason"] == "NotEnoughResources"
        })
        .await?;
        remove(&cluster, &other).await?;
        group(&cluster, "unlucky", is_scheduled).await?;
        Ok(())
    })
}

/// Creates a gang although the API server may be down in between.
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
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_api_server_restarts_in_the_middle_of_a_load() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let mut scheduler = Scheduler::start(plane, "muster", &[]).await?;
        cluster.create_nodes(&Nodes::new(30).gpus(8)).await?;
        let gangs: Vec<Gang> =
            (0..10).map(|at| Gang::new(&format!("gang-{at}"), 20).gpus(1)).collect();
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
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn broken_watches_and_lost_history_lose_nothing() -> Result<()> {
    behind_a_proxy(Options::default(), &[], async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        let is_mute = |ask: &Ask| ask.is_watch() && ask.path.ends_with("/priorityclasses");
        let is_bad = move |ask: &Ask| ask.is_watch() && !is_mute(ask);
        let mute = proxy.rule(Fault::Hang { forwarded: false }, 100, is_mute);
        proxy.rule(Fault::Expire, 15, is_bad);
        proxy.rule(Fault::Refuse(410), 15, is_bad);
        proxy.rule(Fault::Refuse(500), 10, is_bad);
        proxy.rule(Fault::Lose, 5, |ask| ask.is_list("pods"));
        proxy.rule(Fault::Break { after: 5 }, 80, is_bad);
        proxy.cut();
        struck(&mute, 1).await?;
        mute.lift();
        let given_up = ("muster_watch_errors_total", "kind=\"PriorityClass\"");
        let before = scheduler.metric(given_up.0, given_up.1).await?;
        // Each round has one node more and fills all of them, with the names of the previous round.
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
        // A node that disappeared in a gap is not used again, once a later one is known.
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
        // A watch that never began was abandoned after a while.
        wait(PATIENCE, async || {
            let count = scheduler
                .metric(given_up.0, given_up.1)
                .await
                .map_err(|error| error.to_string())?;
            if count > before { Ok(()) } else { Err("it still waits for an answer".to_owned()) }
        })
        .await?;
        assert!(scheduler.metric("muster_relists_total", "").await? > 0.0);
        assert!(scheduler.metric("muster_watch_errors_total", "kind=\"Pod\"").await? > 0.0);
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_scheduler_that_starts_first_waits_for_the_definitions() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        let mut scheduler = Scheduler::spawn(plane, "muster", &[])?;
        wait(PATIENCE, async || {
            let log = log_of(plane, "muster").unwrap_or_default();
            if log.contains("install `muster crds`") { Ok(()) } else { Err(log) }
        })
        .await?;
        assert!(scheduler.text("/readyz").await.is_err(), "it has not read everything");
        cluster.install_crds(Definitions::Muster).await?;
        scheduler.ready().await?;
        cluster.create_nodes(&Nodes::new(1).gpus(8)).await?;
        cluster.create_gang(&Gang::new("ring", 2).gpus(4)).await?;
        group(&cluster, "ring", is_scheduled).await?;
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}
