//! Whether a limit of the preemptor's queue is in the way, whatever is evicted.

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::eviction::candidates::{Eligibility, eligibility, in_scope};
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;

/// What the domains without a solution say of the limits of the preemptor's queue.
#[derive(Default)]
pub struct QueueLimit {
    /// The first limit that was in the way.
    reached: Option<Reason>,
    /// In some domain only room was lacking.
    only_room_lacks: bool,
}

impl QueueLimit {
    /// Notes whether the queue could take all these pods, as the search in a domain left the
    /// transaction.
    pub fn ask(&mut self, txn: &mut Txn, policy: &Policy, preemptor: &Preemptor, pods: &[PodId]) {
        if !self.only_room_lacks {
            let limit = limit_in_the_way(txn, policy, preemptor, pods);
            self.only_room_lacks = limit.is_none();
            self.reached = self.reached.take().or(limit);
        }
    }

    /// The limit that was in the way in all domains.
    pub fn in_the_way(self) -> Option<Reason> {
        self.reached.filter(|_| !self.only_room_lacks)
    }
}

/// The limit that would keep the gang from having all these pods even if `preempt` evicted every
/// pod of the queue that it outranks, protected ones too; nothing if only room is lacking. Leaves
/// the transaction as it was.
pub fn limit_in_the_way(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    pods: &[PodId],
) -> Option<Reason> {
    let (mark, steps) = (txn.mark(), txn.steps());
    let mut limit = first_limit(txn, policy, preemptor, pods);
    if limit.is_some() && preemptor.purpose == Purpose::Preempt {
        for pod in outranked(txn, policy, preemptor) {
            txn.evict(pod);
        }
        limit = first_limit(txn, policy, preemptor, pods);
    }
    txn.rewind(mark);
    // These moves made no room.
    txn.uncount(steps);
    limit
}

/// The limit that keeps the gang from having all these pods, as things are.
fn first_limit(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    pods: &[PodId],
) -> Option<Reason> {
    let mark = txn.mark();
    let node = *txn.nodes.by_rank.first()?;
    let mut limit = None;
    for &pod in pods {
        if !txn.pods.state[pod].needs_node() {
            continue;
        }
        let shape = txn.pods.shape[pod];
        limit = policy.may_allocate(txn, preemptor.gang, shape, Room::FutureIdle).err();
        if limit.is_some() {
            break;
        }
        // Only the sums of the queue matter, so any node will do.
        txn.nominate(pod, node);
    }
    txn.rewind(mark);
    limit
}

/// The pods on nodes that the preemptor could evict but for the rules that protect some of them.
fn outranked(txn: &Txn, policy: &Policy, preemptor: &Preemptor) -> Vec<PodId> {
    let gangs: Vec<GangId> =
        txn.gangs.ids().filter(|&gang| in_scope(txn, preemptor, gang)).collect();
    let on_node =
        |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Running(_) | PodState::Allocated(_));
    let is_outranked = |pod: &PodId| {
        let eligibility = eligibility(txn, policy, preemptor, *pod);
        !matches!(eligibility, Eligibility::OutOfScope)
    };
    let pods = gangs.iter().flat_map(|&gang| &txn.gangs[gang].pods).copied();
    pods.filter(on_node).filter(is_outranked).collect()
}
