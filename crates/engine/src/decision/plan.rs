//! What one cycle decided. Ids stand for the engine's pods, nodes and gangs until the next event is
//! applied.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId, QueueId, ResourceId, Symbol};
use crate::model::Cluster;
use crate::model::devices::notes::{note_of_bound, note_of_promised};
use crate::model::pods::PodState;
use crate::model::txn::Move;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the decisions.
    pub binds: Vec<Bind>,
    /// Places that were promised in this cycle and are new to the cluster, in the order of the
    /// decisions. The model knows the rest of them ([`Cluster::promised`]).
    pub nominations: Vec<Bind>,
    /// Pods that wait again although they were promised a place, by name.
    pub withdrawn: Vec<PodId>,
    /// Pods that are asked to leave, in the order of the decisions.
    pub evictions: Vec<Eviction>,
    /// Gangs whose phase or condition changed.
    pub updates: Vec<GangId>,
    /// What is to be written on pods that share cards, in order of their ids: on bound ones before
    /// the bind, on others with their promise.
    pub card_notes: Vec<CardNote>,
    /// What is to be written on PodGroups, in order of their names; only what changed.
    pub group_notes: Vec<GroupNote>,
    /// What became of promises, for those who count.
    pub fast_path: FastPath,
    /// What it took to make others leave, and what that costs, for those who count.
    pub taking: Work,
    /// For whom others were to leave, in the order in which that was tried.
    pub searches: Vec<Search>,
    /// Call again then, even if nothing happens.
    pub wake: Option<Time>,
}

/// What became of promised places in a cycle, in pods.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct FastPath {
    /// Bound to the place that was promised.
    pub hits: u32,
    /// Still waiting for it to become free.
    pub misses: u32,
    /// Taken back: the place was lost, or someone who matters more took it.
    pub voided: u32,
    /// Taken back because they have waited too long.
    pub expired: u32,
}

/// What was tried to make others leave for one gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    pub gang: GangId,
    /// The name of the action.
    pub action: &'static str,
    pub work: Work,
    /// Whether they do.
    pub found: bool,
}

/// What the actions that take room for gangs have done in a cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Domains in which room was to be made by whole gangs.
    pub domains: u32,
    /// Sets of pods that were to leave, each larger than the one before or another one.
    pub scenarios: u32,
    /// Those of them that could not do, as amounts go, so that nothing was tried.
    pub filtered: u32,
    /// How often it was tried whether a pod or a gang has room when others have left.
    pub simulations: u32,
    /// More would have been tried, but for a limit.
    pub cut_short: bool,
    /// Pods that were to leave for someone.
    pub selected: u32,
    /// Those of them that were not needed after all.
    pub reprieved: u32,
    /// Gangs that hold less than their minimum since then.
    pub broken: u32,
    /// For how many seconds those that leave, and all of the gangs that break, have held
    /// accelerators, by resource.
    pub wasted_seconds: BTreeMap<ResourceId, i64>,
}

impl Work {
    pub(crate) fn add(&mut self, more: &Work) {
        let Work {
            domains,
            scenarios,
            filtered,
            simulations,
            cut_short,
            selected,
            reprieved,
            broken,
            wasted_seconds,
        } = more;
        self.domains += domains;
        self.scenarios += scenarios;
        self.filtered += filtered;
        self.simulations += simulations;
        self.cut_short |= cut_short;
        self.selected += selected;
        self.reprieved += reprieved;
        self.broken += broken;
        for (&resource, seconds) in wasted_seconds {
            *self.wasted_seconds.entry(resource).or_default() += seconds;
        }
    }

