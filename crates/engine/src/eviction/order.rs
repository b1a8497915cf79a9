//! The order in which pods and bundles are evicted.

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

/// The order of eviction: by queue, as the plugins say, then the less important pod first.
pub fn eviction_order(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    a: PodId,
    b: PodId,
) -> Ordering {
    let queue = |pod: PodId| cluster.pods.gang[pod].map(|gang| cluster.gangs[gang].queue);
    let queues = match (queue(a), queue(b)) {
        (Some(a), Some(b)) if a != b => policy.queue_gives_first(cluster, preemptor, a, b),
        _ => Ordering::Equal,
    };
    queues.then_with(|| importance_order(cluster, a, b))
}

/// Less important pods come first: of lower priority, then those that started last.
pub fn importance_order(cluster: &Cluster, a: PodId, b: PodId) -> Ordering {
    let worth = |pod: PodId| {
        let fact = &cluster.pods.fact[pod];
        (priority(cluster, pod), cluster.pods.order[pod], Reverse(fact.started), Reverse(&fact.key))
    };
    worth(a).cmp(&worth(b))
}

pub fn priority(cluster: &Cluster, pod: PodId) -> i32 {
    cluster.pods.gang[pod]
        .map_or(cluster.pods.fact[pod].priority, |gang| cluster.gangs[gang].priority)
}

/// Puts bundles in the order of eviction: as the first plugin with an opinion says, otherwise in
/// the default order. The result has each bundle at most once and unchanged, whatever a plugin
/// returns.
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
    let known = chosen.into_iter().filter_map(|at| left.get_mut(at)?.take());
    let mut ordered: Vec<Bundle> = known.collect();
    ordered.iter_mut().zip(0..).for_each(|(bundle, class)| bundle.class = class);
    ordered
}

