//! Evictions that turn out not to be needed are undone.

use crate::base::ids::{NodeId, PodId};
use crate::eviction::bundles::broken;
use crate::eviction::domain_fit::DomainFit;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, BundleKind};

/// What pods were evicted for.
pub trait StillFits {
    /// Whether it surely does not fit without the room of these pods, so that nothing need be
    /// tried.
    fn surely_needs(&self, txn: &Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool;

    /// Whether it fits now that these pods run again. May move what it was given; all of this is
    /// undone if the answer is no.
    fn still_fits(&mut self, txn: &mut Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool;
}

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
            if let Some(node) = left(txn, pod) {
                txn.keep_running(pod, PodState::Running(node));
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
    taken.iter_mut().for_each(|bundle| bundle.pods.retain(|&pod| left(cluster, pod).is_some()));
    taken.retain(|bundle| !bundle.pods.is_empty());
}

/// Those of the pods that have been asked to leave, and which node.
pub fn leaving(cluster: &Cluster, pods: &[PodId]) -> impl Iterator<Item = (PodId, NodeId)> {
    pods.iter().filter_map(|&pod| Some((pod, left(cluster, pod)?)))
}

/// The node that a pod has been asked to leave, if it has.
pub fn left(cluster: &Cluster, pod: PodId) -> Option<NodeId> {
    match cluster.pods.state[pod] {
        PodState::Releasing(node) => Some(node),
        _ => None,
    }
}
