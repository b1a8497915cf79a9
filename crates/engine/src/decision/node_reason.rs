//! Why a pod does not fit single nodes, and how many nodes share each reason.

use serde::{Deserialize, Serialize};

use crate::base::cards::Ask;
use crate::base::ids::{ResourceId, TermId};

/// Why the nodes of the cluster don't fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    pub nodes: u32,
    pub fit: u32,
    /// Most nodes first.
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bar {
    pub nodes: u32,
    pub why: Shown,
}

/// A [`Why`] for output, with what is known of all nodes that share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    Short {
        resource: ResourceId,
        want: i64,
        best: i64,
    },
    /// Too few cards fit a container: how many at best, and the most free memory of a card. `picky`
    /// if the container accepts only some kinds of cards.
    Card {
        ask: Ask,
        picky: bool,
        best: u32,
        free: i64,
    },
    Tainted(String),
    /// With the name of the node's zone.
    Zone(Why, String),
    Rule(Why, String),
    Plain(Why),
}

/// Why a pod does not fit a node. Small, because there is one per node and shape.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Why {
    Fits,
    Gone,
    NotReady,
    Cordoned,
    Tainted,
    /// Node selector or node affinity.
    Affinity,
    Volume,
    ClaimMissing,
    NodeGroup,
    /// The node is for pods that can be revoked.
    RevocableOnly,
    /// The node's zone is closed.
    ZoneClosed,
    /// The configuration does not say when the node's zone is open.
    ZoneUnknown,
    Port,
    Short(ResourceId),
    /// No shared card has room.
    Card,
    /// Pods that it has affinity to are elsewhere.
    Together(TermId),
    /// Pods that it has anti-affinity to are there.
    Apart(TermId),
    /// Pods there have anti-affinity to it.
    Avoided(TermId),
    Spread(TermId),
}

impl Shown {
    pub(crate) fn joins(&self, other: &Shown) -> bool {
        match (self, other) {
            (Shown::Short { resource: a, .. }, Shown::Short { resource: b, .. }) => a == b,
            (Shown::Card { ask: a, .. }, Shown::Card { ask: b, .. }) => a == b,
            _ => self == other,
        }
    }

    pub(crate) fn widen(&mut self, other: &Shown) {
        match (self, other) {
            (Shown::Short { best, .. }, Shown::Short { best: another, .. }) => {
                *best = (*best).max(*another)
            }
            (Shown::Card { best, free, .. }, Shown::Card { best: another, free: more, .. }) => {
                *best = (*best).max(*another);
                *free = (*free).max(*more);
            }
            _ => {}
        }
    }
}