    /// What was tried, without what would have come of it.
    pub(crate) fn in_vain(self) -> Work {
        Work { selected: 0, reprieved: 0, ..self }
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Bind {
    pub pod: PodId,
    pub node: NodeId,
}

/// The annotations that tell a node's device plugin which cards a pod has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardNote {
    pub pod: PodId,
    pub annotations: Vec<(&'static str, String)>,
}

/// Annotations of a gang's PodGroup; those without a text are taken off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNote {
    pub gang: GangId,
    pub annotations: Vec<(&'static str, Option<String>)>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    pub pod: PodId,
    pub node: NodeId,
    /// The name of the action that decided it.
    pub action: &'static str,
    /// The gang that gets the room, if the pod leaves for another's sake.
    pub claimant: Option<GangId>,
    pub cause: Cause,
    pub method: Method,
}

/// How a pod is asked to leave.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Through the Eviction API, which keeps PodDisruptionBudgets.
    #[default]
    Evict,
    /// Its object is deleted, and PodDisruptionBudgets are kept as far as that costs nothing else.
    Delete,
}

/// Why a pod has to leave. Text is made in `explain.rs`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its gang, or its subgroup, has lacked pods to its minimum for too long; or pods of a role.
    Stale { subgroup: bool, role: Option<Symbol>, lacks: u32, minimum: u32, for_ms: i64 },
    /// A gang of its queue with a higher priority needs the room.
    Outranked { priority: i32, claimant: i32 },
    /// A pod of its own gang with a higher priority needs the room.
    OutrankedWithin { priority: i32 },
    /// It goes with others of its gang: what the gang can lose, all of one that is broken, or the
    /// rest of it, which breaks it. What that returns is in parts per million, if it was asked
    /// for; the next best gang that stays is named with what it would have returned.
    Bundle {
        whole: bool,
        broken: bool,
        pods: u32,
        roi: Option<i64>,
        against: Option<(GangId, i64)>,
    },
    /// Another place is kept for its successor, and its own is for others.
    Moved { to: NodeId },
    /// Its queue has more than it deserves, and another less.
    Reclaimed { from: QueueId, to: QueueId },
    /// The zone of its node is for others now.
    ZoneClosed,
}

impl Plan {
    pub(crate) fn record(&mut self, moves: &[Move]) {
        for step in moves {
            match step.to {
                PodState::Allocated(node) => self.binds.push(Bind { pod: step.pod, node }),
                PodState::Nominated(node) => self.nominations.push(Bind { pod: step.pod, node }),
                _ => {}
            }
        }
    }

    /// Says which cards pods have.
    pub(crate) fn note_cards(&mut self, cluster: &Cluster, now: Time) {
        if cluster.devices.sharing().is_none() {
            return;
        }
        let note = |pod, annotations| CardNote { pod, annotations };
        let mut notes: Vec<CardNote> = self
            .binds
            .iter()
            .map(|bind| note(bind.pod, note_of_bound(cluster, bind.pod, now)))
            .collect();
        if cluster.nominations > 0 {
            let promised = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Nominated(_));
            let pods = cluster.devices.all_held().into_iter().map(|(pod, _)| pod).filter(promised);
            notes.extend(pods.map(|pod| note(pod, note_of_promised(cluster, pod))));
        }
        notes.retain(|note| !note.annotations.is_empty());
        notes.sort_unstable_by_key(|note| note.pod);
        self.card_notes = notes;
    }

    /// What is to be written on a pod about its cards; for most pods nothing.
    pub fn note_of(&self, pod: PodId) -> &[(&'static str, String)] {
        let found = self.card_notes.binary_search_by_key(&pod, |note| note.pod);
        found.map_or(&[], |place| &self.card_notes[place].annotations)
    }

    pub(crate) fn wake_at_any(&mut self, time: Option<Time>) {
        time.into_iter().for_each(|time| self.wake_at(time));
    }

    pub(crate) fn wake_at(&mut self, time: Time) {
        self.wake = Some(self.wake.map_or(time, |known| known.min(time)));
    }

    /// Decides nothing.
    pub fn is_empty(&self) -> bool {
        let Plan { binds, nominations, withdrawn, evictions, updates, group_notes, .. } = self;
        let places = [binds.len(), nominations.len(), withdrawn.len(), evictions.len()];
        places == [0; 4] && updates.is_empty() && group_notes.is_empty()
    }
}
