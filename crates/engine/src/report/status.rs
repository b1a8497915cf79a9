//! The status of each gang after a cycle: the phase and condition of its PodGroup, and for pods
//! without one why they wait. Only changes are reported.

use muster_api::{PodGroupCondition, PodGroupPhase, PodGroupStatus, Time};

use crate::base::ids::{GangId, PodId};
use crate::decision::decisions::{Decisions, GroupNote};
use crate::model::Cluster;
use crate::model::gangs::broken::time_staleness;
use crate::model::gangs::{Condition, Gang, Origin, Reported};
use crate::model::notes::{GroupAnnotations, Texts};
use crate::report::words;

/// Updates phases and conditions and puts the changes into the plan. `timed` says for which gangs
/// the time since they are stale is recorded.
pub fn update(
    cluster: &mut Cluster,
    whole: bool,
    timed: impl Fn(&Gang) -> bool,
    now: Time,
    plan: &mut Decisions,
) {
    for id in cluster.gangs.take_changed() {
        let gang = &cluster.gangs[id];
        // A pod without a PodGroup has no visible phase.
        let phase = if gang.origin == Origin::Group { phase(gang, whole) } else { gang.phase };
        let condition = condition(cluster, id, phase, whole, now);
        let report = report(cluster, gang, phase);
        let gang = &mut cluster.gangs[id];
        if gang.counts.pending == 0 || gang.ready(whole) {
            gang.waiting_since = None;
        }
        if gang.counts.running > 0 {
            gang.failures = 0;
        }
        let said = gang.condition == condition && (report.is_none() || gang.reported == report);
        time_staleness(cluster, id, whole, now);
        let since = cluster.gangs.broken_since(id).filter(|_| timed(&cluster.gangs[id]));
        let stale_since = since.map(|since| since.to_string());
        let wish = Texts { stale_since, reservations: cluster.reservations_text(id) };
        let gang = &mut cluster.gangs[id];
        if gang.origin == Origin::Group {
            let annotations = GroupAnnotations::write(&mut gang.notes, wish);
            plan.group_notes
                .extend((!annotations.is_empty()).then_some(GroupNote { gang: id, annotations }));
        }
        if !said || gang.phase != phase {
            gang.reported = report;
            gang.condition = condition;
            cluster.gangs.set_phase(id, phase);
            plan.updates.push(id);
        }
    }
    let by_name = |a: GangId, b: GangId| cluster.gangs[a].key.cmp(&cluster.gangs[b].key);
    plan.updates.sort_by(|&a, &b| by_name(a, b));
    plan.group_notes.sort_by(|a, b| by_name(a.gang, b.gang));
}

fn report(cluster: &Cluster, gang: &Gang, phase: PodGroupPhase) -> Option<Reported> {
    let runs = |pod: &&PodId| cluster.pods.fact[**pod].runs;
    let on_nodes = gang.counts.running + gang.counts.releasing;
    let started = || if on_nodes > 0 { gang.pods.iter().filter(runs).count() as u32 } else { 0 };
    let (succeeded, failed) = (gang.counts.succeeded, gang.counts.failed);
    (gang.origin == Origin::Group).then(|| Reported {
        phase,
        running: started(),
        succeeded,
        failed,
    })
}

/// The status of a gang's PodGroup, as last put into a plan; `None` for a gang without one.
pub fn of(cluster: &Cluster, gang: GangId) -> Option<PodGroupStatus> {
    let gang = &cluster.gangs[gang];
    let reported = gang.reported.filter(|_| gang.origin == Origin::Group)?;
    Some(said(reported, &gang.condition))
}

/// A PodGroup's status that says this.
pub fn said(reported: Reported, condition: &Condition) -> PodGroupStatus {
    let Reported { phase, running, succeeded, failed } = reported;
    let condition = condition.scheduled.map(|scheduled| PodGroupCondition {
        kind: if scheduled { "Scheduled" } else { "Unschedulable" }.into(),
        status: "True".into(),
        transition_id: String::new(),
        last_transition_time: condition.since,
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    });
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    PodGroupStatus {
        phase,
        conditions: condition.into_iter().collect(),
        running: number(running),
        succeeded: number(succeeded),
        failed: number(failed),
    }
}

/// A gang is running if its minimum is, completed when all its pods have ended, and unknown if only
/// a part of it runs.
fn phase(gang: &Gang, whole: bool) -> PodGroupPhase {
    let counts = &gang.counts;
    let placed = counts.running + counts.allocated;
    let over = counts.succeeded + counts.failed;
    if counts.ready() > 0 && gang.ready(whole) {
        let left = placed + counts.pending + counts.nominated + counts.gated + counts.releasing;
        return if left == 0 && over > 0 {
            PodGroupPhase::Completed
        } else {
            PodGroupPhase::Running
        };
    }
    if placed > 0 {
        // Terminating pods count for the gang until they are gone.
        let filled = counts.ready() + counts.releasing >= gang.minimum;
        return if filled { PodGroupPhase::Running } else { PodGroupPhase::Unknown };
    }
    match gang.phase {
        PodGroupPhase::Pending => PodGroupPhase::Pending,
        _ => PodGroupPhase::Inqueue,
    }
}

fn condition(
    cluster: &Cluster,
    id: GangId,
    phase: PodGroupPhase,
    whole: bool,
    now: Time,
) -> Condition {
    let gang = &cluster.gangs[id];
    let waits = gang.counts.pending + gang.counts.gated > 0 && !gang.ready(whole);
    let (scheduled, reason, message) = match phase {
        _ if gang.origin != Origin::Group && !waits => (None, String::new(), String::new()),
        PodGroupPhase::Running | PodGroupPhase::Completed if !waits => {
            (Some(true), "Scheduled".to_owned(), remarks(cluster, id).join("; "))
        }
        _ if gang.reasons.is_empty() => (None, String::new(), String::new()),
        _ => {
            let messages: Vec<String> = gang
                .reasons
                .iter()
                .map(|reason| words::message(reason, &cluster.dimensions))
                .chain(remarks(cluster, id))
                .collect();
            (Some(false), words::word(&gang.reasons[0]).to_owned(), messages.join("; "))
        }
    };
    let old = &gang.condition;
    let since = if old.scheduled == scheduled { old.since } else { scheduled.map(|_| now) };
    Condition { scheduled, reason, message, since }
}

/// What its owner should know of the gang, whether it waits or runs.
fn remarks(cluster: &Cluster, gang: GangId) -> Vec<String> {
    let idle = cluster.gangs[gang].rules().is_empty();
    let idle = if idle { Vec::new() } else { cluster.idle_policies(gang) };
    idle.iter().map(words::idle_policy).collect()
}
