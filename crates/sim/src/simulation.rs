//! Cycle after cycle on the virtual cluster: the engine plans, the cluster does it, a second
//! passes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use muster_api::Time;
use muster_api::kinds::{Kind, Object};
use muster_engine::model::pods::PodState;
use muster_engine::{Bind, Cause, Engine, Event, Plan, explain, status};

use crate::chaos::{Moment, Witness};
use crate::curves::Curves;
use crate::invariants;
use crate::report::{CycleLine, EventLine, Eviction, HeldNomination, Placement, Report};
use crate::world::World;

/// How often time alone may pass in vain: gangs that can't run may take turns for ever.
const PATIENCE: u32 = 20;

/// How often places may be promised without anyone coming or leaving: a promise that doesn't come
/// true is given again and again.
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
    /// What queues use and should have, if someone wants to see it.
    pub curves: Option<Curves>,
    /// Hears what the engine hears and plans.
    witness: Option<Box<Witness<'static>>>,
    options: Options,
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
            witness,
            options,
            coming,
            cycle: 0,
            told: HashMap::new(),
            said: HashMap::new(),
        };
        if let Some(witness) = &mut simulation.witness {
            witness(&simulation.engine, Moment::Start);
        }
        present.into_iter().for_each(|event| simulation.hear(event));
        simulation
    }

    fn hear(&mut self, event: Event) {
        match &mut self.witness {
            None => self.engine.apply(event),
            Some(witness) => {
                self.engine.apply(&event);
                witness(&self.engine, Moment::Event(&event));
            }
        }
    }

    /// Runs to the end and concludes the report. An invariant that does not hold is an error.
    pub fn run(&mut self, mut progress: impl FnMut(Progress)) -> Result<(), String> {
        let (mut in_vain, mut fruitless) = (0, 0);
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
                    fruitless = if still { fruitless + 1 } else { 0 };
                    in_vain = if still && plan.nominations.is_empty() { in_vain + 1 } else { 0 };
                    match self.next_moment(&plan) {
                        Some(moment) if in_vain < PATIENCE && fruitless < LAST_PATIENCE => {
                            self.pass((moment.0 - self.world.now.0).max(STEP_MS));
                        }
                        _ => break,
                    }
                }
            }
        }
        self.report.conclude(&self.engine);
        Ok(())
    }

    /// One cycle: plan, and do what was planned.
    pub fn step(&mut self) -> Result<Plan, String> {
        self.cycle += 1;
        let begin = Instant::now();
        let plan = self.engine.cycle(self.world.now);
        let duration = begin.elapsed();
        if let Some(witness) = &mut self.witness {
            witness(&self.engine, Moment::Cycle(self.world.now, &plan));
        }
        if self.options.check {
            invariants::check(&self.engine, &plan)?;
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
            self.tell_searches(&plan);
        }
        if let Some(curves) = &mut self.curves {
            curves.look(&self.engine, self.world.now);
        }
        self.execute(&plan);
        Ok(plan)
    }

    /// The gang of a pod; a pod that is gone by now stands for itself.
    pub fn gang_of<'p>(&'p self, pod: &'p str) -> &'p str {
        let cluster = self.engine.cluster();
        let gang = cluster.pods.find(pod).and_then(|pod| cluster.pods.gang[pod]);
        gang.map_or(pod, |gang| &cluster.gangs[gang].key)
    }

    fn tell_searches(&mut self, plan: &Plan) {
        let cluster = self.engine.cluster();
        for search in &plan.searches {
            let object = &cluster.gangs[search.gang].key;
            let line = |event| EventLine { cycle: self.cycle, object: object.to_string(), event };
            self.report.events.extend(explain::search(cluster, plan, search).into_iter().map(line));
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
        let gangs = &self.engine.cluster().gangs;
        let begin = self.report.waits.len();
        for &gang in gangs.waiting() {
            let gang = &gangs[gang];
            let word = gang.reasons.first().map_or("", explain::word);
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
    }

    fn execute(&mut self, plan: &Plan) {
        let name = |engine: &Engine, bind: &Bind| {
            let cluster = engine.cluster();
            let pod = &cluster.pods.fact[bind.pod];
            (pod.key.to_string(), pod.uid.to_string(), cluster.nodes.name[bind.node].to_string())
        };
        let mut answers = Vec::new();
        for bind in &plan.nominations {
            let (pod, uid, node) = name(&self.engine, bind);
            let nomination = self.engine.cluster().nomination_ledger.get(&bind.pod);
            let evicted = nomination.is_some_and(|nomination| nomination.needs_evictions);
            answers.extend(self.world.nomination(&pod, &uid, &node, evicted));
            let cards = cards(plan, bind);
            self.report.nominations.push(Placement { pod, node, cards, cycle: self.cycle });
        }
        for &pod in &plan.withdrawn {
            let fact = &self.engine.cluster().pods.fact[pod];
            answers.extend(self.world.take_back(&fact.key, &fact.uid));
        }
        for bind in &plan.binds {
            let (pod, uid, node) = name(&self.engine, bind);
            match self.world.bind(&pod, &uid, &node, plan.note_of(bind.pod)) {
                Ok(event) => answers.push(event),
                Err(cause) => answers.push(Event::BindFailed {
                    key: pod.clone(),
                    uid,
                    cause,
                    at: self.world.now,
                }),
            }
            let cards = cards(plan, bind);
            self.report.binds.push(Placement { pod, node, cards, cycle: self.cycle });
        }
        for note in &plan.group_notes {
            let gang = &self.engine.cluster().gangs[note.gang];
            answers.extend(self.world.note_group(&gang.key, &gang.uid, &note.annotations));
            if self.options.events {
                let lines = note.annotations.iter().map(|(key, text)| EventLine {
                    cycle: self.cycle,
                    object: gang.key.to_string(),
                    event: text
                        .as_ref()
                        .map_or(format!("no {key}"), |text| format!("{key} {text}")),
                });
                self.report.events.extend(lines);
            }
        }
        for eviction in &plan.evictions {
            let place = Bind { pod: eviction.pod, node: eviction.node };
            let (pod, uid, node) = name(&self.engine, &place);
            let gang = self.gang_of(&pod).to_owned();
            let gangs = &self.engine.cluster().gangs;
            match self.world.evict(&pod, &uid) {
                Ok(event) => answers.push(event),
                Err(_) => answers.push(Event::Gone { kind: Kind::Pod, key: pod.clone(), uid }),
            }
            self.report.evictions.push(Eviction {
                pod,
                gang,
                node,
                cycle: self.cycle,
                action: eviction.action.to_owned(),
                preemptor: eviction.preemptor.map(|gang| gangs[gang].key.to_string()),
                reason: explain::cause(self.engine.cluster(), eviction),
                moves_to: match eviction.cause {
                    Cause::Moved { to } => Some(self.engine.cluster().nodes.name[to].to_string()),
                    _ => None,
                },
            });
        }
        for &id in &plan.updates {
            let gang = &self.engine.cluster().gangs[id];
            let Some(status) = status::of(self.engine.cluster(), id) else { continue };
            if self.options.events {
                let text = match &gang.condition.message {
                    message if message.is_empty() => format!("{:?}", gang.phase),
                    message => format!("{:?}: {message}", gang.phase),
                };
                // How many of its pods have started is told by the pods themselves.
                if self.said.insert(gang.key.clone(), text.clone()).as_ref() != Some(&text) {
                    let line =
                        EventLine { cycle: self.cycle, object: gang.key.to_string(), event: text };
                    self.report.events.push(line);
                }
            }
            answers.extend(self.world.report(&gang.key, status));
        }
        for event in answers {
            self.hear(event);
        }
    }

    /// Time goes by: the kubelet works, and what was to come arrives.
    pub fn pass(&mut self, milliseconds: i64) {
        self.world.now = self.world.now.plus_ms(milliseconds);
        for event in self.world.tick(self.options.recreate) {
            if self.options.events {
                self.report.events.extend(event_line(self.cycle, &event));
            }
            self.hear(event);
        }
        while self.coming.last().is_some_and(|(time, _)| *time <= self.world.now) {
            let (_, event) = self.coming.pop().expect("looked at");
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
        let next = [arrival, self.world.next_end()].into_iter().flatten().min();
        // Time alone matters only while there is something it could help, or someone watches what
        // it does.
        let gangs = &self.engine.cluster().gangs;
        let waits = || gangs.iter().any(|(_, gang)| gang.counts.pending > 0);
        let watched = self.curves.is_some();
        let wake = plan.wake.filter(|_| watched || waits() || gangs.broken().next().is_some());
        [next, wake].into_iter().flatten().min()
    }

    /// Something is bound but not started, or leaving but not gone.
    fn unsettled(&self) -> bool {
        let cluster = self.engine.cluster();
        cluster.pods.live().any(|pod| match cluster.pods.state[pod] {
            PodState::Allocated(_) | PodState::Nominated(_) => true,
            PodState::Releasing(node) => cluster.nodes.fact[node].lets_go(),
            _ => false,
        }) || self
            .world
            .pods
            .values()
            .any(|pod| pod.status.phase == "Pending" && pod.spec.node_name.is_some())
    }
}

/// The cards that a pod gets, as its annotation says.
fn cards(plan: &Plan, bind: &Bind) -> Option<String> {
    plan.note_of(bind.pod).first().map(|(_, cards)| cards.clone())
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
