//! What laws on random clusters share.

use muster_api::Time;
use muster_engine::ids::{NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::pods::PodState;
use muster_engine::{Event, Txn};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestCaseResult};

use crate::lines::Line;
use crate::support;

pub const START: Time = Time(1_767_571_200_000);

/// The same cases every time: a law that fails once fails for everyone. `MUSTER_CASES=20000` looks
/// longer.
pub fn bounded(cases: u32, seed: u64) -> ProptestConfig {
    let cases =
        std::env::var("MUSTER_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    let rng_seed = RngSeed::Fixed(seed);
    ProptestConfig { cases, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

/// Objects that were created one after the other, or all at once.
pub fn events_apart(lines: &[String], pause_ms: i64) -> Vec<Event> {
    let parsed =
        lines.iter().enumerate().filter_map(|(serial, text)| Some((serial, Line::parse(text)?)));
    let manifests = parsed.map(|(serial, line)| {
        let born = START.plus_ms(serial as i64 * pause_ms - 1_000_000);
        line.manifests(&born.to_string(), serial as u64)
    });
    manifests.flat_map(|text| support::objects(&text)).map(Event::from).collect()
}

pub fn shuffled<T: Clone>(things: &[T], mut seed: u64) -> Vec<T> {
    let mut things = things.to_vec();
    for last in (1..things.len()).rev() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        things.swap(last, (seed >> 33) as usize % (last + 1));
    }
    things
}

/// What happens to which pod, and where: one of the [`CHANGES`], or a mark or a rewind.
pub type Move = (u8, Index, Index);

/// Changes pods at random and rewinds now and then: every sum is then what it was before.
pub fn rewinds_leave_no_trace(cluster: &mut Cluster, moves: Vec<Move>) -> TestCaseResult {
    let pods: Vec<PodId> = cluster.pods.live().collect();
    let nodes: Vec<NodeId> = cluster.nodes.live().collect();
    let states = |cluster: &Cluster| -> Vec<PodState> {
        pods.iter().map(|&pod| cluster.pods.state[pod]).collect()
    };
    let before = (cluster.sums(), states(cluster));
    let mut txn = Txn::begin(cluster);
    let mut marks = Vec::new();
    for (what, pod, node) in moves {
        let (&pod, &node) = (pod.get(&pods), node.get(&nodes));
        if what < CHANGES {
            change(&mut txn, what, pod, node);
        } else if node.0 % 2 == 0
            && let Some((mark, sums)) = marks.pop()
        {
            txn.rewind(mark);
            prop_assert_eq!(&txn.sums(), &sums);
        } else {
            marks.push((txn.mark(), txn.sums()));
        }
        prop_assert_eq!(txn.audit(), Ok(()));
    }
    drop(txn);
    prop_assert_eq!((cluster.sums(), states(cluster)), before);
    Ok(())
}

pub const CHANGES: u8 = 6;

pub fn change(txn: &mut Txn, what: u8, pod: PodId, node: NodeId) {
    match what {
        0 => txn.allocate(pod, node),
        1 => txn.nominate(pod, node),
        2 if txn.pods.state[pod].node().is_some() => txn.evict(pod),
        2 | 3 => txn.release(pod),
        _ => {
            let Some(gang) = txn.pods.gang[pod] else { return };
            match what {
                4 => txn.reserve(gang, pod, node, START),
                _ => txn.end_reservations_for(gang, &[pod]),
            }
        }
    }
}
