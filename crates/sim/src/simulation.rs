//! Cycle after cycle on the virtual cluster: the engine plans, the cluster does it, a second
//! passes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use muster_api::Time;
use muster_api::core::Pod;
use muster_api::kinds::{Kind, Object};
use muster_engine::model::pods::PodState;
use muster_engine::plan::Placement;
use muster_engine::{Engine, Event, Plan, Reason, Standing, explain};
use muster_write_order::{AnnotationWrite, Desired};

use crate::chaos::{Moment, Witness};
use crate::curves::Curves;
use crate::invariants;
use crate::invariants::keeping::LastBinds;
use crate::manager::Manager;
use crate::report::{self, CycleLine, EventLine, HeldNomination, Report};
use crate::violation::Violation;
use crate::world::{Refusal, World};

/// How many cycles in a row may plan nothing: gangs that can't run may take turns for ever.
const PATIENCE: u32 = 20;

/// How many cycles in a row may only nominate: a nomination that is never fulfilled is made again
/// and again.
const LAST_PATIENCE: u32 = 1000;

/// The clock between two cycles.
pub const STEP_MS: i64 = 1000;

#[derive(Copy, Clone, Debug)]
pub enum Until {
    Cycles(u64),
    /// Nothing is bound any more, no pod will end, and time alone has not helped for [`PATIENCE`]
    /// times.
    Stable,
}

#[derive(Copy, Clone, Debug)]
pub struct Options {
    pub until: Until,
    /// Recreate evicted pods as pending.
    pub recreate: bool,
    /// Keep a line for everything that happens.
    pub events: bool,
    /// Objects whose creationTimestamp is in the future join then.
    pub arrivals: bool,
    /// Check every invariant after every cycle.
    pub check: bool,
}

/// Told now and then, so that a long run can show how far it is.
pub struct Progress {
    pub cycle: u64,
    pub now: Time,
    pub bound: usize,
}

pub struct Simulation {
    pub world: World,
    pub engine: Engine,
    pub report: Report,
    /// What queues use and should have, if that is to be shown.
    pub curves: Option<Curves>,
    /// Makes pods of Jobs, if there are any.
    manager: Option<Manager>,
    /// Hears what the engine hears and plans.
    witness: Option<Box<Witness<'static>>>,
    options: Options,
    last_binds: LastBinds,
    /// Not there yet, by when they come; the next one last.
    coming: Vec<(Time, Event)>,
    cycle: u64,
    /// Why each gang was last said to wait.
    told: HashMap<Arc<str>, &'static str>,
    /// What was last said of each PodGroup.
    said: HashMap<Arc<str>, String>,
}

impl Simulation {
    pub fn new(world: World, engine: Engine, options: Options) -> Simulation {
        Simulation::before(None, world, engine, options)
    }

    /// The same before a witness.
    pub fn before(
        witness: Option<Box<Witness<'static>>>,
        world: World,
        engine: Engine,
        options: Options,
    ) -> Simulation {
        let report = Report::new(world.now);
        let manager = Manager::of(&world);
        let (coming, present): (Vec<_>, Vec<_>) = world.list().into_iter().partition(|event| {
            options.arrivals && arrival(event).is_some_and(|time| time > world.now)
        });
        let dated = |event: Event| Some((arrival(&event)?, event));
        let mut coming: Vec<(Time, Event)> = coming.into_iter().filter_map(dated).collect();
        coming.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        let mut simulation = Simulation {
            world,
            engine,
            report,
            curves: None,
            manager,
            witness,
            options,
            last_binds: LastBinds::default(),
            coming,
            cycle: 0,
            told: HashMap::new(),
            said: HashMap::new(),
        };
        if let Some(witness) = &mut simulation.witness {
            witness(&simulation.engine, Moment::Start);
        }
        present.into_iter().for_each(|event| simulation.hear(event));
        simulation.report.terminating = simulation.terminating();
        simulation
    }

    /// The engine and the controllers are told of an event.
    fn hear(&mut self, event: Event) {
        if let Some(manager) = &mut self.manager {
            manager.hear(&event);
        }
        self.tell_engine(event);
    }

    fn tell_engine(&mut self, event: Event) {
        match &mut self.witness {
            None => self.engine.apply(event),
            Some(witness) => {
                self.engine.apply(&event);
                witness(&self.engine, Moment::Event(&event));
            }
        }
    }

