//! Which nominations are of use, and what follows when they end.

use crate::base::ids::GangId;
use crate::model::Cluster;
use crate::model::gangs::missing::not_promised;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::{Move, Txn};
use crate::nomination::held::places;

/// Promises have ended: there is more room than before.
pub fn give_up(cluster: &mut Cluster, lost: &[Move]) {
    for step in lost {
        cluster.freed += 1;
        if let Some(gang) = cluster.pods.gang[step.pod] {
            cluster.gangs[gang].hopeless = None;
        }
    }
}

/// Whether a gang that is promised places could run with them.
pub fn suffice(txn: &mut Txn, gang: GangId, whole: bool) -> bool {
    if txn.gangs[gang].choosy.is_none() {
        return not_promised(&txn.gangs[gang], whole).total == 0;
    }
    let mark = txn.mark();
    let promised = places(txn, gang);
    promised.iter().for_each(|&(pod, node)| txn.allocate(pod, node));
    let ready = txn.gangs[gang].ready(whole) && has_whole_subgroups(txn, gang, &promised);
    txn.rewind(mark);
    ready
}
