//! The cluster as the scheduler knows it: pods, and the sums that follow from their states. Events
//! change it between cycles (`apply.rs`); within a cycle the only thing that changes is a pod's
//! state, through [`Cluster::set`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::Time;
use muster_api::core::NodeSelector;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, NodeId, PodId, QueueId, ShapeId, SpaceId, Symbol, Table};
use crate::base::names::Names;
use crate::base::resources::{Amounts, Dimensions, Sparse};
use crate::model::apply::budgets::Budgets;
use crate::model::changes::Log;
use crate::model::devices::{Devices, Held};
use crate::model::gangs::Gangs;
use crate::model::nodes::Nodes;
use crate::model::nominations::Nomination;
use crate::model::pods::{PodState, Pods, Sum};
use crate::model::queues::Queues;
use crate::model::selectors::Tags;
use crate::model::shapes::Shapes;
use crate::model::terms::Terms;
use crate::model::topology::domains::Domains;
use crate::model::topology::hypernodes::HyperNodes;
use crate::model::usage::Usage;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cluster {
    pub dimensions: Dimensions,
    pub names: Names,
    pub nodes: Nodes,
    pub hyper_nodes: HyperNodes,
    pub domains: Domains,
    pub pods: Pods,
    pub gangs: Gangs,
    pub queues: Queues,
    pub shapes: Shapes,
    pub terms: Terms,
    pub devices: Devices,
    pub budgets: Budgets,
    pub spaces: Table<SpaceId, Space>,
    pub(super) spaces_by_name: FxHashMap<Symbol, SpaceId>,
    pub priority_classes: FxHashMap<Symbol, PriorityClass>,
    /// Claim `namespace/name` → the volume bound to it, if any.
    pub claims: FxHashMap<String, Option<String>>,
    /// Volume → where it can be used, if not everywhere.
    pub volumes: FxHashMap<String, Option<NodeSelector>>,
    /// Allocatable of all nodes that are live and ready.
    pub total: Amounts,
    /// What pods of other schedulers use of it.
    #[serde(default)]
    pub foreign: Amounts,
    /// Past usage of queues, if shares depend on it.
    #[serde(default)]
    pub usage: Usage,
    /// We schedule pods with these scheduler names.
    pub scheduler_names: Vec<String>,
    pub images_known: bool,
    /// The time of the cycle.
    pub now: Time,
    /// When pods were last evicted by `shuffle`.
    pub shuffled: Option<Time>,
    /// Nodes whose room changed. Like the next field, it serves caches only, so it is not saved.
    #[serde(skip)]
    pub touched: Log,
    /// Nodes whose facts (labels, taints, readiness) changed.
    #[serde(skip)]
    pub changed: Log,
    /// Increases when all cached answers about nodes are outdated: nodes joined or left, volumes or
    /// terms changed.
    pub version: u64,
    /// Increases with every change.
    pub generation: u64,
    /// Increases with every event: requests do not change within a cycle.
    pub events: u64,
    /// Increases when room may have appeared. What did not fit before fits no better until then.
    pub freed: u64,
    /// Increases with events that may let a failed search succeed although no room appeared: pods
    /// become preemptable, or count differently. Unchanged objects and pending pods do not count.
    #[serde(default)]
    #[serde(alias = "helped")]
    pub(crate) outlook_changes: u64,
    /// Pods whose eviction the cluster refused, and until when they are not evicted again.
    #[serde(alias = "spared")]
    pub eviction_refused: FxHashMap<PodId, Time>,
    /// Pods whose objects hold a nomination that has not been read yet.
    #[serde(alias = "promises")]
    pub(crate) unread_nominations: Vec<PodId>,
    /// A cycle has run: from now on, nominations on objects are what we have written.
    pub(crate) began: bool,
    /// The nominations that have not ended yet.
    #[serde(alias = "promised")]
    pub nomination_ledger: BTreeMap<PodId, Nomination>,
    /// The gangs for which pods are evicted in this cycle.
    #[serde(skip)]
    pub(crate) served_now: BTreeSet<GangId>,
    /// How many pods are nominated, or have room reserved for their successor.
    #[serde(alias = "nominations")]
    pub nominated_count: u32,
    /// The gangs with reservations.
    #[serde(default)]
    pub(crate) reserving: BTreeSet<GangId>,
    /// How many pods terminate on nodes where they can.
    pub departures: u32,
    pub guards: Guards,
    pub(super) ranks_stale: bool,
    /// The sums of domains must be computed again before the next cycle, and are not kept until
    /// then.
    pub(super) domains_stale: bool,
    pub(super) lines_stale: bool,
}

/// How often a sum would have become negative and was held at zero. That is a bug: a test fails, in
/// production it is counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guards {
    /// What gangs hold, as `drf` compares it.
    pub gangs: u64,
    /// What queues hold, as `capacity` and `proportion` limit it.
    pub queues: u64,
    /// The same for the queues above them.
    pub ancestors: u64,
}