    /// Runs to the end and concludes the report. An invariant that does not hold is an error.
    pub fn run(&mut self, mut progress: impl FnMut(Progress)) -> Result<(), Violation> {
        let (mut idle, mut unproductive) = (0, 0);
        loop {
            let plan = self.step()?;
            progress(Progress {
                cycle: self.cycle,
                now: self.world.now,
                bound: self.report.binds.len(),
            });
            match self.options.until {
                Until::Cycles(cycles) if self.cycle >= cycles => break,
                Until::Cycles(_) => self.pass(STEP_MS),
                Until::Stable => {
                    let still =
                        plan.binds.is_empty() && plan.evictions.is_empty() && !self.awaits_events();
                    unproductive = if still { unproductive + 1 } else { 0 };
                    idle = if still && plan.nominations.is_empty() { idle + 1 } else { 0 };
                    match self.next_moment(&plan) {
                        Some(moment) if idle < PATIENCE && unproductive < LAST_PATIENCE => {
                            self.pass(moment.0.saturating_sub(self.world.now.0).max(STEP_MS));
                        }
                        _ => break,
                    }
                }
            }
        }
        self.report.conclude(&self.engine);
        self.report.jobs = self.world.others(Kind::Job).filter_map(report::JobLine::of).collect();
        Ok(())
    }

    /// One cycle: plan, and do what was planned.
    pub fn step(&mut self) -> Result<Plan, Violation> {
        self.cycle += 1;
        self.manage();
        let begin = Instant::now();
        let plan = self.engine.cycle(self.world.now);
        let duration = begin.elapsed();
        if let Some(witness) = &mut self.witness {
            witness(&self.engine, Moment::Cycle(self.world.now, &plan));
        }
        if self.options.check {
            invariants::check(&self.engine, self.engine.decisions())?;
            self.last_binds.check(&self.engine, self.engine.decisions(), self.world.now)?;
        }
        self.report.cycles.push(CycleLine {
            cycle: self.cycle,
            now: self.world.now.to_string(),
            duration_micros: duration.as_micros() as u64,
            binds: plan.binds.len(),
            evictions: plan.evictions.len(),
            nominations: plan.nominations.len(),
        });
        self.tell_held_nominations();
        self.tell_waits();
        if self.options.events {
            self.tell_searches();
        }
        if let Some(curves) = &mut self.curves {
            curves.look(&self.engine, self.world.now);
        }
        self.execute(&plan);
        Ok(plan)
    }

    /// The controllers take their turns, and the engine is told what they did.
    fn manage(&mut self) {
        let Some(mut manager) = self.manager.take() else { return };
        for event in manager.turn(&mut self.world) {
            self.tell_engine(event);
        }
        let cycle = self.cycle;
        let changes = manager.changes.drain(..);
        self.report.job_changes.extend(changes.map(|change| report::JobChange {
            cycle,
            job: change.job,
            phase: change.phase.name(),
            message: change.message,
        }));
        let told = manager.told.drain(..).filter(|_| self.options.events);
        let lines = told.map(|(object, event)| EventLine { cycle, object, event });
        self.report.events.extend(lines);
        self.manager = Some(manager);
    }

    /// The gang of a pod; a pod that is gone by now stands for itself.
    pub fn gang_of<'p>(&'p self, pod: &'p str) -> &'p str {
        self.engine.pod(pod).and_then(|known| known.gang).map_or(pod, |gang| gang.key)
    }

    fn tell_searches(&mut self) {
        for (gang, lines) in self.engine.searches() {
            let line = |event| EventLine { cycle: self.cycle, object: gang.to_string(), event };
            self.report.events.extend(lines.into_iter().map(line));
        }
    }

    fn tell_held_nominations(&mut self) {
        let cluster = self.engine.cluster();
        let held = cluster.nomination_ledger.iter().filter_map(|(&pod, nomination)| {
            let stands = cluster.pods.state[pod] == PodState::Nominated(nomination.node);
            stands.then(|| HeldNomination {
                pod: cluster.pods.name(pod).to_string(),
                node: cluster.nodes.name[nomination.node].to_string(),
                cycle: self.cycle,
                evicted: nomination.needs_evictions,
            })
        });
        let begin = self.report.held_nominations.len();
        self.report.held_nominations.extend(held);
        self.report.held_nominations[begin..].sort_by(|a, b| a.pod.cmp(&b.pod));
    }

