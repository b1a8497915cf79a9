//! Whether the outcome of a search is allowed.

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::decision::reason::Reason;
use crate::eviction::relocate::is_moved;
use crate::eviction::request::EvictionRequest;
use crate::eviction::search::Search;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::bundle::Bundle;
use crate::policy::preemptor::Preemptor;

/// The rule that protects queues which would reclaim the room at once.
pub const IN_NEED: &str = "its queue, which would have too little";

/// Whether a victim's queue now has less than it deserves of what these pods request, so that it
/// would reclaim the room at once. With fair shares the search has asked that for each victim
/// already.
pub fn takes_too_much(
    policy: &Policy,
    txn: &Txn,
    request: EvictionRequest,
    pods: &[PodId],
) -> bool {
    let requested =
        |resource| pods.iter().any(|&pod| txn.request_of(txn.pods.shape[pod], resource) > 0);
    let lacks = |(victim, _): (PodId, NodeId)| {
        let queue = txn.pods.gang[victim].map(|gang| txn.gangs[gang].queue)?;
        let (deserved, _) = policy.deserves(txn, queue)?;
        let less = |(resource, amount)| {
            requested(resource) && txn.queues[queue].claimed(resource) < amount
        };
        Some(deserved.iter().any(less))
    };
    let by_deserved =
        request.purpose == Purpose::Reclaim && request.settings.mode != Mode::Scenario;
    by_deserved && txn.evicted().into_iter().any(|victim| lacks(victim) == Some(true))
}

impl Search<'_> {
    /// Whether the outcome is allowed; if not, why.
    pub fn check_outcome(
        &self,
        txn: &mut Txn,
        taken: &[Bundle],
        moved: &[(PodId, NodeId)],
    ) -> Result<(), Reason> {
        if !self.fair_share_order() {
            return if self.preemptor.purpose == Purpose::Reclaim {
                self.stays_within(txn)
            } else {
                Ok(())
            };
        }
        let counts =
            |pod: &PodId| self.settings.bundle_settings.counts_moved || !is_moved(moved, *pod);
        let pods = taken.iter().flat_map(|bundle| bundle.pods.iter().copied());
        let lost: Vec<PodId> = pods.filter(counts).collect();
        self.policy.rejects_outcome(txn, &self.preemptor, self.had, &lost).map_or(Ok(()), Err)
    }

    /// Whether the preemptor's queue may reclaim all that was nominated; if not, why.
    fn stays_within(&self, txn: &mut Txn) -> Result<(), Reason> {
        let nominated = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Nominated(_));
        let Some(&last) = self.placement.pods.iter().rev().find(nominated) else { return Ok(()) };
        let PodState::Nominated(node) = txn.pods.state[last] else { return Ok(()) };
        txn.release(last);
        let within = self.policy.may_reclaim(txn, &Preemptor { pod: last, ..self.preemptor });
        txn.nominate(last, node);
        within
    }

    /// Whether the victims that are not moved may all be lost, one after the other. Leaves the
    /// transaction as it was.
    pub fn losses_are_fair(
        &self,
        txn: &mut Txn,
        taken: &[Bundle],
        moved: &[(PodId, NodeId)],
    ) -> bool {
        let mark = txn.mark();
        for &pod in self.placement.pods {
            if matches!(txn.pods.state[pod], PodState::Nominated(_)) {
                txn.release(pod);
            }
        }
        let lost = |bundle: &Bundle| -> Vec<PodId> {
            bundle.pods.iter().copied().filter(|&pod| !is_moved(moved, pod)).collect()
        };
        let lost: Vec<(GangId, Vec<PodId>)> =
            taken.iter().map(|bundle| (bundle.gang, lost(bundle))).collect();
        for &pod in lost.iter().flat_map(|(_, pods)| pods) {
            if let PodState::Releasing(node) = txn.pods.state[pod] {
                txn.keep_running(pod, node);
            }
        }
        let fair = lost.iter().filter(|(_, pods)| !pods.is_empty()).all(|(gang, pods)| {
            let mut asked = false;
            let fair = pods.iter().all(|&pod| {
                let alone = txn.gangs[*gang].can_spare(txn.pods.place(pod));
                let vetoed = (alone || !asked) && self.vetoed_for_its_gang(txn, *gang).is_some();
                asked |= !alone;
                txn.evict(pod);
                !vetoed
            });
            fair && !self.served_before_preemptor(txn, *gang)
        });
        txn.rewind(mark);
        fair
    }
}
