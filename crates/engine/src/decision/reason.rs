//! Why something waits: data with the numbers of that moment. Text is made in `report/words.rs`
//! alone.

use std::borrow::Cow;
use std::sync::Arc;

use muster_api::{QueueState, Time};
use serde::{Deserialize, Serialize};

use crate::base::ids::ResourceId;
use crate::base::purpose::Purpose;
use crate::decision::node_reason::Histogram;

/// The step that stopped a gang.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Something that it names is missing or refused.
    Reference,
    /// Not let into the line.
    Admission,
    /// The gang itself is not complete.
    Gang,
    /// Its queue may not take more.
    Quota,
    /// Another gang of the queue goes first.
    Order,
    /// No room on the nodes.
    Nodes,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    GroupMissing {
        group: Arc<str>,
    },
    QueueMissing {
        queue: Arc<str>,
    },
    QueueClosed {
        queue: Arc<str>,
        state: QueueState,
    },
    QueueBroken {
        queue: Arc<str>,
        line: BrokenLine,
    },
    QueueHasChildren {
        queue: Arc<str>,
    },
    ResourceClaims {
        pod: Arc<str>,
    },
    NotAdmitted {
        plugin: PluginName,
        limit: Limit,
        lack: Lack,
    },
    /// An older gang of the fifo queue waits for its admission.
    NotAdmittedBehind {
        head: Arc<str>,
    },
    GaveAdmissionBack {
        after_ms: i64,
    },
    Gated {
        pods: u32,
    },
    /// It lacks only pods that request nothing, and the action that places them is not listed.
    NoBackfill {
        pods: u32,
    },
    NotEnoughPods {
        have: u32,
        need: u32,
        gated: u32,
    },
    /// Fewer subgroups of a rule have their size than the gang needs.
    NotEnoughSubgroups {
        rule: Arc<str>,
        have: u32,
        need: u32,
    },
    NotEnoughOfSubgroup {
        subgroup: Arc<str>,
        have: u32,
        need: u32,
    },
    /// No HyperNode has a tier of this name.
    NoSuchTier {
        tier: Arc<str>,
    },
    /// What runs of it is farther apart than it may be, so that nothing can join it.
    TooFarApart {
        domain: Arc<str>,
        tier: u32,
        limit: u32,
    },
    /// No domain that it may be in holds what is missing.
    NoDomain {
        wanted: u32,
        domains: u32,
        /// The highest tier, if it is hard.
        limit: Option<u32>,
        /// Those that came closest.
        near: Vec<Near>,
    },
    NotEnoughOfRole {
        role: Arc<str>,
        have: u32,
        need: u32,
    },
    OverLimit {
        plugin: PluginName,
        limit: Limit,
        lack: Lack,
    },
    /// The preemptor's queue, or one above it, would have more of its fair share than one that
    /// gives has left of its own.
    OutdoesSibling {
        queue: Arc<str>,
        sibling: Arc<str>,
        resource: ResourceId,
        after: i64,
        fair: i64,
        left: i64,
        sibling_fair: i64,
    },
    /// One action tries nothing for it: it is like another for which that action found nothing, and
    /// wants no less. Another action may have helped that one.
    LikeAnother {
        purpose: Purpose,
        gang: Arc<str>,
    },
    /// The search for room was cut short, and goes on in the next cycle.
    NotAttempted {
        purpose: Purpose,
        steps: u64,
    },
    /// `since` is set in a traverse queue: the head has waited too long to be passed.
    Behind {
        head: Arc<str>,
        since: Option<Time>,
    },
    Backoff {
        until: Time,
        failures: u32,
    },
    /// It waits for free room only.
    NeverPreempts {
        pod: Arc<str>,
    },
    /// It is not preemptable, so no pods are moved for it either.
    NeverMoves {
        gang: Arc<str>,
    },
    /// No pods could be evicted for it.
    NothingToTake {
        purpose: Purpose,
        /// Where pods could leave, and that would not help.
        nodes: u32,
        /// Pods that a rule keeps.
        kept: Vec<(String, u32)>,
    },
    /// Its pods are nominated; other pods must terminate first.
    #[serde(alias = "Promised")]
    Nominated {
        places: u32,
    },
    NoNodes {
        placed: u32,
        wanted: u32,
        pod: Arc<str>,
        histogram: Histogram,
    },
}

/// Whose limit is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    Cluster,
    Capability(Arc<str>),
    Deserved(Arc<str>),
    FairShare(Arc<str>),
    /// What a queue deserves, for gangs that can't be evicted.
    DeservedForGood(Arc<str>),
    Namespace(Arc<str>),
}

/// One dimension that is short.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    pub resource: ResourceId,
    pub want: i64,
    pub used: i64,
    pub limit: i64,
}

/// As in the list of plugins, or as a journal says: of another version, perhaps.
type PluginName = Cow<'static, str>;

impl Reason {
    /// Whether two pods of a gang found the same of all nodes.
    pub(crate) fn says_the_same_of_nodes(&self, other: &Reason) -> bool {
        match (self, other) {
            (
                Reason::NoNodes { placed, wanted, histogram, .. },
                Reason::NoNodes {
                    placed: as_placed,
                    wanted: as_wanted,
                    histogram: as_histogram,
                    ..
                },
            ) => (placed, wanted, histogram) == (as_placed, as_wanted, as_histogram),
            _ => false,
        }
    }

    pub fn stage(&self) -> Stage {
        match self {
            Reason::GroupMissing { .. }
            | Reason::QueueMissing { .. }
            | Reason::QueueClosed { .. }
            | Reason::QueueBroken { .. }
            | Reason::QueueHasChildren { .. }
            | Reason::NoSuchTier { .. }
            | Reason::ResourceClaims { .. } => Stage::Reference,
            Reason::NotAdmitted { .. }
            | Reason::NotAdmittedBehind { .. }
            | Reason::GaveAdmissionBack { .. } => Stage::Admission,
            Reason::Gated { .. }
            | Reason::NoBackfill { .. }
            | Reason::NotEnoughPods { .. }
            | Reason::NotEnoughSubgroups { .. }
            | Reason::NotEnoughOfSubgroup { .. }
            | Reason::NotEnoughOfRole { .. } => Stage::Gang,
            Reason::OverLimit { .. } | Reason::OutdoesSibling { .. } => Stage::Quota,
            Reason::Behind { .. } | Reason::Backoff { .. } => Stage::Order,
            Reason::NoNodes { .. }
            | Reason::NoDomain { .. }
            | Reason::TooFarApart { .. }
            | Reason::NeverPreempts { .. }
            | Reason::NeverMoves { .. }
            | Reason::NothingToTake { .. }
            | Reason::LikeAnother { .. }
            | Reason::NotAttempted { .. }
            | Reason::Nominated { .. } => Stage::Nodes,
        }
    }
}

/// A domain that could hold some of what is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Near {
    pub domain: Arc<str>,
    pub holds: u32,
}

/// Why a queue is not under the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokenLine {
    UnknownParent(Arc<str>),
    Cycle,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Reference => "reference",
            Stage::Admission => "admission",
            Stage::Gang => "gang",
            Stage::Quota => "quota",
            Stage::Order => "order",
            Stage::Nodes => "nodes",
        }
    }
}