    fn tell_waits(&mut self) {
        let cluster = self.engine.cluster();
        let begin = self.report.waits.len();
        let begin_lost = self.report.lost_nominations.len();
        for &gang in cluster.gangs.waiting() {
            let gang = &cluster.gangs[gang];
            let is_loss = |reason: &&Reason| matches!(reason, Reason::NominationsLost { .. });
            self.report.lost_nominations.extend(gang.reasons.iter().find(is_loss).map(|loss| {
                let (object, event) =
                    (gang.key.to_string(), explain::message(loss, &cluster.dimensions));
                EventLine { cycle: self.cycle, object, event }
            }));
            let word = gang.reasons.iter().find(|reason| !is_loss(reason));
            let word = word.map_or("", explain::word);
            if self.told.insert(gang.key.clone(), word) != Some(word) && !word.is_empty() {
                let line = EventLine {
                    cycle: self.cycle,
                    object: gang.key.to_string(),
                    event: word.to_owned(),
                };
                self.report.waits.push(line);
            }
        }
        self.report.waits[begin..].sort_by(|a, b| a.object.cmp(&b.object));
        self.report.lost_nominations[begin_lost..].sort_by(|a, b| a.object.cmp(&b.object));
    }

    fn execute(&mut self, plan: &Plan) {
        let mut answers = Vec::new();
        self.place(plan, &mut answers);
        self.note(plan, &mut answers);
        self.evict(plan, &mut answers);
        self.update(plan, &mut answers);
        for event in answers {
            self.hear(event);
        }
    }

    fn place(&mut self, plan: &Plan, answers: &mut Vec<Event>) {
        for place in &plan.nominations {
            let standing = self.engine.pod(&place.pod).map(|known| known.standing);
            let evicted =
                matches!(standing, Some(Standing::Nominated { needs_evictions: true, .. }));
            let desired = Desired::nomination(&place.node, evicted, &[]);
            let write = AnnotationWrite::pod(&place.pod, &place.uid, desired);
            answers.extend(self.world.annotate(&write));
            self.report.nominations.push(placement(place, self.cycle));
        }
        for pod in &plan.withdrawn {
            let Some(known) = self.engine.pod(pod) else { continue };
            let desired = Desired::no_nomination([].into_iter());
            let write = AnnotationWrite::pod(pod, known.uid, desired);
            answers.extend(self.world.annotate(&write));
        }
        for place in &plan.binds {
            let Placement { pod, uid, node, .. } = place;
            answers.push(match self.world.bind(pod, uid, node, plan.card_note(pod)) {
                Ok(event) => event,
                Err(cause) => {
                    let (key, uid) = (pod.to_string(), uid.to_string());
                    Event::BindFailed { key, uid, cause: cause.to_string(), at: self.world.now }
                }
            });
            self.report.binds.push(placement(place, self.cycle));
        }
    }

    fn note(&mut self, plan: &Plan, answers: &mut Vec<Event>) {
        for note in &plan.notes {
            answers.extend(self.world.annotate(&AnnotationWrite::group(note)));
            if self.options.events {
                let lines = note.annotations.iter().map(|(key, text)| EventLine {
                    cycle: self.cycle,
                    object: note.gang.to_string(),
                    event: text
                        .as_ref()
                        .map_or(format!("no {key}"), |text| format!("{key} {text}")),
                });
                self.report.events.extend(lines);
            }
        }
    }

    fn evict(&mut self, plan: &Plan, answers: &mut Vec<Event>) {
        for eviction in &plan.evictions {
            let Placement { pod, uid, node, .. } = &eviction.place;
            let (key, uid) = (pod.to_string(), uid.to_string());
            let (answer, refused) = match self.world.evict(&key, &uid) {
                Ok(event) => (event, None),
                Err(refusal @ Refusal::EvictionRefused(..)) => {
                    let (cause, at) = (refusal.to_string(), self.world.now);
                    let refused = Some(cause.clone());
                    (Event::EvictionRefused { key, uid, cause, at }, refused)
                }
                Err(_) => (Event::Gone { kind: Kind::Pod, key, uid }, None),
            };
            answers.push(answer);
            let text = |name: &Arc<str>| name.to_string();
            let line = report::Eviction {
                pod: text(pod),
                gang: self.gang_of(pod).to_owned(),
                node: text(node),
                cycle: self.cycle,
                action: eviction.action.to_string(),
                preemptor: eviction.preemptor.as_ref().map(text),
                reason: eviction.cause.clone(),
                moves_to: eviction.moves_to.as_ref().map(text),
                refused,
                leaves: self.world.departure(pod).map(report::Leaves::from),
            };
            self.report.evictions.push(line);
        }
    }

