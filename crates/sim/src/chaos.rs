//! A cluster on a bad day: a seeded history of work that comes and goes, nodes that fail, watch
//! events that come late, twice or out of order, writes that are refused or lost, and schedulers
//! that start again. After every step everything that must always be true is checked; the same seed
//! is the same day.

mod churn;
mod dice;
mod network;
mod verify;
mod watch;
mod work;
mod writes;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_engine::config::Config;
use muster_engine::{Engine, Event, Plan};

use crate::{Invariant, Progress, Violation, World, invariants};
use dice::Dice;
use watch::Watch;
use writes::Writes;

/// An invariant that did not hold.
#[derive(Debug)]
pub struct Broken {
    pub step: u64,
    pub what: Violation,
}

/// What happened, counted.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct History {
    pub seed: u64,
    pub steps: u64,
    pub cycles: u64,
    pub arrivals: u64,
    pub deletions: u64,
    pub binds: u64,
    pub nominations: u64,
    pub evictions: u64,
    /// Binds and evictions that the server said no to.
    pub refused: u64,
    /// Those that never arrived.
    pub lost: u64,
    /// Those that arrived, but whose answer didn't.
    pub half_known: u64,
    pub node_losses: u64,
    pub restarts: u64,
    pub events: u64,
    pub duplicates: u64,
    /// Old versions of objects that were told again.
    pub stale: u64,
    /// Moments without anything under way, at which a fresh scheduler had to agree with the
    /// running one.
    pub comparisons: u64,
    /// Such moments where the two may differ, because only one of them remembers what time has
    /// done.
    pub not_compared: u64,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let History {
            seed, steps, binds, refused, lost, half_known, node_losses, restarts, ..
        } = self;
        let History { nominations, evictions, events, duplicates, stale, comparisons, .. } = self;
        write!(
            f,
            "seed {seed}: {steps} steps, {binds} binds, {nominations} nominations, {evictions} evictions, {refused} refused, {lost} lost, \
             {half_known} half known, {node_losses} node losses, {restarts} restarts, {events} events ({duplicates} twice, {stale} stale), \
             {comparisons} comparisons with a fresh scheduler; all invariants held"
        )
    }
}

/// What has just happened to the scheduler of a history or a simulation.
pub enum Moment<'m> {
    /// It is new and knows nothing.
    Start,
    Event(&'m Event),
    Cycle(Time, &'m Plan),
}

/// Hears of every moment, with the scheduler as it is after it.
pub type Witness<'w> = dyn FnMut(&Engine, Moment) + 'w;

/// Runs a history on the world. The configuration is asked for at every start of a scheduler.
pub fn run(
    world: World,
    config: &dyn Fn() -> Config,
    seed: u64,
    steps: u64,
    progress: impl FnMut(Progress),
) -> Result<History, Broken> {
    run_before(&mut |_, _| {}, world, config, seed, steps, progress)
}

/// The same before a witness.
pub fn run_before(
    witness: &mut Witness,
    world: World,
    config: &dyn Fn() -> Config,
    seed: u64,
    steps: u64,
    mut progress: impl FnMut(Progress),
) -> Result<History, Broken> {
    let mut day = Day::new(world, config, seed, witness);
    for step in 1..=steps {
        // A count that went below zero or an unreachable place is as broken as an invariant, and
        // needs its seed.
        let outcome = catch_unwind(AssertUnwindSafe(|| day.step(step)))
            .unwrap_or_else(|cause| Invariant::Panic.fails(panic_text(&*cause)));
        outcome.map_err(|what| Broken { step, what })?;
        progress(Progress { cycle: step, now: day.world.now, bound: day.history.binds as usize });
    }
    day.history.steps = steps;
    Ok(day.history)
}

fn panic_text(cause: &(dyn std::any::Any + Send)) -> String {
    let text = cause
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(cause.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// The server, the scheduler, and what is on its way between them.
struct Day<'c> {
    world: World,
    engine: Engine,
    config: &'c dyn Fn() -> Config,
    dice: Dice,
    watch: Watch,
    writes: Writes,
    history: History,
    step: u64,
    /// A day on which work stays, matters more or less, and can do with less: room has to be taken
    /// from others.
    crowded: bool,
    witness: &'c mut Witness<'c>,
}

impl<'c> Day<'c> {
    fn new(
        mut world: World,
        config: &'c dyn Fn() -> Config,
        seed: u64,
        witness: &'c mut Witness<'c>,
    ) -> Day<'c> {
        let mut dice = Dice::new(seed);
        if world.nodes.is_empty() {
            work::furnish(&mut world, &mut dice);
        }
        let mut day = Day {
            world,
            engine: Engine::new(config(), scheduler_names()),
            config,
            dice,
            watch: Watch::default(),
            writes: Writes::default(),
            history: History { seed, ..History::default() },
            step: 0,
            crowded: seed % 2 == 1,
            witness,
        };
        day.list();
        day
    }

    fn step(&mut self, step: u64) -> Result<(), Violation> {
        self.step = step;
        let pause = self.dice.pick(&[(900, 1), (85, 10), (13, 60), (2, 700)]);
        self.world.now = self.world.now.plus_ms(pause * 1000);
        for _ in 0..self.dice.below(6) {
            self.churn();
        }
        if self.dice.chance(45) {
            self.kubelet();
        }
        self.write_due();
        self.hear(self.step);
        if self.dice.chance(3) {
            self.restart();
        }
        self.engine.cluster().audit().map_err(|what| Invariant::Sums.violated(what.to_string()))?;
        if self.dice.chance(85) {
            self.cycle()?;
        }
        if self.dice.chance(15) {
            self.calm()?;
        }
        Ok(())
    }

    /// One cycle, checked and carried out.
    fn cycle(&mut self) -> Result<Plan, Violation> {
        self.history.cycles += 1;
        let plan = self.engine.cycle(self.world.now);
        (self.witness)(&self.engine, Moment::Cycle(self.world.now, &plan));
        invariants::check(&self.engine, self.engine.decisions())?;
        self.execute(&plan);
        Ok(plan)
    }

    /// The scheduler is told what the watch has for it by now.
    fn hear(&mut self, until: u64) {
        for event in self.watch.deliver(&mut self.dice, until, &mut self.history) {
            self.history.events += 1;
            self.apply(event);
        }
    }

    /// Another scheduler takes over, from the objects alone. What the old one has written may still
    /// arrive, but its answers are not awaited.
    fn restart(&mut self) {
        self.history.restarts += 1;
        self.writes.orphan();
        self.engine = Engine::new((self.config)(), scheduler_names());
        self.list();
    }

    fn list(&mut self) {
        let mut events = self.world.list();
        self.dice.shuffle(&mut events);
        self.watch.start_over(&events);
        (self.witness)(&self.engine, Moment::Start);
        for event in events {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: Event) {
        self.writes.nominations.hear(&self.engine, &event);
        self.engine.apply(&event);
        (self.witness)(&self.engine, Moment::Event(&event));
    }

    fn kubelet(&mut self) {
        for event in self.world.tick(false) {
            self.tell(event);
        }
    }

    fn tell(&mut self, event: muster_engine::Event) {
        let delay = self.dice.pick(&[(55, 0), (20, 1), (15, 3), (10, 9)]);
        self.watch.send(self.step + delay, event);
    }
}

fn scheduler_names() -> Vec<String> {
    SCHEDULER_NAMES.iter().map(ToString::to_string).collect()
}