/// A namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Space {
    pub name: Symbol,
    pub tags: Tags,
    /// The queue of its gangs that name none.
    pub queue: Option<Arc<str>>,
    /// Hard limits by quota object.
    pub quotas: Vec<(String, Sparse)>,
    /// Requests of its pods that are bound or nominated.
    pub held: Amounts,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorityClass {
    pub value: i32,
    pub global_default: bool,
    /// Its pods never preempt.
    pub never_preempts: bool,
}

impl Cluster {
    pub fn new(scheduler_names: Vec<String>) -> Cluster {
        let mut cluster = Cluster { scheduler_names, ..Cluster::default() };
        cluster.nodes.widen(cluster.dimensions.len());
        cluster
    }

    /// Forgets everything derived from the configuration: answers about nodes, and gangs that were
    /// given up.
    pub(crate) fn reconsider(&mut self) {
        self.generation += 1;
        self.events += 1;
        self.version += 1;
        self.freed += 1;
    }

    /// Moves a pod to a new state and returns the old one. The only writer of state within a cycle.
    pub(crate) fn set(&mut self, pod: PodId, to: PodState) -> PodState {
        let from = self.uncount(pod, to);
        if self.shares_cards(pod) {
            self.choose_cards(pod, from, to);
        }
        self.count(pod, to);
        from
    }

    /// Moves a pod back to a state in which it had these cards.
    pub(crate) fn put_back(&mut self, pod: PodId, to: PodState, held: Option<Held>) {
        self.uncount(pod, to);
        self.devices.put_back(pod, held);
        self.count(pod, to);
    }

    /// The first half of a move: removes the pod from all sums of its old state.
    #[inline(always)]
    pub(super) fn uncount(&mut self, pod: PodId, to: PodState) -> PodState {
        let from = self.pods.state[pod];
        if let Some(gang) = self.pods.gang[pod] {
            let best_effort = self.shapes[self.pods.shape[pod]].best_effort;
            self.gangs.shift(gang, self.pods.place(pod), from, to, best_effort);
            self.sum(pod, gang, from, -1);
            self.sum(pod, gang, to, 1);
        }
        self.count_on_node(pod, from, -1);
        self.pods.state[pod] = to;
        if matches!(from, PodState::Releasing(_))
            || matches!(to, PodState::Releasing(_) | PodState::Running(_))
        {
            self.budgets.ask(pod, to);
        }
        from
    }

    #[inline(always)]
    pub(super) fn count(&mut self, pod: PodId, to: PodState) {
        self.count_on_node(pod, to, 1);
        self.generation += 1;
    }

    /// Adds a pod in a state to every sum, or takes it out.
    pub(super) fn tally(&mut self, pod: PodId, state: PodState, sign: i64) {
        if let Some(gang) = self.pods.gang[pod] {
            let best_effort = self.shapes[self.pods.shape[pod]].best_effort;
            self.gangs.count(gang, self.pods.place(pod), state, best_effort, sign);
            self.sum(pod, gang, state, sign);
        }
        self.count_on_node(pod, state, sign);
    }

    /// The sums of its gang and of the queues above it.
    #[inline]
    pub(super) fn sum(&mut self, pod: PodId, gang: GangId, state: PodState, sign: i64) {
        let Some(sum) = Sum::of(state) else { return };
        let request = &self.shapes[self.pods.shape[pod]].request;
        add_up(&mut self.gangs, &mut self.queues, &mut self.guards, (gang, sum), request, sign);
    }

    /// The sums of its node, of what is on the node, and of its namespace.
    pub(super) fn count_on_node(&mut self, pod: PodId, state: PodState, sign: i64) {
        let Some(node) = state.node() else { return };
        let shape = &self.shapes[self.pods.shape[pod]];
        let request = &shape.request;
        self.nodes.update_pods_on(node, pod, sign);
        if !shape.ports.is_empty() {
            let leaving = matches!(state, PodState::Releasing(_));
            self.nodes.use_ports(node, &shape.ports, leaving, sign);
        }
        if !self.terms.is_empty() {
            self.terms.tally(&shape.bonds, node, state, sign);
        }
        if self.devices.are_shared() && shape.devices.is_some() {
            self.devices.count_on_node(pod, state, self.nodes.fact[node].lets_go(), sign);
        }
        self.spaces[self.pods.space[pod]].held.add_all(request, sign);
        let columns = match state {
            PodState::Nominated(_) => {
                self.nominated_count = (i64::from(self.nominated_count) + sign) as u32;
                Some(&mut self.nodes.nominated)
            }
            PodState::Releasing(_) if self.nodes.fact[node].lets_go() => {
                self.departures = (i64::from(self.departures) + sign) as u32;
                Some(&mut self.nodes.releasing)
            }
            _ => None,
        };
        if let Some(columns) = columns {
            for (resource, amount) in request.iter() {
                columns[resource][node] += sign * amount;
            }
        }
        if state.occupies() {
            for (resource, amount) in request.iter() {
                self.nodes.idle[resource][node] -= sign * amount;
            }
            if self.pods.gang[pod].is_none() && self.nodes.fact[node].lets_go() {
                self.foreign.add_all(request, sign);
            }
            if self.counts_domains(node) {
                for (resource, amount) in request.iter() {
                    self.domains.take(node, resource, sign * amount);
                }
            }
        }
        self.touched.push(node);
    }

