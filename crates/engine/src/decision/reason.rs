//! Why something waits: data with the numbers of that moment. Only `report/words.rs` makes text of
//! it.

use std::borrow::Cow;
use std::sync::Arc;

use muster_api::{QueueState, Time};
use serde::{Deserialize, Serialize};

use crate::base::ids::ResourceId;
use crate::base::purpose::Purpose;
use crate::decision::node_reason::{Histogram, Shown};

/// The step that stopped a gang.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// An object that it names is missing or refused.
    Reference,
    /// Not admitted.
    Admission,
    /// The gang itself is not complete.
    Gang,
    /// Its queue may not take more.
    Quota,
    /// Another gang of the queue is served first.
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
    /// Its running pods are farther apart than allowed, so no pod can join them.
    TooFarApart {
        domain: Arc<str>,
        tier: u32,
        limit: u32,
    },
    /// No allowed domain holds the missing pods.
    NoDomain {
        wanted: u32,
        /// The subgroup whose pods are missing, if it is one.
        #[serde(default)]
        subgroup: Option<Arc<str>>,
        /// The domain of the gang inside which the domains are, if not all that are allowed count.
        #[serde(default)]
        inside: Option<Arc<str>>,
        domains: u32,
        /// The highest tier, if it is hard.
        limit: Option<u32>,
        /// The domains that came closest.
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
    /// The preemptor's queue, or one above it, would have a larger part of its fair share than a
    /// queue that gives keeps of its own.
    OutdoesSibling {
        queue: Arc<str>,
        sibling: Arc<str>,
        resource: ResourceId,
        after: i64,
        fair: i64,
        left: i64,
        sibling_fair: i64,
    },
    /// The action does not try the gang, which is like one for which the same action found no room,
    /// and needs no less. Another action may have helped that gang.
    LikeAnother {
        purpose: Purpose,
        gang: Arc<str>,
    },
    /// The search for room was cut short, and continues in the next cycle.
    NotAttempted {
        purpose: Purpose,
        steps: u64,
    },
    /// The action tries only so many domains, so some that could be cleared were not tried.
    DomainsNotTried {
        purpose: Purpose,
        left: u32,
        of: u32,
        /// The argument that limits them.
        limit: PluginName,
        most: u32,
    },
    /// `since` is set in a traverse queue: the head has waited too long to be overtaken.
    Behind {
        head: Arc<str>,
        since: Option<Time>,
    },
    Backoff {
        until: Time,
        failures: u32,
    },
    /// It only waits for free room.
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
        /// How many nodes had candidates, but evicting them would not help.
        nodes: u32,
        /// Pods that a rule keeps.
        kept: Vec<(String, u32)>,
        #[serde(default)]
        found: Found,
    },
    /// There was room, but in the next cycle its pods would be evicted again.
    NotBound {
        action: ActionName,
        preemptor: Arc<str>,
    },
    /// Its pods are nominated; other pods must terminate first.
    #[serde(alias = "Promised")]
    Nominated {
        places: u32,
    },
    /// Pods of it were nominated before this cycle, and are not any more.
    NominationsLost {
        pods: u32,
        loss: Loss,
    },
    NoNodes {
        placed: u32,
        wanted: u32,
        pod: Arc<str>,
        histogram: Histogram,
    },
}

/// Which limit is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    Cluster,
    Capability(Arc<str>),
    Deserved(Arc<str>),
    /// What a queue deserves, where the share of one above it would suffice but does not count.
    DeservedBelow {
        queue: Arc<str>,
        above: Arc<str>,
        /// `ancestorReclaimLevel`
        levels: u32,
    },
    FairShare(Arc<str>),
    /// What a queue deserves, for gangs that can't be evicted.
    DeservedForGood(Arc<str>),
    Namespace(Arc<str>),
}

/// A resource that is short.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    pub resource: ResourceId,
    pub want: i64,
    pub used: i64,
    pub limit: i64,
}

/// The name of a rule: from the list of plugins, or from a journal of another version.
type PluginName = Cow<'static, str>;

/// The name of an action: from the list of actions, or from a journal of another version.
type ActionName = Cow<'static, str>;

impl Reason {
    /// Whether two pods of a gang get the same answers for all nodes.
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
            Reason::Behind { .. } | Reason::Backoff { .. } | Reason::NotBound { .. } => {
                Stage::Order
            }
            Reason::NoNodes { .. }
            | Reason::NoDomain { .. }
            | Reason::TooFarApart { .. }
            | Reason::NeverPreempts { .. }
            | Reason::NeverMoves { .. }
            | Reason::NothingToTake { .. }
            | Reason::LikeAnother { .. }
            | Reason::NotAttempted { .. }
            | Reason::DomainsNotTried { .. }
            | Reason::NominationsLost { .. }
            | Reason::Nominated { .. } => Stage::Nodes,
        }
    }
}

/// What an action found that evicts nothing.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Found {
    /// Pods that may be evicted, but too few of them.
    #[default]
    TooFew,
    /// No pod that may be evicted.
    Nothing,
    /// No node, or no domain, that would be large enough if it were empty.
    TooSmall,
    /// No plugin that says what queues may take.
    NoRule,
}

impl Found {
    /// Whether pods that may be evicted were found, and a place that would be large enough.
    pub(crate) fn of(evictable: bool, large: bool) -> Found {
        match (evictable, large) {
            (true, _) => Found::TooFew,
            (false, true) => Found::Nothing,
            (false, false) => Found::TooSmall,
        }
    }
}

/// Why a gang lost nominations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Loss {
    /// A stronger gang of its queue has the room now.
    To { gang: Arc<str>, priority: i32 },
    /// A nominated node does not fit any more.
    Node { node: Arc<str>, why: Shown },
    /// They cannot be kept for another reason.
    Unkept,
}

/// A domain that could hold some of the missing pods.
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
