//! Lets those stay who need not leave after all.

use crate::eviction::bundles::broken;
use crate::eviction::domain_fit::DomainFit;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, BundleKind};

/// Gives back what is not needed: what breaks a gang first, the most valuable first, then what goes
/// together, then single pods.
pub fn give_back(
    txn: &mut Txn,
    rankings: &mut Rankings,
    fit: &mut DomainFit,
    taken: &mut Vec<Bundle>,
) {
    for bundle in taken.iter_mut().rev().filter(|bundle| bundle.kind == BundleKind::Whole) {
        if fit.keep_running(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
    let broken = broken(taken);
    let safe = |bundle: &&mut Bundle| !broken.contains(&bundle.gang);
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| bundle.all_or_nothing) {
        if fit.keep_running(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| !bundle.all_or_nothing) {
        for at in (0..bundle.pods.len()).rev() {
            if fit.keep_running(txn, rankings, &[bundle.pods[at]]) {
                bundle.pods.remove(at);
            }
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
}
