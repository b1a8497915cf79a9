//! What a search for bundles to evict works with.

use crate::base::resources::Amounts;
use crate::model::txn::Txn;
use crate::placement::request::PlacementRequest;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;
use crate::settings::eviction::EvictionSettings;

/// The search for bundles to evict for a gang, or for pods to move.
pub struct Search<'t> {
    pub policy: &'t Policy,
    pub settings: &'t EvictionSettings,
    /// How many transaction steps may be taken; limited only with fair shares.
    pub budget: u64,
    /// With the first of its pods.
    pub preemptor: Preemptor,
    pub placement: PlacementRequest<'t>,
    /// What its queue held before the search.
    pub had: &'t Amounts,
}

impl Search<'_> {
    /// Whether bundles are evicted in the order of queues and priorities, and victims are moved to
    /// other nodes if there is room.
    pub fn fair_share_order(&self) -> bool {
        self.preemptor.by_fair_share()
    }

    /// Whether the budget allows to try more for this gang.
    pub fn may_go_on(&self, txn: &Txn) -> bool {
        txn.steps() < self.budget
    }
}
