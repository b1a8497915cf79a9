//! Undoes evictions that turn out not to be needed.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::base::ids::PodId;
use crate::eviction::bundles::gangs_broken_by;
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::fit::StillFits;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, BundleKind};

/// Lets evicted pods run on if what they were evicted for still fits: one set after the other in
/// this order, each as a whole or not at all. Returns how many pods run on.
pub fn give_back<S: AsRef<[PodId]>>(
    txn: &mut Txn,
    rankings: &mut Rankings,
    target: &mut impl StillFits,
    sets: impl IntoIterator<Item = S>,
) -> u32 {
    let mut given_back = 0;
    for set in sets {
        let pods = set.as_ref();
        if target.surely_needs(txn, rankings, pods) {
            continue;
        }
        let mark = txn.mark();
        for &pod in pods {
            if let Some(node) = txn.pods.state[pod].leaving() {
                txn.keep_running(pod, node);
            }
        }
        if target.still_fits(txn, rankings, pods) {
            given_back += pods.len() as u32;
        } else {
            txn.rewind(mark);
        }
    }
    given_back
}

/// Gives back what is not needed, the last in the table first: evictions beyond what budgets allow,
/// then the bundles that come last in the order of eviction. A whole bundle, or a set that belongs
/// together, is given back all together or not at all, other pods one by one. Safe pods of a gang
/// that stays broken are not given back.
pub fn give_back_bundles(
    txn: &mut Txn,
    rankings: &mut Rankings,
    fit: &mut DomainFit,
    taken: &mut Vec<Bundle>,
) {
    let beyond = beyond_budgets(txn, taken);
    let violates = |bundle: &Bundle| bundle.pods.iter().any(|pod| beyond.contains(pod));
    let mut order: Vec<usize> = (0..taken.len()).rev().collect();
    order.sort_by_key(|&at| Reverse((violates(&taken[at]), taken[at].place)));
    // The safe pods of a gang come before the rest of it in the table, except where budgets are
    // violated.
    let mut later: Vec<usize> = Vec::new();
    let mut broken = gangs_broken_by(taken);
    for at in order {
        let bundle = &taken[at];
        if bundle.kind == BundleKind::Whole {
            if give_back(txn, rankings, fit, [bundle]) > 0 {
                broken.remove(&bundle.gang);
            }
        } else if broken.contains(&bundle.gang) {
            later.push(at);
        } else {
            give_back_safe(txn, rankings, fit, bundle);
        }
    }
    for at in later {
        if !broken.contains(&taken[at].gang) {
            give_back_safe(txn, rankings, fit, &taken[at]);
        }
    }
    retain_leaving(txn, taken);
}

/// The pods that are evicted beyond what PodDisruptionBudgets allow.
pub fn beyond_budgets(cluster: &Cluster, taken: &[Bundle]) -> BTreeSet<PodId> {
    if cluster.budgets.iter().next().is_none() {
        return BTreeSet::new();
    }
    let pods: Vec<PodId> = taken.iter().flat_map(|bundle| bundle.pods.iter().copied()).collect();
    cluster.budgets.broken_by(cluster, &pods).into_iter().collect()
}

fn give_back_safe(txn: &mut Txn, rankings: &mut Rankings, fit: &mut DomainFit, bundle: &Bundle) {
    if bundle.all_or_nothing {
        give_back(txn, rankings, fit, [bundle]);
    } else {
        give_back(txn, rankings, fit, bundle.pods.iter().rev().map(std::slice::from_ref));
    }
}

fn retain_leaving(cluster: &Cluster, taken: &mut Vec<Bundle>) {
    taken
        .iter_mut()
        .for_each(|bundle| bundle.pods.retain(|&pod| cluster.pods.state[pod].leaving().is_some()));
    taken.retain(|bundle| !bundle.pods.is_empty());
}
