//! What is always true, checked after a cycle. Each invariant is computed from plain facts: what
//! objects and configuration say, and the states of pods. None asks the code that decides: no
//! plugin, no ranking, no search. So a mistake there shows here (`tests/invariants.rs`).

mod bundles;
mod evictions;
mod facts;
mod fair_shares;
mod gangs;
pub mod keeping;
mod moves;
mod node_refusals;
mod nodes;
mod pod_rules;
mod quotas;
mod vetoes;

use std::collections::BTreeSet;

use muster_engine::ids::PodId;
use muster_engine::model::pods::PodState;
use muster_engine::{Decisions, Engine};

use crate::violation::{Invariant, Violation};

/// Checks the model and the plan that was just made.
pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    engine.cluster().audit().map_err(|what| Invariant::Sums.violated(what.to_string()))?;
    plan_is_in_the_model(engine, plan)?;
    nominations_are_known(engine)?;
    nodes::check(engine, plan)?;
    gangs::check(engine, plan)?;
    evictions::check(engine, plan)?;
    bundles::check(engine, plan)?;
    moves::check(engine, plan)?;
    fair_shares::check(engine, plan)?;
    quotas::no_queue_is_over(engine, plan)
}

/// Each pod is placed once, and the model says the same as the plan.
fn plan_is_in_the_model(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let bound: BTreeSet<PodId> = plan.binds.iter().map(|bind| bind.pod).collect();
    if bound.len() < plan.binds.len() {
        return Invariant::PlanIsInModel.fails("a pod is bound twice in one plan");
    }
    for bind in &plan.binds {
        if cluster.pods.state[bind.pod] != PodState::Allocated(bind.node) {
            let pod = cluster.pods.name(bind.pod);
            return Invariant::PlanIsInModel.fails(format!("{pod} is bound but not allocated"));
        }
    }
    for bind in &plan.nominations {
        if cluster.pods.state[bind.pod] != PodState::Nominated(bind.node) {
            let pod = cluster.pods.name(bind.pod);
            return Invariant::PlanIsInModel
                .fails(format!("{pod} is nominated in the plan, but not in the model"));
        }
    }
    Ok(())
}

/// Every nomination is published: known to the cluster, or in the plan.
fn nominations_are_known(engine: &Engine) -> Result<(), Violation> {
    let cluster = engine.cluster();
    for pod in cluster.pods.live() {
        let nomination = cluster.nomination_ledger.get(&pod);
        let published = nomination.filter(|nomination| nomination.published);
        let fault = match cluster.pods.state[pod] {
            PodState::Nominated(node) if published.map(|known| known.node) != Some(node) => {
                "has a nomination that is not published"
            }
            PodState::Pending if nomination.is_some() => "waits, and the ledger has its nomination",
            _ => continue,
        };
        return Invariant::PlanIsInModel.fails(format!("{} {fault}", cluster.pods.name(pod)));
    }
    Ok(())
}
