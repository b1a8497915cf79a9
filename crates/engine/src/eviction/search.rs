//! What a search for room by bundles works with.

use crate::base::resources::Amounts;
use crate::model::txn::Txn;
use crate::placement::request::PlacementRequest;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;
use crate::settings::eviction::EvictionSettings;

/// A gang that takes room by bundles.
pub struct Search<'t> {
    pub policy: &'t Policy,
    pub settings: &'t EvictionSettings,
    /// How many moves may be tried; without limit but by fair shares.
    pub budget: u64,
    /// For the first of its pods.
    pub preemptor: Preemptor,
    pub placement: PlacementRequest<'t>,
    /// What its queue had before.
    pub had: &'t Amounts,
}

impl Search<'_> {
    /// Bundles are taken in the order of queues and priorities, and whoever leaves is placed
    /// elsewhere if that can be.
    pub fn fair_share_order(&self) -> bool {
        self.preemptor.by_fair_share()
    }

    /// Whether more may be tried for this gang.
    pub fn may_go_on(&self, txn: &Txn) -> bool {
        txn.steps() < self.budget
    }
}
