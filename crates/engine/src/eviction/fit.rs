//! What pods are evicted for, and whether it fits: one pod on a node here, a gang in a domain in
//! `domain_fit.rs`, and the nominations of all gangs in `review.rs`.

use crate::base::ids::{GangId, NodeId, PodId, ShapeId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::placement::fit::has_room;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;

/// Pods are evicted until this fits.
pub trait Target: StillFits {
    /// Places what there is room for. Returns whether everything is placed.
    fn fit_more(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool;

    /// Places everything from scratch, once nothing more will be evicted. Returns whether it fits.
    fn fit_anew(&mut self, _: &mut Txn, _: &mut Rankings) -> bool {
        false
    }
}

/// Evictions can be undone as long as this fits.
pub trait StillFits {
    /// Whether it certainly does not fit without the room of these pods, so that there is no need
    /// to try.
    fn surely_needs(&self, _: &Txn, _: &mut Rankings, _: &[PodId]) -> bool {
        false
    }

    /// Whether it fits now that these pods run again. It may be placed again for that, which the
    /// caller undoes if the answer is no.
    fn still_fits(&mut self, txn: &mut Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool;
}

/// A pod that needs room on a node.
pub struct NodeFit<'s> {
    pub policy: &'s Policy,
    pub gang: GangId,
    pub shape: ShapeId,
    pub node: NodeId,
}

impl NodeFit<'_> {
    fn has_room(&self, cluster: &Cluster) -> bool {
        let NodeFit { policy, gang, shape, node } = *self;
        policy.may_allocate(cluster, gang, shape, Room::FutureIdle).is_ok()
            && has_room(cluster, policy, shape, node, Room::FutureIdle)
    }
}

impl Target for NodeFit<'_> {
    fn fit_more(&mut self, txn: &mut Txn, _: &mut Rankings) -> bool {
        self.has_room(txn)
    }
}

impl StillFits for NodeFit<'_> {
    fn still_fits(&mut self, txn: &mut Txn, _: &mut Rankings, _: &[PodId]) -> bool {
        self.has_room(txn)
    }
}
