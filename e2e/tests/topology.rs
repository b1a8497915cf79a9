//! Gangs close together in a network of 1,000 nodes, and the status of HyperNodes.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use muster_api::core::Pod;
use muster_e2e::checks::{PATIENCE, group, is_scheduled, is_unschedulable, remove, remove_pod};
use muster_e2e::cluster::{Cluster, Definitions, HYPERNODES, pods, wait};
use muster_e2e::controlplane::{ControlPlane, Options};
use muster_e2e::scheduler::Scheduler;
use muster_e2e::workload::{Gang, Nodes};
use muster_e2e::{Result, bed};
use serde_json::{Value, json};

/// 31 leaves of 32 nodes, and one with the remaining 8 of 1,000.
const LEAVES: usize = 32;
const LEAF: usize = 32;
const LAST_LEAF: usize = 8;
/// How many leaves a spine has.
const SPINE: usize = 8;

fn with_kwok() -> Options {
    Options { kwok: true, ..Options::default() }
}

fn hypernode(name: &str, tier: u32, members: Vec<Value>) -> Value {
    json!({
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": { "name": name },
        "spec": { "tier": tier, "members": members },
    })
}

fn member(kind: &str, selector: Value) -> Value {
    json!({ "type": kind, "selector": selector })
}

fn exact(kind: &str, name: &str) -> Value {
    member(kind, json!({ "exactMatch": { "name": name } }))
}

fn pattern(kind: &str, pattern: &str) -> Value {
    member(kind, json!({ "regexMatch": { "pattern": pattern } }))
}

fn labelled(kind: &str, key: &str, value: &str) -> Value {
    member(kind, json!({ "labelMatch": { "matchLabels": { key: value } } }))
}

fn hard(tier: u32) -> Value {
    json!({ "mode": "hard", "highestTierAllowed": tier })
}

fn size(leaf: usize) -> usize {
    if leaf == LEAVES - 1 { LAST_LEAF } else { LEAF }
}

/// Nodes `leaf00-0` … in leaves, leaves in spines; each third leaf and spine by names, by a
/// pattern, by labels.
async fn create_network(cluster: &Cluster) -> Result<()> {
    let mut domains = Vec::new();
    for leaf in 0..LEAVES {
        let name = format!("leaf{leaf:02}");
        let nodes = Nodes::new(size(leaf)).prefix(&name).label("leaf", &name).gpus(8);
        cluster.create_nodes(&nodes).await?;
        let members = match leaf % 3 {
            0 => (0..size(leaf)).map(|index| exact("Node", &format!("{name}-{index}"))).collect(),
            1 => vec![pattern("Node", &format!("^{name}-[0-9]+$"))],
            _ => vec![labelled("Node", "leaf", &name)],
        };
        let mut domain = hypernode(&name, 1, members);
        domain["metadata"]["labels"] = json!({ "spine": format!("spine{}", leaf / SPINE) });
        domains.push(domain);
    }
    for spine in 0..LEAVES / SPINE {
        let name = format!("spine{spine}");
        let leaves: Vec<String> =
            (spine * SPINE..(spine + 1) * SPINE).map(|leaf| format!("leaf{leaf:02}")).collect();
        let members = match spine % 3 {
            0 => leaves.iter().map(|leaf| exact("HyperNode", leaf)).collect(),
            1 => vec![pattern("HyperNode", &format!("^({})$", leaves.join("|")))],
            _ => vec![labelled("HyperNode", "spine", &name)],
        };
        domains.push(hypernode(&name, 2, members));
    }
    cluster.create_all(HYPERNODES, domains).await
}

/// The nodes of a gang's pods that are bound, by the pods' names.
async fn places(cluster: &Cluster, gang: &str) -> Result<BTreeMap<String, String>> {
    let mine = |pod: &Pod| pod.metadata.name.rsplit_once('-').is_some_and(|(name, _)| name == gang);
    let place = |pod: Pod| Some((pod.metadata.name, pod.spec.node_name?));
    Ok(cluster.pods("default").await?.into_iter().filter(mine).filter_map(place).collect())
}

fn leaves(places: &BTreeMap<String, String>) -> BTreeSet<String> {
    places.values().filter_map(|node| Some(node.split_once('-')?.0.to_owned())).collect()
}

