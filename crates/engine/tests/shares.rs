//! Fair shares of queues, from objects.

#[path = "support/lines.rs"]
mod lines;
mod support;

use lines::Line;
use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::shares::{Shares, trace};
use muster_engine::{Engine, Event};
use proptest::prelude::*;

const BORN: Time = Time(1_767_571_200_000);

fn engine(script: &[&str]) -> Engine {
    let mut engine = Engine::new(Config::builtin(), vec!["volcano".into()]);
    for (line, serial) in script.iter().filter_map(|line| Line::parse(line)).zip(0..) {
        // All are of the same age, so that names decide.
        let objects = support::objects(&line.manifests(&BORN.to_string(), serial));
        objects.into_iter().for_each(|object| engine.apply(Event::from(object)));
    }
    engine.settle();
    engine
}

fn fair(engine: &Engine, tree: bool, resource: &str, queues: &[&str]) -> Vec<i64> {
    let cluster = engine.cluster();
    let shares = Shares::of(cluster, tree, 0);
    let resource = cluster.dimensions.find(resource).expect("some object names it");
    let queue = |name: &&str| cluster.queues.find(name).expect("it is there");
    queues.iter().map(|name| shares.fair(queue(name), resource)).collect()
}

#[track_caller]
fn gpus(tree: bool, script: &str, expected: &[(&str, i64)]) {
    let queues: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    let script: Vec<&str> = script.lines().collect();
    let found = fair(&engine(&script), tree, "nvidia.com/gpu", &queues);
    assert_eq!(found, expected.iter().map(|(_, share)| *share).collect::<Vec<_>>());
}

#[test]
fn what_runs_and_what_waits_is_wanted() {
    let script = "
        node n      gpu=8
        queue a b   deserved.gpu=2
        gang b      x8 gpu=1 queue=b on=n
        gang a      x4 gpu=1 queue=a";
    gpus(false, script, &[("a", 4), ("b", 4)]);
}

#[test]
fn no_queue_gets_more_than_it_wants() {
    let script = "
        node n      gpu=8
        queue a b c deserved.gpu=2
        gang b      x3 gpu=1 queue=b on=n
        gang c      x5 gpu=1 queue=c on=n
        gang a      x1 gpu=1 queue=a";
    gpus(false, script, &[("a", 1), ("b", 3), ("c", 4)]);
}

#[test]
fn children_divide_what_their_parent_should_have() {
    let script = "
        node n      gpu=13
        queue d1 d2 deserved.gpu=4
        queue d3    deserved.gpu=5
        queue a b   parent=d1
        queue c     parent=d2
        queue d     parent=d3
        gang b      x4 gpu=1 queue=b on=n
        gang a      x2 gpu=1 queue=a
        gang c      x9 gpu=1 queue=c on=n
        gang d      x9 gpu=1 queue=d";
    gpus(true, script, &[("d1", 4), ("d2", 4), ("d3", 5), ("a", 2), ("b", 2), ("c", 4), ("d", 5)]);
}

#[test]
fn without_a_tree_all_queues_divide_the_cluster() {
    let script = "
        node n      gpu=9
        queue up
        queue a b   parent=up
        gang up     x9 gpu=1 queue=up
        gang a      x9 gpu=1 queue=a
        gang b      x9 gpu=1 queue=b";
    gpus(false, script, &[("up", 3), ("a", 3), ("b", 3)]);
}

#[test]
fn a_queue_holds_no_share_that_those_below_it_can_not_use() {
    let script = "
        node n      gpu=10
        queue up
        queue low   parent=up cap.gpu=2
        queue other
        gang low    x9 gpu=1 queue=low
        gang other  x9 gpu=1 queue=other";
    gpus(true, script, &[("up", 2), ("low", 2), ("other", 8)]);
}

#[test]
fn a_guarantee_is_deserved_and_a_capability_is_the_end() {
    let script = "
        node n      gpu=10
        queue a     guarantee.gpu=6
        queue b     cap.gpu=3
        queue c
        gang a      x9 gpu=1 queue=a
        gang b      x9 gpu=1 queue=b
        gang c      x9 gpu=1 queue=c";
    gpus(false, script, &[("a", 8), ("b", 1), ("c", 1)]);
    let engine = engine(&script.lines().collect::<Vec<_>>());
    let cluster = engine.cluster();
    let gpu = cluster.dimensions.find("nvidia.com/gpu").expect("nodes have it");
    let left = |name: &str| {
        let queue = cluster.queues.find(name).expect("it is there");
        Shares::of(cluster, false, 0).allocatable(cluster, queue, gpu)
    };
    assert_eq!([left("a"), left("b"), left("c")], [8, 1, 1]);
}

