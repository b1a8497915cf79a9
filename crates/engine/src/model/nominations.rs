//! What the model knows of a nomination.

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::NodeId;

/// What the model knows of a nomination.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nomination {
    pub node: NodeId,
    /// When this process first saw it.
    pub since: Time,
    /// Its position among the nominations of the same cycle.
    #[serde(alias = "turn")]
    pub sequence: u32,
    /// Whether pods were evicted from the node for it.
    #[serde(alias = "evicted")]
    pub needs_evictions: bool,
    /// Whether it is published to the cluster.
    #[serde(alias = "told")]
    pub published: bool,
}
