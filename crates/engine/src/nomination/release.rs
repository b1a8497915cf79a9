//! Releases nominations at the end of a cycle that are of no use. Those that cannot be kept were
//! released at its start (`reaffirm.rs`), those that evicting actions withdrew in between
//! (`eviction/as_if_running.rs`).

use crate::base::ids::GangId;
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::{Move, Txn};
use crate::nomination::held::{nominated_gangs, nominations_of};
use crate::order::session::Session;

/// Releases the nominations of gangs that could not run with them: they would only keep room from
/// other gangs.
pub fn release_incomplete(session: &mut Session) {
    let whole = session.policy.enforces_minimum();
    let gangs = nominated_gangs(session);
    let mut txn = Txn::begin(session.cluster);
    for gang in gangs {
        if !would_complete_gang(&mut txn, gang, whole) {
            nominations_of(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let released = txn.commit();
    note_released(session.cluster, &released);
}

/// Notes that nominations were released, so that there is more room than before.
pub fn note_released(cluster: &mut Cluster, released: &[Move]) {
    for step in released {
        cluster.freed += 1;
        if let Some(gang) = cluster.pods.gang[step.pod] {
            cluster.gangs[gang].did_not_fit_at = None;
        }
    }
}

/// Whether a gang could run with its nominations.
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
