//! What is known of a nomination.

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::NodeId;

/// What is known of a nomination.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nomination {
    pub node: NodeId,
    /// When this process first saw it.
    pub since: Time,
    /// Its place among those of the same cycle.
    #[serde(alias = "turn")]
    pub sequence: u32,
    /// Others were asked to leave the node for it.
    #[serde(alias = "evicted")]
    pub needs_evictions: bool,
    /// The cluster knows of it.
    #[serde(alias = "told")]
    pub published: bool,
}
