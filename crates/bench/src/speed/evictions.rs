//! Evictions for one pod, and nominations that are restored.

use muster_api::Time;
use muster_api::keys::{PIPELINED_NODE, PIPELINED_STATUS};
use muster_engine::ids::PodId;
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Event, Txn};

use super::{Add, NOW, engine_with, node, pod, timed};

const NODES: usize = 5_000;
const PODS: usize = 40_000;
const NOMINATIONS: usize = 10_000;

pub fn run(rounds: u32, add: &mut Add) {
    let [mut making, mut moving, mut reading] = [f64::MAX; 3];
    for _ in 0..rounds {
        let mut engine = full();
        moving = moving.min(evict_and_undo(&mut engine));
        let mut urgent = pod("urgent", 8, 1_000, None);
        urgent.spec.priority = Some(100);
        engine.apply(Event::from(urgent));
        let mut evicted = 0;
        making = making.min(timed(|| evicted = engine.cycle(NOW).evictions.len()));
        assert_eq!(evicted, 8, "it gets one node");
        let mut engine = nominated();
        reading = reading.min(timed(|| engine.cycle(NOW)));
        assert_eq!(
            engine.cluster().nominated_count as usize,
            NOMINATIONS,
            "every nomination stands"
        );
    }
    let name =
        "preempt, 1 pod, 5,000 nodes, 40,000 pods: time relative to evicting all and undoing it";
    add(name, making / moving, "times", Some(making));
    add("the same, time", making / 1e6, "ms", Some(making));
    add("first cycle that restores 10,000 nominations", reading / 1e6, "ms", Some(reading));
}

fn engine() -> Engine {
    let mut engine = engine_with("preempt", "");
    for index in 0..NODES {
        engine.apply(Event::from(node(&name(index))));
    }
    engine
}

fn name(node: usize) -> String {
    format!("n{node:05}")
}

/// Pods of lower priority and different ages use all GPUs.
fn full() -> Engine {
    let mut engine = engine();
    for index in 0..PODS {
        let mut running = pod(&format!("r{index:06}"), 1, 1_000, None);
        running.spec.node_name = Some(name(index / 8));
        running.spec.priority = Some((index * 7 % 13) as i32);
        running.status.phase = "Running".into();
        running.status.start_time = Some(Time(NOW.0 - 1_000 * (index as i64 * 31 % 9_973)));
        engine.apply(Event::from(running));
    }
    for _ in 0..3 {
        engine.cycle(NOW);
    }
    engine
}

fn evict_and_undo(engine: &mut Engine) -> f64 {
    let mut cluster = engine.cluster().clone();
    let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
    let pods: Vec<PodId> = cluster.pods.live().filter(runs).collect();
    let mut txn = Txn::begin(&mut cluster);
    timed(|| {
        for &pod in &pods {
            let mark = txn.mark();
            txn.evict(pod);
            txn.rewind(mark);
        }
    })
}

/// All pods are terminating, and two pods per node are nominated, as an earlier run has written.
fn nominated() -> Engine {
    let mut engine = engine();
    for index in 0..NODES {
        let mut leaving = pod(&format!("l{index:05}"), 8, 1_000, None);
        leaving.spec.node_name = Some(name(index));
        leaving.status.phase = "Running".into();
        leaving.metadata.deletion_timestamp = Some(NOW);
        engine.apply(Event::from(leaving));
    }
    for index in 0..NOMINATIONS {
        let mut waiting = pod(&format!("p{index:05}"), 4, 1_000, None);
        waiting.metadata.annotations.insert(PIPELINED_STATUS.into(), "true".into());
        waiting.metadata.annotations.insert(PIPELINED_NODE.into(), name(index / 2));
        engine.apply(Event::from(waiting));
    }
    engine
}
