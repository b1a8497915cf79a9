//! A pod: where it is, since when, and what keeps it there.

use muster_api::Time;
use muster_engine::Engine;
use muster_engine::ids::PodId;
use muster_engine::model::pods::PodState;
use serde::Serialize;

use crate::gangs::GangFacts;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodFacts {
    pub name: String,
    pub state: &'static str,
    pub node: Option<String>,
    /// Since when it runs.
    pub since: Option<String>,
    pub running_ms: Option<i64>,
    /// When it ends, by its own estimate.
    pub ends: Option<String>,
    /// The rule that keeps it from being evicted.
    pub protected_by: Option<&'static str>,
    /// None for a pod of another scheduler.
    pub gang: Option<GangFacts>,
}

pub fn pod_facts(engine: &Engine, now: Time, id: PodId, of: Option<GangFacts>) -> PodFacts {
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
            // Bound pods count as running; the kubelet may not have started this one yet.
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
