//! What is to be placed, and where.

use crate::base::ids::{DomainId, GangId, PodId, ShapeId, TermId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::gangs::missing::Missing;
use crate::policy::answers::Policy;

/// Where would one pod go?
pub struct NodeQuery<'a> {
    pub cluster: &'a Cluster,
    pub policy: &'a Policy,
    pub shape: ShapeId,
    pub room: Room,
    /// See [`PlacementRequest::avoid`].
    pub avoid: &'a [(TermId, u32)],
    pub kind: Kind,
}

/// How nodes are compared for a shape.
#[derive(Copy, Clone)]
pub struct Kind {
    /// By what is on other nodes too.
    pub depends_on_other_nodes: bool,
    /// By what is in their domains too.
    pub by_domain: bool,
}

impl Kind {
    pub fn of(cluster: &Cluster, policy: &Policy, shape: ShapeId) -> Kind {
        Kind {
            depends_on_other_nodes: cluster.depends_on_other_nodes(shape),
            by_domain: policy.scores_domains(cluster, shape),
        }
    }
}

/// What is to be placed, and where.
#[derive(Copy, Clone)]
pub struct PlacementRequest<'w> {
    pub gang: GangId,
    /// In the order in which they are placed.
    pub pods: &'w [PodId],
    pub missing: &'w Missing,
    pub room: Room,
    /// Topology values where a set that belongs together was tried and did not fit.
    pub avoid: &'w [(TermId, u32)],
    /// Where they are to be near each other. Otherwise each goes to the best node of all.
    pub near: Option<Vicinity<'w>>,
}

/// Each pod as near as possible to the one before, the first to a domain.
#[derive(Copy, Clone)]
pub struct Vicinity<'v> {
    pub of: DomainId,
    /// Only there.
    pub within: DomainId,
    /// The homes of those that have places already, in order.
    pub others: &'v [DomainId],
}
