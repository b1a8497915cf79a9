//! What a search for room by bundles works with.

use crate::base::resources::Amounts;
use crate::model::txn::Txn;
use crate::placement::request::Wish;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Claim;
use crate::settings::eviction::Taking;

/// A gang that takes room by bundles.
pub struct GangTaker<'t> {
    pub policy: &'t Policy,
    pub taking: &'t Taking,
    /// How many moves may be tried.
    pub budget: u64,
    /// For the first of its pods.
    pub claim: Claim,
    pub wish: Wish<'t>,
    /// What its queue had before.
    pub had: &'t Amounts,
}

impl GangTaker<'_> {
    /// Bundles are taken in the order of queues and priorities, and whoever leaves is placed
    /// elsewhere if that can be.
    pub fn by_turns(&self) -> bool {
        self.claim.by_fair_share()
    }

    /// Whether more may be tried for this gang.
    pub fn may_go_on(&self, txn: &Txn) -> bool {
        !self.by_turns() || txn.steps() < self.budget
    }
}
