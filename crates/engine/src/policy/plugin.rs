//! A scheduling opinion: every question with its neutral answer.

use std::cmp::Ordering;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::resources::{Amounts, Share};
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::node_reason::Why;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::devices::Sharing;
use crate::policy::bundle::{Bundle, Needed};
use crate::policy::preemptor::Preemptor;
use crate::policy::question::{Question, Switches};
use crate::settings::args::Args;
use crate::settings::argument::Argument;
use crate::shares::admission::Admission;
use crate::shares::fair::Rules;

pub use muster_macros::{answers, each_function_has_a_question};

pub struct Entry {
    pub name: &'static str,
    pub summary: &'static str,
    pub arguments: &'static [Argument],
    /// Where it differs from Volcano's plugin of the same name, on purpose.
    pub differs: &'static str,
    /// Reads its arguments. Keys that are left over are reported as misspelt.
    pub build: fn(&mut Args, &Switches) -> Box<dyn Plugin>,
}

/// What an answer about a node depends on. It determines when the plugin must be asked again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On the node's own facts.
    NodeFacts,
    /// On the pods of the node.
    NodePods,
    /// On the pods of other nodes too.
    OtherNodes,
}

/// A vote on the admission of a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    Abstain,
    Permit,
    Reject(Reason),
}

/// A rule that keeps a pod where it is, and when it ends if time alone ends it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Veto {
    pub rule: &'static str,
    pub until: Option<Time>,
}

/// Pods that should not run where they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwanted {
    /// The pods to evict now, in order.
    pub pods: Vec<(PodId, Cause)>,
    /// When more pods will have to be evicted.
    pub next: Option<Time>,
}

/// A scheduling opinion. Every function but the first has a neutral answer; override only what you
/// decide, and put `#[answers]` on the `impl`.
#[each_function_has_a_question]
pub trait Plugin: Send {
    /// The questions that it is asked. Written by `#[answers]`.
    fn answers(&self) -> Vec<Question>;

