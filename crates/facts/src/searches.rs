//! Where evictions could make room for a starving gang: what each node would cost, and what
//! prevents it. The engine repeats its search and reports what it tries; nothing is searched for
//! here.

use std::cmp::Ordering;

use muster_api::Time;
use muster_engine::explain::{message, shown_text};
use muster_engine::ids::{GangId, NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::trace::{EvictionCost, Obstacle, Outcome, PodAttempt, Trace, Trial};
use muster_engine::{Engine, Reason, Shown};
use serde::Serialize;

use crate::amounts::listed;
use crate::gang_searches::{PassFacts, pass};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchFacts {
    pub action: &'static str,
    /// How many of its pods would be placed, and how many need a node.
    pub placed: usize,
    pub wanted: usize,
    /// In mode `task`: the first pod that needs evictions, and the one that can't be placed.
    pub pods: Vec<PodSearch>,
    /// In mode `gang`: first bundles that break no gang, then whole gangs.
    pub passes: Vec<PassFacts>,
    /// In mode `gang`: why it gets no room.
    pub reasons: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSearch {
    pub pod: String,
    /// The node that it would get, beside the pods before it.
    pub node: Option<String>,
    /// Why it would get none.
    pub reason: Option<String>,
    /// The nodes with eviction candidates, the most promising first.
    pub nodes: Vec<NodeTrial>,
    /// How many more there are.
    pub more_nodes: usize,
    /// How many nodes have no candidates, not even pods that a rule keeps.
    #[serde(rename = "nobodyNodes")]
    pub without_candidates: usize,
    /// How many nodes can't take the pod whatever is evicted.
    pub closed_nodes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTrial {
    pub node: String,
    /// Whether evictions there make enough room.
    pub works: bool,
    /// Whether it is the best of these.
    pub chosen: bool,
    /// Which pods would be evicted. If that does not make enough room, all that were tried.
    pub leave: Vec<Victim>,
    /// Pods that would lose their nomination.
    #[serde(rename = "unpromised")]
    pub released: Vec<String>,
    pub cost: Option<CostFacts>,
    /// Pods there that a rule keeps.
    pub kept: Vec<Kept>,
    /// Why evictions would not make enough room.
    pub why: Option<String>,
}

#[derive(Serialize)]
pub struct Victim {
    pub pod: String,
    pub gang: String,
    pub priority: i32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostFacts {
    /// How many evictions violate a PodDisruptionBudget, which `evictionMethod: delete` allows.
    pub against_budgets: usize,
    /// The cost that a plugin computed.
    pub price: Option<i64>,
    pub highest_priority: Option<i32>,
    pub sum_of_priorities: i64,
    pub pods: usize,
}

#[derive(Serialize)]
pub struct Kept {
    pub pod: String,
    pub gang: String,
    pub rule: &'static str,
}

/// What each action tries for the gang, if it starves. `nodes` nodes are listed for each pod, and
/// as many domains.
pub fn facts(engine: &mut Engine, gang: GangId, now: Time, nodes: usize) -> Vec<SearchFacts> {
    let traces = engine.trace(gang, now);
    let (cluster, whole) = (engine.cluster(), engine.policy().enforces_minimum());
    let row = &cluster.gangs[gang];
    let wanted = (row.missing(whole).total.saturating_sub(row.counts.nominated)).max(1) as usize;
    let reason = |reason: &Reason| message(reason, &cluster.dimensions);
    let search = |(action, trace): (&'static str, Trace)| SearchFacts {
        action,
        placed: match trace.passes.is_empty() || !trace.refused.is_empty() {
            true => trace.attempts.iter().filter(|attempt| attempt.place.is_some()).count(),
            false => wanted,
        },
        wanted,
        pods: trace
            .attempts
            .iter()
            .filter(|one| is_telling(one))
            .map(|one| pod(cluster, one, nodes))
            .collect(),
        passes: trace.passes.iter().map(|one| pass(cluster, one, nodes)).collect(),
        reasons: trace.refused.iter().map(reason).collect(),
    };
    let is_silent = |trace: &Trace| {
        trace.attempts.is_empty() && trace.passes.is_empty() && trace.refused.is_empty()
    };
    let tried = traces.into_iter().filter(|(_, trace)| !is_silent(trace));
    tried.map(search).collect()
}

fn is_telling(attempt: &PodAttempt) -> bool {
    attempt.refused.is_some() || !attempt.trials.is_empty()
}

fn pod(cluster: &Cluster, attempt: &PodAttempt, most: usize) -> PodSearch {
    let count =
        |wanted: fn(&Trial) -> bool| attempt.trials.values().filter(|trial| wanted(trial)).count();
    let trials = attempt.trials.iter().map(|(&node, trial)| (node, trial));
    let mut open: Vec<(NodeId, &Trial)> =
        trials.filter(|(_, trial)| !is_closed(trial) && !has_no_candidates(trial)).collect();
    open.sort_by(|a, b| {
        let chosen = |node: NodeId| attempt.place != Some(node);
        let rank = |node: NodeId| cluster.nodes.rank[node];
        let order = chosen(a.0).cmp(&chosen(b.0)).then_with(|| nomination(a.1, b.1));
        order.then_with(|| rank(a.0).cmp(&rank(b.0)))
    });
    let shown = open.iter().take(most);
    PodSearch {
        pod: cluster.pods.name(attempt.pod).to_string(),
        node: attempt.place.map(|node| cluster.nodes.name[node].to_string()),
        reason: attempt.refused.as_ref().map(|reason| message(reason, &cluster.dimensions)),
        nodes: shown
            .map(|&(node, trial)| told(cluster, node, trial, attempt.place == Some(node)))
            .collect(),
        more_nodes: open.len().saturating_sub(most),
        without_candidates: count(has_no_candidates),
        closed_nodes: count(is_closed),
    }
}

fn is_closed(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::Closed)
}

fn has_no_candidates(trial: &Trial) -> bool {
    matches!(trial.outcome, Outcome::NoCandidates) && trial.kept.is_empty()
}

/// The more promising first.
fn nomination(a: &Trial, b: &Trial) -> Ordering {
    let step = |trial: &Trial| match &trial.outcome {
        Outcome::Works { .. } => 0,
        Outcome::NotTried => 1,
        Outcome::Fails { .. } => 2,
        Outcome::TooLittle { .. } => 3,
        Outcome::NoCandidates => 4,
        Outcome::Closed => 5,
    };
    let cost = |trial: &Trial| match &trial.outcome {
        Outcome::Works { cost, .. } => Some(cost.clone()),
        _ => None,
    };
    step(a).cmp(&step(b)).then_with(|| cost(a).cmp(&cost(b)))
}

fn told(cluster: &Cluster, node: NodeId, trial: &Trial, chosen: bool) -> NodeTrial {
    let none: &[PodId] = &[];
    let (leave, released, cost) = match &trial.outcome {
        Outcome::Works { victims, released, cost } => (&victims[..], &released[..], Some(cost)),
        Outcome::Fails { victims, .. } => (&victims[..], none, None),
        Outcome::TooLittle { victims, .. } => (&victims[..], none, None),
        Outcome::Closed | Outcome::NoCandidates | Outcome::NotTried => (none, none, None),
    };
    let facts = |cost: &EvictionCost| CostFacts {
        against_budgets: cost.broken,
        price: cost.price,
        highest_priority: cost.highest_priority,
        sum_of_priorities: cost.sum_of_priorities,
        pods: cost.pods,
    };
    let kept = |&(pod, rule): &(PodId, &'static str)| Kept {
        pod: cluster.pods.name(pod).to_string(),
        gang: gang_of(cluster, pod),
        rule,
    };
    let mut kept: Vec<Kept> = trial.kept.iter().map(kept).collect();
    kept.sort_by(|a, b| a.pod.cmp(&b.pod));
    NodeTrial {
        node: cluster.nodes.name[node].to_string(),
        works: cost.is_some(),
        chosen,
        leave: leave.iter().map(|&pod| victim(cluster, pod)).collect(),
        released: released.iter().map(|&pod| cluster.pods.name(pod).to_string()).collect(),
        cost: cost.map(facts),
        kept,
        why: why(cluster, &trial.outcome),
    }
}

fn why(cluster: &Cluster, outcome: &Outcome) -> Option<String> {
    let dimensions = &cluster.dimensions;
    Some(match outcome {
        Outcome::Works { .. } => return None,
        Outcome::Closed => "it can't take the pod, even without other pods".to_owned(),
        Outcome::NoCandidates => "no pod there may be evicted".to_owned(),
        Outcome::NotTried => "not tried: enough other nodes were more promising".to_owned(),
        Outcome::TooLittle { lacks, .. } => {
            format!("lacks {}", listed(cluster, lacks.iter().copied()))
        }
        Outcome::Fails { obstacle, .. } => match obstacle {
            Obstacle::Limit(reason) => message(reason, dimensions),
            Obstacle::Node(Shown::Short { resource, want, best }) => format!(
                "short of {} (wants {}, would have {})",
                dimensions.name(*resource),
                dimensions.show(*resource, *want),
                dimensions.show(*resource, *best)
            ),
            Obstacle::Node(shown) => shown_text(shown, dimensions),
            Obstacle::NeedsNominated => {
                "it fits only beside nominated pods that may never start".to_owned()
            }
        },
    })
}

fn victim(cluster: &Cluster, pod: PodId) -> Victim {
    let priority = cluster.pods.gang[pod]
        .map_or(cluster.pods.fact[pod].priority, |gang| cluster.gangs[gang].priority);
    Victim { pod: cluster.pods.name(pod).to_string(), gang: gang_of(cluster, pod), priority }
}

pub fn gang_of(cluster: &Cluster, pod: PodId) -> String {
    cluster.pods.gang[pod].map_or_else(String::new, |gang| cluster.gangs[gang].key.to_string())
}
