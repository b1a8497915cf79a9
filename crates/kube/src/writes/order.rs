//! Nominations and notes first, evictions after. For each object the newest write wins. The
//! evictions of a group are sent once the API server has accepted every nomination of the group,
//! and not at all if one of these can't be written or ends before. Then the engine hears that the
//! pods were not evicted, and plans anew.

use std::collections::{HashMap, VecDeque};

use muster_engine::Event;
use tracing::info;

use super::evict::Evict;
use super::nomination::{Bearer, NominationWrite, Outcome};
use crate::clock::wall_clock;

const RELEASED: &str = "the nomination was released";

/// Pods to evict for a gang, once all of its pods have their nominations, and once the PodGroups of
/// the victims have the reservations for their successors.
#[derive(Debug)]
pub struct EvictionGroup {
    /// Objects with a nomination or a note, written or not.
    pub nominated: Vec<Bearer>,
    pub evictions: Vec<Evict>,
}

/// Evictions that may be sent now, and events for the engine.
#[derive(Default)]
pub struct Freed {
    pub evictions: Vec<Evict>,
    pub events: Vec<Event>,
}

#[derive(Default)]
pub struct WriteOrder {
    /// Objects in the order of their first unwritten change.
    queue: VecDeque<Bearer>,
    newest: HashMap<Bearer, Queued>,
    /// Objects with a write under way, and the groups that wait for it.
    under_way: HashMap<Bearer, Vec<u64>>,
    waiting: HashMap<u64, Waiting>,
    count: u64,
    pub freed: Freed,
}

struct Queued {
    nomination: NominationWrite,
    groups: Vec<u64>,
}

struct Waiting {
    /// Nominations that are not written yet.
    left: usize,
    evictions: Vec<Evict>,
}

impl WriteOrder {
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Nominations that are queued or under way.
    pub fn len(&self) -> usize {
        self.newest.len() + self.under_way.len()
    }

    /// An object has something new to write.
    pub fn nomination(&mut self, mut nomination: NominationWrite) {
        let bearer = nomination.bearer.clone();
        let mut groups = Vec::new();
        match self.newest.remove(&bearer) {
            Some(old) => {
                let same = old.nomination.uid == nomination.uid;
                nomination.replace(old.nomination);
                match nomination.patch.keeps_room() && same {
                    true => groups = old.groups,
                    false => self.give_up(old.groups, RELEASED),
                }
            }
            None if self.under_way.contains_key(&bearer) => {}
            None => self.queue.push_back(bearer.clone()),
        }
        self.newest.insert(bearer, Queued { nomination, groups });
    }

    /// Pods are to be evicted for nominations that were added before.
    pub fn group(&mut self, group: EvictionGroup) {
        let id = self.count;
        self.count += 1;
        let mut left = 0;
        for bearer in group.nominated {
            let groups = match self.newest.get_mut(&bearer) {
                Some(queued) => Some(&mut queued.groups),
                None => self.under_way.get_mut(&bearer),
            };
            if let Some(groups) = groups {
                groups.push(id);
                left += 1;
            }
        }
        match left {
            0 => self.freed.evictions.extend(group.evictions),
            _ => drop(self.waiting.insert(id, Waiting { left, evictions: group.evictions })),
        }
    }

    /// A pod is about to be bound: an unwritten nomination is not needed any more. The removal of
    /// one still is.
    pub fn bind(&mut self, pod: &str) {
        let bearer = Bearer::Pod(pod.to_owned());
        if let Some(queued) = self.newest.remove(&bearer) {
            if queued.nomination.patch.keeps_room() {
                self.give_up(queued.groups, "the pod is bound already");
            } else {
                self.newest.insert(bearer, queued);
            }
        }
    }

    /// The next nomination to write. Writes on one object are sent one after the other.
    pub fn next(&mut self) -> Option<NominationWrite> {
        loop {
            let bearer = self.queue.pop_front()?;
            if self.under_way.contains_key(&bearer) {
                continue;
            }
            if let Some(Queued { nomination, groups }) = self.newest.remove(&bearer) {
                self.under_way.insert(bearer, groups);
                return Some(nomination);
            }
        }
    }

