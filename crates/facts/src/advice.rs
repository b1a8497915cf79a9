//! What a user could do so that a gang need not wait.

use muster_engine::explain::shown_text;
use muster_engine::ids::{GangId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::shares::{self, Division};
use muster_engine::{Bar, Engine, Histogram, Lack, Limit, Reason, Shown, Why};
use muster_text::counted;

use crate::amounts::listed;
use crate::domains;
use crate::queues::children;
use crate::room::Shortage;

/// How many nodes are named on which room should be freed.
const FREED: usize = 4;

/// What a user could do about each reason.
pub fn help(engine: &Engine, id: GangId, shortage: &Shortage) -> Vec<String> {
    let cluster = engine.cluster();
    let mut help: Vec<String> = Vec::new();
    for reason in &cluster.gangs[id].reasons {
        let advice = match reason {
            Reason::NoNodes { histogram, .. } => {
                help.extend(room_help(cluster, shortage, histogram));
                continue;
            }
            Reason::GroupMissing { group } => format!("create PodGroup {group}"),
            Reason::QueueMissing { queue } => format!("create queue {queue}, or name another one"),
            Reason::QueueClosed { queue, .. } => format!("open queue {queue}, or name another one"),
            Reason::QueueBroken { queue, .. } => format!("correct the parent of queue {queue}"),
            Reason::QueueHasChildren { queue } => {
                let below = children(cluster, cluster.queues.find(queue)).join(", ");
                format!("name a queue below {queue}: {below}")
            }
            Reason::ResourceClaims { pod } => format!("remove resourceClaims from pod {pod}"),
            Reason::NotAdmitted { limit, lack, .. } | Reason::OverLimit { limit, lack, .. } => {
                limit_help(engine, limit, lack)
            }
            Reason::NotAdmittedBehind { head } | Reason::Behind { head, .. } => {
                format!("see why the gang ahead of it waits: muster explain gang/{head}")
            }
            Reason::GaveAdmissionBack { .. } => {
                "wait: it is admitted again after the gangs that go first".to_owned()
            }
            Reason::Gated { pods } => {
                format!("remove the scheduling gates of {}", counted(u64::from(*pods), "pod"))
            }
            Reason::NoBackfill { .. } => {
                "add backfill to the configuration's actions after allocate, or let the pods request something"
                    .to_owned()
            }
            Reason::NotEnoughPods { have, need, gated } => {
                more_pods(need.saturating_sub(*have), *gated)
            }
            Reason::NotEnoughOfRole { role, have, need } => {
                let lack = counted(u64::from(need.saturating_sub(*have)), "more pod");
                format!("create {lack} of role {role}, or lower its minTaskMember")
            }
            Reason::NotEnoughSubgroups { rule, have, need } => {
                let lack = counted(u64::from(need.saturating_sub(*have)), "more subgroup");
                format!("create the pods of {lack} of {rule}, or lower its minSubGroups")
            }
            Reason::NotEnoughOfSubgroup { subgroup, have, need } => {
                let lack = counted(u64::from(need.saturating_sub(*have)), "more pod");
                format!("create {lack} of subgroup {subgroup}, or lower its subGroupSize")
            }
            Reason::NoSuchTier { tier } => format!("name a tier that a HyperNode has instead of {tier}"),
            Reason::TooFarApart { tier, .. } => {
                format!("allow tier {tier}, or delete the pods that are too far away, so that it starts again")
            }
            Reason::NeverPreempts { .. } => {
                "wait for free room, or remove preemptionPolicy: Never".to_owned()
            }
            Reason::NeverMoves { .. } => "wait for free room, or make the gang preemptable".to_owned(),
            // Other reasons of the gang say which room it lacks.
            Reason::NothingToTake { .. } if !help.is_empty() => continue,
            Reason::NominationsLost { .. } => continue,
            Reason::NothingToTake { .. } => "wait for room, or add nodes".to_owned(),
            Reason::OutdoesSibling { sibling, .. } => {
                format!(
                    "wait until queue {sibling} has more than its share, or raise what its own queue deserves"
                )
            }
            Reason::LikeAnother { gang, .. } => format!("see why: muster explain gang/{gang}"),
            Reason::NotAttempted { .. } => "wait: the search continues in the next cycle".to_owned(),
            Reason::DomainsNotTried { limit, .. } => format!("raise {limit}"),
            Reason::NoDomain { wanted, subgroup, near, .. } => {
                domains::help(cluster, id, (*wanted, subgroup.as_deref()), near)
            }
            Reason::Backoff { until, .. } => format!("wait until {until}"),
            Reason::NotBound { preemptor, .. } => outranked_by(preemptor),
            Reason::Nominated { .. } => "wait: its nodes are being freed".to_owned(),
        };
        help.push(advice);
    }
    help.dedup();
    help
}

fn outranked_by(preemptor: &str) -> String {
    format!("wait for free room, or raise its priority above that of {preemptor}")
}

fn more_pods(lack: u32, gated: u32) -> String {
    match gated >= lack {
        true => format!("remove the scheduling gates of {}", counted(u64::from(lack), "pod")),
        false => format!(
            "create {} with schedulerName volcano or muster, or lower minMember",
            counted(u64::from(lack), "more pod")
        ),
    }
}

fn limit_help(engine: &Engine, limit: &Limit, lack: &Lack) -> String {
    let cluster = engine.cluster();
    let short = (lack.used + lack.want - lack.limit).max(0);
    let amount = format!(
        "{} {}",
        cluster.dimensions.show(lack.resource, short),
        cluster.dimensions.name(lack.resource)
    );
    match limit {
        Limit::Cluster => format!("wait until {amount} more can be admitted, or add nodes with it"),
        Limit::Capability(queue) => {
            format!(
                "raise the capability of queue {queue} by {amount}, or wait for that much to become free"
            )
        }
        Limit::Deserved(queue) => {
            format!(
                "raise what queue {queue} deserves by {amount}, or wait for that much to become free"
            )
        }
        Limit::DeservedBelow { queue, above, .. } => {
            let levels = levels_between(engine, queue, above);
            format!(
                "set ancestorReclaimLevel of capacity to {levels}, or raise what queue {queue} deserves by {amount}"
            )
        }
        Limit::FairShare(queue) => {
            let weight =
                if weight_counts(engine, queue, lack.resource) { " or its weight" } else { "" };
            // A gang that would have to request nothing is not helped by requesting less.
            let less = if short < lack.want {
                format!(", or request {amount} less")
            } else {
                String::new()
            };
            format!("raise what queue {queue} deserves{weight}{less}: muster fairshare")
        }
        Limit::DeservedForGood(queue) => {
            format!("raise what queue {queue} deserves by {amount}, or make the gang preemptable")
        }
        Limit::Namespace(space) => {
            format!("raise the resource quota of namespace {space} by {amount}")
        }
    }
}

/// How many levels a queue is below another.
fn levels_between(engine: &Engine, queue: &str, above: &str) -> usize {
    let queues = &engine.cluster().queues;
    let lineage = queues.find(queue).map(|queue| &queues[queue].lineage);
    let is_above = |at: &QueueId| *queues[*at].name == *above;
    lineage.and_then(|lineage| lineage.iter().position(is_above)).unwrap_or_default()
}

/// Whether anything is divided by weight among a queue and its siblings, which is so if something
/// is left once all have what they deserve.
fn weight_counts(engine: &Engine, queue: &str, resource: ResourceId) -> bool {
    let rules = engine.policy().fairness();
    let (Some(rules), Some(queue)) = (rules, engine.cluster().queues.find(queue)) else {
        return true;
    };
    let divisions = shares::trace(engine.cluster(), rules.tree, rules.k_ppm, resource);
    let own = |division: &&Division| division.portions.iter().any(|portion| portion.queue == queue);
    divisions.iter().find(own).is_none_or(|division| !division.steps.tiers.is_empty())
}

fn room_help(cluster: &Cluster, shortage: &Shortage, histogram: &Histogram) -> Vec<String> {
    let mut help = Vec::new();
    let mut freed: Vec<_> = shortage.free.iter().collect();
    freed.sort_by_key(|(node, _)| cluster.nodes.rank[**node]);
    for (node, lacks) in freed.iter().take(FREED) {
        let lacks = listed(cluster, lacks.iter().map(|(&resource, &amount)| (resource, amount)));
        help.push(format!("free {lacks} on {}", cluster.nodes.name[**node]));
    }
    if freed.len() > FREED {
        help.push(format!(
            "and the same on {}",
            counted((freed.len() - FREED) as u64, "more node")
        ));
    }
    if let Some((pod, pods)) = shortage.too_large {
        let request = cluster.shapes[cluster.pods.shape[pod]]
            .request
            .iter()
            .filter(|(resource, _)| resource.0 != 0);
        let nodes = counted(u64::from(pods), "node");
        help.push(format!(
            "add {nodes} with room for {}: no node is large enough",
            listed(cluster, request)
        ));
    }
    if let Some((pod, pods)) = shortage.too_many {
        let request = cluster.shapes[cluster.pods.shape[pod]]
            .request
            .iter()
            .filter(|(resource, _)| resource.0 != 0);
        let pods = counted(u64::from(pods), "more pod");
        help.push(format!(
            "add room for {pods} of {}: all nodes together are too small",
            listed(cluster, request)
        ));
    }
    if shortage.unwelcome.is_some() || help.is_empty() {
        help.extend(histogram.bars.iter().filter_map(|bar| welcome_help(cluster, bar)));
    }
    help
}

/// What could make nodes usable that were left out for other reasons than room.
fn welcome_help(cluster: &Cluster, bar: &Bar) -> Option<String> {
    let nodes = counted(u64::from(bar.nodes), "node");
    Some(match &bar.why {
        Shown::Short { .. } => return None,
        Shown::Tainted(key) => format!("tolerate the taint {key}: {nodes}"),
        Shown::Plain(Why::Cordoned) => format!("uncordon {nodes}"),
        Shown::Plain(Why::NotReady) => format!("repair {nodes}, not ready now"),
        Shown::Plain(Why::Affinity) => {
            format!("change the node selector or affinity, or label nodes to match it: {nodes}")
        }
        Shown::Plain(Why::ClaimMissing) => "create the volume claim that it uses".to_owned(),
        Shown::Rule(Why::Apart(_), key) => {
            format!("relax its anti-affinity by {key}, or add nodes: {nodes} taken")
        }
        Shown::Rule(Why::Spread(_), key) => {
            format!("relax its topology spread by {key}: {nodes} left out")
        }
        other => format!("{nodes} left out: {}", shown_text(other, &cluster.dimensions)),
    })
}
