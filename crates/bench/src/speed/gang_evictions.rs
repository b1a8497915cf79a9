//! Evicting whole gangs for a gang, compared with placing the same gang on the empty cluster.

use muster_engine::{Engine, Event};

use super::topology::{Asks, network};
use super::{Add, Group, NOW, cycle_nanos, engine_with, node, timed};

/// Running gangs of four pods, by priority and GPUs.
#[derive(Copy, Clone)]
enum Fill {
    /// One pod per node, with all of its GPUs.
    Whole,
    /// Three of five nodes have two half-size pods, one of them of the highest priority, so that
    /// evicting the other is no use; pods with whole nodes have a higher priority than that other.
    MostlyInVain,
    /// Gangs with whole nodes alternate with gangs with halves.
    TwoShapes,
}

struct Case {
    name: &'static str,
    nodes: usize,
    fill: Fill,
    /// How many pods of the gang want how many GPUs.
    wants: &'static [(usize, i64)],
    tier: Option<i32>,
}

const CASES: [Case; 6] = [
    Case {
        name: "preempt, 1,000-pod gang, 1,000 nodes: time relative to an empty cluster",
        nodes: 1_000,
        fill: Fill::Whole,
        wants: &[(1_000, 8)],
        tier: None,
    },
    Case {
        name: "preempt, 3,000-pod gang, 5,000 nodes: time relative to an empty cluster",
        nodes: 5_000,
        fill: Fill::Whole,
        wants: &[(3_000, 8)],
        tier: None,
    },
    Case {
        name: "preempt, 2,000-pod gang, 5,000 nodes, 40 % of candidates evicted: time relative to an empty cluster",
        nodes: 5_000,
        fill: Fill::MostlyInVain,
        wants: &[(2_000, 8)],
        tier: None,
    },
    Case {
        name: "preempt, 400-pod gang, 1,000 nodes, 40 % of candidates evicted: time relative to an empty cluster",
        nodes: 1_000,
        fill: Fill::MostlyInVain,
        wants: &[(400, 8)],
        tier: None,
    },
    Case {
        name: "preempt, 1,500-pod gang of two shapes, 5,000 nodes: time relative to an empty cluster",
        nodes: 5_000,
        fill: Fill::TwoShapes,
        wants: &[(1_000, 8), (500, 4)],
        tier: None,
    },
    Case {
        name: "preempt, 500-pod gang, hard tier 2 of 3, 5,000 nodes: time relative to an empty cluster",
        nodes: 5_000,
        fill: Fill::Whole,
        wants: &[(500, 8)],
        tier: Some(2),
    },
];

pub fn run(rounds: u32, add: &mut Add) {
    for case in &CASES {
        let pods: usize = case.wants.iter().map(|&(pods, _)| pods).sum();
        let [mut evicting, mut placing] = [f64::MAX; 2];
        for _ in 0..rounds {
            placing = placing.min(cycle_nanos(&mut case.engine(false), pods));
            evicting = evicting.min(case.eviction_nanos(pods));
        }
        add(case.name, evicting / placing, "times", Some(evicting));
    }
    let sides: [(usize, &[(usize, i64)]); 2] = [(2_500, &[(1_500, 8)]), (10_000, &[(6_000, 8)])];
    let mut nanos = [f64::MAX; 2];
    for _ in 0..rounds {
        for (best, (nodes, wants)) in nanos.iter_mut().zip(sides) {
            let case = Case { name: "", nodes, fill: Fill::Whole, wants, tier: None };
            *best = best.min(case.eviction_nanos(wants[0].0));
        }
    }
    let name = "preempt, 6,000-pod gang, 10,000 nodes: time relative to 1,500 pods, 2,500 nodes";
    add(name, nanos[1] / nanos[0], "times", Some(nanos[1]));
    let mut nanos = [f64::MAX; 2];
    for _ in 0..rounds {
        for (best, racks) in nanos.iter_mut().zip([1_250, 5_000]) {
            *best = best.min(last_rack_nanos(racks));
        }
    }
    let name = "preempt, 5,000 racks, only the last can be cleared: time relative to 1,250 racks";
    add(name, nanos[1] / nanos[0], "times", Some(nanos[1]));
}

