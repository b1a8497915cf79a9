//! Our definitions on a real API server: it accepts them, and enforces their rules.

use muster_e2e::Result;
use muster_e2e::bed;
use muster_e2e::cluster::{Definitions, HYPERNODES, QUEUES, code, podgroups};
use muster_e2e::controlplane::Options;
use serde_json::{Value, json};

/// A spec, and what its refusal says; nothing where it is accepted.
type Case = (Value, &'static str);

fn queue_cases() -> Vec<Case> {
    vec![
        (json!({}), ""),
        (
            json!({ "weight": 4, "parent": "root", "reclaimable": false, "dequeueStrategy": "fifo" }),
            "",
        ),
        (json!({ "weight": 0 }), "spec.weight"),
        (json!({ "weight": 65536 }), "spec.weight"),
        (json!({ "priority": -1 }), "spec.priority"),
        (json!({ "dequeueStrategy": "lifo" }), "Unsupported value"),
        (
            json!({ "deserved": { "cpu": "4" }, "capability": { "cpu": "4000m", "memory": "1Gi" } }),
            "",
        ),
        (json!({ "deserved": { "cpu": 4 }, "capability": { "cpu": 5 } }), ""),
        (
            json!({ "deserved": { "cpu": "4" }, "capability": { "cpu": "3999m" } }),
            "deserved must not exceed",
        ),
        (
            json!({ "deserved": { "memory": "2Gi" }, "capability": { "memory": "2G" } }),
            "deserved must not exceed",
        ),
        (json!({ "deserved": { "cpu": "four" } }), "spec.deserved"),
        (json!({ "guarantee": { "resource": { "cpu": "2" } } }), ""),
        (json!({ "guarantee": { "resource": { "cpu": "2" } }, "deserved": { "cpu": "2" } }), ""),
        (
            json!({ "guarantee": { "resource": { "cpu": "3" } }, "deserved": { "cpu": "2" } }),
            "guarantee must not exceed",
        ),
        (
            json!({ "guarantee": { "resource": { "cpu": "3" } }, "deserved": { "memory": "2" } }),
            "needs a deserved amount",
        ),
        (json!({ "parent": "it" }), "a queue cannot be its own parent"),
    ]
}

fn podgroup_cases() -> Vec<Case> {
    vec![
        (json!({}), ""),
        (
            json!({ "minMember": 3, "queue": "research", "minResources": { "cpu": "3", "nvidia.com/gpu": 8 } }),
            "",
        ),
        (json!({ "minMember": 3, "minTaskMember": { "ps": 1, "worker": 2 } }), ""),
        (json!({ "minMember": -1 }), "spec.minMember"),
        (json!({ "minMember": "3" }), "spec.minMember"),
        (json!({ "networkTopology": { "mode": "hard", "highestTierAllowed": 2 } }), ""),
        (json!({ "networkTopology": { "mode": "near" } }), "Unsupported value"),
        (
            json!({ "networkTopology": { "highestTierAllowed": 2, "highestTierName": "rack" } }),
            "not both",
        ),
        (
            json!({ "subGroupPolicy": [{ "name": "a", "subGroupSize": 2, "matchLabelKeys": ["rank"] }] }),
            "",
        ),
        (json!({ "subGroupPolicy": [{ "name": "a", "subGroupSize": 0 }] }), "subGroupSize"),
        (
            json!({ "subGroupPolicy": [{ "name": "a", "networkTopology":
            { "highestTierAllowed": 2, "highestTierName": "rack" } }] }),
            "not both",
        ),
    ]
}

fn hypernode_cases() -> Vec<Case> {
    let member = |selector: Value| json!({ "tier": 1, "members": [{ "type": "Node", "selector": selector }] });
    vec![
        (member(json!({ "exactMatch": { "name": "node-1" } })), ""),
        (member(json!({ "regexMatch": { "pattern": "^node-[0-9]+$" } })), ""),
        (member(json!({ "labelMatch": { "matchLabels": { "rack": "7" } } })), ""),
        (member(json!({})), "set exactly one"),
        (
            member(json!({ "exactMatch": { "name": "n" }, "regexMatch": { "pattern": "n" } })),
            "set exactly one",
        ),
        (member(json!({ "regexMatch": { "pattern": "" } })), "pattern"),
        (json!({ "tier": 1, "members": [] }), "spec.members"),
        (json!({ "tier": 1 }), "spec.members"),
        (
            json!({ "tier": -1, "members": [{ "type": "Node", "selector": { "exactMatch": { "name": "n" } } }] }),
            "spec.tier",
        ),
        (
            json!({ "tier": 1, "members": [{ "type": "Pod", "selector": { "exactMatch": { "name": "n" } } }] }),
            "Unsupported value",
        ),
    ]
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
fn the_api_server_accepts_our_definitions_and_enforces_them() -> Result<()> {
    bed::test(Options::default(), async |plane| {
        let cluster = plane.cluster();
        cluster.install_crds(Definitions::Muster).await?;
        let mut wrong = Vec::new();
        for (kind, path, version, cases) in [
            ("Queue", QUEUES, "scheduling.volcano.sh/v1beta1", queue_cases()),
            ("PodGroup", &podgroups("default"), "scheduling.volcano.sh/v1beta1", podgroup_cases()),
            ("HyperNode", HYPERNODES, "topology.volcano.sh/v1alpha1", hypernode_cases()),
        ] {
            for (spec, refusal) in cases {
                let object = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "it" }, "spec": spec });
                match cluster.create(path, &object).await {
                    Ok(_) if refusal.is_empty() => cluster.delete(&format!("{path}/it")).await?,
                    Ok(_) => {
                        cluster.delete(&format!("{path}/it")).await?;
                        wrong.push(format!("{kind} {spec} was accepted"));
                    }
                    Err(error) if !refusal.is_empty() && error.to_string().contains(refusal) => (),
                    Err(error) => wrong.push(format!("{kind} {spec}: {error}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    })
}

#[test]
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
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
#[cfg_attr(not(has_go), ignore = "Go is not installed")]
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
