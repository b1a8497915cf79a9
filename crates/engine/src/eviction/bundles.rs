//! Splits the pods of a gang into bundles, and orders the pods inside. A *safe* bundle is surplus,
//! or pods of a gang that is broken already; a *whole* bundle is the rest of the gang in a domain,
//! and evicting it breaks the gang.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use crate::base::ids::{GangId, PodId, ResourceId};
use crate::base::parts_per_million::share;
use crate::base::resources::PODS;
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::bundle::{Bundle, BundleKind, Needed};

/// A candidate for eviction.
#[derive(Copy, Clone, Debug)]
pub struct Tenant {
    pub pod: PodId,
    /// What its node lacks for a pod of the preemptor, relative to all that the preemptor wants;
    /// nothing if no pod would fit there even if all candidates were evicted.
    pub deficit: Option<i64>,
}

/// Splits the candidates of a gang in a domain: its surplus, and the rest. Leaves the transaction
/// as it was.
pub fn split(
    txn: &mut Txn,
    gang: GangId,
    pods: &mut [Tenant],
    needed: &Needed,
    found: &mut Vec<Bundle>,
) {
    pods.sort_by(|a, b| order_within(txn, needed, a, b));
    // A gang whose missing pods are nominated does not count as broken.
    let broken =
        !txn.gangs[gang].ready(true) && missing_after_nominations(&txn.gangs[gang], true).total > 0;
    let is_on_trial = |&pod: &PodId| {
        txn.pods.fact[pod].on_trial && matches!(txn.pods.state[pod], PodState::Running(_))
    };
    let on_trial: Vec<PodId> = txn.gangs[gang].pods.iter().copied().filter(is_on_trial).collect();
    let mark = txn.mark();
    let mut safe = Vec::new();
    let mut core = Vec::with_capacity(pods.len());
    let mut instead = Vec::new();
    // A gang is only broken if that frees room of use to the preemptor.
    let mut useful = false;
    for &mut Tenant { pod, deficit } in pods {
        if deficit.is_some() && (broken || can_spare(txn, gang, pod, &on_trial)) {
            txn.evict(pod);
            safe.push(pod);
        } else {
            core.push(pod);
            useful |= deficit.is_some();
            instead.extend(deficit.map(|_| pod));
        }
    }
    let mut rest = safe.clone();
    let mut add = |txn: &Txn, kind, all_or_nothing, pods: Vec<PodId>, others: Vec<PodId>| {
        if !pods.is_empty() {
            let roi = (kind == BundleKind::Whole).then(|| roi(txn, gang, &pods, needed));
            let unneeded = unneeded(txn, &pods, needed);
            let (rest, instead) =
                if kind == BundleKind::Whole { (others, Vec::new()) } else { (Vec::new(), others) };
            let (class, place, turn) = (0, 0, 0);
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
                place,
                turn,
                unneeded,
            });
        }
    };
    add(txn, BundleKind::Safe, false, safe, instead);
    for subgroup in (0..txn.gangs[gang].subgroups().len()).rev() {
        let is_in_subgroup = |pod: &PodId| txn.pods.subgroup[*pod] as usize == subgroup;
        let whole: Vec<PodId> = core.iter().copied().filter(is_in_subgroup).collect();
        if useful && !broken && txn.gangs[gang].can_spare_subgroup(subgroup, whole.len() as u32) {
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
    if useful && !broken {
        add(txn, BundleKind::Whole, true, core, rest);
    }
}

/// Whether a gang keeps its minimum without a pod. For a pod that runs, those on trial do not stand
/// in: they have not started.
fn can_spare(txn: &mut Txn, gang: GangId, pod: PodId, on_trial: &[PodId]) -> bool {
    let place = txn.pods.place(pod);
    if on_trial.is_empty() || on_trial.contains(&pod) {
        return txn.gangs[gang].can_spare(place);
    }
    let mark = txn.mark();
    for &other in on_trial {
        if matches!(txn.pods.state[other], PodState::Running(_)) {
            txn.evict(other);
        }
    }
    let can_spare = txn.gangs[gang].can_spare(place);
    txn.rewind(mark);
    can_spare
}

/// The order of eviction in a gang: pods whose room is of use, then those that free more of what is
/// needed, less important pods, smaller pods, pods whose node lacks least, and the youngest pods
/// first.
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
    let useless = |tenant: &Tenant| tenant.deficit.is_none();
    useless(a)
        .cmp(&useless(b))
        .then_with(|| by(&freed))
        .then_with(|| order(a).cmp(&order(b)))
        .then_with(|| by(&size))
        .then_with(|| a.deficit.cmp(&b.deficit))
        .then_with(|| age(a).cmp(&age(b)))
}

/// How much this frees of what is needed, summed over resources.
fn gain(needed: &Needed, has: impl Fn(ResourceId) -> i64) -> i64 {
    needed.iter().map(|&(resource, need)| share(has(resource).min(need), need)).sum()
}

/// The return of evicting these pods of a gang: what they free of what is needed, relative to all
/// that the gang holds of it.
pub fn roi(cluster: &Cluster, gang: GangId, pods: &[PodId], needed: &Needed) -> i64 {
    let local = |resource| {
        pods.iter().map(|&pod| cluster.request_of(cluster.pods.shape[pod], resource)).sum()
    };
    let held = &cluster.gangs[gang].held;
    let cost: i64 = needed.iter().map(|&(resource, need)| share(held.get(resource), need)).sum();
    share(gain(needed, local), cost)
}

/// How much pods free that is not needed: the number of such resources, summed over pods.
pub fn unneeded(cluster: &Cluster, pods: &[PodId], needed: &Needed) -> usize {
    let is_needed = |resource| needed.iter().any(|&(need, _)| need == resource);
    let unneeded = |&pod: &PodId| {
        let request = &cluster.shapes[cluster.pods.shape[pod]].request;
        request.iter().filter(|&(resource, _)| resource != PODS && !is_needed(resource)).count()
    };
    pods.iter().map(unneeded).sum()
}

pub fn pod_count(bundles: &[Bundle]) -> u32 {
    bundles.iter().map(|bundle| bundle.pods.len() as u32).sum()
}

/// The gangs that these bundles break.
pub fn gangs_broken_by(taken: &[Bundle]) -> BTreeSet<GangId> {
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

    /// The return in the units of the design's tables, from what is needed and what a victim has in
    /// the domain and everywhere.
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
    fn resources_that_are_not_needed_do_not_count() {
        assert_eq!(returned(&[4], &[4], &[4]), PPM);
        assert_eq!(returned(&[4], &[4, 1], &[4, 1]), PPM);
    }
}
