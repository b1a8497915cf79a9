//! One cycle, phase by phase.

use std::collections::BTreeMap;

use muster_api::{PodGroupPhase, Time};

use crate::actions::{backfill, enqueue, stalegangeviction};
use crate::base::ids::GangId;
use crate::decision::decisions::Decisions;
use crate::engine::Engine;
use crate::engine::cycle::Phase::{Actions, Step};
use crate::eviction::{as_if_running, beneficiaries, losses, review};
use crate::model::gangs::Gang;
use crate::model::usage::Memory;
use crate::nomination::{backoff, lost, publish, reaffirm, release, reservations, restore};
use crate::order::session::Session;
use crate::policy::answers::Policy;
use crate::report::plan::Plan;
use crate::report::{cards, status};

enum Phase {
    Step(fn(&mut Session)),
    /// The configured actions, in their order.
    Actions,
}

/// A cycle, from top to bottom.
const PHASES: &[Phase] = &[
    // The model takes in what time has changed and what events left for later.
    Step(pass_time),
    Step(settle),
    Step(admit_all_without_enqueue),
    // Nominations and reservations first, so that admission counts those that are kept, and no
    // others.
    Step(reservations::restore),
    Step(reservations::review),
    Step(restore::restore),
    Step(reaffirm::reaffirm),
    Step(reservations::nominate_returned_pods),
    Step(backoff::hold_room_during_backoff),
    // The decisions.
    Actions,
    Step(explain_missing_backfill),
    // The decisions of the actions are reviewed together.
    Step(review_together),
    Step(losses::count_losses),
    Step(backoff::release_backoff_room),
    Step(release::release_incomplete),
    Step(lost::explain_lost_nominations),
    // The plan says what is to be written, and when to call again.
    Step(publish::publish),
    Step(report_status),
    Step(report_cards),
    Step(note_usage),
    Step(set_alarm),
];

impl Engine {
    /// Decides what can be decided now. The decisions stay in the model until the cluster confirms
    /// or refuses them.
    pub fn cycle(&mut self, now: Time) -> Plan {
        self.cycle_with(now, &mut |_| {})
    }

    /// The same, and calls back after each action, so that a caller with a clock can measure them.
    pub fn cycle_with(&mut self, now: Time, through: &mut dyn FnMut(&'static str)) -> Plan {
        self.decisions = self.decide(now, through);
        Plan::of(&self.cluster, &self.decisions)
    }

    fn decide(&mut self, now: Time, through: &mut dyn FnMut(&'static str)) -> Decisions {
        if let Some((generation, wake)) = self.rests
            && generation == self.cluster.generation
            && wake.is_none_or(|wake| now < wake)
        {
            return Decisions { wake, ..Decisions::default() };
        }
        let mut decisions = Decisions::default();
        let mut session = self.session(&mut decisions, now);
        for phase in PHASES {
            match phase {
                Step(step) => step(&mut session),
                Actions => as_if_running::run_all(&mut session, through),
            }
        }
        self.rests = decisions.is_empty().then_some((self.cluster.generation, decisions.wake));
        decisions
    }

    pub(super) fn session<'e>(&'e mut self, plan: &'e mut Decisions, now: Time) -> Session<'e> {
        Session {
            cluster: &mut self.cluster,
            policy: &self.config.policy,
            actions: &self.config.actions,
            settings: &self.config.settings,
            rankings: &mut self.rankings,
            failed_searches: &mut self.failed_searches,
            plan,
            now,
            heads: Vec::new(),
            ran_at: Vec::new(),
            bound_first: None,
            on_trial: Vec::new(),
            held_during_backoff: Vec::new(),
            released_for: BTreeMap::new(),
        }
    }
}

/// Changes of nodes by time alone since the last cycle count as news.
fn pass_time(session: &mut Session) {
    let now = session.now;
    let before = std::mem::replace(&mut session.cluster.now, now);
    let change = session.policy.next_change(before);
    if change.is_some_and(|change| change <= now || now < before) {
        session.cluster.reconsider();
    }
    session.cluster.recall_usage(now, memory(session.policy));
}

/// How long the usage of queues is remembered, if it is.
fn memory(policy: &Policy) -> Option<Memory> {
    policy.fairness().and_then(|rules| rules.memory)
}

fn settle(session: &mut Session) {
    session.cluster.settle();
    session.rankings.begin_cycle();
}

/// Without the action `enqueue` every gang is in the line.
fn admit_all_without_enqueue(session: &mut Session) {
    if session.runs(&enqueue::ACTION) {
        return;
    }
    let gangs = &mut session.cluster.gangs;
    let pending = |gang: &GangId| gangs[*gang].phase == PodGroupPhase::Pending;
    let pending: Vec<GangId> = gangs.waiting().iter().copied().filter(pending).collect();
    for gang in pending {
        gangs.set_phase(gang, PodGroupPhase::Inqueue);
    }
}

/// How often decisions are reviewed at most because evicting actions were repeated.
const REVIEWS: usize = 4;

/// Reviews the decisions until no evicting action would decide anything else for what is bound.
fn review_together(session: &mut Session) {
    for at in 0..REVIEWS {
        if !as_if_running::repeat(session) && at > 0 {
            break;
        }
        // Nominations that are of no use need no evictions.
        release::release_incomplete(session);
        review::review(session);
        beneficiaries::review(session);
        // Some pods that were to move may stay after all.
        reservations::review(session);
    }
}

fn explain_missing_backfill(session: &mut Session) {
    if !session.runs(&backfill::ACTION) {
        backfill::explain_absence(session);
    }
}

fn report_status(session: &mut Session) {
    let (settings, whole) = (session.settings, session.policy.enforces_minimum());
    let watched = session.runs(&stalegangeviction::ACTION);
    let timed = |gang: &Gang| watched && stalegangeviction::grace(gang, settings).is_some();
    status::update(session.cluster, whole, timed, session.now, session.plan);
}

fn report_cards(session: &mut Session) {
    cards::note_cards(session.cluster, session.now, session.plan);
}

fn note_usage(session: &mut Session) {
    if memory(session.policy).is_some() {
        session.cluster.note_usage();
    }
}

/// When the next cycle has something to do, even if nothing happens until then.
fn set_alarm(session: &mut Session) {
    let Session { cluster, policy, settings, now, .. } = session;
    let (cluster, now) = (&**cluster, *now);
    let mut times: Vec<Time> = Vec::new();
    times.extend(policy.next_change(now));
    times.extend(cluster.usage.next_look());
    let patience = settings.traverse_head_wait_ms;
    for &gang in cluster.gangs.waiting() {
        let gang = &cluster.gangs[gang];
        let overdue =
            gang.waiting_since.filter(|_| patience > 0).map(|since| since.plus_ms(patience));
        times.extend([gang.backoff_until, overdue].into_iter().flatten().filter(|&at| at > now));
    }
    times.extend(reaffirm::expiry(cluster, settings));
    times.extend(reservations::expiry(cluster));
    if session.runs(&stalegangeviction::ACTION) {
        let due = stalegangeviction::due(session.cluster, session.policy, session.settings);
        times.extend(due.filter(|&at| at > now));
    }
    session.plan.wake_at_any(times.into_iter().min());
}
