//! The decisions of a cycle in the log, each with its gang and its cause.

use muster_engine::plan::{Eviction, Placement, Update};
use muster_engine::{Engine, Plan, Standing};
use tracing::{debug, enabled, info};

/// Evictions are always of interest, everything else at `debug`.
pub fn log(engine: &Engine, plan: &Plan, was_nominated: impl Fn(&str) -> bool) {
    let gang = |pod: &str| engine.pod(pod).and_then(|known| known.gang).map(|gang| &**gang.key);
    for Eviction { place: Placement { pod, node, .. }, action, preemptor, cause, .. } in
        &plan.evictions
    {
        let preemptor = preemptor.as_deref();
        info!(%pod, gang = gang(pod), %node, %action, preemptor, %cause, "evicting");
    }
    if !enabled!(tracing::Level::DEBUG) {
        return;
    }
    for Placement { pod, node, .. } in &plan.binds {
        let cause = match was_nominated(pod) {
            true => "the room on the node it was nominated to is free",
            false => "its gang fits",
        };
        debug!(%pod, gang = gang(pod), %node, cause, "binding");
    }
    for Placement { pod, node, .. } in &plan.nominations {
        debug!(%pod, gang = gang(pod), %node, cause = why_nominated(engine, pod), "nominating");
    }
    for pod in &plan.withdrawn {
        let cause = why_waiting(plan, gang(pod));
        debug!(%pod, gang = gang(pod), cause, "releasing the nomination");
    }
    for Update { gang, phase, condition, .. } in &plan.updates {
        let (reason, cause) = (&condition.reason, &condition.message);
        debug!(%gang, ?phase, scheduled = condition.scheduled, reason, cause, "gang changed");
    }
}

fn why_nominated(engine: &Engine, pod: &str) -> &'static str {
    match engine.pod(pod).map(|known| known.standing) {
        Some(Standing::Nominated { needs_evictions: true, .. }) => "pods there are evicted for it",
        _ => "pods there are terminating, or the rest of its gang waits for room",
    }
}

/// What the plan says of the gang.
fn why_waiting<'p>(plan: &'p Plan, gang: Option<&str>) -> Option<&'p str> {
    let told = |update: &&Update| Some(&*update.gang as &str) == gang;
    plan.updates.iter().find(told).map(|update| &*update.condition.message)
}
