//! The order in which pods and bundles leave.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::purpose::Purpose;
use crate::model::Cluster;
use crate::model::gangs::lost_work::{lost_with, says_how_far};
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, BundleKind, Needed};
use crate::policy::preemptor::Preemptor;
use crate::settings::eviction::BundleSettings;

/// Who leaves first: the queue that gives first, then lower priority, then who started last.
pub fn queue_gives_first(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    a: PodId,
    b: PodId,
) -> Ordering {
    let queue = |pod: PodId| cluster.pods.gang[pod].map(|gang| cluster.gangs[gang].queue);
    let queues = match (queue(a), queue(b)) {
        (Some(a), Some(b)) if a != b => {
            policy.queue_gives_first(cluster, preemptor, a, b).then_with(|| named(cluster, a, b))
        }
        _ => Ordering::Equal,
    };
    queues.then_with(|| worth_order(cluster, a, b))
}

/// Who matters less: lower priority, then who started last.
pub fn worth_order(cluster: &Cluster, a: PodId, b: PodId) -> Ordering {
    let worth = |pod: PodId| {
        let fact = &cluster.pods.fact[pod];
        (priority(cluster, pod), cluster.pods.order[pod], Reverse(fact.started), Reverse(&fact.key))
    };
    worth(a).cmp(&worth(b))
}

fn named(cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
    cluster.queues[a].name.cmp(&cluster.queues[b].name)
}

pub fn priority(cluster: &Cluster, pod: PodId) -> i32 {
    cluster.pods.gang[pod]
        .map_or(cluster.pods.fact[pod].priority, |gang| cluster.gangs[gang].priority)
}

/// Puts bundles in the order in which they are evicted: as the first plugin says that has an
/// opinion, otherwise in the usual order. A bundle is evicted once and as it is, whatever a plugin
/// says.
pub fn ordered(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    bundle_settings: &BundleSettings,
    needed: &Needed,
    mut bundles: Vec<Bundle>,
) -> Vec<Bundle> {
    let Some(chosen) = policy.order_bundles(cluster, preemptor, needed, &bundles) else {
        sort(cluster, policy, preemptor, bundle_settings, &mut bundles);
        return bundles;
    };
    let mut left: Vec<Option<Bundle>> = bundles.into_iter().map(Some).collect();
    let named = chosen.into_iter().filter_map(|at| left.get_mut(at)?.take());
    let mut ordered: Vec<Bundle> = named.collect();
    ordered.iter_mut().zip(0..).for_each(|(bundle, class)| bundle.class = class);
    ordered
}

/// Puts bundles in the order in which they are taken. What returns about the same is equal: from
/// the best down, everything within a threshold of the first of a group belongs to it, and inside a
/// group the next key decides.
fn sort(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    bundle_settings: &BundleSettings,
    bundles: &mut [Bundle],
) {
    let priority = |bundle: &Bundle| cluster.gangs[bundle.gang].priority;
    let queue = |bundle: &Bundle| cluster.gangs[bundle.gang].queue;
    let mut queues: Vec<QueueId> = bundles.iter().map(queue).collect();
    queues.sort_unstable();
    queues.dedup();
    queues.sort_by(|&a, &b| policy.queue_gives_first(cluster, preemptor, a, b));
    // Queues of which neither gives first are one.
    let mut turns: Vec<(QueueId, usize)> = queues.iter().map(|&queue| (queue, 0)).collect();
    for at in 1..turns.len() {
        let later =
            policy.queue_gives_first(cluster, preemptor, queues[at - 1], queues[at]).is_ne();
        turns[at].1 = turns[at - 1].1 + usize::from(later);
    }
    let turn = |bundle: &Bundle| {
        turns.iter().find(|(of, _)| *of == queue(bundle)).map_or(0, |&(_, turn)| turn)
    };
    let before = |a: &Bundle, b: &Bundle| match preemptor.purpose {
        Purpose::Reclaim => a.kind.cmp(&b.kind).then_with(|| turn(a).cmp(&turn(b))),
        _ if bundle_settings.priority_first => {
            priority(a).cmp(&priority(b)).then(a.kind.cmp(&b.kind))
        }
        _ => a.kind.cmp(&b.kind).then(priority(a).cmp(&priority(b))),
    };
    // Only where somebody says how far it has come.
    let told = bundles
        .iter()
        .any(|bundle| bundle.kind == BundleKind::Whole && says_how_far(cluster, bundle.gang));
    let whole = bundles.iter().filter(|bundle| told && bundle.kind == BundleKind::Whole);
    let lost: BTreeMap<GangId, i64> =
        whole.map(|bundle| (bundle.gang, lost_with(cluster, bundle.gang, preemptor.now))).collect();
    let lost =
        |bundle: &Bundle| lost.get(&bundle.gang).filter(|_| bundle.kind == BundleKind::Whole);
    let after = |a: &Bundle, b: &Bundle| {
        priority(a)
            .cmp(&priority(b))
            .then_with(|| lost(a).cmp(&lost(b)))
            .then_with(|| a.unasked.cmp(&b.unasked))
            // What would be served last leaves first.
            .then_with(|| policy.gang_order(cluster, b.gang, a.gang))
    };
    let returns = |bundle: &Bundle| Reverse(bundle.roi.unwrap_or(i64::MAX));
    bundles.sort_by(|a, b| before(a, b).then_with(|| returns(a).cmp(&returns(b))));
    for (class, equal) in bundles.chunk_by_mut(|a, b| before(a, b).is_eq()).enumerate() {
        equal.iter_mut().for_each(|bundle| bundle.class = class as u32);
        let mut rest = equal;
        while let Some(first) = rest.first() {
            let least = first.roi.map_or(i64::MAX, |best| best - bundle_settings.roi_threshold);
            let end = rest.partition_point(|bundle| bundle.roi.unwrap_or(i64::MAX) >= least);
            let (group, others) = rest.split_at_mut(end.max(1));
            group.sort_by(&after);
            rest = others;
        }
    }
}

