//! Whether one pod has room on one node.

use crate::base::ids::{GangId, NodeId, PodId, ShapeId};
use crate::base::room::Room;
use crate::eviction::give_back::StillFits;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::placement::fit::has_room;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;

/// A pod of a shape that lacks room on a node.
pub struct NodeFit<'s> {
    pub policy: &'s Policy,
    pub gang: GangId,
    pub shape: ShapeId,
    pub node: NodeId,
}

impl NodeFit<'_> {
    pub fn has_room(&self, cluster: &Cluster) -> bool {
        let NodeFit { policy, gang, shape, node } = *self;
        policy.may_allocate(cluster, gang, shape, Room::FutureIdle).is_ok()
            && has_room(cluster, policy, shape, node, Room::FutureIdle)
    }
}

impl StillFits for NodeFit<'_> {
    fn surely_needs(&self, _: &Txn, _: &mut Rankings, _: &[PodId]) -> bool {
        false
    }

    fn still_fits(&mut self, txn: &mut Txn, _: &mut Rankings, _: &[PodId]) -> bool {
        self.has_room(txn)
    }
}
