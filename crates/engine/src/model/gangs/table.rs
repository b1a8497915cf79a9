//! The table of gangs, and which of them wait, have changed, or are broken.

use std::sync::Arc;

use muster_api::{PodGroupPhase, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{GangId, Table};
use crate::decision::reason::Reason;
use crate::model::gangs::Gang;
use crate::model::pods::PodState;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Gangs {
    rows: Table<GangId, Gang>,
    by_key: FxHashMap<Arc<str>, GangId>,
    free: Vec<GangId>,
    /// Gangs that wait, so that a cycle need not visit all others. In no order.
    waiting: Vec<GangId>,
    /// Gangs whose counts, phase or reasons changed since the last report.
    dirty: Vec<GangId>,
    broken: FxHashMap<GangId, Time>,
}

impl Gangs {
    pub fn find(&self, key: &str) -> Option<GangId> {
        self.by_key.get(key).copied()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (GangId, &Gang)> {
        self.rows.iter().filter(|(_, gang)| gang.live)
    }

    pub fn ids(&self) -> impl Iterator<Item = GangId> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// `lookup` differs from the gang's name for a gang of one, which may have a PodGroup's name.
    pub(in crate::model) fn insert(&mut self, lookup: &str, mut gang: Gang) -> GangId {
        let key: Arc<str> = lookup.into();
        gang.lookup = key.clone();
        let id = match self.free.pop() {
            Some(id) => {
                self.rows[id] = gang;
                id
            }
            None => self.rows.push(gang),
        };
        self.by_key.insert(key, id);
        self.review(id);
        id
    }

    /// Counts a pod of the gang into a state, or out of it.
    pub(in crate::model) fn count(
        &mut self,
        id: GangId,
        (role, subgroup): (usize, usize),
        state: PodState,
        best_effort: bool,
        sign: i64,
    ) {
        let gang = &mut self.rows[id];
        gang.counts.add(state, best_effort, sign);
        gang.roles[role].counts.add(state, best_effort, sign);
        if let Some(subgroup) = gang.subgroup_mut(subgroup) {
            subgroup.counts.add(state, best_effort, sign);
        }
        self.counted(id);
    }

    /// Counts a pod of the gang out of a state and into another.
    pub(in crate::model) fn shift(
        &mut self,
        id: GangId,
        (role, subgroup): (usize, usize),
        from: PodState,
        to: PodState,
        best_effort: bool,
    ) {
        let gang = &mut self.rows[id];
        for counts in [&mut gang.counts, &mut gang.roles[role].counts] {
            counts.add(from, best_effort, -1);
            counts.add(to, best_effort, 1);
        }
        if let Some(subgroup) = gang.subgroup_mut(subgroup) {
            subgroup.counts.add(from, best_effort, -1);
            subgroup.counts.add(to, best_effort, 1);
        }
        self.counted(id);
    }

    fn counted(&mut self, id: GangId) {
        let gang = &self.rows[id];
        if !gang.dirty || gang.waits() != gang.waiting_at.is_some() {
            self.review(id);
        }
    }

    /// Notes that a gang changed: it is reported again, and its place in the list of waiting gangs
    /// is updated.
    pub(crate) fn review(&mut self, id: GangId) {
        let gang = &mut self.rows[id];
        if !gang.dirty {
            gang.dirty = true;
            self.dirty.push(id);
        }
        match (gang.waits(), gang.waiting_at) {
            (true, None) => {
                gang.waiting_at = Some(self.waiting.len() as u32);
                self.waiting.push(id);
            }
            (false, Some(place)) => {
                gang.waiting_at = None;
                self.waiting.swap_remove(place as usize);
                if let Some(&moved) = self.waiting.get(place as usize) {
                    self.rows[moved].waiting_at = Some(place);
                }
            }
            _ => {}
        }
    }

    pub fn set_phase(&mut self, id: GangId, phase: PodGroupPhase) {
        self.rows[id].phase = phase;
        self.review(id);
    }

    /// Sets why a gang waits; an empty list means that it does not.
    pub fn explain(&mut self, id: GangId, reasons: Vec<Reason>) {
        if self.rows[id].reasons != reasons {
            self.rows[id].reasons = reasons;
            self.review(id);
        }
    }

    /// Notes whether the gang is broken, and since when, unless that is known.
    pub(crate) fn note_broken(&mut self, id: GangId, broken: bool, since: Time) {
        if broken {
            self.broken.entry(id).or_insert(since);
        } else {
            self.broken.remove(&id);
        }
    }

    /// Forgets since when the gang is broken.
    pub(crate) fn forget_broken(&mut self, id: GangId) {
        self.broken.remove(&id);
    }

    /// Gangs that were stale after the last cycle (`stalegangeviction.rs`), and since when; in no
    /// order.
    pub fn broken(&self) -> impl Iterator<Item = (GangId, Time)> + '_ {
        self.broken.iter().map(|(&id, &since)| (id, since))
    }

    /// Since when the gang is broken, if it is.
    pub fn broken_since(&self, id: GangId) -> Option<Time> {
        self.broken.get(&id).copied()
    }

    /// Gangs that wait for room, for their admission or for nominated room; in no order.
    pub fn waiting(&self) -> &[GangId] {
        &self.waiting
    }

    /// Notes that the condition of broken gangs may have changed.
    pub(crate) fn review_broken(&mut self) {
        let broken: Vec<GangId> = self.broken.keys().copied().collect();
        broken.into_iter().for_each(|id| self.review(id));
    }

    /// Gangs that changed since the last report.
    pub fn changed(&self) -> Vec<GangId> {
        self.dirty.iter().copied().filter(|&id| self.rows[id].live).collect()
    }

    /// The same, and clears the list.
    pub fn take_changed(&mut self) -> Vec<GangId> {
        let mut changed = std::mem::take(&mut self.dirty);
        for &id in &changed {
            self.rows[id].dirty = false;
        }
        changed.retain(|&id| self.rows[id].live);
        changed
    }

    /// Whether the list of waiting gangs is correct.
    pub(in crate::model) fn lists_hold(&self) -> bool {
        let listed = |id: GangId| {
            self.rows[id].waiting_at.map(|place| self.waiting.get(place as usize))
                == Some(Some(&id))
        };
        self.rows.iter().all(|(id, gang)| gang.waits() == listed(id))
    }

    pub(in crate::model) fn remove(&mut self, id: GangId) {
        self.rows[id].live = false;
        self.review(id);
        let gang = &mut self.rows[id];
        gang.pods = Vec::new();
        gang.reasons = Vec::new();
        self.by_key.remove(&gang.lookup);
        self.broken.remove(&id);
        self.free.push(id);
    }
}

impl std::ops::Index<GangId> for Gangs {
    type Output = Gang;

    #[inline]
    fn index(&self, id: GangId) -> &Gang {
        &self.rows[id]
    }
}

impl std::ops::IndexMut<GangId> for Gangs {
    #[inline]
    fn index_mut(&mut self, id: GangId) -> &mut Gang {
        &mut self.rows[id]
    }
}
