//! The pod table. A pod's state includes its node; every sum in the model follows from it.

use std::sync::Arc;

use muster_api::Time;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, NodeId, PodId, ShapeId, SpaceId, Symbol, Table};
use crate::model::devices::notes::Noted;

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodState {
    /// Must not be scheduled yet: it has a scheduling gate.
    Gated,
    Pending,
    /// Nominated to the node, once terminating pods are gone.
    Nominated(NodeId),
    /// Bound by us, not confirmed yet.
    Allocated(NodeId),
    /// Bound to the node as the cluster says, started or not.
    Running(NodeId),
    /// Evicted from the node, but still there.
    Releasing(NodeId),
    Succeeded,
    Failed,
}

impl PodState {
    /// Needs a node: it waits for one, or leaves one.
    pub fn needs_node(self) -> bool {
        matches!(self, PodState::Pending | PodState::Releasing(_))
    }

    pub fn node(self) -> Option<NodeId> {
        match self {
            PodState::Nominated(node)
            | PodState::Allocated(node)
            | PodState::Running(node)
            | PodState::Releasing(node) => Some(node),
            _ => None,
        }
    }

    /// The node from which it was evicted.
    pub fn leaving(self) -> Option<NodeId> {
        match self {
            PodState::Releasing(node) => Some(node),
            _ => None,
        }
    }

    /// Uses room on a node now.
    pub fn occupies(self) -> bool {
        matches!(self, PodState::Allocated(_) | PodState::Running(_) | PodState::Releasing(_))
    }

    /// Has a node or wants one now: neither finished nor gated.
    pub fn asks(self) -> bool {
        !self.finished() && self != PodState::Gated
    }

    /// Finished, successfully or not.
    pub fn finished(self) -> bool {
        matches!(self, PodState::Succeeded | PodState::Failed)
    }
}

/// The sum of requests in which a pod counts for its gang and queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    Held,
    Nominated,
    Leaving,
}

impl Sum {
    #[inline]
    pub(super) fn of(state: PodState) -> Option<Sum> {
        match state {
            PodState::Allocated(_) | PodState::Running(_) => Some(Sum::Held),
            PodState::Nominated(_) => Some(Sum::Nominated),
            PodState::Releasing(_) => Some(Sum::Leaving),
            _ => None,
        }
    }
}

/// How many pods are in each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub gated: u32,
    pub pending: u32,
    /// The pending pods that request nothing.
    pub pending_best_effort: u32,
    pub nominated: u32,
    pub allocated: u32,
    pub running: u32,
    pub releasing: u32,
    pub succeeded: u32,
    pub failed: u32,
}

impl Counts {
    pub(in crate::model) fn add(&mut self, state: PodState, best_effort: bool, sign: i64) {
        let count = match state {
            PodState::Gated => &mut self.gated,
            PodState::Pending => {
                if best_effort {
                    self.pending_best_effort = moved(self.pending_best_effort, sign);
                }
                &mut self.pending
            }
            PodState::Nominated(_) => &mut self.nominated,
            PodState::Allocated(_) => &mut self.allocated,
            PodState::Running(_) => &mut self.running,
            PodState::Releasing(_) => &mut self.releasing,
            PodState::Succeeded => &mut self.succeeded,
            PodState::Failed => &mut self.failed,
        };
        *count = moved(*count, sign);
    }

    /// Pods that count for the minimum: bound, or succeeded.
    pub fn ready(&self) -> u32 {
        self.allocated + self.running + self.succeeded
    }

    /// Pods that could still count for the minimum.
    pub fn valid(&self) -> u32 {
        self.ready() + self.pending + self.nominated
    }

    pub fn all(&self) -> u32 {
        self.valid() + self.gated + self.releasing + self.failed
    }
}

