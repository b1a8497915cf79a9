//! Binds gangs to nominated nodes whose room has become free.

use crate::base::room::Room;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::Txn;
use crate::nomination::backoff::backs_off;
use crate::nomination::held::{places, promised};
use crate::order::session::Session;
use crate::placement::fit::fits;

/// Binds gangs to the places that they were promised, where the room has become free: the whole
/// missing minimum or nothing. After a refused bind, not before the gang's backoff is over.
pub fn fulfil(session: &mut Session) {
    for gang in promised(session) {
        if let Some(reason) = backs_off(session, gang) {
            session.cluster.gangs.explain(gang, vec![reason]);
            continue;
        }
        let mut txn = Txn::begin(session.cluster);
        let promised = places(&txn, gang);
        for &(pod, node) in &promised {
            let mark = txn.mark();
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            if fits(&txn, session.policy, session.rankings, (gang, shape, node), Room::Now) {
                txn.allocate(pod, node);
            } else {
                txn.rewind(mark);
            }
        }
        let ready = txn.gangs[gang].ready(session.policy.gangs_are_whole());
        if ready && has_whole_subgroups(&txn, gang, &promised) {
            let moves = txn.commit();
            session.plan.record(&moves);
            session.plan.fast_path.hits += moves.len() as u32;
            session.plan.fast_path.misses += (promised.len() - moves.len()) as u32;
        } else {
            session.plan.fast_path.misses += promised.len() as u32;
        }
    }
}
