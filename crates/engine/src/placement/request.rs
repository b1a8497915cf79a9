//! What is to be placed, and where.

use crate::base::ids::{DomainId, GangId, PodId, ShapeId, TermId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::gangs::missing::Missing;
use crate::policy::answers::Policy;

/// Asks for the best node for one pod.
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
    /// Whether the pods on other nodes matter.
    pub depends_on_other_nodes: bool,
    /// Whether the pods in their domains matter.
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
    /// In the order of placement.
    pub pods: &'w [PodId],
    pub missing: &'w Missing,
    pub room: Room,
    /// Topology values in which a set that must be together was tried and did not fit.
    pub avoid: &'w [(TermId, u32)],
    /// Where the pods must be near each other. Otherwise each goes to the best node of all.
    pub near: Option<Vicinity<'w>>,
}

/// Places each pod as near as possible to the one before, the first one near a domain.
#[derive(Copy, Clone)]
pub struct Vicinity<'v> {
    pub of: DomainId,
    /// The domain that limits the search.
    pub within: DomainId,
    /// The smallest domains of the pods that are placed already, in order.
    pub others: &'v [DomainId],
}
