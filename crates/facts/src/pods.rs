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

/// How many of the pods are bound and have not been started by the kubelet yet.
pub fn starting<'p>(engine: &Engine, pods: impl IntoIterator<Item = &'p PodId>) -> u32 {
    let pods_of = &engine.cluster().pods;
    let starts = |pod: &&PodId| match pods_of.state[**pod] {
        PodState::Allocated(_) => true,
        PodState::Running(_) => !pods_of.fact[**pod].runs,
        _ => false,
    };
    pods.into_iter().filter(starts).count() as u32
}

pub fn pod_facts(engine: &Engine, now: Time, id: PodId, of: Option<GangFacts>) -> PodFacts {
    let cluster = engine.cluster();
    let fact = &cluster.pods.fact[id];
    let state = cluster.pods.state[id];
    let gang = cluster.pods.gang[id];
    let on_node = state.occupies();
    // A pod that is pulling its images has a start time too.
    let started = fact.started.filter(|_| on_node && fact.runs);
    let estimate = fact.estimate().or_else(|| gang.and_then(|gang| cluster.gangs[gang].estimate));
    let ends = fact.started.zip(estimate).map(|(started, run)| started.plus_ms(run));
    PodFacts {
        name: fact.key.to_string(),
        state: match state {
            PodState::Gated => "Gated",
            PodState::Pending => "Pending",
            PodState::Nominated(_) => "Nominated",
            PodState::Allocated(_) => "Bound",
            // The scheduler counts it as running; the kubelet has not started it yet.
            PodState::Running(_) if !fact.runs => "Bound",
            PodState::Running(_) => "Running",
            PodState::Releasing(_) => "Terminating",
            PodState::Succeeded => "Succeeded",
            PodState::Failed => "Failed",
        },
        node: state.node().map(|node| cluster.nodes.name[node].to_string()),
        since: started.map(|time| time.to_string()),
        running_ms: started.map(|time| now.0.saturating_sub(time.0)),
        ends: ends.filter(|_| on_node).map(|time| time.to_string()),
        protected_by: engine.policy().protects(cluster, id).filter(|_| on_node),
        gang: of,
    }
}
