//! Reclaiming by scenarios, and consolidation.

use muster_api::{Quantity, Queue, QueueSpec};
use muster_engine::{Engine, Event};

use super::{Add, GPU, Group, NOW, amounts, cycle_nanos, engine_with, node, timed};

pub fn run(rounds: u32, add: &mut Add) {
    let [mut taken, mut placed] = [f64::MAX; 2];
    let mut sides = [f64::MAX; 2];
    let [mut moved, mut put] = [f64::MAX; 2];
    let mut grown = [f64::MAX; 2];
    for _ in 0..rounds {
        placed = placed.min(cycle_nanos(&mut reclaiming(1_000, false), 1_000));
        taken = taken.min(decision(&mut reclaiming(1_000, true), 1_000));
        for (best, nodes) in sides.iter_mut().zip([500, 2_000]) {
            *best = best.min(decision(&mut reclaiming(nodes, true), nodes));
        }
        put = put.min(cycle_nanos(&mut fragmented(500, 64, false), 64));
        moved = moved.min(decision(&mut fragmented(500, 64, true), 64));
        for (best, nodes) in grown.iter_mut().zip([500, 2_000]) {
            *best = best.min(decision(&mut fragmented(nodes, nodes / 8, true), nodes / 8));
        }
    }
    let name =
        "reclaim in mode scenario, 1,000-pod gang, 1,000 nodes: time relative to an empty cluster";
    add(name, taken / placed, "times", Some(taken));
    let name = "reclaim in mode scenario, gang of whole nodes: 2,000 nodes relative to 500";
    add(name, sides[1] / sides[0], "times", Some(sides[1]));
    let name = "consolidate, 64-pod gang, 500 nodes, 30 % fragmented: time relative to free nodes";
    add(name, moved / put, "times", Some(moved));
    let name = "consolidate, 250-pod gang, 2,000 nodes: time relative to 62 pods, 500 nodes";
    add(name, grown[1] / grown[0], "times", Some(grown[1]));
}

/// A decision that nominates this many pods.
fn decision(engine: &mut Engine, pods: usize) -> f64 {
    let mut nominated = 0;
    let nanos = timed(|| nominated = engine.cycle(NOW).nominations.len());
    assert_eq!(nominated, pods, "the case is built so that room can be made for all pods");
    nanos
}

fn engine(action: &str, arguments: &str, nodes: usize) -> Engine {
    let mut engine = engine_with(action, arguments);
    for index in 0..nodes {
        engine.apply(Event::from(node(&name(index))));
    }
    engine
}

fn name(node: usize) -> String {
    format!("n{node:05}")
}

/// Two queues that deserve nothing use all nodes with gangs of four, and a gang of the queue that
/// deserves them wants all of them.
fn reclaiming(nodes: usize, full: bool) -> Engine {
    let mut engine = engine("reclaim", "mode: scenario", nodes);
    for (queue, deserved) in [("left", 0), ("right", 0), ("owner", 8 * nodes as i64)] {
        let deserved = Some(amounts(&[(GPU, Quantity::from_units(deserved))]));
        let queue = Queue::new(queue, QueueSpec { deserved, ..QueueSpec::default() });
        engine.apply(Event::from(queue));
    }
    for gang in 0..if full { nodes / 4 } else { 0 } {
        let queue = if gang % 2 == 0 { "left" } else { "right" };
        let mut group = Group::new(&format!("low{gang:05}"), [8; 4]).in_queue(queue);
        for (index, pod) in group.pods.iter_mut().enumerate() {
            pod.spec.node_name = Some(name(gang * 4 + index));
            pod.status.phase = "Running".into();
        }
        group.create(&mut engine);
    }
    for _ in 0..3 {
        engine.cycle(NOW);
    }
    Group::new("owner", std::iter::repeat_n(8, nodes)).in_queue("owner").create(&mut engine);
    engine
}

/// Three of ten nodes hold half a node's worth of small pods, the rest are full; a gang wants whole
/// nodes.
fn fragmented(nodes: usize, wants: usize, pieces: bool) -> Engine {
    let mut engine = engine("consolidate", "maxMoves: 100000", nodes);
    for at in 0..nodes {
        let gpus: &[i64] = match (at % 10 < 3, pieces) {
            (true, true) => &[2, 1, 1],
            (true, false) => &[],
            (false, _) => &[8],
        };
        if gpus.is_empty() {
            continue;
        }
        let mut group = Group::new(&format!("low{at:05}"), gpus.iter().copied());
        for pod in &mut group.pods {
            pod.spec.node_name = Some(name(at));
            pod.status.phase = "Running".into();
        }
        group.create(&mut engine);
    }
    for _ in 0..3 {
        engine.cycle(NOW);
    }
    Group::new("wide", std::iter::repeat_n(8, wants)).create(&mut engine);
    engine
}
