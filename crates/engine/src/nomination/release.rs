//! Which nominations are of use, and what follows when they end.

use crate::base::ids::GangId;
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::{Move, Txn};
use crate::nomination::held::nominations_of;

/// Promises have ended: there is more room than before.
pub fn note_released(cluster: &mut Cluster, lost: &[Move]) {
    for step in lost {
        cluster.freed += 1;
        if let Some(gang) = cluster.pods.gang[step.pod] {
            cluster.gangs[gang].did_not_fit_at = None;
        }
    }
}

/// Whether a gang that is promised places could run with them.
pub fn would_complete_gang(txn: &mut Txn, gang: GangId, whole: bool) -> bool {
    if txn.gangs[gang].topology_rules.is_none() {
        return missing_after_nominations(&txn.gangs[gang], whole).total == 0;
    }
    let mark = txn.mark();
    let nominated = nominations_of(txn, gang);
    nominated.iter().for_each(|&(pod, node)| txn.allocate(pod, node));
    let ready = txn.gangs[gang].ready(whole) && has_whole_subgroups(txn, gang, &nominated);
    txn.rewind(mark);
    ready
}
