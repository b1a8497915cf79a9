//! Pods of one gang that leave together, and the order in which bundles do. A *safe* bundle is what
//! a gang can lose and still run, or all of a gang that doesn't run anyway; a *whole* bundle is the
//! rest of it in a domain, and breaks it.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use crate::base::ids::{GangId, PodId, ResourceId};
use crate::base::parts_per_million::share;
use crate::base::resources::PODS;
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::txn::Txn;
use crate::policy::bundle::{Bundle, BundleKind, Needed};

/// A pod that may be asked to leave.
#[derive(Copy, Clone, Debug)]
pub struct Tenant {
    pub pod: PodId,
    /// What its node lacks for a pod of the claimant, against what the claimant wants in all; none
    /// if no pod would fit there whoever leaves.
    pub deficit: Option<i64>,
}

/// Splits the pods of a gang in a domain: what it can lose, and the rest. Leaves the transaction as
/// it was.
pub fn split(
    txn: &mut Txn,
    gang: GangId,
    pods: &mut [Tenant],
    needed: &Needed,
    found: &mut Vec<Bundle>,
) {
    pods.sort_by(|a, b| order_within(txn, needed, a, b));
    // One that was promised what it lacks is as good as whole.
    let broken =
        !txn.gangs[gang].ready(true) && missing_after_nominations(&txn.gangs[gang], true).total > 0;
    let mark = txn.mark();
    let mut safe = Vec::new();
    let mut core = Vec::with_capacity(pods.len());
    let mut instead = Vec::new();
    // Nobody is broken for room that is of no use.
    let mut helps = false;
    for &mut Tenant { pod, deficit } in pods {
        if deficit.is_some() && (broken || txn.gangs[gang].can_spare(txn.pods.place(pod))) {
            txn.evict(pod);
            safe.push(pod);
        } else {
            core.push(pod);
            helps |= deficit.is_some();
            instead.extend(deficit.map(|_| pod));
        }
    }
    let mut rest = safe.clone();
    let mut add = |txn: &Txn, kind, all_or_nothing, pods: Vec<PodId>, others: Vec<PodId>| {
        if !pods.is_empty() {
            let roi = (kind == BundleKind::Whole).then(|| roi(txn, gang, &pods, needed));
            let unasked = unasked(txn, &pods, needed);
            let (rest, instead) =
                if kind == BundleKind::Whole { (others, Vec::new()) } else { (Vec::new(), others) };
            let class = 0;
            found.push(Bundle {
                gang,
                kind,
                broken,
                all_or_nothing,
                pods,
                rest,
                instead,
                roi,
                class,
                unasked,
            });
        }
    };
    add(txn, BundleKind::Safe, false, safe, instead);
    for place in (0..txn.gangs[gang].subgroups().len()).rev() {
        let of_it = |pod: &PodId| txn.pods.subgroup[*pod] as usize == place;
        let whole: Vec<PodId> = core.iter().copied().filter(of_it).collect();
        if helps && !broken && txn.gangs[gang].can_spare_subgroup(place, whole.len() as u32) {
            core.retain(|pod| !whole.contains(pod));
            let before = txn.mark();
            whole.iter().for_each(|&pod| txn.evict(pod));
            if txn.gangs[gang].ready(true) {
                rest.extend(&whole);
                add(txn, BundleKind::Safe, true, whole, Vec::new());
            } else {
                txn.rewind(before);
                core.extend(whole);
            }
        }
    }
    txn.rewind(mark);
    if helps && !broken {
        add(txn, BundleKind::Whole, true, core, rest);
    }
}

