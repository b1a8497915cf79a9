//! What was found wrong with a plan, with the model, or with what a scheduler does over time.

/// What must be true, after every cycle or whenever nothing is under way.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// The sums of the model are those of a recount.
    Sums,
    /// The plan and the model say the same.
    PlanIsInModel,
    /// No node has more than its allocatable.
    NodeRoom,
    /// No card has more than it can hold.
    CardRoom,
    /// A node gets no pod that it refuses: state, taints, selectors, volumes, zones.
    NodeAccepts,
    /// A pod is not placed beside pods that exclude it, nor on a used port.
    PodsAgree,
    /// A gang is placed with its whole minimum.
    GangMinimum,
    /// A gang and its subgroups stay within their domain.
    TopologyLimit,
    /// Only admitted gangs of open queues are bound.
    MayRun,
    /// No pod is evicted that a rule keeps.
    Veto,
    /// A stale gang leaves as a whole.
    StaleGang,
    /// No pod is evicted that could have stayed.
    EvictionNeeded,
    /// No pod is bound that the next cycle evicts for another gang.
    BoundInVain,
    /// A gang for which pods are evicted gets all that it lacks.
    PreemptorComplete,
    /// An eviction breaks no gang but those that it says it breaks.
    GangStaysWhole,
    /// A moved pod has room on another node.
    Move,
    /// Queues take back only what their fair shares allow.
    FairShare,
    /// No queue has more than its limits.
    QueueLimit,
    /// Without events, planning ends.
    Rest,
    /// A scheduler that starts now decides the same.
    FreshScheduler,
    /// What was decided is written on the objects.
    Written,
    /// What waits has a reason.
    Reason,
    /// Nothing panics.
    Panic,
}

/// An invariant that does not hold, and in which case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Violation {
    pub invariant: Invariant,
    pub what: String,
}

impl Invariant {
    pub(crate) fn violated(self, what: impl Into<String>) -> Violation {
        Violation { invariant: self, what: what.into() }
    }

    /// The same as the result of a check.
    pub(crate) fn fails<T>(self, what: impl Into<String>) -> Result<T, Violation> {
        Err(self.violated(what))
    }
}