fn spines(places: &BTreeMap<String, String>) -> BTreeSet<usize> {
    leaves(places)
        .iter()
        .filter_map(|leaf| Some(leaf[4..].parse::<usize>().ok()? / SPINE))
        .collect()
}

/// Creates a gang and waits until it runs.
async fn run(cluster: &Cluster, gang: &Gang) -> Result<BTreeMap<String, String>> {
    cluster.create_gang(gang).await?;
    group(cluster, &gang.group, is_scheduled).await?;
    places(cluster, &gang.name).await
}

async fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(plane.kubectl());
    let output = command.arg("--kubeconfig").arg(plane.kubeconfig()).args(arguments).output()?;
    Ok(String::from_utf8(output.stdout)?)
}

/// Waits for something in the status of a HyperNode.
async fn domain(cluster: &Cluster, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let path = format!("{HYPERNODES}/{name}");
    wait(PATIENCE, async || {
        let domain: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        if wanted(&domain["status"]) {
            Ok(domain)
        } else {
            Err(format!("{name}: {}", domain["status"]))
        }
    })
    .await
}

fn healthy(status: &Value) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Healthy")
}

/// Whether a HyperNode is in the tree, or the reason why not.
fn says(reason: &str) -> impl Fn(&Value) -> bool {
    move |status| healthy(status).is_some_and(|condition| condition["reason"] == reason)
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn gangs_stay_close_in_a_network_of_1000_nodes() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        create_network(&cluster).await?;
        let mut first = Scheduler::start(plane, "first", &[]).await?;
        the_table_counts_nodes(plane, &cluster).await?;
        hard_gangs_stay_together(&cluster).await?;
        subgroups_stay_together(&cluster).await?;
        assert_eq!(first.server.stop().await?, 0, "SIGTERM ends it cleanly");
        first.replay()?;

        let before = cluster.pods("default").await?;
        let mut second = Scheduler::start(plane, "second", &[]).await?;
        a_lost_pod_returns_or_waits(&cluster).await?;
        nothing_has_moved(&before, &cluster.pods("default").await?);
        assert_eq!(second.server.stop().await?, 0, "SIGTERM ends it cleanly");
        second.replay()
    })
}

async fn the_table_counts_nodes(plane: &ControlPlane, cluster: &Cluster) -> Result<()> {
    for leaf in 0..LEAVES {
        domain(cluster, &format!("leaf{leaf:02}"), |status| status["nodeCount"] == size(leaf))
            .await?;
    }
    for (spine, nodes) in [256, 256, 256, 232].into_iter().enumerate() {
        domain(cluster, &format!("spine{spine}"), |status| status["nodeCount"] == nodes).await?;
    }
    let table = kubectl(plane, &["get", "hypernode"]).await?;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "TIER", "TIERNAME", "NODECOUNT", "AGE"], "{table}");
    // The column TIERNAME is empty.
    let row = |name: &str| rows.iter().find(|row| row[0] == name).map(|row| row[1..3].to_vec());
    assert_eq!(row("leaf00"), Some(vec!["1", "32"]), "{table}");
    assert_eq!(row("leaf31"), Some(vec!["1", "8"]), "{table}");
    assert_eq!(row("spine1"), Some(vec!["2", "256"]), "{table}");
    assert_eq!(row("spine3"), Some(vec!["2", "232"]), "{table}");
    Ok(())
}

async fn hard_gangs_stay_together(cluster: &Cluster) -> Result<()> {
    let leaf = Gang::new("leaf", LEAF).gpus(8).spec("networkTopology", hard(1));
    let found = run(cluster, &leaf).await?;
    assert_eq!((found.len(), leaves(&found).len()), (LEAF, 1), "{found:?}");
    let spine = Gang::new("spine", 2 * LEAF).gpus(8).spec("networkTopology", hard(2));
    let found = run(cluster, &spine).await?;
    assert_eq!((found.len(), spines(&found).len()), (2 * LEAF, 1), "{found:?}");

    let wide = Gang::new("wide", LEAF + 1).gpus(8).spec("networkTopology", hard(1));
    cluster.create_gang(&wide).await?;
    let waits = group(cluster, "wide", is_unschedulable).await?;
    let condition = &waits["status"]["conditions"][0];
    assert_eq!(condition["reason"], "NotEnoughResourcesInDomain", "{condition}");
    assert!(
        condition["message"].as_str().is_some_and(|text| text.contains("tier 1")),
        "{condition}"
    );
    assert_eq!(places(cluster, "wide").await?.len(), 0, "a gang that does not fit uses nothing");
    remove(cluster, &wide).await
}