    /// The outcome of a write.
    pub fn done(&mut self, nomination: NominationWrite, outcome: Outcome) {
        let groups = self.under_way.remove(&nomination.bearer).unwrap_or_default();
        let bearer = nomination.bearer.clone();
        match outcome {
            Outcome::Written => groups.into_iter().for_each(|group| self.written(group)),
            Outcome::Again => match self.newest.get_mut(&bearer) {
                Some(newer) => {
                    let same = newer.nomination.uid == nomination.uid;
                    newer.nomination.replace(nomination);
                    match newer.nomination.patch.keeps_room() && same {
                        true => newer.groups.extend(groups),
                        false => self.give_up(groups, RELEASED),
                    }
                }
                None => drop(self.newest.insert(bearer.clone(), Queued { nomination, groups })),
            },
            Outcome::Refused(cause) => {
                self.give_up(groups, &format!("a nomination could not be written: {cause}"));
                // A refused note on a PodGroup needs no answer: no pod was evicted for it.
                if nomination.patch.keeps_room()
                    && !self.newest.contains_key(&bearer)
                    && let NominationWrite { bearer: Bearer::Pod(key), uid, .. } = nomination
                {
                    self.freed.events.push(Event::NominationRefused {
                        key,
                        uid,
                        cause,
                        at: wall_clock(),
                    });
                }
            }
            Outcome::Deposed => groups.iter().for_each(|group| drop(self.waiting.remove(group))),
        }
        if self.newest.contains_key(&bearer) {
            self.queue.push_back(bearer);
        }
    }

    fn written(&mut self, group: u64) {
        let Some(waiting) = self.waiting.get_mut(&group) else { return };
        waiting.left -= 1;
        if waiting.left == 0
            && let Some(waiting) = self.waiting.remove(&group)
        {
            self.freed.evictions.extend(waiting.evictions);
        }
    }