/// Puts bundles in the default order. Returns that differ little count as equal: all bundles within
/// the threshold of the best one form a group, which is ordered by the next key; then the same for
/// the rest.
fn sort(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    bundle_settings: &BundleSettings,
    bundles: &mut [Bundle],
) {
    let priority = |bundle: &Bundle| cluster.gangs[bundle.gang].priority;
    note_turns(cluster, policy, preemptor, bundles);
    let before = |a: &Bundle, b: &Bundle| match preemptor.purpose {
        Purpose::Reclaim => a.kind.cmp(&b.kind).then(a.turn.cmp(&b.turn)),
        _ if bundle_settings.priority_first => {
            priority(a).cmp(&priority(b)).then(a.kind.cmp(&b.kind))
        }
        _ => a.kind.cmp(&b.kind).then(priority(a).cmp(&priority(b))),
    };
    // Lost work counts only if at least one gang reports its progress.
    let any_progress = bundles
        .iter()
        .any(|bundle| bundle.kind == BundleKind::Whole && says_how_far(cluster, bundle.gang));
    let whole = bundles.iter().filter(|bundle| any_progress && bundle.kind == BundleKind::Whole);
    let lost: BTreeMap<GangId, i64> =
        whole.map(|bundle| (bundle.gang, lost_with(cluster, bundle.gang, preemptor.now))).collect();
    let lost =
        |bundle: &Bundle| lost.get(&bundle.gang).filter(|_| bundle.kind == BundleKind::Whole);
    let after = |a: &Bundle, b: &Bundle| {
        priority(a)
            .cmp(&priority(b))
            .then_with(|| lost(a).cmp(&lost(b)))
            .then_with(|| a.unneeded.cmp(&b.unneeded))
            // The gang that would be served last is evicted first.
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

/// Notes which queue gives first. Queues between which the plugins see no difference share a turn.
fn note_turns(cluster: &Cluster, policy: &Policy, preemptor: &Preemptor, bundles: &mut [Bundle]) {
    let queue = |bundle: &Bundle| cluster.gangs[bundle.gang].queue;
    let mut queues: Vec<QueueId> = bundles.iter().map(queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let order = |a, b| policy.queue_gives_first(cluster, preemptor, a, b);
    queues.sort_by(|&a, &b| order(a, b));
    let mut turns: BTreeMap<QueueId, u32> = BTreeMap::new();
    let mut turn = 0;
    for (at, &queue) in queues.iter().enumerate() {
        turn += u32::from(at > 0 && order(queues[at - 1], queue).is_ne());
        turns.insert(queue, turn);
    }
    bundles.iter_mut().for_each(|bundle| bundle.turn = turns[&queue(bundle)]);
}

/// Splits bundles into the smallest parts that can be evicted alone, and puts these in the order of
/// eviction. Leaves the transaction as it was.
pub fn fair_share_order(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    bundles: &[Bundle],
) -> Vec<Bundle> {
    let mut units: Vec<Bundle> = bundles.iter().flat_map(Bundle::units).collect();
    sort_by_importance(txn, policy, preemptor, &mut units);
    note_turns(txn, policy, preemptor, &mut units);
    // The next part to evict is the last of each queue; between queues that the plugins see as
    // equal, the part that is less important.
    let mut queues: BTreeMap<QueueId, Vec<(usize, Bundle)>> = BTreeMap::new();
    for (at, unit) in units.into_iter().enumerate().rev() {
        queues.entry(txn.gangs[unit.gang].queue).or_default().push((at, unit));
    }
    let mut queues: Vec<(QueueId, Vec<(usize, Bundle)>)> = queues.into_iter().collect();
    let mut ordered: Vec<Bundle> = Vec::new();
    if queues.len() == 1 {
        let units = queues.pop().into_iter().flat_map(|(_, units)| units.into_iter().rev());
        ordered.extend(units.map(|(_, unit)| unit));
    }
    let mark = txn.mark();
    while let Some(at) = first_to_evict_from(txn, policy, preemptor, &queues) {
        let Some((_, unit)) = queues[at].1.pop() else { break };
        unit.pods.iter().for_each(|&pod| txn.evict(pod));
        ordered.push(unit);
        queues.retain(|(_, units)| !units.is_empty());
    }
    txn.rewind(mark);
    classify(txn, &mut ordered);
    ordered
}

fn first_to_evict_from(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    queues: &[(QueueId, Vec<(usize, Bundle)>)],
) -> Option<usize> {
    let next = |at: usize| queues[at].1.last().map(|&(place, _)| place);
    (0..queues.len()).min_by(|&a, &b| {
        let order = policy.queue_gives_first(cluster, preemptor, queues[a].0, queues[b].0);
        order.then_with(|| next(a).cmp(&next(b)))
    })
}

/// The least important part first: by priority, then safe parts before whole bundles, then gangs
/// that are broken already, then the gang that loses the least work if any reports it, then the
/// youngest. Whole bundles are compared as if all safe parts were evicted. Leaves the transaction
/// as it was.
fn sort_by_importance(txn: &mut Txn, policy: &Policy, preemptor: &Preemptor, units: &mut [Bundle]) {
    let any_progress =
        units.iter().any(|unit| unit.kind == BundleKind::Whole && says_how_far(txn, unit.gang));
    let whole = units.iter().filter(|unit| any_progress && unit.kind == BundleKind::Whole);
    let lost: BTreeMap<GangId, i64> =
        whole.map(|unit| (unit.gang, lost_with(txn, unit.gang, preemptor.now))).collect();
    // Stable sorts: the pods of one gang keep their order of eviction.
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
        let gang = &txn.gangs[unit.gang];
        let lost = lost.get(&unit.gang).filter(|_| unit.kind == BundleKind::Whole);
        (gang.priority, unit.kind, healthy, lost.copied(), Reverse(gang.created))
    });
}

/// The class of a part is the position of its priority and kind among all of them: a part is not
/// evicted if one of a lower class would do.
fn classify(cluster: &Cluster, units: &mut [Bundle]) {
    let level = |unit: &Bundle| (cluster.gangs[unit.gang].priority, unit.kind);
    let mut levels: Vec<(i32, BundleKind)> = units.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    for unit in units {
        unit.class = levels.partition_point(|&other| other < level(unit)) as u32;
    }
}