#[test]
fn only_what_ready_nodes_have_and_others_leave_is_divided() {
    let script = "
        node n      gpu=8
        node gone   gpu=8 notready
        pod alien   gpu=3 on=n scheduler=default-scheduler
        pod far     gpu=2 on=gone scheduler=default-scheduler
        queue a
        gang a      x16 gpu=1 queue=a";
    gpus(false, script, &[("a", 5)]);
}

#[test]
fn pods_behind_a_gate_and_those_that_are_over_want_nothing() {
    let script = "
        node n      gpu=8
        queue a b
        pod a0 a1 a2 a3 a4 a5 gpu=1 queue=a gated
        pod a6      gpu=1 queue=a
        pod a7      gpu=1 queue=a succeeded
        gang b      x9 gpu=1 queue=b";
    gpus(false, script, &[("a", 1), ("b", 7)]);
}

#[test]
fn every_resource_is_divided_on_its_own() {
    let script =
        ["node n gpu=8 cpu=10", "queue a b", "gang a x8 gpu=1 queue=a", "gang b x9 cpu=1 queue=b"];
    let engine = engine(&script);
    assert_eq!(fair(&engine, false, "nvidia.com/gpu", &["a", "b"]), [8, 0]);
    assert_eq!(fair(&engine, false, "cpu", &["a", "b"]), [0, 9000]);
    assert_eq!(fair(&engine, false, "pods", &["a"]), [i64::MAX]);
}

#[test]
fn a_cycle_moves_pods_and_no_shares() {
    let script = [
        "node n gpu=8",
        "queue a b deserved.gpu=4",
        "gang b x8 gpu=1 min=1 queue=b on=n",
        "gang a x4 gpu=1 queue=a",
    ];
    let mut engine = engine(&script);
    let before = fair(&engine, false, "nvidia.com/gpu", &["a", "b"]);
    let plan = engine.cycle(BORN);
    assert_eq!(plan.evictions.len(), 4);
    assert_eq!(fair(&engine, false, "nvidia.com/gpu", &["a", "b"]), before);
}

/// A queue of a random cluster, one line, and the gang in it.
fn queue_lines() -> impl Strategy<Value = Vec<String>> {
    let queue = (0..6usize, 0..8i64, 0..4i64, 1..4i64, 0..2i64, 0..10i64);
    prop::collection::vec(queue, 1..6).prop_map(|queues| {
        let lines = queues.iter().enumerate().flat_map(|(at, &(up, deserved, cap, weight, priority, wants))| {
            let parent = if up < at { format!("parent=q{up}") } else { String::new() };
            let cap = if cap > 0 { format!("cap.gpu={}", cap * 3) } else { String::new() };
            [
                format!(
                    "queue q{at} {parent} {cap} deserved.gpu={deserved} weight={weight} priority={priority}"
                ),
                format!("gang g{at} x{} gpu=1 queue=q{at}", wants.max(1)),
            ]
        });
        lines.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn shares_do_not_depend_on_the_order_of_arrival(
        (lines, mixed) in queue_lines().prop_flat_map(|lines| (Just(lines.clone()), Just(lines).prop_shuffle())),
        tree in any::<bool>(),
    ) {
        let names: Vec<String> = (0..lines.len() / 2).map(|at| format!("q{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shares = |lines: &[String]| {
            let lines: Vec<&str> =
                ["node n gpu=20"].into_iter().chain(lines.iter().map(String::as_str)).collect();
            fair(&engine(&lines), tree, "nvidia.com/gpu", &names)
        };
        prop_assert_eq!(shares(&lines), shares(&mixed));
    }

    #[test]
    fn children_have_no_more_than_their_parent_unless_they_deserve_it(lines in queue_lines()) {
        let lines: Vec<&str> =
            ["node n gpu=20"].into_iter().chain(lines.iter().map(String::as_str)).collect();
        let engine = engine(&lines);
        let cluster = engine.cluster();
        let gpu = cluster.dimensions.find("nvidia.com/gpu").expect("nodes have it");
        let shares = Shares::of(cluster, true, 0);
        for division in trace(cluster, true, 0, gpu) {
            let quotas: i64 = division.portions.iter().map(|part| part.deserved.min(part.requested)).sum();
            let sum: i64 = division.portions.iter().map(|part| part.fair).sum();
            prop_assert!(sum <= division.total.max(quotas));
            for part in &division.portions {
                prop_assert!(part.fair <= part.requested.min(part.capability));
                prop_assert_eq!(part.fair, shares.fair(part.queue, gpu), "what is told is what counts");
            }
        }
    }
}
