//! Bad days, in a few configurations. A failure names its seed and step: the same seed is the same
//! day.

use std::ops::Range;

use muster_engine::config::{BUILTIN, Config};
use muster_sim::{World, chaos};

const STEPS: u64 = 150;

/// `MUSTER_SEEDS=5000 cargo test -p muster-sim --test chaos` looks longer, `MUSTER_SEEDS=52..53` at
/// one day.
fn seeds(few: u64) -> Range<u64> {
    let Ok(text) = std::env::var("MUSTER_SEEDS") else { return 0..few };
    let (from, to) = text.split_once("..").unwrap_or(("0", &text));
    let number = |text: &str| text.parse().expect("MUSTER_SEEDS is a number or a range");
    number(from)..number(to)
}

/// Returns how many pods were evicted on all days.
fn survives(name: &str, text: &str, few: u64) -> u64 {
    let config = || Config::parse(name, text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut broken = Vec::new();
    let mut last = None;
    let mut evictions = 0;
    for seed in seeds(few) {
        match chaos::run(World::default(), &config, seed, STEPS, |_| {}) {
            Ok(history) => {
                evictions += history.evictions;
                last = Some(history);
            }
            Err(found) => broken.push(format!("seed {seed}, step {}: {}", found.step, found.what)),
        }
    }
    let count = broken.len();
    broken.truncate(20);
    assert!(broken.is_empty(), "{name}: {count} seeds broken\n{}", broken.join("\n"));
    println!("{name}: {}; {evictions} evictions in all", last.expect("at least one seed"));
    evictions
}

#[test]
fn the_builtin_configuration_survives() {
    survives("builtin", BUILTIN, 80);
}

#[test]
fn shares_by_weight_survive() {
    survives("proportion", include_str!("shares-by-weight.conf"), 60);
}

#[test]
fn shared_cards_survive() {
    for (way, policy) in [("GPUSharingEnable", "binpack"), ("VGPUEnable", "spread")] {
        let text = format!(
            "actions: \"enqueue, allocate, backfill, stalegangeviction\"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- \
             plugins:\n  - name: predicates\n  - name: capacity\n  - name: network-topology-aware\n  - name: deviceshare\n    arguments: \
             {{deviceshare.{way}: true, deviceshare.SchedulePolicy: {policy}, deviceshare.ScheduleWeight: 5}}\n"
        );
        survives(way, &text, 40);
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
    survives("tree", text, 60);
}

#[test]
fn scheduling_without_admission_and_with_evictions_survives() {
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
    survives("without enqueue", text, 60);
}

#[test]
fn room_that_is_taken_from_others_survives() {
    let text = taking("task");
    assert!(survives("taking", &text, 60) > 0, "nobody was ever asked to leave");
}

#[test]
fn room_of_whole_gangs_survives() {
    let text = taking("gang");
    assert!(survives("taking gangs", &text, 60) > 0, "nobody was ever asked to leave");
}

#[test]
fn room_by_scenarios_survives() {
    assert!(survives("scenarios", &recommended(), 40) > 0, "nobody was ever asked to leave");
}

#[test]
fn room_by_scenarios_in_a_tree_survives() {
    let flat = recommended();
    let tree =
        flat.replace("  - name: capacity\n", "  - name: capacity\n    enableHierarchy: true\n");
    assert_ne!(tree, flat);
    assert!(survives("scenarios in a tree", &tree, 40) > 0, "nobody was ever asked to leave");
}

/// What `docs/scenarios.md` recommends, with `backfill` for pods that request nothing; those who
/// have just started keep their places for less long, since days are short.
fn recommended() -> String {
    include_str!("../../../examples/gpu-cluster/scheduler.conf")
        .replace("allocate, consolidate", "allocate, backfill, consolidate")
        .replace("Runtime: 5m", "Runtime: 5s")
        .replace("Runtime: 10m", "Runtime: 5s")
        .replace("GracePeriod: 60s", "GracePeriod: 20s")
}

fn taking(mode: &str) -> String {
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