    /// These groups evict no pods.
    fn give_up(&mut self, groups: Vec<u64>, cause: &str) {
        for group in groups {
            let Some(waiting) = self.waiting.remove(&group) else { continue };
            info!(pods = waiting.evictions.len(), cause, "planned evictions are dropped");
            self.freed.events.extend(waiting.evictions.into_iter().map(|evict| {
                Event::EvictionRefused {
                    key: evict.pod,
                    uid: evict.uid,
                    cause: cause.to_owned(),
                    at: wall_clock(),
                }
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_api::keys::{RESERVATIONS, STALE_SINCE};
    use muster_engine::Method;

    use super::*;
    use crate::nominations::NominationPatch;

    fn nomination(pod: &str, node: &str) -> NominationWrite {
        NominationWrite::new(
            pod.to_owned(),
            format!("{pod}-uid"),
            NominationPatch::nomination(node, true, &[]),
        )
    }

    fn end(pod: &str) -> NominationWrite {
        NominationWrite::new(
            pod.to_owned(),
            format!("{pod}-uid"),
            NominationPatch::removal([].into_iter()),
        )
    }

    fn group(nominated: &[&str], victims: &[&str]) -> EvictionGroup {
        let evict = |&pod: &&str| Evict {
            pod: pod.to_owned(),
            uid: format!("{pod}-uid"),
            method: Method::default(),
        };
        EvictionGroup {
            nominated: nominated.iter().map(|&pod| Bearer::Pod(pod.to_owned())).collect(),
            evictions: victims.iter().map(evict).collect(),
        }
    }

    /// What was freed since the last call: evictions by name, events by kind and name.
    fn freed(groups: &mut WriteOrder) -> String {
        let Freed { evictions, events } = std::mem::take(&mut groups.freed);
        let evictions = evictions.iter().map(|evict| format!("evict {}", evict.pod));
        let events = events.iter().map(|event| match event {
            Event::EvictionRefused { key, .. } => format!("{key} stays"),
            Event::NominationRefused { key, .. } => format!("{key} refused"),
            other => format!("{other:?}"),
        });
        evictions.chain(events).collect::<Vec<_>>().join(", ")
    }

    fn node_of(nomination: &NominationWrite) -> &str {
        nomination.patch.nominated.as_deref().unwrap_or("nowhere")
    }

    #[test]
    fn evictions_wait_for_all_nominations_of_their_group_and_no_others() {
        let mut groups = WriteOrder::default();
        for (pod, node) in [("a", "n1"), ("b", "n2"), ("c", "n3")] {
            groups.nomination(nomination(pod, node));
        }
        groups.group(group(&["a", "b"], &["x", "y"]));
        groups.group(group(&["c"], &["z"]));
        // Its nominations were written long ago.
        groups.group(group(&["d"], &["w"]));
        assert_eq!(freed(&mut groups), "evict w");
        let [a, b, c] = [(); 3].map(|()| groups.next().expect("three nominations"));
        assert!(groups.next().is_none());
        groups.done(b, Outcome::Written);
        groups.done(c, Outcome::Written);
        assert_eq!(freed(&mut groups), "evict z");
        groups.done(a, Outcome::Again);
        assert_eq!(freed(&mut groups), "");
        let a = groups.next().expect("it is tried again");
        groups.done(a, Outcome::Written);
        assert_eq!(freed(&mut groups), "evict x, evict y");
        assert!(groups.is_empty());
    }

    #[test]
    fn a_nomination_that_cannot_be_written_evicts_no_pod() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.nomination(nomination("b", "n2"));
        groups.group(group(&["a", "b"], &["x", "y"]));
        let (a, b) = (groups.next().expect("a"), groups.next().expect("b"));
        groups.done(a, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut groups), "x stays, y stays, a refused");
        groups.done(b, Outcome::Written);
        assert_eq!(freed(&mut groups), "");
        assert!(groups.is_empty());
    }

    #[test]
    fn a_replaced_nomination_has_the_outcome_of_the_newer_one() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.group(group(&["a"], &["x"]));
        let first = groups.next().expect("a");
        groups.nomination(nomination("a", "n2"));
        groups.nomination(nomination("a", "n3"));
        groups.group(group(&["a"], &["y"]));
        assert!(groups.next().is_none(), "one after the other on each pod");
        // Nothing is said about the refused write, which was replaced; the eviction that waited for
        // it is dropped.
        groups.done(first, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut groups), "x stays");
        let last = groups.next().expect("a");
        assert_eq!(node_of(&last), "n3");
        assert!(groups.next().is_none());
        groups.done(last, Outcome::Written);
        assert_eq!(freed(&mut groups), "evict y");
        assert!(groups.is_empty());
    }

    #[test]
    fn a_retried_nomination_yields_to_a_newer_one() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.group(group(&["a"], &["x"]));
        let first = groups.next().expect("a");
        groups.nomination(nomination("a", "n2"));
        groups.done(first, Outcome::Again);
        let last = groups.next().expect("a");
        assert_eq!(node_of(&last), "n2");
        groups.done(last, Outcome::Written);
        assert_eq!(freed(&mut groups), "evict x");
        assert!(groups.is_empty());
    }