    // Orders.
    fn gang_order(&self, _: &Cluster, _a: GangId, _b: GangId) -> Ordering {
        Ordering::Equal
    }
    fn queue_order(&self, _: &Cluster, _a: QueueId, _b: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// Between the next gangs of two queues that are equal otherwise.
    fn turn_order(&self, _: &Cluster, _a: GangId, _b: GangId) -> Ordering {
        Ordering::Equal
    }
    /// Of the pods of a gang, the most urgent is placed first.
    fn pod_urgency(&self, _: &Cluster, _: PodId) -> i64 {
        0
    }

    // Gates and votes.
    /// Whether a gang could start if there were room.
    fn gang_can_start(&self, _: &Cluster, _: GangId) -> Result<(), Reason> {
        Ok(())
    }
    /// A gang starts with its whole minimum or not at all.
    fn enforces_minimum(&self) -> bool {
        false
    }
    fn enqueue(&self, _: &Cluster, _: &Admission, _: GangId) -> Vote {
        Vote::Abstain
    }
    /// Whether the gangs of a queue are served at all.
    fn overused(&self, _: &Cluster, _: QueueId) -> Option<Reason> {
        None
    }
    /// Whether a gang's queue may use one more pod of a shape for it.
    fn may_allocate(&self, _: &Cluster, _: GangId, _: ShapeId, _: Room) -> Result<(), Reason> {
        Ok(())
    }
    /// Whether a gang's queue may use this much more for it, even after evictions: asked before any
    /// pod is evicted.
    fn could_ever_allocate(&self, _: &Cluster, _: GangId, _wanted: &Needed) -> Result<(), Reason> {
        Ok(())
    }

    // Placement. Marks the nodes that don't fit, among those that still fit.
    /// Marks the nodes that do not fit, among those that still fit.
    fn filter(&self, _: Scope, _: &Cluster, _: (ShapeId, Room), _: &[NodeId], _: &mut [Why]) {}
    /// Adds points, in thousandths: up to 100 points times the weight of the plugin.
    fn score(&self, _: Scope, _: &Cluster, _: ShapeId, _: &[NodeId], _: &mut [i64]) {}

    /// When its answers about nodes change by time alone, if they do.
    fn next_change(&self, _now: Time) -> Option<Time> {
        None
    }

    /// Points for all nodes below a domain that depend on the whole domain; for the root, points
    /// for nodes in no other domain.
    fn domain_score(&self, _: &Cluster, _: ShapeId, _: DomainId) -> Option<i64> {
        None
    }
    /// How pods share the cards of a node. The ranking makes sure that each gets one.
    fn sharing(&self) -> Option<Sharing> {
        None
    }

    /// How much a resource counts for the use of a domain.
    fn domain_weight(&self, _: &Cluster, _: ResourceId) -> Option<i64> {
        None
    }
    /// How many domains an evicting action tries for a gang at most, and the argument that says so.
    fn most_domains_to_clear(&self) -> Option<(&'static str, usize)> {
        None
    }
    /// Of domains that are equally near, prefer the one that leaves the largest others empty.
    fn spares_whole_domains(&self) -> bool {
        false
    }

    // Eviction. Protects a pod from eviction; returns the name of the rule.
    /// Protects a pod from eviction; returns the name of the rule.
    fn protects(&self, _: &Cluster, _: PodId) -> Option<&'static str> {
        None
    }
    /// The same for one preemptor, whatever else is evicted for it.
    fn vetoes(&self, _: &Cluster, _: &Preemptor, _victim: PodId) -> Option<Veto> {
        None
    }
    /// The same, given all pods that have been evicted for it already.
    fn vetoes_after(&self, _: &Cluster, _: &Preemptor, _victim: PodId) -> Option<&'static str> {
        None
    }
    /// When time alone ends the rule by which it vetoes such a pod, if it does.
    fn restrains_until(&self, _: &Cluster, _: &Preemptor, _victim: PodId) -> Option<Time> {
        None
    }
    /// Whether the preemptor outranks the victim.
    fn outranks(&self, _: &Cluster, _: &Preemptor, _victim: PodId) -> Option<bool> {
        None
    }
    /// The cost of evicting these pods from a node, if not determined by their priorities.
    fn eviction_cost(
        &self,
        _: &Cluster,
        _: &Preemptor,
        _: NodeId,
        _victims: &[PodId],
    ) -> Option<i64> {
        None
    }
    /// Whether the preemptor's queue may reclaim for one more pod.
    fn may_reclaim(&self, _: &Cluster, _: &Preemptor) -> Option<Result<(), Reason>> {
        None
    }
    /// Protects what a gang would lose at once, given all that has been evicted already. Asked
    /// where queues are measured by fair shares.
    fn vetoes_gang_loss(&self, _: &Cluster, _: &Preemptor, _gang: GangId) -> Option<&'static str> {
        None
    }
    /// Why a plan is rejected in which the preemptor has its nodes and these pods are evicted for
    /// it; `_had` is what its queue used before.
    fn rejects_outcome(
        &self,
        _: &Cluster,
        _: &Preemptor,
        _had: &Amounts,
        _gone: &[PodId],
    ) -> Option<Reason> {
        None
    }
    /// Which of two queues is evicted from first.
    fn queue_gives_first(&self, _: &Cluster, _: &Preemptor, _a: QueueId, _b: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// Which bundles are evicted from a domain that lacks this much, in the modes that evict whole
    /// gangs: the positions of these bundles in the order of eviction. Bundles that are not named
    /// stay.
    fn order_bundles(
        &self,
        _: &Cluster,
        _: &Preemptor,
        _: &Needed,
        _: &[Bundle],
    ) -> Option<Vec<usize>> {
        None
    }

    /// Pods to evict although no gang needs their room.
    fn pods_to_shuffle(&self, _: &Cluster) -> Unwanted {
        Unwanted::default()
    }
    /// Protects such a pod, given all pods that have been evicted; returns the name of the rule.
    fn vetoes_shuffle(&self, _: &Cluster, _: PodId) -> Option<&'static str> {
        None
    }

    // Shares. Queues are a tree: work belongs into its leaves, and limits of all ancestors apply.
    /// Whether queues are a tree: gangs belong into its leaves, and the limits of all ancestors
    /// apply.
    fn has_queue_tree(&self) -> bool {
        false
    }
    /// How the fair shares of queues are computed, if queues are measured by them.
    fn fairness(&self) -> Option<Rules> {
        None
    }
    /// Switches to serving queues by their fair shares.
    fn measure_by_fair_shares(&mut self) {}

    // Reports. The queue's fair share and how much of it the queue uses, if queues are measured by
    // that rather than by what they deserve.
    /// The queue's fair share and how much of it the queue uses, if queues are measured by that
    /// rather than by what they deserve.
    fn fair_share_of(&self, _: &Cluster, _: QueueId) -> Option<(Amounts, Share)> {
        None
    }
    /// What the queue should have and how much of that it uses, according to this plugin.
    fn deserves(&self, _: &Cluster, _: QueueId) -> Option<(Amounts, Share)> {
        None
    }
}
