//! The law of the journal: whatever a bad day of the fault simulator brings, an engine that is
//! restored from a checkpoint decides the same as the original, and a journal of the day replays
//! without a difference.

mod days;

use std::path::Path;

use days::{DAYS, Day};
use muster_api::{Portion, Time};
use muster_engine::config::Config;
use muster_engine::model::gangs::RareGangFields;
use muster_engine::{Checkpoint, Engine, Event};
use muster_journal::{Configuration, Journal, Limits, ReplayError, Summary, codec, replay};
use muster_sim::World;
use muster_sim::chaos::{self, Moment};
use serde::Serialize;
use serde::de::DeserializeOwned;

const STEPS: u64 = 120;
/// How many restored engines run beside the first.
const SHADOWS: usize = 3;
/// One moment in this many is a checkpoint.
const PAUSE: u64 = 61;

/// More seeds: `MUSTER_SEEDS=2000 cargo test -p muster-journal --test law`.
fn seeds(few: u64) -> u64 {
    std::env::var("MUSTER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

fn through_bytes<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let mut bytes = Vec::new();
    codec::encode(&mut bytes, value).expect("encodes");
    codec::decode(&bytes).expect("decodes")
}

fn parse(config: &Configuration) -> Config {
    Config::parse(&config.name, &config.text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// An engine that goes through the day, its journal, and engines that were restored from it along
/// the way.
struct Keeper<'k> {
    folder: &'k Path,
    day: &'k Day,
    seed: u64,
    moments: u64,
    config: usize,
    engine: Option<(Engine, Journal)>,
    shadows: Vec<Engine>,
    events: u64,
    binds: u64,
}

impl Keeper<'_> {
    fn configuration(&self) -> Configuration {
        let text = self.day.configs[self.config % self.day.configs.len()];
        Configuration { name: self.day.name.into(), text: text.into() }
    }

    fn witness(&mut self, original: &Engine, moment: Moment) {
        self.moments += 1;
        if let Moment::Start = moment {
            self.start(original.cluster().scheduler_names.clone());
        }
        let config = self.configuration();
        let (engine, journal) = self.engine.as_mut().expect("started");
        match moment {
            Moment::Start => {}
            Moment::Event(event) => {
                let mut event: Event = through_bytes(event);
                if let Some(twist) = self.day.twist {
                    twist(&mut event);
                }
                self.events += 1;
                journal.event(&event);
                engine.apply(&event);
                self.shadows.iter_mut().for_each(|shadow| shadow.apply(&event));
            }
            Moment::Cycle(now, original_plan) => {
                let plan = engine.cycle(now);
                self.binds += plan.binds.len() as u64;
                journal.cycle(now, &plan);
                if self.day.twist.is_none() {
                    let events_lost_nothing = plan == *original_plan;
                    assert!(
                        events_lost_nothing,
                        "at {now} the engine that heard decoded events decides differently"
                    );
                }
                for shadow in &mut self.shadows {
                    let its = shadow.cycle(now);
                    assert_eq!(plan, its, "at {now} a restored engine decides differently");
                    shadow
                        .cluster()
                        .audit()
                        .unwrap_or_else(|what| panic!("a restored engine: {what}"));
                }
            }
        }
        if journal.wants_checkpoint() {
            journal.checkpoint(engine.checkpoint());
        }
        if (self.moments * 7 + self.seed).is_multiple_of(PAUSE) {
            let checkpoint: Checkpoint = through_bytes(&engine.checkpoint());
            self.shadows.truncate(SHADOWS - 1);
            self.shadows.insert(0, Engine::restore(parse(&config), checkpoint));
        }
        if self.day.configs.len() > 1 && (self.moments * 5 + self.seed).is_multiple_of(211) {
            self.change_config();
        }
    }

    /// A scheduler has started: a new process, which continues the journal.
    fn start(&mut self, names: Vec<String>) {
        self.engine = None;
        self.shadows.clear();
        let limits = Limits { segment_bytes: 8 << 10, segments: usize::MAX };
        let journal = Journal::create(self.folder, limits, names.clone(), self.configuration());
        self.engine = Some((
            Engine::new(parse(&self.configuration()), names),
            journal.expect("our own folder"),
        ));
    }

    fn change_config(&mut self) {
        self.config += 1;
        let config = self.configuration();
        let (engine, journal) = self.engine.as_mut().expect("started");
        engine.configure(parse(&config));
        journal.config(&config.name, &config.text);
        self.shadows.iter_mut().for_each(|shadow| shadow.configure(parse(&config)));
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("seed {seed}, step {step}: {what}")]
    Day { seed: u64, step: u64, what: String },
    #[error("seed {seed}: {error}")]
    Replay { seed: u64, error: ReplayError },
    #[error(
        "seed {seed}: {} events and {} binds were recorded, but {} and {} replayed",
        recorded.0, recorded.1, replayed.0, replayed.1
    )]
    Lost { seed: u64, recorded: (u64, u64), replayed: (u64, u64) },
}

