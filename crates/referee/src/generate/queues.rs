//! Queues: a flat list, or departments with teams.

use crate::cluster::{Amounts, Cluster, Queue, Quota};
use crate::config::Config;
use crate::draw::Draw;

pub fn add(cluster: &mut Cluster, draw: &mut Draw, config: &Config) {
    let total: Amounts = cluster.nodes.iter().map(|node| node.allocatable).sum();
    let tree = config.hierarchy && draw.chance(80);
    let departments = if tree { draw.between(1, 2) } else { 0 };
    for at in 0..departments {
        let queue = queue(draw, config, format!("d{at}"), None, &total);
        cluster.queues.push(queue);
    }
    for at in 0..draw.between(1, 4) {
        let parent = (departments > 0).then(|| format!("d{}", draw.below(departments)));
        let queue = queue(draw, config, format!("q{at}"), parent, &total);
        cluster.queues.push(queue);
    }
}

fn queue(
    draw: &mut Draw,
    config: &Config,
    name: String,
    parent: Option<String>,
    total: &Amounts,
) -> Queue {
    let leaf = name.starts_with('q');
    let mut queue = Queue { name, parent, weight: draw.between(1, 3) as i64, ..Queue::default() };
    if draw.chance(60) {
        queue.deserved = part(draw, total, &[2, 3, 4, 6]);
    }
    if draw.chance(40) {
        let limit = part(draw, total, &[2, 3]);
        // No queue deserves more than it may have.
        queue.capability = std::array::from_fn(|at| {
            limit[at].map(|limit| limit.max(queue.deserved[at].unwrap_or(0)))
        });
    }
    if leaf && !config.hierarchy && draw.chance(10) {
        queue.guarantee = std::array::from_fn(|at| queue.deserved[at].map(|amount| amount / 2));
    }
    queue.reclaimable = draw.chance(15).then(|| draw.chance(30));
    queue.fifo = leaf && draw.chance(30);
    if config.min_runtimes.is_some() {
        let times = [0, 300, 1800, 7200];
        queue.preempt_min_runtime = draw.chance(25).then(|| draw.pick(&times));
        queue.reclaim_min_runtime = draw.chance(25).then(|| draw.pick(&times));
    }
    queue
}

/// A part of some of what there is.
fn part(draw: &mut Draw, total: &Amounts, parts: &[i64]) -> Quota {
    let of = draw.pick(parts);
    std::array::from_fn(|at| {
        let named = total.0[at] > 0 && draw.chance(70);
        named.then(|| (total.0[at] / of).max(1))
    })
}
