//! The scheduler among rivals, on a bad network, and with an API server that comes and goes.

use std::time::Duration;

use muster_api::core::Pod;
use muster_e2e::cluster::{Cluster, Definitions, podgroups, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::proxy::{Ask, Fault, Proxy};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::Value;

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

/// Waits until a PodGroup says what is so of a gang that runs as a whole.
async fn runs(cluster: &Cluster, gang: &Gang) -> Result<()> {
    let all = |status: &Value| {
        let scheduled = status["conditions"][0]["type"] == "Scheduled";
        scheduled && status["phase"] == "Running" && status["running"] == gang.pods
    };
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
        let gangs: Vec<Gang> =
            sizes.iter().enumerate().map(|(at, &pods)| Gang::new(&format!("gang-{at}"), pods).gpus(1)).collect();
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