    #[test]
    fn a_nomination_that_ends_before_it_was_written_evicts_no_pod() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.group(group(&["a"], &["x"]));
        groups.nomination(end("a"));
        assert_eq!(freed(&mut groups), "x stays");
        let last = groups.next().expect("a");
        assert_eq!(node_of(&last), "nowhere");
        groups.done(last, Outcome::Refused("no".to_owned()));
        assert_eq!(
            freed(&mut groups),
            "",
            "the engine needn't know of an end that can't be written"
        );
        assert!(groups.is_empty());
    }

    #[test]
    fn a_bind_cancels_nominations_but_not_their_removal() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.nomination(end("b"));
        groups.group(group(&["a"], &["x"]));
        groups.bind("a");
        groups.bind("b");
        assert_eq!(freed(&mut groups), "x stays");
        // The pod is nominated again before its turn in the queue.
        groups.nomination(nomination("a", "n2"));
        let (a, b) = (groups.next().expect("a"), groups.next().expect("b"));
        assert_eq!((node_of(&a), node_of(&b)), ("n2", "nowhere"));
        groups.nomination(nomination("a", "n3"));
        assert!(groups.next().is_none(), "one after the other on each pod");
        groups.done(a, Outcome::Written);
        groups.done(b, Outcome::Deposed);
        assert_eq!(node_of(&groups.next().expect("a")), "n3");
    }

    #[test]
    fn a_pod_of_the_same_name_does_not_inherit_evictions() {
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.group(group(&["a"], &["x"]));
        groups.nomination(NominationWrite::new(
            "a".to_owned(),
            "new".to_owned(),
            NominationPatch::nomination("n1", true, &[]),
        ));
        assert_eq!(freed(&mut groups), "x stays");
    }

    #[test]
    fn notes_on_a_group_are_written_in_order_and_none_is_lost() {
        let note = |uid: &str, pairs: &[(&'static str, Option<&str>)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|&(key, text)| (key, text.map(ToOwned::to_owned))).collect();
            NominationWrite::note("a".to_owned(), uid.to_owned(), &pairs)
        };
        let texts = |nomination: &NominationWrite| {
            let pairs = nomination.patch.annotations.iter();
            pairs
                .map(|(key, text)| format!("{key}={}", text.as_deref().unwrap_or("none")))
                .collect::<Vec<_>>()
        };
        let mut groups = WriteOrder::default();
        // A pod may have the group's name.
        groups.nomination(nomination("a", "n1"));
        groups.nomination(note("u", &[("x", Some("1")), ("y", Some("1"))]));
        groups.nomination(note("u", &[("x", None)]));
        let (pod, first) = (groups.next().expect("the pod"), groups.next().expect("the group"));
        assert_eq!((pod.bearer.key(), texts(&first).join(" ")), ("a", "x=none y=1".to_owned()));
        groups.nomination(note("u", &[("y", Some("2"))]));
        assert!(groups.next().is_none(), "one after the other");
        groups.done(first, Outcome::Again);
        let second = groups.next().expect("the group");
        assert_eq!(texts(&second), ["x=none", "y=2"]);
        // A new group of the same name gets none of the old one's keys.
        groups.nomination(note("other", &[("y", Some("3"))]));
        groups.done(second, Outcome::Again);
        assert_eq!(texts(&groups.next().expect("the group")), ["y=3"]);
    }

    #[test]
    fn a_pod_is_only_moved_after_its_reservation_is_written() {
        let note = |key: &'static str, text: Option<&str>| {
            NominationWrite::note(
                "ring".to_owned(),
                "u".to_owned(),
                &[(key, text.map(ToOwned::to_owned))],
            )
        };
        let moves = |victim: &str| {
            let mut group = group(&["a"], &[victim]);
            group.nominated.push(Bearer::Group("ring".to_owned()));
            group
        };
        let mut groups = WriteOrder::default();
        groups.nomination(nomination("a", "n1"));
        groups.nomination(note(RESERVATIONS, Some("[]")));
        groups.group(moves("x"));
        // Other notes on the group do not matter.
        groups.nomination(note(STALE_SINCE, None));
        let (a, group) = (groups.next().expect("a"), groups.next().expect("the group"));
        groups.done(a, Outcome::Written);
        assert_eq!(freed(&mut groups), "");
        groups.done(group, Outcome::Written);
        assert_eq!(freed(&mut groups), "evict x");

        groups.nomination(note(RESERVATIONS, Some("[]")));
        groups.group(moves("y"));
        groups.nomination(note(RESERVATIONS, None));
        assert_eq!(freed(&mut groups), "y stays");
        groups.nomination(note(RESERVATIONS, Some("[]")));
        groups.group(moves("z"));
        let group = groups.next().expect("the group");
        groups.done(group, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut groups), "z stays", "and the engine hears of nothing else");
        assert!(groups.is_empty());
    }
}
