//! Plans on their way to the server: binds, promises and evictions that arrive late, are refused,
//! get lost, or succeed without anyone hearing of it. Nobody is asked to leave before the server
//! has all promises of the gang that he leaves for. What is noted on PodGroups is written again
//! until it is known to be there.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use muster_api::PodGroupStatus;
use muster_api::core::Pod;
use muster_api::keys::PIPELINED_NODE;
use muster_api::kinds::Kind;
use muster_engine::plan::{CardNote, GroupNote, Placement, Update};
use muster_engine::{Event, Plan, Standing};

use super::Day;
use super::nominations::{Difference, Nominations};
use crate::world;

/// The key and uid of a pod.
type Name = (String, String);

#[derive(Default)]
pub struct Writes {
    under_way: Vec<Write>,
    held: Vec<Held>,
    notes: Vec<Note>,
    pub nominations: Nominations,
}

/// Annotations on their way to a PodGroup. There is one that is awaited for each: the newest takes
/// over what older ones say.
struct Note {
    due: u64,
    group: Name,
    annotations: Vec<(Cow<'static, str>, Option<String>)>,
    fate: Fate,
    awaited: bool,
}

/// Evictions that wait until the server has these promises, and PodGroups say what is kept for
/// those who leave.
struct Held {
    nominations: BTreeSet<Name>,
    groups: BTreeSet<Name>,
    victims: Vec<Name>,
}

struct Write {
    due: u64,
    pod: Name,
    wish: Wish,
    fate: Fate,
    /// The scheduler that wrote it still waits for the answer.
    awaited: bool,
}

enum Wish {
    Bind { node: String, notes: Vec<(&'static str, String)> },
    Promise { node: String, evicted: bool },
    TakeBack,
    Evict,
}

#[derive(Copy, Clone, PartialEq)]
enum Fate {
    Arrives,
    /// Arrives, but the answer is lost; the watch will tell.
    HalfKnown,
    Refused,
    Lost,
    /// An answer is overdue: the scheduler looks at the server before it says that it failed.
    Look,
}

impl Wish {
    fn has_come_true(&self, pod: &Pod) -> bool {
        let nominated = pod.metadata.annotations.get(PIPELINED_NODE);
        match self {
            Wish::Bind { .. } => pod.spec.node_name.is_some(),
            Wish::Promise { node, .. } => nominated == Some(node),
            Wish::TakeBack => nominated.is_none(),
            Wish::Evict => pod.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Of what is written on a waiting pod, the newest counts.
    fn is_note(&self) -> bool {
        matches!(self, Wish::Promise { .. } | Wish::TakeBack)
    }
}

impl Writes {
    pub fn orphan(&mut self) {
        self.nominations = Nominations::default();
        self.held.clear();
        self.under_way.retain(|write| matches!(write.fate, Fate::Arrives | Fate::HalfKnown));
        self.under_way.iter_mut().for_each(|write| write.awaited = false);
        self.notes.retain(|note| note.fate != Fate::Lost);
        self.notes.iter_mut().for_each(|note| note.awaited = false);
    }

    /// Those of the pods whose nomination is about to be written, or is being written.
    fn nominations_under_way(
        &self,
        pods: impl Iterator<Item = Name>,
        wishes: &[(Name, Wish)],
    ) -> BTreeSet<Name> {
        let nominates = |wish: &Wish| matches!(wish, Wish::Promise { .. });
        let before = self.under_way.iter().filter(|write| write.awaited && nominates(&write.wish));
        let now = wishes.iter().filter(|(_, wish)| nominates(wish)).map(|(pod, _)| pod);
        let written: BTreeSet<&Name> = before.map(|write| &write.pod).chain(now).collect();
        pods.filter(|pod| written.contains(pod)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.notes.is_empty()
    }

    /// How long until the last of them is due.
    pub fn last_due(&self) -> Option<u64> {
        let notes = self.notes.iter().map(|note| note.due);
        self.under_way.iter().map(|write| write.due).chain(notes).max()
    }
}

impl Day<'_> {
    pub(super) fn execute(&mut self, plan: &Plan) {
        let engine = &self.engine;
        let named = |key: &Arc<str>| {
            let uid = engine.pod(key).map_or_else(String::new, |known| known.uid.to_string());
            (key.to_string(), uid)
        };
        let mut wishes: Vec<(Name, Wish)> = Vec::new();
        for bind in &plan.binds {
            let notes = plan.card_note(&bind.pod).to_vec();
            wishes.push((name(bind), Wish::Bind { node: bind.node.to_string(), notes }));
        }
        for Difference { key, uid, nomination } in self.writes.nominations.compare(engine, plan) {
            let wish = match nomination {
                Some((node, evicted)) => Wish::Promise { node, evicted },
                None => Wish::TakeBack,
            };
            wishes.push(((key, uid), wish));
        }
        let held = plan.eviction_groups.iter().map(|group| {
            let noted = plan.notes.iter().filter(|note| group.reserving.contains(&note.gang));
            Held {
                nominations: self
                    .writes
                    .nominations_under_way(group.nominated.iter().map(named), &wishes),
                groups: noted.map(group_name).collect(),
                victims: group
                    .evictions
                    .iter()
                    .map(|&at| name(&plan.evictions[at].place))
                    .collect(),
            }
        });
        let held: Vec<Held> = held.collect();
        let said = |update: &Update| {
            let uid = engine.gang(&update.gang)?.uid.to_string();
            Some((update.gang.to_string(), uid, update.status()?))
        };
        let groups: Vec<(String, String, PodGroupStatus)> =
            plan.updates.iter().filter_map(said).collect();
        let nominated = |note: &&CardNote| {
            let known = engine.pod(&note.pod);
            known.is_some_and(|known| matches!(known.standing, Standing::Nominated { .. }))
        };
        let notes: Vec<(Name, &CardNote)> =
            plan.card_notes.iter().filter(nominated).map(|note| (named(&note.pod), note)).collect();

        for (pod, wish) in wishes {
            self.replace_notes(&pod, &wish);
            self.send(pod, wish);
        }
        for ((key, uid), note) in notes {
            let event =
                self.world.change_known(&key, &uid, |pod| world::note(pod, &note.annotations));
            event.into_iter().for_each(|event| self.tell(event));
        }
        for note in &plan.notes {
            self.note(group_name(note), note.annotations.clone());
        }
        self.writes.held.extend(held);
        self.release_evictions();
        for (key, uid, status) in groups {
            let current =
                self.world.groups.get(&key).is_some_and(|group| group.metadata.uid == uid);
            if let Some(event) = current.then(|| self.world.report(&key, status)).flatten() {
                self.tell(event);
            }
        }
    }

    fn send(&mut self, pod: Name, wish: Wish) {
        let fate = self.dice.pick(&[
            (82, Fate::Arrives),
            (7, Fate::HalfKnown),
            (6, Fate::Refused),
            (5, Fate::Lost),
        ]);
        let fate = match (&wish, fate) {
            (Wish::TakeBack, Fate::Refused) => Fate::Lost,
            _ => fate,
        };
        match wish {
            Wish::Bind { .. } => self.history.binds += 1,
            Wish::Promise { .. } => self.history.nominations += 1,
            Wish::Evict => self.history.evictions += 1,
            Wish::TakeBack => {}
        }
        let due = self.step + self.dice.pick(&[(70, 0), (20, 1), (10, 4)]);
        self.writes.under_way.push(Write { due, pod, wish, fate, awaited: true });
    }

    /// Sends what is noted on a PodGroup, with what older notes say of other keys.
    fn note(&mut self, group: Name, mut annotations: Vec<(Cow<'static, str>, Option<String>)>) {
        let replaced = self.writes.notes.extract_if(.., |note| note.awaited && note.group == group);
        for (key, text) in replaced.flat_map(|note| note.annotations).collect::<Vec<_>>() {
            if annotations.iter().all(|(known, _)| *known != key) {
                annotations.push((key, text));
            }
        }
        let fate = self.dice.pick(&[(85, Fate::Arrives), (8, Fate::HalfKnown), (7, Fate::Lost)]);
        let due = self.step + self.dice.pick(&[(70, 0), (20, 1), (10, 4)]);
        self.writes.notes.push(Note { due, group, annotations, fate, awaited: true });
    }

    fn note_due(&mut self) {
        let due: Vec<Note> =
            self.writes.notes.extract_if(.., |note| note.due <= self.step).collect();
        for Note { group, annotations, fate, awaited, .. } in due {
            let there = self.world.groups.get(&group.0);
            let gone = there.is_none_or(|there| there.metadata.uid != group.1);
            if fate != Fate::Lost
                && let Some(event) = self.world.note_group(&group.0, &group.1, &annotations)
            {
                self.tell(event);
            }
            if awaited && (fate == Fate::Arrives || gone) {
                for held in &mut self.writes.held {
                    held.groups.remove(&group);
                }
                self.release_evictions();
            }
            self.history.lost += u64::from(fate == Fate::Lost);
            self.history.half_known += u64::from(fate == Fate::HalfKnown);
            if awaited && fate != Fate::Arrives && !gone {
                self.note(group, annotations);
            }
        }
    }

    /// What is still to be written on a pod is of the past. Who was to leave for a promise that is
    /// none any more stays.
    fn replace_notes(&mut self, pod: &Name, wish: &Wish) {
        self.writes
            .under_way
            .retain(|write| !(write.pod == *pod && write.wish.is_note() && write.awaited));
        if !matches!(wish, Wish::Promise { .. }) {
            self.stay(pod, "the nomination was released");
        }
    }

    /// Who was to leave for this pod's promise is not asked to.
    fn stay(&mut self, nomination: &Name, cause: &str) {
        let (gone, held) = std::mem::take(&mut self.writes.held)
            .into_iter()
            .partition(|held: &Held| held.nominations.contains(nomination));
        self.writes.held = held;
        let gone: Vec<Held> = gone;
        for (key, uid) in gone.into_iter().flat_map(|held| held.victims) {
            let at = self.world.now;
            self.tell(Event::EvictionRefused { key, uid, cause: cause.to_owned(), at });
        }
    }

    /// The server has a promise.
    fn acknowledge(&mut self, nomination: &Name) {
        for held in &mut self.writes.held {
            held.nominations.remove(nomination);
        }
        self.release_evictions();
    }

    fn release_evictions(&mut self) {
        let (free, held) = std::mem::take(&mut self.writes.held)
            .into_iter()
            .partition(|held: &Held| held.nominations.is_empty() && held.groups.is_empty());
        self.writes.held = held;
        let free: Vec<Held> = free;
        for victim in free.into_iter().flat_map(|held| held.victims) {
            self.send(victim, Wish::Evict);
        }
    }

    /// Writes that are due reach the server, or don't.
    pub(super) fn write_due(&mut self) {
        let (due, later) = std::mem::take(&mut self.writes.under_way)
            .into_iter()
            .partition(|w| w.due <= self.step);
        self.writes.under_way = later;
        let due: Vec<Write> = due;
        for write in due {
            self.write(write);
        }
        self.note_due();
    }

    fn write(&mut self, mut write: Write) {
        let failure = match write.fate {
            Fate::Arrives | Fate::HalfKnown => match self.arrive(&write) {
                Ok(event) => {
                    self.history.half_known += u64::from(write.fate == Fate::HalfKnown);
                    self.tell(event);
                    if write.awaited && write.fate == Fate::Arrives {
                        self.confirm(&write);
                        return;
                    }
                    None
                }
                Err(cause) => Some(cause),
            },
            Fate::Refused => Some("refused by admission".to_owned()),
            Fate::Lost => {
                self.history.lost += 1;
                Some("no answer".to_owned())
            }
            Fate::Look => {
                match self
                    .world
                    .pods
                    .get(&write.pod.0)
                    .filter(|pod| pod.metadata.uid == write.pod.1)
                {
                    Some(pod) if !write.wish.has_come_true(pod) => {
                        Some("it never arrived".to_owned())
                    }
                    Some(pod) => {
                        self.tell(Event::from(pod.clone()));
                        self.confirm(&write);
                        return;
                    }
                    None => {
                        let (key, uid) = write.pod.clone();
                        self.stay(&write.pod, "the pod is gone");
                        self.tell(Event::Gone { kind: Kind::Pod, key, uid });
                        return;
                    }
                }
            }
        };
        if !write.awaited {
            return;
        }
        let unknown = matches!(write.fate, Fate::HalfKnown | Fate::Lost);
        if unknown {
            write.due = self.step + 1 + self.dice.below(6);
            write.fate = Fate::Look;
            self.writes.under_way.push(write);
        } else if let Some(cause) = failure {
            self.refuse(write, cause);
        }
    }

    /// The scheduler knows that a write arrived.
    fn confirm(&mut self, write: &Write) {
        let (key, uid) = write.pod.clone();
        match &write.wish {
            Wish::Bind { node, .. } if write.fate == Fate::Arrives => {
                self.tell(Event::Bound { key, uid, node: node.clone() });
            }
            Wish::Promise { .. } => self.acknowledge(&write.pod),
            // An eviction that was taken is told by the watch alone.
            _ => {}
        }
    }

    fn refuse(&mut self, write: Write, cause: String) {
        let gone =
            self.world.pods.get(&write.pod.0).is_none_or(|pod| pod.metadata.uid != write.pod.1);
        let ((key, uid), at) = (write.pod.clone(), self.world.now);
        let event = match write.wish {
            Wish::Bind { .. } => Event::BindFailed { key, uid, cause, at },
            Wish::Evict => Event::EvictionRefused { key, uid, cause, at },
            Wish::Promise { .. } => {
                self.stay(&write.pod, &cause);
                Event::NominationRefused { key, uid, cause, at }
            }
            // Nobody refuses this for good.
            Wish::TakeBack => {
                if !gone {
                    self.send(write.pod, Wish::TakeBack);
                }
                return;
            }
        };
        self.history.refused += 1;
        self.tell(event);
    }

    fn arrive(&mut self, write: &Write) -> Result<Event, String> {
        let (key, uid) = (&write.pod.0, &write.pod.1);
        let gone = || "the pod is gone".to_owned();
        match &write.wish {
            Wish::Bind { node, notes } => self.world.bind(key, uid, node, notes),
            Wish::Promise { node, evicted } => {
                self.world.nomination(key, uid, node, *evicted).ok_or_else(gone)
            }
            Wish::TakeBack => self.world.take_back(key, uid).ok_or_else(gone),
            Wish::Evict => self.world.evict(key, uid),
        }
    }
}

fn name(place: &Placement) -> Name {
    (place.pod.to_string(), place.uid.to_string())
}

fn group_name(note: &GroupNote) -> Name {
    (note.gang.to_string(), note.uid.to_string())
}
