//! Evictions that turn out not to be needed are undone.

use crate::base::ids::PodId;
use crate::eviction::bundles::broken;
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::fit::StillFits;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, BundleKind};

/// Lets evicted pods run on if what they were evicted for still fits: set after set in this order,
/// each as a whole or not at all. Returns how many pods run on.
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

/// Gives back bundles that were evicted for a gang, the last evicted first: those that break a
/// gang, then what goes together, then single pods.
pub fn give_back_bundles(
    txn: &mut Txn,
    rankings: &mut Rankings,
    fit: &mut DomainFit,
    taken: &mut Vec<Bundle>,
) {
    give_back(txn, rankings, fit, taken.iter().rev().filter(|one| one.kind == BundleKind::Whole));
    retain_leaving(txn, taken);
    let broken = broken(taken);
    let safe = || taken.iter().rev().filter(|bundle| !broken.contains(&bundle.gang));
    give_back(txn, rankings, fit, safe().filter(|bundle| bundle.all_or_nothing));
    let alone = safe().filter(|bundle| !bundle.all_or_nothing);
    give_back(txn, rankings, fit, alone.flat_map(|bundle| bundle.pods.iter().rev()));
    retain_leaving(txn, taken);
}

fn retain_leaving(cluster: &Cluster, taken: &mut Vec<Bundle>) {
    taken
        .iter_mut()
        .for_each(|bundle| bundle.pods.retain(|&pod| cluster.pods.state[pod].leaving().is_some()));
    taken.retain(|bundle| !bundle.pods.is_empty());
}
