//! Other schedulers act on the same pods and nodes between a decision and its bind.

use std::time::Duration;

use futures::future::try_join;
use muster_e2e::Result;
use muster_e2e::bed::behind_a_proxy;
use muster_e2e::checks::{
    PATIENCE, all_bound, bound, group, is_scheduled, is_unschedulable, remove, remove_pod,
};
use muster_e2e::cluster::{Cluster, pods, wait};
use muster_e2e::controlplane::Options;
use muster_e2e::proxy::{Ask, Fault, Rule};
use muster_e2e::witness::Witness;
use muster_e2e::workload::{Gang, Nodes};

/// Waits until the proxy holds all binds of a gang, and returns them as (pod, node), by pod.
async fn held(rule: &Rule, count: usize) -> Result<Vec<(String, String)>> {
    wait(PATIENCE, async || {
        let mut binds: Vec<(String, String)> =
            rule.struck().iter().filter_map(Ask::binds).collect();
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
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_faster_rival_is_handled() -> Result<()> {
    behind_a_proxy(Options::default(), &[], async |plane, proxy, scheduler| {
        let cluster = plane.cluster();
        cluster.create_nodes(&Nodes::new(4).gpus(8)).await?;

        // A pod is bound elsewhere: the room that was kept for it is free again.
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

        // Pods are bound to our choice of node: that is as good as our own bind.
        let same = Gang::new("same", 2).gpus(8);
        let failed =
            scheduler.metric("volcano_schedule_attempts_total", "result=\"error\"").await?;
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&same).await?;
        for (pod, node) in held(&hold, 2).await? {
            cluster.bind("default", &pod, &node).await?;
        }
        hold.lift();
        group(&cluster, "same", is_scheduled).await?;
        // The watch may be faster than the answers.
        let label = "kind=\"bind\",cause=\"conflict\"";
        wait(PATIENCE, async || {
            let seen = scheduler.metric("muster_write_errors_total", label).await;
            match seen.map_err(|error| error.to_string())? {
                3.0 => Ok(()),
                seen => Err(format!("{seen} conflicts")),
            }
        })
        .await?;
        assert_eq!(
            scheduler.metric("volcano_schedule_attempts_total", "result=\"error\"").await?,
            failed
        );
        remove(&cluster, &ring).await?;

        // A foreign pod uses the room: the bind can't be cancelled, but nothing more is put there.
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

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn pods_deleted_or_replaced_before_their_bind_are_noticed() -> Result<()> {
    behind_a_proxy(Options::default(), &[], async |plane, proxy, _| {
        let cluster = plane.cluster();
        let witness = Witness::start(&cluster).await?;
        cluster.create_nodes(&Nodes::new(3).gpus(8)).await?;
        let ring = Gang::new("ring", 3).gpus(8);
        let hold = proxy.rule(Fault::Hold, 100, Ask::is_bind);
        cluster.create_gang(&ring).await?;
        held(&hold, 3).await?;
        remove_pod(&cluster, "ring-0").await?;
        remove_pod(&cluster, "ring-1").await?;
        cluster.create(&pods("default"), &ring.pod(1)).await?;
        hold.lift();
        // The bind was for the old pod; the new one is bound with the third pod, once that exists
        // again.
        cluster
            .wait_for_pods("default", PATIENCE, |pods| pods.len() == 2 && bound(pods) == 1)
            .await?;
        cluster.create(&pods("default"), &ring.pod(0)).await?;
        cluster.wait_for_pods("default", PATIENCE, all_bound(3)).await?;
        group(&cluster, "ring", is_scheduled).await?;
        let story = witness.tells().await?;
        assert_eq!(story.lies(), Vec::<String>::new());
        assert_eq!(story.crowded(8), Vec::<String>::new());
        Ok(())
    })
}

/// Binds foreign pods one by one to nodes that have room at that moment, without regard to other
/// schedulers.
async fn rival(cluster: &Cluster, foreign: &Gang, nodes: usize) -> Result<()> {
    for index in 0..foreign.pods {
        cluster.create(&pods("default"), &foreign.pod(index)).await?;
        let now = cluster.pods("default").await?;
        let used = |node: &str| {
            now.iter().filter(|pod| pod.spec.node_name.as_deref() == Some(node)).count()
        };
        // A random node, the same in every run.
        let choices = (0..nodes).map(|at| format!("node-{}", (index * 7 + at) % nodes));
        let node =
            choices.into_iter().find(|node| used(node) < 4).ok_or("the rival finds no room")?;
        cluster.bind("default", &format!("{}-{index}", foreign.name), &node).await?;
    }
    Ok(())
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn room_that_a_rival_uses_is_left_alone() -> Result<()> {
    behind_a_proxy(Options::default(), &[], async |plane, proxy, _| {
        let cluster = plane.cluster();
        let witness = Witness::start(&cluster).await?;
        cluster.create_nodes(&Nodes::new(20).gpus(8)).await?;
        // Gives the rival time to act between decision and bind.
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
