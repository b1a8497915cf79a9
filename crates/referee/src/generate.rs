//! Random cases. One seed gives one case, on every machine.

mod configs;
mod gangs;
mod nodes;
mod queues;
pub mod racks;

use crate::case::Case;
use crate::cluster::{Cluster, PriorityClass};
use crate::draw::Draw;

/// The case of a seed.
pub fn make_case(seed: u64) -> Case {
    let mut draw = Draw::new(seed);
    if seed.is_multiple_of(5) { racks::case(seed, &mut draw) } else { mixed(seed, &mut draw) }
}

/// Something of everything.
fn mixed(seed: u64, draw: &mut Draw) -> Case {
    let config = configs::any(draw);
    let mut cluster = Cluster { classes: classes(), ..Cluster::default() };
    nodes::add(&mut cluster, draw);
    queues::add(&mut cluster, draw, &config);
    gangs::add(&mut cluster, draw);
    let (cycles, recreate) = (draw.between(2, 5), draw.chance(50));
    Case { seed, family: "mixed", cluster, config, cycles, recreate }
}

pub const CRITICAL: &str = "system-cluster-critical";

fn classes() -> Vec<PriorityClass> {
    let values = [("low", 10), ("mid", 50), ("high", 100), (CRITICAL, 2_000_000_000)];
    values.map(|(name, value)| PriorityClass { name: name.to_owned(), value }).to_vec()
}
