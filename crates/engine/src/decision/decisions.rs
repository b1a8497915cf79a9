//! What one cycle decided. Ids stand for the engine's pods, nodes and gangs until the next event is
//! applied.

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::purpose::Method;
use crate::decision::cause::Cause;
use crate::decision::counters::{NominationCounters, SearchCounters, SearchRecord};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions {
    /// In the order of the decisions.
    pub binds: Vec<Bind>,
    /// Nominations of this cycle that are new to the cluster, in the order of the
    /// decisions. The model knows the rest of them (`Cluster::nomination_ledger`).
    pub nominations: Vec<Bind>,
    /// Pods whose nomination was released and which wait again, by name.
    pub withdrawn: Vec<PodId>,
    /// Pods that are asked to leave, in the order of the decisions.
    pub evictions: Vec<Eviction>,
    /// Gangs whose phase or condition changed.
    pub updates: Vec<GangId>,
    /// What is to be written on pods that share cards, in order of their ids: on bound ones before
    /// the bind, on others with their nomination.
    pub card_notes: Vec<CardNote>,
    /// What is to be written on PodGroups, in order of their names; only what changed.
    pub group_notes: Vec<GroupNote>,
    /// What became of nominations, for metrics.
    pub nomination_counters: NominationCounters,
    /// What was tried to make room by evictions, and what that costs, for metrics.
    pub search_counters: SearchCounters,
    /// The gangs for which room was to be made by evictions, in the order in which that was tried.
    pub searches: Vec<SearchRecord>,
    /// Call again then, even if nothing happens.
    pub wake: Option<Time>,
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
    pub preemptor: Option<GangId>,
    pub cause: Cause,
    pub method: Method,
}

impl Decisions {
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
        let Decisions { binds, nominations, withdrawn, evictions, updates, group_notes, .. } = self;
        let places = [binds.len(), nominations.len(), withdrawn.len(), evictions.len()];
        places == [0; 4] && updates.is_empty() && group_notes.is_empty()
    }
}
