//! The two calls: `apply` an event, run a `cycle`.

pub mod checkpoint;
pub mod queries;

use std::borrow::Borrow;

use muster_api::{PodGroupPhase, Time};

use crate::actions::{backfill, enqueue, stalegangeviction};
use crate::base::ids::GangId;
use crate::config::Config;
use crate::decision::plan::Plan;
use crate::eviction::{losses, review};
use crate::model::Cluster;
use crate::model::event::Event;
use crate::model::gangs::Gang;
use crate::model::usage::Memory;
use crate::nomination::{backoff, publish, reaffirm, reservations, restore};
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::report::{cards, status, words};

pub struct Engine {
    pub(crate) cluster: Cluster,
    pub(crate) config: Config,
    pub(crate) rankings: Rankings,
    /// After a cycle that decided nothing: the generation then, and when time alone will change
    /// something.
    pub(crate) rests: Option<(u64, Option<Time>)>,
}

impl Engine {
    /// Pods whose `schedulerName` is one of these are ours; others only use room.
    pub fn new(config: Config, scheduler_names: Vec<String>) -> Engine {
        let mut cluster = Cluster::new(scheduler_names);
        cluster.share_devices(config.policy.sharing());
        Engine { cluster, config, rankings: Rankings::default(), rests: None }
    }

    /// Goes on under another configuration. What was decided stands.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
        self.rankings = Rankings::default();
        self.rests = None;
        self.cluster.share_devices(self.config.policy.sharing());
        self.cluster.reconsider();
        self.cluster.gangs.review_broken();
    }

    /// Takes in what happened.
    pub fn apply(&mut self, event: impl Borrow<Event>) {
        self.cluster.apply(event.borrow());
    }

    /// Puts in order what events left for later, as a cycle does before it decides; for those who
    /// only want to look.
    pub fn settle(&mut self) {
        self.cluster.settle();
    }

    /// Decides what can be decided now. The decisions stand in the model until the cluster confirms
    /// or refuses them.
    pub fn cycle(&mut self, now: Time) -> Plan {
        self.cycle_with(now, &mut |_| {})
    }

    /// The same, and says when an action is through, so that someone with a clock can tell how long
    /// each takes.
    pub fn cycle_with(&mut self, now: Time, through: &mut dyn FnMut(&'static str)) -> Plan {
        if let Some((generation, wake)) = self.rests
            && generation == self.cluster.generation
            && wake.is_none_or(|wake| now < wake)
        {
            return Plan { wake, ..Plan::default() };
        }
        self.pass_time(now);
        self.cluster.settle();
        self.rankings.begin_cycle();
        let mut plan = Plan::default();
        self.open_line();
        let backfills = self.acts(backfill::ACTION.name);
        let mut session = Session {
            cluster: &mut self.cluster,
            policy: &self.config.policy,
            rankings: &mut self.rankings,
            settings: &self.config.settings,
            plan: &mut plan,
            now,
            heads: Vec::new(),
        };
        // Before anything is decided, so that admission counts the promises that stand, and no
        // others.
        if !session.cluster.began {
            reservations::restore(&mut session);
        }
        reservations::review(&mut session);
        restore::restore(&mut session);
        reaffirm::reaffirm(&mut session);
        reservations::nominate_returned_pods(&mut session);
        let held = backoff::hold_room_during_backoff(&mut session);
        for action in &self.config.actions {
            (action.run)(&mut session);
            through(action.name);
        }
        if !backfills {
            backfill::explain_absence(&mut session);
        }
        review::review(&mut session);
        // Some of those who were to move may stay after all.
        reservations::review(&mut session);
        losses::count_losses(&mut session);
        backoff::release_backoff_room(&mut session, &held);
        publish::publish(&mut session);
        let (acts, settings) = (self.acts(stalegangeviction::ACTION.name), &self.config.settings);
        let timed = |gang: &Gang| acts && stalegangeviction::grace(gang, settings).is_some();
        status::update(
            &mut self.cluster,
            self.config.policy.enforces_minimum(),
            timed,
            now,
            &mut plan,
        );
        cards::note_cards(&self.cluster, now, &mut plan);
        if self.memory().is_some() {
            self.cluster.note_usage();
        }
        self.set_alarm(now, &mut plan);
        self.rests = plan.is_empty().then_some((self.cluster.generation, plan.wake));
        plan
    }

    /// What time alone has changed about nodes since the last cycle is news like any other.
    fn pass_time(&mut self, now: Time) {
        let before = std::mem::replace(&mut self.cluster.now, now);
        let change = self.config.policy.next_change(before);
        if change.is_some_and(|change| change <= now || now < before) {
            self.cluster.reconsider();
        }
        self.cluster.recall_usage(now, self.memory());
    }

    /// How long what queues used is remembered, if it is.
    fn memory(&self) -> Option<Memory> {
        self.config.policy.fairness().and_then(|rules| rules.memory)
    }

    /// Without the action `enqueue` every gang is in the line.
    fn open_line(&mut self) {
        if self.acts(enqueue::ACTION.name) {
            return;
        }
        let gangs = &self.cluster.gangs;
        let pending = |gang: &GangId| gangs[*gang].phase == PodGroupPhase::Pending;
        let gangs: Vec<GangId> = gangs.waiting().iter().copied().filter(pending).collect();
        for gang in gangs {
            self.cluster.gangs.set_phase(gang, PodGroupPhase::Inqueue);
        }
    }

    fn set_alarm(&self, now: Time, plan: &mut Plan) {
        plan.wake_at_any(self.config.policy.next_change(now));
        plan.wake_at_any(self.cluster.usage.next_look());
        let patience = self.config.settings.traverse_head_wait_ms;
        for &gang in self.cluster.gangs.waiting() {
            let gang = &self.cluster.gangs[gang];
            let overdue =
                gang.waiting_since.filter(|_| patience > 0).map(|since| since.plus_ms(patience));
            for time in
                [gang.backoff_until, overdue].into_iter().flatten().filter(|&time| time > now)
            {
                plan.wake_at(time);
            }
        }
        plan.wake_at_any(reaffirm::expiry(&self.cluster, &self.config.settings));
        plan.wake_at_any(reservations::expiry(&self.cluster));
        if self.acts(stalegangeviction::ACTION.name) {
            let due =
                stalegangeviction::due(&self.cluster, &self.config.policy, &self.config.settings);
            due.filter(|&time| time > now).for_each(|time| plan.wake_at(time));
        }
    }

    fn acts(&self, action: &str) -> bool {
        self.config.actions.iter().any(|listed| listed.name == action)
    }

    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn policy(&self) -> &Policy {
        &self.config.policy
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The reasons for which a gang waits, in words.
    pub fn reasons(&self, gang: GangId) -> Vec<String> {
        let gang = &self.cluster.gangs[gang];
        gang.reasons.iter().map(|reason| words::message(reason, &self.cluster.dimensions)).collect()
    }
}