    fn update(&mut self, plan: &Plan, answers: &mut Vec<Event>) {
        for update in &plan.updates {
            let Some(status) = update.status() else { continue };
            if self.options.events {
                let text = match &update.condition.message {
                    message if message.is_empty() => format!("{:?}", update.phase),
                    message => format!("{:?}: {message}", update.phase),
                };
                // How many of its pods have started is told by the pods themselves.
                if self.said.insert(update.gang.clone(), text.clone()).as_ref() != Some(&text) {
                    let object = update.gang.to_string();
                    self.report.events.push(EventLine { cycle: self.cycle, object, event: text });
                }
            }
            answers.extend(self.world.report(&update.gang, status));
        }
    }

    /// Time goes by: the kubelet works, and what was to come arrives.
    pub fn pass(&mut self, milliseconds: i64) {
        self.world.now = self.world.now.plus_ms(milliseconds);
        for event in self.world.tick(self.options.recreate) {
            if self.options.events {
                self.report.events.extend(event_line(self.cycle, &event));
            }
            self.last_binds.hear(&self.engine, &event);
            self.hear(event);
        }
        while self.coming.last().is_some_and(|(time, _)| *time <= self.world.now) {
            let (_, event) = self.coming.pop().expect("looked at");
            self.last_binds.hear(&self.engine, &event);
            self.hear(event);
        }
    }

    /// Something will happen by itself: a pod ends, or one arrives.
    fn awaits_events(&self) -> bool {
        self.unsettled() || !self.coming.is_empty() || self.world.next_end().is_some()
    }

    /// When something will happen next, if anything will.
    fn next_moment(&self, plan: &Plan) -> Option<Time> {
        if !plan.is_empty() || self.unsettled() {
            return Some(self.world.now.plus_ms(STEP_MS));
        }
        let arrival = self.coming.last().map(|(time, _)| *time);
        let managed = self.manager.as_ref().and_then(|manager| manager.wake);
        let next = [arrival, self.world.next_end(), managed].into_iter().flatten().min();
        // Time alone matters only while there is something it could help, or while what it does is
        // recorded.
        let gangs = &self.engine.cluster().gangs;
        let waits = || gangs.iter().any(|(_, gang)| gang.counts.pending > 0);
        let watched = self.curves.is_some();
        let wake = plan.wake.filter(|_| watched || waits() || gangs.broken().next().is_some());
        [next, wake].into_iter().flatten().min()
    }

    /// Something is bound but not started, or has a nomination that no pod's end will fulfil.
    fn unsettled(&self) -> bool {
        if self.manager.as_ref().is_some_and(|manager| manager.was_busy) {
            return true;
        }
        let pods = &self.engine.cluster().pods;
        let is_leaving = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
        let awaits_an_end = self.world.pods.values().any(is_leaving);
        pods.live().any(|pod| match pods.state[pod] {
            PodState::Allocated(_) => true,
            PodState::Nominated(_) => !awaits_an_end,
            _ => false,
        }) || self.world.pods.values().any(|pod| {
            pod.status.phase == "Pending" && pod.spec.node_name.is_some() && !is_leaving(pod)
        })
    }

    /// The pods that came with a deletionTimestamp and leave after the first cycle.
    fn terminating(&self) -> Vec<report::Terminating> {
        let pods = self.world.terminating();
        pods.map(|(pod, node, departure)| report::Terminating {
            pod: pod.to_owned(),
            gang: self.gang_of(pod).to_owned(),
            node: node.to_owned(),
            leaves: departure.into(),
        })
        .collect()
    }
}

fn placement(place: &Placement, cycle: u64) -> report::Placement {
    let Placement { pod, uid: _, node, cards } = place;
    let cards = cards.as_ref().map(ToString::to_string);
    report::Placement { pod: pod.to_string(), node: node.to_string(), cards, cycle }
}

fn arrival(event: &Event) -> Option<Time> {
    match event {
        Event::Object(object @ (Object::Pod(_) | Object::PodGroup(_))) => {
            object.meta().creation_timestamp
        }
        _ => None,
    }
}

fn event_line(cycle: u64, event: &Event) -> Option<EventLine> {
    let (object, event) = match event {
        Event::Object(Object::Pod(pod)) => (pod.metadata.key(), pod.status.phase.clone()),
        Event::Gone { kind: Kind::Pod, key, .. } => (key.clone(), "Gone".to_owned()),
        _ => return None,
    };
    Some(EventLine { cycle, object, event })
}
