//! Kubernetes and Volcano objects as Muster reads them. No I/O, no scheduling.

mod anonymise;
pub mod cards;
pub mod core;
mod crds;
mod hypernode;
pub mod keys;
pub mod manifest;
mod members;
mod podgroup;
mod portion;
mod quantity;
mod queue;
mod requests;
mod reserved;
#[cfg(feature = "schema")]
mod schema;
mod selector;
mod time;
mod validate;

pub use anonymise::{Class, Pseudonyms, anonymise};
pub use crds::{CRDS, crds};
pub use hypernode::{
    ExactMatch, HyperNode, HyperNodeCondition, HyperNodeSpec, HyperNodeStatus, Member, MemberKind,
    MemberSelector, RegexMatch,
};
pub use members::Matcher;
pub use podgroup::{
    NetworkTopologyMode, NetworkTopologySpec, PodGroup, PodGroupCondition, PodGroupPhase,
    PodGroupSpec, PodGroupStatus, SubGroupPolicy,
};
pub use portion::{Portion, PortionError};
pub use quantity::{Quantity, QuantityError, ResourceList};
pub use queue::{
    DequeueStrategy, ExtendCluster, Guarantee, NodeGroupAffinity, Queue, QueueAffinity, QueueSpec,
    QueueState, QueueStatus, Reservation,
};
pub use requests::{container_requests, pod_requests};
pub use reserved::{Reserved, ReservedError};
pub use time::{DurationError, Time, TimeError, parse_duration};
pub use validate::{
    Problem, is_dns_subdomain, validate_hyper_node, validate_node, validate_pod,
    validate_pod_group, validate_queue,
};
