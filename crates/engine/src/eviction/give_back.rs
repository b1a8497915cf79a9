//! Lets those stay who need not leave after all.

use crate::eviction::bundles::broken;
use crate::eviction::domain_fit::Seating;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, Kind};

/// Gives back what is not needed: what breaks a gang first, the most valuable first, then what goes
/// together, then single pods.
pub fn give_back(
    txn: &mut Txn,
    rankings: &mut Rankings,
    seating: &mut Seating,
    taken: &mut Vec<Bundle>,
) {
    for bundle in taken.iter_mut().rev().filter(|bundle| bundle.kind == Kind::Whole) {
        if seating.spare(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
    let broken = broken(taken);
    let safe = |bundle: &&mut Bundle| !broken.contains(&bundle.gang);
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| bundle.together) {
        if seating.spare(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| !bundle.together) {
        for at in (0..bundle.pods.len()).rev() {
            if seating.spare(txn, rankings, &[bundle.pods[at]]) {
                bundle.pods.remove(at);
            }
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
}