/// A count that would go below zero is a bug: it stops a test and is held at zero in production.
#[inline]
fn moved(count: u32, sign: i64) -> u32 {
    let moved = i64::from(count) + sign;
    debug_assert!(moved >= 0, "a count of pods went below zero");
    moved.max(0) as u32
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pods {
    pub state: Table<PodId, PodState>,
    pub shape: Table<PodId, ShapeId>,
    /// None for pods of other schedulers, which only use room.
    pub gang: Table<PodId, Option<GangId>>,
    /// The index of the pod's role in its gang's list.
    pub role: Table<PodId, u32>,
    /// The index of the pod's subgroup in its gang's list.
    pub subgroup: Table<PodId, u32>,
    pub space: Table<PodId, SpaceId>,
    /// Orders the pods of a gang: `volcano.sh/task-priority`, else the priority.
    pub order: Table<PodId, i32>,
    pub fact: Table<PodId, Pod>,
    by_key: FxHashMap<Arc<str>, PodId>,
    free: Vec<PodId>,
    /// The last walk that met a pod, so that first meetings are recognised without a set.
    #[serde(skip)]
    visited: Table<PodId, u32>,
    #[serde(skip)]
    visit: u32,
}

/// Facts about a pod that are needed less often.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Pod {
    /// `namespace/name`
    pub key: Arc<str>,
    pub uid: Arc<str>,
    pub version: u64,
    pub live: bool,
    pub priority: i32,
    pub index: u32,
    pub created: Time,
    pub started: Option<Time>,
    /// When it was scheduled, according to its condition.
    pub scheduled: Option<Time>,
    /// Whether it only counts as running while an action decides which pods to evict.
    #[serde(skip)]
    pub on_trial: bool,
    /// Whether its object is being deleted.
    pub leaves: bool,
    /// Whether the kubelet reports that its containers run.
    pub runs: bool,
    pub labels: Box<[(Symbol, Symbol)]>,
    pub role: Option<Symbol>,
    pub priority_class: Option<Symbol>,
    /// Whether the priority is its own, not that of its class.
    pub says_priority: bool,
    pub explicit_order: Option<i32>,
    /// Whether it says that it must not be evicted.
    pub protected: bool,
    /// Whether it says that its node may be taken back.
    pub revocable: bool,
    /// Whether it never preempts, if it says so itself.
    pub never_preempts: Option<bool>,
    /// The cards in its annotations.
    pub noted: Option<Box<Noted>>,
    #[serde(alias = "seldom")]
    pub rare: Option<Box<RarePodFields>>,
}

/// Facts that few pods have, so that they use no memory in the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RarePodFields {
    /// How long it will run, in milliseconds.
    pub estimate: Option<i64>,
    /// How long it is protected from eviction, in milliseconds.
    pub cooldown: Option<i64>,
    #[serde(alias = "promised")]
    pub recorded_nomination: Option<RecordedNomination>,
}

impl Pod {
    /// Everything in its object that decides whether it may be evicted, besides its order within
    /// its gang. Its start time decides only an order.
    pub(super) fn taken_as(&self) -> impl PartialEq + use<> {
        let cooldown = self.rare.as_ref().and_then(|rare| rare.cooldown);
        (self.protected, self.revocable, self.leaves, cooldown)
    }

    pub fn estimate(&self) -> Option<i64> {
        self.rare.as_ref()?.estimate
    }

    pub fn cooldown(&self) -> Option<i64> {
        self.rare.as_ref()?.cooldown
    }

    pub fn recorded_nomination(&self) -> Option<&RecordedNomination> {
        self.rare.as_ref()?.recorded_nomination.as_ref()
    }
}

/// The nomination on a pod's object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedNomination {
    pub node: Arc<str>,
    /// Whether pods were evicted for it.
    #[serde(alias = "evicted")]
    pub needs_evictions: bool,
    /// Whether it is in annotations, which no other program writes.
    pub annotated: bool,
}

impl Pods {
    pub fn find(&self, key: &str) -> Option<PodId> {
        self.by_key.get(key).copied()
    }

    pub(super) fn slot(&mut self, key: &str, shape: ShapeId, space: SpaceId) -> PodId {
        let shared: Arc<str> = key.into();
        let fact = Pod { key: shared.clone(), live: true, ..Pod::default() };
        let id = match self.free.pop() {
            Some(id) => {
                self.state[id] = PodState::Pending;
                self.shape[id] = shape;
                self.gang[id] = None;
                self.role[id] = 0;
                self.subgroup[id] = 0;
                self.space[id] = space;
                self.order[id] = 0;
                self.fact[id] = fact;
                id
            }
            None => {
                self.state.push(PodState::Pending);
                self.shape.push(shape);
                self.gang.push(None);
                self.role.push(0);
                self.subgroup.push(0);
                self.space.push(space);
                self.order.push(0);
                self.fact.push(fact)
            }
        };
        self.by_key.insert(shared, id);
        id
    }

    pub(super) fn remove(&mut self, pod: PodId) {
        let fact = std::mem::take(&mut self.fact[pod]);
        self.by_key.remove(&fact.key);
        self.free.push(pod);
    }

    /// Starts a walk that meets each pod for the first time only once.
    pub(crate) fn begin_visit(&mut self) {
        self.visited.grow(self.state.len(), 0);
        self.visit = self.visit.wrapping_add(1);
    }

    /// Whether this is the first meeting of the walk.
    pub(crate) fn visit(&mut self, pod: PodId) -> bool {
        std::mem::replace(&mut self.visited[pod], self.visit) != self.visit
    }

    pub fn live(&self) -> impl Iterator<Item = PodId> + '_ {
        self.fact.iter().filter(|(_, pod)| pod.live).map(|(id, _)| id)
    }

    /// The role and the subgroup in which the pod counts.
    #[inline]
    pub(crate) fn place(&self, pod: PodId) -> (usize, usize) {
        (self.role[pod] as usize, self.subgroup[pod] as usize)
    }

    pub fn name(&self, pod: PodId) -> &Arc<str> {
        &self.fact[pod].key
    }
}
