//! The phase and condition of each PodGroup after a cycle, and which of them changed.

use muster_api::{PodGroupPhase, Time};

use crate::explain;
use crate::model::Cluster;
use crate::model::gangs::{Condition, Gang, Origin};
use crate::plan::Plan;

/// Brings phases and conditions up to date and notes the changes in the plan.
pub fn update(cluster: &mut Cluster, whole: bool, now: Time, plan: &mut Plan) {
    for id in cluster.gangs.take_changed() {
        let gang = &cluster.gangs[id];
        if gang.origin != Origin::Group {
            continue;
        }
        let phase = phase(gang, whole);
        let condition = condition(cluster, gang, phase, whole, now);
        let gang = &mut cluster.gangs[id];
        if gang.counts.pending == 0 || gang.ready(whole) {
            gang.waiting_since = None;
        }
        if gang.counts.running > 0 {
            gang.failures = 0;
        }
        let changed = gang.phase != phase || gang.reported != Some(phase) || gang.condition != condition;
        if changed {
            gang.reported = Some(phase);
            gang.condition = condition;
            cluster.gangs.set_phase(id, phase);
            plan.updates.push(id);
        }
    }
    plan.updates.sort_by(|&a, &b| cluster.gangs[a].key.cmp(&cluster.gangs[b].key));
}

/// A gang runs when its minimum does, is complete when all that ran is over, and is unknown when a part of it
/// runs without the rest.
fn phase(gang: &Gang, whole: bool) -> PodGroupPhase {
    let counts = &gang.counts;
    let placed = counts.running + counts.allocated;
    let over = counts.succeeded + counts.failed;
    if counts.ready() > 0 && gang.ready(whole) {
        let left = placed + counts.pending + counts.nominated + counts.gated + counts.releasing;
        return if left == 0 && over > 0 { PodGroupPhase::Completed } else { PodGroupPhase::Running };
    }
    if placed > 0 {
        // Pods on their way out still fill the gang until they are gone.
        let filled = counts.ready() + counts.releasing >= gang.minimum;
        return if filled { PodGroupPhase::Running } else { PodGroupPhase::Unknown };
    }
    match gang.phase {
        PodGroupPhase::Pending => PodGroupPhase::Pending,
        _ => PodGroupPhase::Inqueue,
    }
}

fn condition(cluster: &Cluster, gang: &Gang, phase: PodGroupPhase, whole: bool, now: Time) -> Condition {
    let waits = gang.counts.pending + gang.counts.gated > 0 && !gang.ready(whole);
    let (scheduled, reason, message) = match phase {
        PodGroupPhase::Running | PodGroupPhase::Completed if !waits => {
            (Some(true), "Scheduled".to_owned(), String::new())
        }
        _ if gang.reasons.is_empty() => (None, String::new(), String::new()),
        _ => {
            let messages: Vec<String> =
                gang.reasons.iter().map(|reason| explain::message(reason, &cluster.dimensions)).collect();
            (Some(false), explain::word(&gang.reasons[0]).to_owned(), messages.join("; "))
        }
    };
    let old = &gang.condition;
    let since = if old.scheduled == scheduled { old.since } else { scheduled.map(|_| now) };
    Condition { scheduled, reason, message, since }
}
