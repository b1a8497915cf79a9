//! A queue: its limits, which gangs wait in it, and what it can take back from other queues.

use std::collections::BTreeMap;

use muster_api::{DequeueStrategy, Time};
use muster_engine::explain;
use muster_engine::ids::{GangId, QueueId};
use muster_engine::model::Cluster;
use muster_engine::model::queues::Queue;
use muster_engine::trace::TakingBack;
use muster_engine::{Engine, Reason};
use serde::Serialize;

use crate::amounts::sparse;
use crate::lines::{QueueLine, queue_line};

/// How many waiting gangs of a queue are listed.
const WAITING: usize = 20;

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
    /// Whether it can take back what it deserves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_back: Option<TakesBack>,
}

/// What a queue can take back for its first gang that lacks room.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TakesBack {
    pub action: &'static str,
    pub gang: String,
    /// Why it takes nothing back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The queues that give something, in this order.
    pub from: Vec<String>,
    /// The queues that keep what they have, with the rule.
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

pub fn queue_facts(engine: &mut Engine, id: QueueId, now: Time) -> QueueFacts {
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
        takes_back: takes_back.map(|reclaim| takes_back_facts(cluster, &reclaim)),
        line: queue_line(engine, id),
    }
}

fn takes_back_facts(cluster: &Cluster, reclaim: &TakingBack) -> TakesBack {
    let name = |queue: &QueueId| cluster.queues[*queue].name.to_string();
    let message = |reason: &Reason| explain::message(reason, &cluster.dimensions);
    let refused: Vec<String> = reclaim.refused.iter().map(message).collect();
    TakesBack {
        action: reclaim.action,
        gang: cluster.gangs[reclaim.gang].key.to_string(),
        refused: (!refused.is_empty()).then(|| refused.join("; ")),
        from: reclaim.from.iter().map(name).collect(),
        kept: reclaim.kept.iter().map(|(queue, rule)| (name(queue), *rule)).collect(),
    }
}

pub fn children(cluster: &Cluster, parent: Option<QueueId>) -> Vec<String> {
    let below = |queue: &Queue| queue.exists && queue.lineage.get(1) == parent.as_ref();
    let mut names: Vec<String> = cluster
        .queues
        .iter()
        .filter(|(_, queue)| below(queue))
        .map(|(_, queue)| queue.name.to_string())
        .collect();
    names.sort();
    names
}