fn live_through(day: &Day, seed: u64) -> Result<Summary, Broken> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut keeper = Keeper {
        folder: folder.path(),
        day,
        seed,
        moments: 0,
        config: 0,
        engine: None,
        shadows: Vec::new(),
        events: 0,
        binds: 0,
    };
    let config = || parse(&Configuration { name: day.name.into(), text: day.configs[0].into() });
    let mut witness = |engine: &Engine, moment: Moment| keeper.witness(engine, moment);
    chaos::run_before(&mut witness, World::default(), &config, seed, STEPS, |_| {})
        .map_err(|broken| Broken::Day { seed, step: broken.step, what: broken.what.to_string() })?;
    keeper.engine = None;
    let summary =
        replay(folder.path(), 0, |_| {}, |_| {}).map_err(|error| Broken::Replay { seed, error })?;
    let recorded = (keeper.events, keeper.binds);
    let replayed = (summary.events, summary.binds);
    if recorded == replayed { Ok(summary) } else { Err(Broken::Lost { seed, recorded, replayed }) }
}

fn holds(name: &str, few: u64) {
    let day = DAYS.iter().find(|day| day.name == name).expect("a known day");
    let lived: Vec<_> = (0..seeds(few)).map(|seed| live_through(day, seed)).collect();
    let broken: Vec<String> =
        lived.iter().filter_map(|outcome| outcome.as_ref().err()).map(Broken::to_string).collect();
    let first = &broken[..broken.len().min(5)];
    assert!(broken.is_empty(), "{name}: {} seeds broken\n{}", broken.len(), first.join("\n"));
    let sum = |count: fn(&Summary) -> u64| lived.iter().flatten().map(count).sum::<u64>();
    let (segments, events) =
        (sum(|summary| summary.segments.len() as u64), sum(|summary| summary.events));
    let (cycles, binds) = (sum(|summary| summary.cycles), sum(|summary| summary.binds));
    println!("{name}: {segments} segments, {events} events, {cycles} cycles, {binds} binds");
}

#[test]
fn days_with_the_builtin_configuration_replay() {
    holds("builtin", 25);
}

#[test]
fn days_with_shares_by_weight_replay() {
    holds("shares by weight", 15);
}

#[test]
fn days_with_paths_of_queues_and_groups_of_nodes_replay() {
    holds("paths and groups", 25);
}

#[test]
fn days_with_changing_configurations_replay() {
    holds("changing configurations", 15);
}

#[test]
fn checkpoints_keep_the_progress_of_gangs_and_older_ones_have_none() {
    #[derive(Serialize)]
    struct Older {
        cooldown: Option<i64>,
        min_available: Option<Portion>,
        max_unavailable: Option<Portion>,
    }
    let cooldown = Some(60_000);
    let older = Older { cooldown, min_available: None, max_unavailable: None };
    let mut bytes = Vec::new();
    codec::encode(&mut bytes, &older).expect("encodes");
    let read: RareGangFields = codec::decode(&bytes).expect("decodes");
    assert_eq!(read, RareGangFields { cooldown, ..RareGangFields::default() });

    let (last_checkpoint, expected_end) = (Some(Time(1_000)), Some(Time(2_000)));
    let told = RareGangFields { last_checkpoint, expected_end, ..read };
    assert_eq!(through_bytes(&told), told);
}