    /// Sums what pods of other schedulers use: checkpoints of older versions lack it.
    pub(crate) fn recount_foreign(&mut self) {
        self.foreign = Amounts::default();
        for pod in self.pods.live().filter(|&pod| self.pods.gang[pod].is_none()) {
            let state = self.pods.state[pod];
            if state.occupies() && state.node().is_some_and(|node| self.nodes.fact[node].lets_go())
            {
                self.foreign.add_all(&self.shapes[self.pods.shape[pod]].request, 1);
            }
        }
    }

    /// Whether changes on a node count for its domains.
    #[inline]
    pub(super) fn counts_domains(&self, node: NodeId) -> bool {
        self.domains.are_real() && !self.domains_stale && self.nodes.traits[node].live
    }

    /// Increases when a failed search for room might succeed.
    pub(crate) fn outlook_version(&self) -> u64 {
        self.freed + self.outlook_changes
    }

    /// Called before a cycle: does the work that events left for later.
    pub(crate) fn settle(&mut self) {
        if std::mem::take(&mut self.lines_stale) {
            self.redraw_queues();
        }
        self.domains.count_nodes(self.nodes.name.len());
        if self.hyper_nodes.settle(&self.nodes) {
            self.domains.plant(&self.hyper_nodes, &self.nodes);
            self.domains_stale = true;
            self.ranks_stale = true;
            self.freed += 1;
        }
        if std::mem::take(&mut self.domains_stale) {
            self.domains.recount(&self.nodes);
        }
        if std::mem::take(&mut self.ranks_stale) {
            self.nodes.rank(|node| self.domains.smallest_around(node));
            self.domains.note_ranks(&self.nodes);
            self.version += 1;
        }
        self.forget_rules();
        self.shapes.sweep();
        self.forget_cards();
        // The first pod gets the card.
        let pods = &self.pods;
        self.unread_nominations.sort_unstable_by(|&a, &b| pods.name(a).cmp(pods.name(b)));
        self.touched.trim();
        self.changed.trim();
    }

    pub fn space(&mut self, name: &str) -> SpaceId {
        let symbol = self.names.intern(name);
        if let Some(&id) = self.spaces_by_name.get(&symbol) {
            return id;
        }
        let space = Space {
            name: symbol,
            tags: Tags::default(),
            queue: None,
            quotas: Vec::new(),
            held: Amounts::default(),
        };
        let id = self.spaces.push(space);
        self.spaces_by_name.insert(symbol, id);
        id
    }

    pub fn space_name(&self, space: SpaceId) -> &str {
        self.names.text(self.spaces[space].name)
    }

    /// Whether the pod or its priority class says that it never preempts.
    pub fn never_preempts(&self, pod: PodId) -> bool {
        let fact = &self.pods.fact[pod];
        let class = || fact.priority_class.and_then(|class| self.priority_classes.get(&class));
        fact.never_preempts.unwrap_or_else(|| class().is_some_and(|class| class.never_preempts))
    }

    /// The queue, if it restricts its pods to groups of nodes: then they have shapes of their own.
    pub(crate) fn picky_queue(&self, queue: QueueId) -> Option<QueueId> {
        self.queues[queue].lineage.iter().copied().find(|&queue| self.queues[queue].picky())
    }

    /// Whether a node accepts any number of pods of the shape as long as amounts suffice, once it
    /// accepts one.
    pub fn asks_for_amounts_only(&self, shape: ShapeId) -> bool {
        let row = &self.shapes[shape];
        row.ports.is_empty()
            && !row.uses_claims()
            && self.demand(shape).is_none()
            && !self.depends_on_other_nodes(shape)
    }

    /// Placing a pod of the shape can change what other nodes answer, so that all of them are asked
    /// for each pod.
    pub fn depends_on_other_nodes(&self, shape: ShapeId) -> bool {
        let shape = &self.shapes[shape];
        let limited = |queue: QueueId| self.queues[queue].group_limits.is_some();
        self.terms.depends_on_other_nodes(&shape.bonds) || shape.queue.is_some_and(limited)
    }
}

/// Adds a gang's amounts to one of its sums, and to those of the queues above it.
#[inline]
pub(super) fn add_up(
    gangs: &mut Gangs,
    queues: &mut Queues,
    guards: &mut Guards,
    (gang, sum): (GangId, Sum),
    request: &Sparse,
    sign: i64,
) {
    let gang = &mut gangs[gang];
    let mut sound = gang.sum_mut(sum).shift(request, sign);
    guards.gangs += u64::from(!sound);
    let own = gang.queue;
    let protected = gang.protected && sum != Sum::Leaving;
    for at in 0..queues[own].lineage.len() {
        let queue = queues[own].lineage[at];
        let mut counted = queues[queue].sum_mut(sum).shift(request, sign);
        if protected {
            counted &= queues[queue].protected.shift(request, sign);
        }
        let guard = if at == 0 { &mut guards.queues } else { &mut guards.ancestors };
        *guard += u64::from(!counted);
        sound &= counted;
    }
    debug_assert!(sound, "a sum of requests went below zero");
}