/// Each of four subgroups in a leaf of its own, all of them in one spine.
async fn subgroups_stay_together(cluster: &Cluster) -> Result<()> {
    let policy = json!([{
        "name": "stage",
        "subGroupSize": LEAF / 2,
        "minSubGroups": 4,
        "matchLabelKeys": ["stage"],
        "networkTopology": hard(1),
    }]);
    let stage = |index: usize| {
        let gang = Gang::new(&format!("stage{index}"), LEAF / 2).group("pipeline").gpus(8);
        gang.label("stage", &index.to_string())
    };
    let pipeline =
        stage(0).min(2 * LEAF).spec("networkTopology", hard(2)).spec("subGroupPolicy", policy);
    for index in 1..4 {
        cluster.create_pods(&stage(index)).await?;
    }
    cluster.create_gang(&pipeline).await?;
    group(cluster, "pipeline", is_scheduled).await?;
    let mut all = BTreeMap::new();
    for index in 0..4 {
        let found = places(cluster, &stage(index).name).await?;
        assert_eq!((found.len(), leaves(&found).len()), (LEAF / 2, 1), "{found:?}");
        all.extend(found);
    }
    assert_eq!(spines(&all).len(), 1, "{all:?}");
    Ok(())
}

/// A pod of a gang that fills its leaf dies. While another pod uses its place the successor waits,
/// however much is free elsewhere.
async fn a_lost_pod_returns_or_waits(cluster: &Cluster) -> Result<()> {
    let leaf = Gang::new("leaf", LEAF).gpus(8);
    let home = leaves(&places(cluster, "leaf").await?);
    let returned = async |index| {
        wait(PATIENCE, async || {
            let found = places(cluster, "leaf").await.map_err(|error| error.to_string())?;
            if found.len() == LEAF {
                Ok(leaves(&found))
            } else {
                // kwok may delete a successor by the name of the pod before it. A controller would
                // create it again; while it exists, that is a conflict.
                let _ = cluster.create(&pods("default"), &leaf.pod(index)).await;
                Err(format!("{} are bound", found.len()))
            }
        })
        .await
    };
    remove_pod(cluster, "leaf-5").await?;
    cluster.create(&pods("default"), &leaf.pod(5)).await?;
    assert_eq!(returned(5).await?, home);

    let place = places(cluster, "leaf").await?["leaf-7"].clone();
    remove_pod(cluster, "leaf-7").await?;
    let selector = json!({ "kubernetes.io/hostname": place });
    let squatter = Gang::new("squatter", 1).gpus(8).pod_spec("nodeSelector", selector);
    run(cluster, &squatter).await?;
    cluster.create(&pods("default"), &leaf.pod(7)).await?;
    let waits = group(cluster, "leaf", is_unschedulable).await?;
    assert_eq!(places(cluster, "leaf").await?.len(), LEAF - 1, "{waits}");
    // Another gang finds room at once.
    run(cluster, &Gang::new("other", LEAF).gpus(8).spec("networkTopology", hard(1))).await?;
    assert_eq!(leaves(&places(cluster, "leaf").await?), home);
    remove(cluster, &squatter).await?;
    assert_eq!(returned(7).await?, home);
    Ok(())
}

