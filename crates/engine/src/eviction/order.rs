//! The order in which bundles are taken by fair shares: each time the queue gives that has most of
//! its share then, and of a queue what matters least.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, QueueId};
use crate::model::Cluster;
use crate::model::gangs::lost_work::{lost_with, says_how_far};
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, Kind};
use crate::policy::preemptor::Claim;

/// Puts bundles in the order in which they are taken, each as small as it can be. Leaves the
/// transaction as it was.
pub fn by_turns(txn: &mut Txn, policy: &Policy, claim: &Claim, bundles: &[Bundle]) -> Vec<Bundle> {
    let units: Vec<Bundle> = bundles.iter().flat_map(Bundle::units).collect();
    let mut queues: BTreeMap<QueueId, Vec<Bundle>> = BTreeMap::new();
    for unit in units {
        queues.entry(txn.gangs[unit.gang].queue).or_default().push(unit);
    }
    // The next one last.
    let mut queues: Vec<(QueueId, Vec<Bundle>)> = queues.into_iter().collect();
    for (_, units) in &mut queues {
        by_worth(txn, policy, claim, units);
        units.reverse();
    }
    let mut ordered: Vec<Bundle> = Vec::new();
    if queues.len() == 1 {
        ordered.extend(queues.pop().into_iter().flat_map(|(_, units)| units.into_iter().rev()));
    }
    let mark = txn.mark();
    while let Some(at) = first_to_give(txn, policy, claim, &queues) {
        let Some(unit) = queues[at].1.pop() else { break };
        unit.pods.iter().for_each(|&pod| txn.evict(pod));
        ordered.push(unit);
        queues.retain(|(_, units)| !units.is_empty());
    }
    txn.rewind(mark);
    classify(txn, &mut ordered);
    ordered
}

fn first_to_give(
    cluster: &Cluster,
    policy: &Policy,
    claim: &Claim,
    queues: &[(QueueId, Vec<Bundle>)],
) -> Option<usize> {
    let name = |at: usize| &cluster.queues[queues[at].0].name;
    (0..queues.len()).min_by(|&a, &b| {
        let order = policy.victim_order(cluster, claim, queues[a].0, queues[b].0);
        order.then_with(|| name(a).cmp(name(b)))
    })
}

/// What matters least first: lower priority, then what breaks nobody, then whose work is lost least
/// where somebody says so, then what would be served last. A gang breaks once it has lost what it
/// can spare, and is compared with others as it is then. Leaves the transaction as it was.
fn by_worth(txn: &mut Txn, policy: &Policy, claim: &Claim, units: &mut [Bundle]) {
    let told = units.iter().any(|unit| unit.kind == Kind::Whole && says_how_far(txn, unit.gang));
    let lost = |cluster: &Cluster, unit: &Bundle| match told && unit.kind == Kind::Whole {
        true => lost_with(cluster, unit.gang, claim.now),
        false => 0,
    };
    let lost: BTreeMap<GangId, i64> =
        units.iter().map(|unit| (unit.gang, lost(txn, unit))).collect();
    // Pods of one gang stay in the order in which they would leave.
    units.sort_by_key(|unit| unit.kind);
    let (safe, whole) = units.split_at_mut(units.partition_point(|unit| unit.kind == Kind::Safe));
    safe.sort_by(|a, b| policy.gang_order(txn, b.gang, a.gang));
    let mark = txn.mark();
    safe.iter().flat_map(|unit| &unit.pods).for_each(|&pod| txn.evict(pod));
    whole.sort_by(|a, b| policy.gang_order(txn, b.gang, a.gang));
    txn.rewind(mark);
    units.sort_by_key(|unit| {
        let healthy = unit.kind == Kind::Whole || !unit.broken;
        (txn.gangs[unit.gang].priority, unit.kind, healthy, lost[&unit.gang])
    });
}

/// Nothing of higher priority goes where something of lower priority would do, and nothing breaks
/// where something can be spared.
fn classify(cluster: &Cluster, units: &mut [Bundle]) {
    let level = |unit: &Bundle| (cluster.gangs[unit.gang].priority, unit.kind);
    let mut levels: Vec<(i32, Kind)> = units.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    for unit in units {
        unit.class = levels.partition_point(|&other| other < level(unit)) as u32;
    }
}