/// Puts bundles in the order in which they are taken, each as small as it can be. Leaves the
/// transaction as it was.
pub fn fair_share_order(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    bundles: &[Bundle],
) -> Vec<Bundle> {
    let units: Vec<Bundle> = bundles.iter().flat_map(Bundle::units).collect();
    let mut queues: BTreeMap<QueueId, Vec<Bundle>> = BTreeMap::new();
    for unit in units {
        queues.entry(txn.gangs[unit.gang].queue).or_default().push(unit);
    }
    // The next one last.
    let mut queues: Vec<(QueueId, Vec<Bundle>)> = queues.into_iter().collect();
    for (_, units) in &mut queues {
        by_worth(txn, policy, preemptor, units);
        units.reverse();
    }
    let mut ordered: Vec<Bundle> = Vec::new();
    if queues.len() == 1 {
        ordered.extend(queues.pop().into_iter().flat_map(|(_, units)| units.into_iter().rev()));
    }
    let mark = txn.mark();
    while let Some(at) = first_to_give(txn, policy, preemptor, &queues) {
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
    preemptor: &Preemptor,
    queues: &[(QueueId, Vec<Bundle>)],
) -> Option<usize> {
    let name = |at: usize| &cluster.queues[queues[at].0].name;
    (0..queues.len()).min_by(|&a, &b| {
        let order = policy.queue_gives_first(cluster, preemptor, queues[a].0, queues[b].0);
        order.then_with(|| name(a).cmp(name(b)))
    })
}

/// What matters least first: lower priority, then what breaks nobody, then whose work is lost least
/// where somebody says so, then what would be served last. A gang breaks once it has lost what it
/// can spare, and is compared with others as it is then. Leaves the transaction as it was.
fn by_worth(txn: &mut Txn, policy: &Policy, preemptor: &Preemptor, units: &mut [Bundle]) {
    let told =
        units.iter().any(|unit| unit.kind == BundleKind::Whole && says_how_far(txn, unit.gang));
    let lost = |cluster: &Cluster, unit: &Bundle| match told && unit.kind == BundleKind::Whole {
        true => lost_with(cluster, unit.gang, preemptor.now),
        false => 0,
    };
    let lost: BTreeMap<GangId, i64> =
        units.iter().map(|unit| (unit.gang, lost(txn, unit))).collect();
    // Pods of one gang stay in the order in which they would leave.
    units.sort_by_key(|unit| unit.kind);
    let (safe, whole) =
        units.split_at_mut(units.partition_point(|unit| unit.kind == BundleKind::Safe));
    safe.sort_by(|a, b| policy.gang_order(txn, b.gang, a.gang));
    let mark = txn.mark();
    safe.iter().flat_map(|unit| &unit.pods).for_each(|&pod| txn.evict(pod));
    whole.sort_by(|a, b| policy.gang_order(txn, b.gang, a.gang));
    txn.rewind(mark);
    units.sort_by_key(|unit| {
        let healthy = unit.kind == BundleKind::Whole || !unit.broken;
        (txn.gangs[unit.gang].priority, unit.kind, healthy, lost[&unit.gang])
    });
}

/// Nothing of higher priority goes where something of lower priority would do, and nothing breaks
/// where something can be spared.
fn classify(cluster: &Cluster, units: &mut [Bundle]) {
    let level = |unit: &Bundle| (cluster.gangs[unit.gang].priority, unit.kind);
    let mut levels: Vec<(i32, BundleKind)> = units.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    for unit in units {
        unit.class = levels.partition_point(|&other| other < level(unit)) as u32;
    }
}