/// A pod that was bound before and still exists is on the same node.
fn nothing_has_moved(before: &[Pod], after: &[Pod]) {
    let place = |pod: &Pod| (pod.metadata.uid.clone(), pod.spec.node_name.clone());
    let after: BTreeMap<String, Option<String>> = after.iter().map(place).collect();
    for pod in before {
        if let Some(node) = after.get(&pod.metadata.uid) {
            assert_eq!(node, &pod.spec.node_name, "{}", pod.metadata.name);
        }
    }
    assert!(before.iter().filter(|pod| after.contains_key(&pod.metadata.uid)).count() > 4 * LEAF);
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn a_malformed_hypernode_is_reported_and_the_rest_is_scheduled() -> Result<()> {
    bed::test(with_kwok(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let mut scheduler = Scheduler::start(plane, "muster", &[]).await?;
        for name in ["a", "b"] {
            cluster.create_nodes(&Nodes::new(2).prefix(name).label("rack", name).gpus(8)).await?;
            let rack = hypernode(&format!("rack-{name}"), 1, vec![labelled("Node", "rack", name)]);
            cluster.create(HYPERNODES, &rack).await?;
        }
        for name in ["rack-a", "rack-b"] {
            let found = domain(&cluster, name, |status| status["nodeCount"] == 2).await?;
            assert!(says("InTree")(&found["status"]), "{found}");
        }
        malformed_ones_say_what_to_change(&cluster).await?;
        let pair = Gang::new("pair", 2).gpus(8).spec("networkTopology", hard(1));
        let found = run(&cluster, &pair).await?;
        let racks: BTreeSet<&str> = found.values().map(|node| &node[..1]).collect();
        assert_eq!(racks.len(), 1, "{found:?}");
        others_conditions_are_kept(&cluster).await?;
        assert_eq!(
            scheduler
                .metric("muster_write_errors_total", "kind=\"hypernode_status\",cause=\"refused\"")
                .await?,
            0.0
        );
        assert_eq!(scheduler.server.stop().await?, 0, "SIGTERM ends it cleanly");
        scheduler.replay()
    })
}

async fn malformed_ones_say_what_to_change(cluster: &Cluster) -> Result<()> {
    // The age of an object is in seconds: of two equally old ones the first by name counts as
    // older.
    for (name, tier, members) in [
        ("x-thief", 1, vec![exact("Node", "a-0"), exact("Node", "a-1")]),
        ("x-pattern", 1, vec![pattern("Node", "a-(")]),
        ("x-snake", 3, vec![exact("HyperNode", "x-snake")]),
        ("x-flat", 1, vec![exact("HyperNode", "rack-b")]),
    ] {
        cluster.create(HYPERNODES, &hypernode(name, tier, members)).await?;
    }
    for (name, reason, words) in [
        ("x-thief", "NodeClaimedTwice", "its node a-0 is in rack-a already"),
        ("x-pattern", "MemberInvalid", "missing closing )"),
        ("x-snake", "MemberOfItself", "x-snake > x-snake"),
        // The lower one has the wrong tier.
        ("rack-b", "TierNotBelowParent", "below x-flat"),
    ] {
        let found = domain(cluster, name, says(reason)).await?;
        let condition = healthy(&found["status"]).ok_or("a condition")?;
        assert_eq!(condition["status"], "False");
        assert!(
            condition["message"].as_str().is_some_and(|text| text.contains(words)),
            "{condition}"
        );
        assert!(condition["lastTransitionTime"].is_string(), "{condition}");
    }
    // Outside the tree they count the nodes that they select.
    domain(cluster, "x-thief", |status| status["nodeCount"] == 2).await?;
    domain(cluster, "rack-b", |status| status["nodeCount"] == 2).await?;
    domain(cluster, "rack-a", says("InTree")).await?;
    Ok(())
}

/// Another writer's condition stays, with all its fields, while ours changes.
async fn others_conditions_are_kept(cluster: &Cluster) -> Result<()> {
    let path = format!("{HYPERNODES}/x-flat");
    let theirs = json!({
        "type": "Cabled",
        "status": "False",
        "reason": "CableMissing",
        "message": "",
        "lastTransitionTime": "2024-05-01T10:00:00Z",
        "observedGeneration": 3,
    });
    let found = domain(cluster, "x-flat", says("InTree")).await?;
    let mut conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.push(theirs.clone());
    cluster
        .patch(&format!("{path}/status"), &json!({ "status": { "conditions": conditions } }))
        .await?;
    let tier = json!({ "spec": { "tier": 2, "members": [exact("HyperNode", "rack-b"), exact("HyperNode", "x-flat")] } });
    cluster.patch(&path, &tier).await?;
    let found = domain(cluster, "x-flat", says("MemberOfItself")).await?;
    assert!(
        found["status"]["conditions"].as_array().is_some_and(|all| all.contains(&theirs)),
        "{found}"
    );
    cluster.delete(&path).await?;
    domain(cluster, "rack-b", says("InTree")).await?;
    Ok(())
}