/// The decision that clears the last of so many racks, in all others of which a pod must stay.
fn last_rack_nanos(racks: usize) -> f64 {
    let mut engine = engine_with("preempt", "mode: gang");
    network(&mut engine, racks, 1, 64);
    for rack in 0..racks {
        let mut group = Group::new(&format!("low{rack:05}"), [8]);
        let pod = &mut group.pods[0];
        pod.spec.priority = Some(1);
        pod.spec.node_name = Some(format!("n{rack:05}"));
        pod.status.phase = "Running".into();
        if rack + 1 < racks {
            pod.metadata.annotations.insert("volcano.sh/preemptable".into(), "false".into());
        }
        group.create(&mut engine);
    }
    for _ in 0..3 {
        engine.cycle(NOW);
    }
    let asks = Asks { tier: Some(1), groups: None };
    let mut urgent = Group { asks, ..Group::new("urgent", [8]) };
    urgent.pods[0].spec.priority = Some(100);
    urgent.create(&mut engine);
    let mut nominated = Vec::new();
    let nanos = timed(|| nominated = engine.cycle(NOW).nominations.clone());
    assert_eq!(nominated.len(), 1, "the last rack can be cleared");
    nanos
}

impl Case {
    /// The decision that makes room for the whole gang.
    fn eviction_nanos(&self, pods: usize) -> f64 {
        let mut engine = self.engine(true);
        let mut nominated = 0;
        let nanos = timed(|| nominated = engine.cycle(NOW).nominations.len());
        assert_eq!(nominated, pods, "the case is built so that room can be made for all pods");
        nanos
    }

    /// A cluster, full or empty, and the gang that wants room.
    fn engine(&self, full: bool) -> Engine {
        let mut engine = engine_with("preempt", "mode: gang");
        match self.tier {
            Some(_) => network(&mut engine, self.nodes, 32, 16),
            None => {
                for index in 0..self.nodes {
                    engine.apply(Event::from(node(&format!("n{index:05}"))));
                }
            }
        }
        if full {
            for gang in 0..self.nodes.div_ceil(4) {
                self.fill(&mut engine, gang);
            }
        }
        for _ in 0..3 {
            engine.cycle(NOW);
        }
        let asks = Asks { tier: self.tier, groups: None };
        let wants = self.wants.iter().flat_map(|&(pods, gpus)| std::iter::repeat_n(gpus, pods));
        let mut urgent = Group { asks, ..Group::new("urgent", wants) };
        urgent.pods.iter_mut().for_each(|pod| pod.spec.priority = Some(100));
        urgent.create(&mut engine);
        engine
    }

    /// The running gangs of four nodes.
    fn fill(&self, engine: &mut Engine, gang: usize) {
        let run = |engine: &mut Engine,
                   name: &str,
                   gpus: i64,
                   priority: i32,
                   node_of: &dyn Fn(usize) -> usize| {
            let mut group = Group::new(name, [gpus; 4]);
            for (index, pod) in group.pods.iter_mut().enumerate() {
                pod.spec.priority = Some(priority);
                pod.spec.node_name = Some(format!("n{:05}", node_of(index)));
                pod.status.phase = "Running".into();
            }
            group.create(engine);
        };
        let name = format!("low{gang:05}");
        let beside = |index: usize| gang * 4 + index;
        match self.fill {
            Fill::Whole => run(engine, &name, 8, 1, &beside),
            Fill::TwoShapes if gang.is_multiple_of(2) => run(engine, &name, 8, 1, &beside),
            Fill::TwoShapes => {
                run(engine, &name, 4, 1, &beside);
                run(engine, &format!("{name}b"), 4, 1, &beside);
            }
            Fill::MostlyInVain if gang % 5 < 2 => run(engine, &name, 8, 2, &beside),
            Fill::MostlyInVain => {
                run(engine, &name, 4, 1, &beside);
                run(engine, &format!("{name}b"), 4, 3, &beside);
            }
        }
    }
}