/// Which pod of a gang leaves first: who frees more of what is needed where that helps, then who
/// matters less, then who has less, then who is where least is lacking, then the youngest.
fn order_within(cluster: &Cluster, needed: &Needed, a: &Tenant, b: &Tenant) -> Ordering {
    let alike = cluster.pods.shape[a.pod] == cluster.pods.shape[b.pod];
    let by = |key: &dyn Fn(PodId) -> i64| {
        if alike { Ordering::Equal } else { key(a.pod).cmp(&key(b.pod)) }
    };
    let has = |pod: PodId| move |resource| cluster.request_of(cluster.pods.shape[pod], resource);
    let freed = |pod: PodId| -gain(needed, has(pod));
    let size =
        |pod: PodId| needed.iter().map(|&(resource, need)| share(has(pod)(resource), need)).sum();
    let order = |tenant: &Tenant| cluster.pods.order[tenant.pod];
    let age = |tenant: &Tenant| {
        let fact = &cluster.pods.fact[tenant.pod];
        (Reverse(fact.started), Reverse(&fact.key))
    };
    let helps = |tenant: &Tenant| tenant.deficit.is_none();
    helps(a)
        .cmp(&helps(b))
        .then_with(|| by(&freed))
        .then_with(|| order(a).cmp(&order(b)))
        .then_with(|| by(&size))
        .then_with(|| a.deficit.cmp(&b.deficit))
        .then_with(|| age(a).cmp(&age(b)))
}

/// How much of what is needed it frees.
fn gain(needed: &Needed, has: impl Fn(ResourceId) -> i64) -> i64 {
    needed.iter().map(|&(resource, need)| share(has(resource).min(need), need)).sum()
}

/// What these pods of a gang free of what is needed, against all that the gang has of it.
pub fn roi(cluster: &Cluster, gang: GangId, pods: &[PodId], needed: &Needed) -> i64 {
    let local = |resource| {
        pods.iter().map(|&pod| cluster.request_of(cluster.pods.shape[pod], resource)).sum()
    };
    let held = &cluster.gangs[gang].held;
    let cost: i64 = needed.iter().map(|&(resource, need)| share(held.get(resource), need)).sum();
    share(gain(needed, local), cost)
}

/// How much pods free that nobody asked for, by pods and resources.
pub fn unasked(cluster: &Cluster, pods: &[PodId], needed: &Needed) -> usize {
    let asked = |resource| needed.iter().any(|&(need, _)| need == resource);
    let more = |&pod: &PodId| {
        let request = &cluster.shapes[cluster.pods.shape[pod]].request;
        request.iter().filter(|&(resource, _)| resource != PODS && !asked(resource)).count()
    };
    pods.iter().map(more).sum()
}

pub fn count(bundles: &[Bundle]) -> u32 {
    bundles.iter().map(|bundle| bundle.pods.len() as u32).sum()
}

/// The gangs that are broken.
pub fn broken(taken: &[Bundle]) -> BTreeSet<GangId> {
    taken
        .iter()
        .filter(|bundle| bundle.kind == BundleKind::Whole)
        .map(|bundle| bundle.gang)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parts_per_million::PPM;

    /// The tables of the design, in its units: what is needed, what a victim has here, and
    /// everywhere.
    fn returned(needed: &[i64], local: &[i64], global: &[i64]) -> i64 {
        let needed: Needed =
            needed.iter().enumerate().map(|(at, &need)| (ResourceId::from(at), need)).collect();
        let cost: i64 = needed.iter().map(|&(id, need)| share(global[usize::from(id)], need)).sum();
        share(gain(&needed, |id| local[usize::from(id)]), cost)
    }

    #[test]
    fn a_gang_in_the_domain_returns_more_than_one_that_is_spread() {
        assert_eq!(returned(&[2], &[2], &[4]), 500_000);
        assert_eq!(returned(&[2], &[2], &[2]), PPM);
    }

    #[test]
    fn a_small_gang_that_fits_in_part_returns_more_than_a_large_one() {
        assert_eq!(returned(&[10], &[10], &[20]), 500_000);
        assert_eq!(returned(&[10], &[2], &[2]), PPM);
    }

    #[test]
    fn several_resources_count_by_what_is_needed_of_each() {
        assert_eq!(returned(&[4, 16], &[4, 4], &[4, 4]), PPM);
        assert_eq!(returned(&[4, 16], &[2, 8], &[2, 8]), PPM);
    }

    #[test]
    fn what_nobody_asked_for_does_not_count() {
        assert_eq!(returned(&[4], &[4], &[4]), PPM);
        assert_eq!(returned(&[4], &[4, 1], &[4, 1]), PPM);
    }
}
