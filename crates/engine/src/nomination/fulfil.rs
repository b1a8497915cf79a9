//! Binds gangs to nominated nodes whose room has become free.

use crate::base::room::Room;
use crate::model::topology::places::has_whole_subgroups;
use crate::model::txn::Txn;
use crate::nomination::backoff::backs_off;
use crate::nomination::held::{nominated_gangs, nominations_of};
use crate::order::session::Session;
use crate::placement::fit::fits;

/// Binds gangs to their nominated nodes where the room has become free: the whole missing minimum
/// or nothing. After a refused bind, not before the gang's backoff is over.
pub fn fulfil(session: &mut Session) {
    for gang in nominated_gangs(session) {
        if let Some(reason) = backs_off(session, gang) {
            session.cluster.gangs.explain(gang, vec![reason]);
            continue;
        }
        let mut txn = Txn::begin(session.cluster);
        let nominated = nominations_of(&txn, gang);
        for &(pod, node) in &nominated {
            let mark = txn.mark();
            txn.release(pod);
            let shape = txn.pods.shape[pod];
            if fits(&txn, session.policy, session.rankings, (gang, shape, node), Room::Idle) {
                txn.allocate(pod, node);
            } else {
                txn.rewind(mark);
            }
        }
        let ready = txn.gangs[gang].ready(session.policy.enforces_minimum());
        if ready && has_whole_subgroups(&txn, gang, &nominated) {
            let moves = txn.commit();
            session.record(&moves);
            session.plan.nomination_counters.hits += moves.len() as u32;
            session.plan.nomination_counters.misses += (nominated.len() - moves.len()) as u32;
        } else {
            session.plan.nomination_counters.misses += nominated.len() as u32;
        }
    }
}
