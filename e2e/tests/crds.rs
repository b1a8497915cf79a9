//! Our definitions on a real API server: it accepts them, and enforces their rules.

use muster_e2e::Result;
use muster_e2e::bed;
use muster_e2e::cluster::{Definitions, HYPERNODES, QUEUES, code, podgroups};
use muster_e2e::controlplane::Options;
use serde_json::{Value, json};

/// Objects by spec, and the server's error; none if it accepts them.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let queue = "Queue";
    let group = "PodGroup";
    let hypernode = "HyperNode";
    let member = |selector: Value| json!({ "tier": 1, "members": [{ "type": "Node", "selector": selector }] });
    vec![
        (queue, json!({}), ""),
        (
            queue,
            json!({ "weight": 4, "parent": "root", "reclaimable": false, "dequeueStrategy": "fifo" }),
            "",
        ),
        (queue, json!({ "weight": 0 }), "spec.weight"),
        (queue, json!({ "weight": 65536 }), "spec.weight"),
        (queue, json!({ "priority": -1 }), "spec.priority"),
        (queue, json!({ "dequeueStrategy": "lifo" }), "Unsupported value"),
        (
            queue,
            json!({ "deserved": { "cpu": "4" }, "capability": { "cpu": "4000m", "memory": "1Gi" } }),
            "",
        ),
        (queue, json!({ "deserved": { "cpu": 4 }, "capability": { "cpu": 5 } }), ""),
        (
            queue,
            json!({ "deserved": { "cpu": "4" }, "capability": { "cpu": "3999m" } }),
            "deserved must not exceed",
        ),
        (
            queue,
            json!({ "deserved": { "memory": "2Gi" }, "capability": { "memory": "2G" } }),
            "deserved must not exceed",
        ),
        (queue, json!({ "deserved": { "cpu": "four" } }), "spec.deserved"),
        (queue, json!({ "guarantee": { "resource": { "cpu": "2" } } }), ""),
        (
            queue,
            json!({ "guarantee": { "resource": { "cpu": "2" } }, "deserved": { "cpu": "2" } }),
            "",
        ),
        (
            queue,
            json!({ "guarantee": { "resource": { "cpu": "3" } }, "deserved": { "cpu": "2" } }),
            "guarantee must not exceed",
        ),
        (
            queue,
            json!({ "guarantee": { "resource": { "cpu": "3" } }, "deserved": { "memory": "2" } }),
            "needs a deserved amount",
        ),
        (queue, json!({ "parent": "it" }), "a queue cannot be its own parent"),
        (group, json!({}), ""),
        (
            group,
            json!({ "minMember": 3, "queue": "research", "minResources": { "cpu": "3", "nvidia.com/gpu": 8 } }),
            "",
        ),
        (group, json!({ "minMember": 3, "minTaskMember": { "ps": 1, "worker": 2 } }), ""),
        (group, json!({ "minMember": -1 }), "spec.minMember"),
        (group, json!({ "minMember": "3" }), "spec.minMember"),
        (group, json!({ "networkTopology": { "mode": "hard", "highestTierAllowed": 2 } }), ""),
        (group, json!({ "networkTopology": { "mode": "near" } }), "Unsupported value"),
        (
            group,
            json!({ "networkTopology": { "highestTierAllowed": 2, "highestTierName": "rack" } }),
            "not both",
        ),
        (
            group,
            json!({ "subGroupPolicy": [{ "name": "a", "subGroupSize": 2, "matchLabelKeys": ["rank"] }] }),
            "",
        ),
        (group, json!({ "subGroupPolicy": [{ "name": "a", "subGroupSize": 0 }] }), "subGroupSize"),
        (
            group,
            json!({ "subGroupPolicy": [{ "name": "a", "networkTopology":
            { "highestTierAllowed": 2, "highestTierName": "rack" } }] }),
            "not both",
        ),
        (hypernode, member(json!({ "exactMatch": { "name": "node-1" } })), ""),
        (hypernode, member(json!({ "regexMatch": { "pattern": "^node-[0-9]+$" } })), ""),
        (hypernode, member(json!({ "labelMatch": { "matchLabels": { "rack": "7" } } })), ""),
        (hypernode, member(json!({})), "set exactly one"),
        (
            hypernode,
            member(json!({ "exactMatch": { "name": "n" }, "regexMatch": { "pattern": "n" } })),
            "set exactly one",
        ),
        (hypernode, member(json!({ "regexMatch": { "pattern": "" } })), "pattern"),
        (hypernode, json!({ "tier": 1, "members": [] }), "spec.members"),
        (hypernode, json!({ "tier": 1 }), "spec.members"),
        (
            hypernode,
            json!({ "tier": -1, "members": [{ "type": "Node", "selector": { "exactMatch": { "name": "n" } } }] }),
            "spec.tier",
        ),
        (
            hypernode,
            json!({ "tier": 1, "members": [{ "type": "Pod", "selector": { "exactMatch": { "name": "n" } } }] }),
            "Unsupported value",
        ),
    ]
}

