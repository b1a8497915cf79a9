//! Bad days, in a few configurations. A failure names its seed and step: the same seed is the same
//! day.

use std::collections::BTreeMap;
use std::ops::Range;

use muster_engine::config::{BUILTIN, Config};
use muster_engine::ids::PodId;
use muster_engine::{Bind, Cause, Decisions, Engine, Eviction, Reason};
use muster_sim::World;
use muster_sim::chaos::{self, History, Moment};

const STEPS: u64 = 150;

/// `MUSTER_SEEDS=5000 cargo test -p muster-sim --test chaos` looks longer, `MUSTER_SEEDS=52..53` at
/// one day.
fn seeds(few: u64) -> Range<u64> {
    let Ok(text) = std::env::var("MUSTER_SEEDS") else { return 0..few };
    let (from, to) = text.split_once("..").unwrap_or(("0", &text));
    let number = |text: &str| text.parse().expect("MUSTER_SEEDS is a number or a range");
    number(from)..number(to)
}

/// What must have happened for the name of a test to be true, and how to count it after a cycle.
type Event = (&'static str, fn(&Engine, &Decisions) -> u64);

/// Lives through the days. With the usual seeds, all of these events and every kind of mishap must
/// have happened.
fn survives(name: &str, text: &str, few: u64, events: &[Event]) {
    let config = || Config::parse(name, text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut broken = Vec::new();
    let mut happened: BTreeMap<&str, u64> = events.iter().map(|(event, _)| (*event, 0)).collect();
    for seed in seeds(few) {
        let mut witness = |engine: &Engine, moment: Moment| {
            if let Moment::Cycle(..) = moment {
                for (event, count) in events {
                    *happened.entry(event).or_default() += count(engine, engine.decisions());
                }
            }
        };
        match chaos::run_before(&mut witness, World::default(), &config, seed, STEPS, |_| {}) {
            Ok(history) => add_mishaps(&mut happened, &history),
            Err(found) => broken.push(format!("seed {seed}, step {}: {}", found.step, found.what)),
        }
    }
    let count = broken.len();
    broken.truncate(20);
    assert!(broken.is_empty(), "{name}: {count} seeds broken\n{}", broken.join("\n"));
    println!("{name}: {happened:?}");
    let usual = std::env::var("MUSTER_SEEDS").is_err();
    let missed: Vec<_> = happened.iter().filter(|(_, times)| usual && **times == 0).collect();
    assert!(missed.is_empty(), "{name}: never happened: {missed:?}");
}

fn add_mishaps(happened: &mut BTreeMap<&str, u64>, history: &History) {
    for (mishap, times) in [
        ("refused writes", history.refused),
        ("lost writes", history.lost),
        ("lost answers", history.half_known),
        ("lost nodes", history.node_losses),
        ("restarts", history.restarts),
        ("events told twice", history.duplicates),
        ("old events", history.stale),
        ("comparisons with a fresh scheduler", history.comparisons),
    ] {
        *happened.entry(mishap).or_default() += times;
    }
}

fn evictions(plan: &Decisions, of: impl Fn(&Eviction) -> bool) -> u64 {
    plan.evictions.iter().filter(|eviction| of(eviction)).count() as u64
}

const PREEMPTIONS: Event =
    ("evictions by preempt", |_, plan| evictions(plan, |it| it.action == "preempt"));
const RECLAIMS: Event =
    ("evictions by reclaim", |_, plan| evictions(plan, |it| it.action == "reclaim"));
const STALE_GANGS: Event = ("evictions of stale gangs", |_, plan| {
    evictions(plan, |it| matches!(it.cause, Cause::Stale { .. }))
});
const BROKEN_GANGS: Event = ("evictions that break a gang", |_, plan| {
    evictions(plan, |it| matches!(it.cause, Cause::Bundle { whole: true, .. }))
});
const MOVES: Event =
    ("moved pods", |_, plan| evictions(plan, |it| matches!(it.cause, Cause::Moved { .. })));
const BINDS_BELOW_A_QUEUE: Event = ("binds in a queue below another", |engine, plan| {
    let cluster = engine.cluster();
    let parent = |pod: PodId| {
        let queue = cluster.gangs[cluster.pods.gang[pod]?].queue;
        cluster.queues[queue].parent.filter(|&parent| &*cluster.queues[parent].name != "root")
    };
    plan.binds.iter().filter_map(|bind| parent(bind.pod)).count() as u64
});
const BINDS_WITH_CARDS: Event = ("binds of pods that share cards", |engine, plan| {
    let shares = |bind: &&Bind| engine.cluster().devices.held(bind.pod).is_some();
    plan.binds.iter().filter(shares).count() as u64
});
const LIMITED_BY_WEIGHT: Event = ("gangs that wait for their queue's share", |engine, _| {
    let by_weight = |reason: &Reason| matches!(reason, Reason::OverLimit { plugin, .. } if plugin == "proportion");
    let gangs = engine.cluster().gangs.iter();
    gangs.filter(|(_, gang)| gang.reasons.iter().any(by_weight)).count() as u64
});

#[test]
fn the_builtin_configuration_survives() {
    survives("builtin", BUILTIN, 80, &[PREEMPTIONS, RECLAIMS, BROKEN_GANGS]);
}

#[test]
fn shares_by_weight_survive() {
    survives("proportion", include_str!("shares-by-weight.conf"), 60, &[LIMITED_BY_WEIGHT]);
}

#[test]
fn shared_cards_survive() {
    for (way, policy) in [("GPUSharingEnable", "binpack"), ("VGPUEnable", "spread")] {
        let text = format!(
            "actions: \"enqueue, allocate, backfill, stalegangeviction\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- \
             plugins:\n  - name: predicates\n  - name: capacity\n  - name: network-topology-aware\n  - name: deviceshare\n    arguments: \
             {{deviceshare.{way}: true, deviceshare.SchedulePolicy: {policy}, deviceshare.ScheduleWeight: 5}}\n"
        );
        survives(way, &text, 40, &[BINDS_WITH_CARDS]);
    }
}

#[test]
fn a_tree_of_queues_survives() {
    let text = r#"
actions: "enqueue, allocate, backfill"
configurations:
- name: enqueue
  arguments: {admissionTimeout: 60s}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enableHierarchy: true
  - name: predicates
  - name: capacity
    enableHierarchy: true
  - name: resourcequota
  - name: nodeorder
"#;
    survives("tree", text, 60, &[BINDS_BELOW_A_QUEUE]);
}

#[test]
fn evictions_of_stale_gangs_survive_without_admission() {
    let text = r#"
actions: "allocate, backfill, stalegangeviction"
configurations:
- name: stalegangeviction
  arguments: {gracePeriod: 5s}
- name: allocate
  arguments: {traverseHeadWait: 30s}
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: binpack
"#;
    survives("without enqueue", text, 60, &[STALE_GANGS]);
}

#[test]
fn evictions_pod_by_pod_survive() {
    survives("mode task", &evicting("task"), 60, &[PREEMPTIONS, RECLAIMS]);
}

#[test]
fn evictions_of_whole_gangs_survive() {
    survives("mode gang", &evicting("gang"), 60, &[PREEMPTIONS, RECLAIMS, BROKEN_GANGS]);
}

#[test]
fn scenarios_survive() {
    survives("scenarios", &recommended(), 40, &[PREEMPTIONS, RECLAIMS, MOVES]);
}

#[test]
fn scenarios_in_a_tree_of_queues_survive() {
    let flat = recommended();
    let tree =
        flat.replace("  - name: capacity\n", "  - name: capacity\n    enableHierarchy: true\n");
    assert_ne!(tree, flat);
    let events = [PREEMPTIONS, RECLAIMS, MOVES, BINDS_BELOW_A_QUEUE];
    survives("scenarios in a tree", &tree, 40, &events);
}

/// What `docs/scenarios.md` recommends, with `backfill` for pods that request nothing. Pods that have
/// just started are protected for less long, since days are short.
fn recommended() -> String {
    include_str!("../../../examples/gpu-cluster/scheduler.conf")
        .replace("allocate, consolidate", "allocate, backfill, consolidate")
        .replace("Runtime: 5m", "Runtime: 5s")
        .replace("Runtime: 10m", "Runtime: 5s")
        .replace("GracePeriod: 60s", "GracePeriod: 20s")
}

fn evicting(mode: &str) -> String {
    format!(
        r#"
actions: "enqueue, allocate, backfill, reclaim, preempt"
configurations:
- name: reclaim
  arguments: {{mode: {mode}}}
- name: preempt
  arguments: {{mode: {mode}}}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware
"#
    )
}
