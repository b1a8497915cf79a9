//! Random configurations.

use crate::config::{Config, Mode};
use crate::draw::Draw;

const ACTIONS: [&[&str]; 10] = [
    &["allocate", "consolidate", "reclaim", "preempt", "stalegangeviction"],
    &["enqueue", "allocate", "backfill", "reclaim", "preempt"],
    &["enqueue", "allocate", "preempt", "reclaim", "backfill"],
    &["allocate", "backfill", "preempt"],
    &["allocate", "reclaim"],
    &["allocate", "consolidate"],
    &["allocate", "backfill", "consolidate", "preempt"],
    &["allocate", "consolidate", "reclaim"],
    &["allocate", "backfill"],
    &["enqueue", "preempt", "allocate", "backfill", "stalegangeviction"],
];

const FLAVOURS: [&str; 5] = ["nodeorder", "binpack", "network-topology-aware", "overcommit", "drf"];

pub fn any(draw: &mut Draw) -> Config {
    let modes = [Mode::Task, Mode::Gang, Mode::Gang, Mode::Scenario, Mode::Scenario];
    let actions = draw.pick(&ACTIONS).to_vec();
    let preempt = draw.pick(&modes);
    // Fair shares decide everything or nothing.
    let reclaim = if draw.chance(70) { preempt } else { draw.pick(&modes) };
    let flavours = FLAVOURS.into_iter().filter(|_| draw.chance(50)).collect();
    Config {
        actions,
        preempt,
        reclaim,
        pdb: draw.chance(70),
        preempt_deletes: draw.chance(8),
        reclaim_deletes: draw.chance(8),
        min_runtimes: draw.chance(40).then(|| {
            let times = [0, 0, 300, 1800];
            (draw.pick(&times), draw.pick(&times))
        }),
        capacity: draw.chance(85),
        hierarchy: draw.chance(35),
        flavours,
        whole_bundles: draw.chance(85),
        evict_broken_gangs: draw.chance(15),
        priority_first: draw.chance(20),
        max_domains: draw.chance(20).then(|| draw.between(1, 4)),
        staleness_grace: draw.pick(&[0, 60, -1]),
        traverse_head_wait: draw.chance(40).then_some(0),
    }
}