#[test]
fn the_api_server_accepts_our_definitions_and_enforces_them() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let mut wrong = Vec::new();
        for (kind, spec, refusal) in cases() {
            let (path, version) = match kind {
                "Queue" => (QUEUES.to_owned(), "scheduling.volcano.sh/v1beta1"),
                "PodGroup" => (podgroups("default"), "scheduling.volcano.sh/v1beta1"),
                _ => (HYPERNODES.to_owned(), "topology.volcano.sh/v1alpha1"),
            };
            let object = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "it" }, "spec": spec });
            match cluster.create(&path, &object).await {
                Ok(_) if refusal.is_empty() => cluster.delete(&format!("{path}/it")).await?,
                Ok(_) => {
                    cluster.delete(&format!("{path}/it")).await?;
                    wrong.push(format!("{kind} {spec} was accepted"));
                }
                Err(error) if !refusal.is_empty() && error.to_string().contains(refusal) => (),
                Err(error) => wrong.push(format!("{kind} {spec}: {error}")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
}

#[test]
fn the_api_server_fills_in_defaults_and_drops_what_it_does_not_know() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let group = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": { "name": "it" },
            "spec": { "minMember": 2, "networkTopology": {}, "colour": "red" },
        });
        let made = cluster.create(&podgroups("default"), &group).await?;
        assert_eq!(
            made["spec"],
            json!({ "minMember": 2, "queue": "default", "networkTopology": { "mode": "hard" } })
        );
        assert_eq!(made.get("status"), None, "a status is only written by a scheduler");
        let queue = json!({ "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": { "name": "it" } });
        let made = cluster.create(QUEUES, &queue).await?;
        assert_eq!(made["spec"], json!({ "weight": 1, "dequeueStrategy": "traverse" }));
        Ok(())
    })
}

#[test]
fn only_volcanos_podgroups_have_their_status_in_the_main_resource() -> Result<()> {
    for definitions in [Definitions::Muster, Definitions::Volcano] {
        bed::test(Options::default(), async |plane| {
            let cluster = plane.cluster();
            cluster.install_crds(definitions).await?;
            let group = muster_e2e::workload::Gang::new("it", 2).podgroup();
            cluster.create(&podgroups("default"), &group).await?;
            let path = format!("{}/it", podgroups("default"));
            let change = json!({ "status": { "phase": "Inqueue" } });
            let whole = cluster.patch(&path, &change).await?;
            let part = cluster.patch(&format!("{path}/status"), &change).await;
            match definitions {
                Definitions::Muster => {
                    assert_eq!(whole.get("status"), None, "ignored in the main resource");
                    assert_eq!(part?["status"]["phase"], "Inqueue");
                }
                Definitions::Volcano => {
                    assert_eq!(whole["status"]["phase"], "Inqueue");
                    assert_eq!(code(&part), Some(404));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
