//! What there is to say of a pod, gang or queue, as data.

use std::collections::BTreeMap;

use muster_api::{DequeueStrategy, Time};
use muster_engine::explain::{self, shown_text};
use muster_engine::ids::{GangId, PodId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::shares::{self, Division};
use muster_engine::trace::TakingBack;
use muster_engine::{Engine, Lack, Limit, Reason, Shown, Sparse, Why};
use muster_engine::{Fate, Staleness};
use muster_text::counted;
use serde::Serialize;

use crate::claims::{self, ClaimFacts};
use crate::domains::{self, ClosestDomain};
use crate::lines::{GangLine, QueueLine, gang_line, queue_line};
use crate::promises::{self, FindPod, PromiseFacts};
use crate::room::{self, Shortage};
use crate::target::Target;

/// So many nodes are told for each pod that others could make room for, and so many domains for
/// each gang, unless more are asked for.
pub const NODES_SHOWN: usize = 10;
/// So many gangs that wait in a queue are listed.
const WAITING: usize = 20;
/// So many nodes are named where something should be freed.
const FREED: usize = 4;

#[derive(Serialize)]
pub struct Explanation {
    /// The time of the last cycle.
    pub now: String,
    #[serde(flatten)]
    pub subject: Subject,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Subject {
    Pod(Box<PodFacts>),
    Gang(Box<GangFacts>),
    Queue(Box<QueueFacts>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFacts {
    pub name: String,
    pub state: &'static str,
    pub node: Option<String>,
    /// Since when it runs.
    pub since: Option<String>,
    pub running_ms: Option<i64>,
    /// When it ends by its own estimate.
    pub ends: Option<String>,
    /// The rule that keeps it from being evicted.
    pub protected_by: Option<&'static str>,
    /// Nothing for a pod of another scheduler.
    pub gang: Option<GangFacts>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GangFacts {
    #[serde(flatten)]
    pub line: GangLine,
    pub gated: u32,
    pub waiting_since: Option<String>,
    pub waiting_ms: Option<i64>,
    /// If it holds places for less than it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<StaleFacts>,
    pub roles: Vec<RoleFacts>,
    /// How many of its pods are on each node.
    pub places: BTreeMap<String, u32>,
    /// Where the first pod that fits nowhere came closest.
    pub closest: Vec<ClosestNode>,
    /// Where its pods came closest to being together.
    pub closest_domains: Vec<ClosestDomain>,
    /// The places that it was promised.
    pub promises: Vec<PromiseFacts>,
    /// Where others could make room for it, by action; only for one that starves.
    pub claims: Vec<ClaimFacts>,
    pub help: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StaleFacts {
    pub since: String,
    pub stale_ms: i64,
    /// What it lacks, in words.
    pub lacks: String,
    /// What becomes of it, in words; and when it leaves, or what keeps it.
    pub fate: String,
    pub leaves: Option<String>,
    pub kept_by: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleFacts {
    pub name: Option<String>,
    pub min_member: u32,
    pub running: u32,
    pub pending: u32,
}

#[derive(Serialize)]
pub struct ClosestNode {
    pub node: String,
    pub lacks: BTreeMap<String, String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueFacts {
    #[serde(flatten)]
    pub line: QueueLine,
    pub state: String,
    pub priority: i32,
    pub strategy: &'static str,
    pub children: Vec<String>,
    /// Itself and the queues above it, with their limits.
    pub lineage: Vec<Level>,
    /// In the order in which they are served; the first is the head of the line.
    pub waiting: Vec<Waiting>,
    pub waiting_in_all: usize,
    /// Whether it takes back what is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_back: Option<TakesBack>,
}

/// What a queue takes back for the first gang that lacks room.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakesBack {
    pub action: &'static str,
    pub gang: String,
    /// Why it takes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Those who give, the first first.
    pub from: Vec<String>,
    /// Those who keep what they have, with the rule.
    pub kept: Vec<(String, &'static str)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Level {
    pub name: String,
    pub allocated: BTreeMap<String, String>,
    pub guarantee: BTreeMap<String, String>,
    pub deserved: BTreeMap<String, String>,
    pub capability: BTreeMap<String, String>,
}

#[derive(Serialize)]
pub struct Waiting {
    pub gang: String,
    pub reason: &'static str,
    pub message: String,
}

/// How to look at something.
pub struct Look<'o> {
    /// The time of the last cycle.
    pub now: Time,
    /// So many of the nodes on which others could be asked to leave are told.
    pub nodes: usize,
    /// Finds the object of a pod by its key, where there are objects beside the engine.
    pub find_pod: FindPod<'o>,
}

/// What the engine knows of something after its last cycle. It is as before afterwards.
pub fn explain(engine: &mut Engine, target: Target, look: &Look) -> Explanation {
    let subject = match target {
        Target::Pod(pod) => {
            let gang = engine.cluster().pods.gang[pod];
            let gang = gang.map(|gang| gang_facts(engine, gang, look));
            Subject::Pod(Box::new(pod_facts(engine, look.now, pod, gang)))
        }
        Target::Gang(gang) => Subject::Gang(Box::new(gang_facts(engine, gang, look))),
        Target::Queue(queue) => Subject::Queue(Box::new(queue_facts(engine, queue, look.now))),
    };
    Explanation { now: look.now.to_string(), subject }
}

fn pod_facts(engine: &Engine, now: Time, id: PodId, of: Option<GangFacts>) -> PodFacts {
    let cluster = engine.cluster();
    let fact = &cluster.pods.fact[id];
    let state = cluster.pods.state[id];
    let gang = cluster.pods.gang[id];
    let on_node = state.occupies();
    let estimate = fact.estimate().or_else(|| gang.and_then(|gang| cluster.gangs[gang].estimate));
    let ends = fact.started.zip(estimate).map(|(started, run)| started.plus_ms(run));
    PodFacts {
        name: fact.key.to_string(),
        state: match state {
            PodState::Gated => "Gated",
            PodState::Pending => "Pending",
            PodState::Nominated(_) => "Nominated",
            PodState::Allocated(_) => "Bound",
            // Bound pods count as running; the kubelet may not have started this one.
            PodState::Running(_) if fact.started.is_none() => "Bound",
            PodState::Running(_) => "Running",
            PodState::Releasing(_) => "Terminating",
            PodState::Succeeded => "Succeeded",
            PodState::Failed => "Failed",
        },
        node: state.node().map(|node| cluster.nodes.name[node].to_string()),
        since: fact.started.filter(|_| on_node).map(|time| time.to_string()),
        running_ms: fact.started.filter(|_| on_node).map(|time| now.0 - time.0),
        ends: ends.filter(|_| on_node).map(|time| time.to_string()),
        protected_by: engine.policy().protects(cluster, id).filter(|_| on_node),
        gang: of,
    }
}

fn gang_facts(engine: &mut Engine, id: GangId, look: &Look) -> GangFacts {
    let claims = claims::facts(engine, id, look.now, look.nodes);
    let (engine, now) = (&*engine, look.now);
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    let line = gang_line(cluster, id);
    let role = |role: &muster_engine::model::gangs::Role| RoleFacts {
        name: role.name.map(|name| cluster.names.text(name).to_string()),
        min_member: role.minimum,
        running: role.counts.running + role.counts.allocated,
        pending: role.counts.pending + role.counts.gated + role.counts.nominated,
    };
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    for node in
        gang.pods.iter().map(|&pod| cluster.pods.state[pod]).filter(|state| state.occupies())
    {
        let node = node.node().expect("what occupies a node has one");
        *places.entry(cluster.nodes.name[node].to_string()).or_default() += 1;
    }
    let waits = !line.reasons.is_empty();
    let no_room =
        waits && gang.reasons.iter().any(|reason| matches!(reason, Reason::NoNodes { .. }));
    let shortage = if no_room { room::shortage(engine, id) } else { Shortage::default() };
    let since: Option<Time> = gang.waiting_since.or(gang.condition.since).filter(|_| waits);
    GangFacts {
        gated: gang.counts.gated,
        waiting_since: since.map(|time| time.to_string()),
        waiting_ms: since.map(|time| now.0 - time.0),
        stale: engine.staleness(id, now).map(|stale| stale_facts(cluster, &stale, now)),
        roles: gang.roles.iter().map(role).collect(),
        places,
        closest: closest(cluster, &shortage),
        closest_domains: if waits { domains::closest(cluster, id) } else { Vec::new() },
        promises: promises::facts(cluster, id, look.find_pod),
        claims,
        help: match gang.counts.gated {
            _ if waits => help(engine, id, &shortage),
            0 => Vec::new(),
            gated => {
                vec![format!("remove the scheduling gates of {}", counted(u64::from(gated), "pod"))]
            }
        },
        line,
    }
}

fn stale_facts(cluster: &Cluster, stale: &Staleness, now: Time) -> StaleFacts {
    StaleFacts {
        since: stale.since.to_string(),
        stale_ms: now.0 - stale.since.0,
        lacks: explain::staleness(cluster, stale),
        fate: explain::fate(stale.fate),
        leaves: match stale.fate {
            Fate::Leaves(time) => Some(time.to_string()),
            _ => None,
        },
        kept_by: match stale.fate {
            Fate::Kept(rule) => Some(rule),
            _ => None,
        },
    }
}

fn closest(cluster: &Cluster, shortage: &Shortage) -> Vec<ClosestNode> {
    let node = |(node, lacks): &(muster_engine::ids::NodeId, Vec<(ResourceId, i64)>)| ClosestNode {
        node: cluster.nodes.name[*node].to_string(),
        lacks: amounts(cluster, lacks.iter().copied()),
    };
    shortage.closest.iter().map(node).collect()
}

/// What someone could do about each reason.
fn help(engine: &Engine, id: GangId, shortage: &Shortage) -> Vec<String> {
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
                format!("help the gang before it: muster explain gang/{head}")
            }
            Reason::GaveAdmissionBack { .. } => {
                "wait: it is let in again after those it let go first".to_owned()
            }
            Reason::Gated { pods } => {
                format!("remove the scheduling gates of {}", counted(u64::from(*pods), "pod"))
            }
            Reason::NoBackfill { .. } => {
                "add backfill to the configuration's actions after allocate, or let the pods request something"
                    .to_owned()
            }
            Reason::NotEnoughPods { have, need, gated } => match need.saturating_sub(*have) {
                lack if *gated >= lack => {
                    format!("remove the scheduling gates of {}", counted(u64::from(lack), "pod"))
                }
                lack => format!(
                    "create {} with schedulerName volcano or muster, or lower minMember",
                    counted(u64::from(lack), "more pod")
                ),
            },
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
                format!("allow tier {tier}, or let it start anew: delete the pods that are too far away")
            }
            Reason::NeverPreempts { .. } => {
                "wait for free room, or remove preemptionPolicy: Never".to_owned()
            }
            Reason::NeverMoves { .. } => {
                "wait for free room, or let the gang be evicted (preemptable)".to_owned()
            }
            // What else is said tells which room.
            Reason::NothingToTake { .. } if !help.is_empty() => continue,
            Reason::NothingToTake { .. } => "wait for room, or add nodes".to_owned(),
            Reason::OutdoesSibling { sibling, .. } => {
                format!(
                    "wait until queue {sibling} has more than its share, or raise what its own queue deserves"
                )
            }
            Reason::LikeAnother { gang, .. } => format!("see why: muster explain gang/{gang}"),
            Reason::NotAttempted { .. } => "wait: the search goes on in the next cycle".to_owned(),
            Reason::NoDomain { wanted, near, .. } => domains::help(cluster, id, *wanted, near),
            Reason::Backoff { until, .. } => format!("wait until {until}"),
            Reason::Promised { .. } => "wait: its places are being freed".to_owned(),
        };
        help.push(advice);
    }
    help.dedup();
    help
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
        Limit::Cluster => format!("wait for {amount}, or add nodes with it"),
        Limit::Capability(queue) => {
            format!("raise the capability of queue {queue} by {amount}, or wait for it")
        }
        Limit::Deserved(queue) => {
            format!("raise what queue {queue} deserves by {amount}, or wait for it")
        }
        Limit::FairShare(queue) => {
            let weight =
                if weight_counts(engine, queue, lack.resource) { " or its weight" } else { "" };
            // Who would have to ask for nothing is not helped by asking for less.
            let less = if short < lack.want {
                format!(", or ask for {amount} less")
            } else {
                String::new()
            };
            format!("raise what queue {queue} deserves{weight}{less}: muster fairshare")
        }
        Limit::DeservedForGood(queue) => {
            format!(
                "raise what queue {queue} deserves by {amount}, or let the gang be evicted (preemptable)"
            )
        }
        Limit::Namespace(space) => {
            format!("raise the resource quota of namespace {space} by {amount}")
        }
    }
}

/// Whether anything is divided by weight among a queue and its siblings: something is left when all
/// have what they deserve.
fn weight_counts(engine: &Engine, queue: &str, resource: ResourceId) -> bool {
    let rules = engine.policy().fairness();
    let (Some(rules), Some(queue)) = (rules, engine.cluster().queues.find(queue)) else {
        return true;
    };
    let divisions = shares::trace(engine.cluster(), rules.tree, rules.k_ppm, resource);
    let own = |division: &&Division| division.portions.iter().any(|portion| portion.queue == queue);
    divisions.iter().find(own).is_none_or(|division| !division.steps.tiers.is_empty())
}

fn room_help(
    cluster: &Cluster,
    shortage: &Shortage,
    histogram: &muster_engine::Histogram,
) -> Vec<String> {
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

/// How nodes that have been left out for other reasons than room could take part.
fn welcome_help(cluster: &Cluster, bar: &muster_engine::Bar) -> Option<String> {
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

fn takes_back_facts(cluster: &Cluster, taking: &TakingBack) -> TakesBack {
    let name = |queue: &QueueId| cluster.queues[*queue].name.to_string();
    let message = |reason: &Reason| explain::message(reason, &cluster.dimensions);
    let refused: Vec<String> = taking.refused.iter().map(message).collect();
    TakesBack {
        action: taking.action,
        gang: cluster.gangs[taking.gang].key.to_string(),
        refused: (!refused.is_empty()).then(|| refused.join("; ")),
        from: taking.from.iter().map(name).collect(),
        kept: taking.kept.iter().map(|(queue, rule)| (name(queue), *rule)).collect(),
    }
}

fn queue_facts(engine: &mut Engine, id: QueueId, now: Time) -> QueueFacts {
    let takes_back = engine.taking_back(id, now);
    let engine = &*engine;
    let cluster = engine.cluster();
    let queue = &cluster.queues[id];
    let level = |&at: &QueueId| {
        let queue = &cluster.queues[at];
        Level {
            name: queue.name.to_string(),
            allocated: queue_line(engine, at).allocated,
            guarantee: sparse(cluster, &queue.guarantee),
            deserved: sparse(cluster, &queue.deserved),
            capability: sparse(cluster, &queue.capability),
        }
    };
    let mut waiting: Vec<GangId> = cluster
        .gangs
        .iter()
        .filter(|(_, gang)| cluster.queues[gang.queue].lineage.contains(&id))
        .filter(|(_, gang)| !gang.reasons.is_empty() && gang.counts.pending + gang.counts.gated > 0)
        .map(|(id, _)| id)
        .collect();
    waiting.sort_by(|&a, &b| engine.policy().gang_order(cluster, a, b));
    let wait = |&id: &GangId| {
        let gang = &cluster.gangs[id];
        let reason = &gang.reasons[0];
        Waiting {
            gang: gang.key.to_string(),
            reason: explain::word(reason),
            message: explain::message(reason, &cluster.dimensions),
        }
    };
    QueueFacts {
        state: format!("{:?}", queue.state),
        priority: queue.priority,
        strategy: if queue.strategy == DequeueStrategy::Fifo { "fifo" } else { "traverse" },
        children: children(cluster, Some(id)),
        lineage: queue.lineage.iter().map(level).collect(),
        waiting: waiting.iter().take(WAITING).map(wait).collect(),
        waiting_in_all: waiting.len(),
        takes_back: takes_back.map(|taking| takes_back_facts(cluster, &taking)),
        line: queue_line(engine, id),
    }
}

fn children(cluster: &Cluster, parent: Option<QueueId>) -> Vec<String> {
    let below = |queue: &muster_engine::model::queues::Queue| {
        queue.exists && queue.lineage.get(1) == parent.as_ref()
    };
    let mut names: Vec<String> = cluster
        .queues
        .iter()
        .filter(|(_, queue)| below(queue))
        .map(|(_, queue)| queue.name.to_string())
        .collect();
    names.sort();
    names
}

fn sparse(cluster: &Cluster, amounts_of: &Sparse) -> BTreeMap<String, String> {
    amounts(cluster, amounts_of.iter())
}

fn amounts(
    cluster: &Cluster,
    pairs: impl Iterator<Item = (ResourceId, i64)>,
) -> BTreeMap<String, String> {
    let dimensions = &cluster.dimensions;
    pairs
        .map(|(id, amount)| (dimensions.name(id).to_owned(), dimensions.show(id, amount)))
        .collect()
}

pub fn listed(cluster: &Cluster, pairs: impl Iterator<Item = (ResourceId, i64)>) -> String {
    let dimensions = &cluster.dimensions;
    let parts: Vec<String> = pairs
        .map(|(id, amount)| format!("{} {}", dimensions.show(id, amount), dimensions.name(id)))
        .collect();
    parts.join(" and ")
}
