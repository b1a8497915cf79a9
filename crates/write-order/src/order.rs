//! Nominations and notes are written first, evictions after. For each object the newest write wins.
//! The evictions of a group are freed when everything that they wait for is written, and dropped if
//! one of these can't be written or is replaced by its end before. The engine then plans again.

use std::collections::{HashMap, VecDeque};

use muster_engine::plan;

use crate::write::{AnnotationWrite, ObjectName};

const RELEASED: &str = "the nomination was released";

/// Evictions for one preemptor, or of pods of one gang.
#[derive(Debug)]
pub struct EvictionGroup<E> {
    /// Objects that must say something first, whether that is written already or not.
    pub after: Vec<ObjectName>,
    pub evictions: Vec<E>,
}

impl<E> EvictionGroup<E> {
    /// A group of a plan; `eviction` makes one from its place in the plan.
    pub fn of(group: &plan::EvictionGroup, eviction: impl FnMut(usize) -> E) -> EvictionGroup<E> {
        let nominated = group.nominated.iter().map(|pod| ObjectName::Pod(pod.to_string()));
        let reserving = group.reserving.iter().map(|gang| ObjectName::PodGroup(gang.to_string()));
        EvictionGroup {
            after: nominated.chain(reserving).collect(),
            evictions: group.evictions.iter().copied().map(eviction).collect(),
        }
    }
}

/// What may go on now, and what the engine is to be told.
#[derive(Debug)]
pub struct Freed<E> {
    /// To be sent.
    pub evictions: Vec<E>,
    pub dropped: Vec<Dropped<E>>,
    pub refused: Vec<RefusedNomination>,
}

/// Evictions that must not be sent.
#[derive(Debug)]
pub struct Dropped<E> {
    pub evictions: Vec<E>,
    pub cause: String,
}

/// A nomination that can't be written.
#[derive(Debug)]
pub struct RefusedNomination {
    pub pod: String,
    pub uid: String,
    pub cause: String,
}

/// What came of a write.
#[derive(Debug)]
pub enum Outcome {
    Written,
    /// To be tried again, unless there is a newer write.
    Again,
    /// It can't be written, however often it is tried.
    Refused(String),
    /// We don't lead any more, and the next leader will write what is needed.
    NotLeading,
}

/// `E` is an eviction.
pub struct WriteOrder<E> {
    /// Objects in the order in which something was to be written on them.
    queue: VecDeque<ObjectName>,
    newest: HashMap<ObjectName, Queued>,
    /// Objects that are being written on, and the groups that wait for that.
    under_way: HashMap<ObjectName, Vec<u64>>,
    waiting: HashMap<u64, Waiting<E>>,
    count: u64,
    freed: Freed<E>,
}

struct Queued {
    write: AnnotationWrite,
    groups: Vec<u64>,
}

struct Waiting<E> {
    /// Writes that are not done yet.
    left: usize,
    evictions: Vec<E>,
}

impl<E> Default for Freed<E> {
    fn default() -> Freed<E> {
        Freed { evictions: Vec::new(), dropped: Vec::new(), refused: Vec::new() }
    }
}

impl<E> Default for WriteOrder<E> {
    fn default() -> WriteOrder<E> {
        WriteOrder {
            queue: VecDeque::new(),
            newest: HashMap::new(),
            under_way: HashMap::new(),
            waiting: HashMap::new(),
            count: 0,
            freed: Freed::default(),
        }
    }
}

impl<E> WriteOrder<E> {
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Writes that are queued or under way.
    pub fn len(&self) -> usize {
        self.newest.len() + self.under_way.len()
    }

    /// What may go on since this was last asked.
    pub fn take_freed(&mut self) -> Freed<E> {
        std::mem::take(&mut self.freed)
    }

    /// Something new is to be written on an object.
    pub fn write(&mut self, mut write: AnnotationWrite) {
        let object = write.object.clone();
        let mut groups = Vec::new();
        match self.newest.remove(&object) {
            Some(old) => {
                let same = old.write.uid == write.uid;
                write.replace(old.write);
                match write.desired.keeps_room() && same {
                    true => groups = old.groups,
                    false => self.drop_groups(old.groups, RELEASED),
                }
            }
            None if self.under_way.contains_key(&object) => {}
            None => self.queue.push_back(object.clone()),
        }
        self.newest.insert(object, Queued { write, groups });
    }

    /// Pods are to be evicted. What they wait for was asked to be written before.
    pub fn evict(&mut self, group: EvictionGroup<E>) {
        let id = self.count;
        self.count += 1;
        let mut left = 0;
        for object in group.after {
            let groups = match self.newest.get_mut(&object) {
                Some(queued) => Some(&mut queued.groups),
                None => self.under_way.get_mut(&object),
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

    /// A pod is about to be bound: its nomination needs no write any more. The end of one still
    /// does.
    pub fn bind(&mut self, pod: &str) {
        let object = ObjectName::Pod(pod.to_owned());
        if let Some(queued) = self.newest.remove(&object) {
            if queued.write.desired.keeps_room() {
                self.drop_groups(queued.groups, "the pod is bound already");
            } else {
                self.newest.insert(object, queued);
            }
        }
    }

    /// The next write to be sent. On each object one after the other.
    pub fn next_write(&mut self) -> Option<AnnotationWrite> {
        loop {
            let object = self.queue.pop_front()?;
            if self.under_way.contains_key(&object) {
                continue;
            }
            if let Some(Queued { write, groups }) = self.newest.remove(&object) {
                self.under_way.insert(object, groups);
                return Some(write);
            }
        }
    }

    /// What came of a write that was under way.
    pub fn done(&mut self, write: AnnotationWrite, outcome: Outcome) {
        let groups = self.under_way.remove(&write.object).unwrap_or_default();
        let object = write.object.clone();
        match outcome {
            Outcome::Written => groups.into_iter().for_each(|group| self.written(group)),
            Outcome::Again => self.again(write, groups),
            Outcome::Refused(cause) => {
                self.drop_groups(groups, &format!("a nomination could not be written: {cause}"));
                // What a PodGroup says needs no answer: no pod was evicted before it was written.
                if write.desired.keeps_room()
                    && !self.newest.contains_key(&object)
                    && let AnnotationWrite { object: ObjectName::Pod(pod), uid, .. } = write
                {
                    self.freed.refused.push(RefusedNomination { pod, uid, cause });
                }
            }
            Outcome::NotLeading => groups.iter().for_each(|group| drop(self.waiting.remove(group))),
        }
        if self.newest.contains_key(&object) {
            self.queue.push_back(object);
        }
    }

    fn again(&mut self, write: AnnotationWrite, groups: Vec<u64>) {
        let Some(newer) = self.newest.get_mut(&write.object) else {
            self.newest.insert(write.object.clone(), Queued { write, groups });
            return;
        };
        let same = newer.write.uid == write.uid;
        newer.write.replace(write);
        match newer.write.desired.keeps_room() && same {
            true => newer.groups.extend(groups),
            false => self.drop_groups(groups, RELEASED),
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

    fn drop_groups(&mut self, groups: Vec<u64>, cause: &str) {
        for group in groups {
            let Some(waiting) = self.waiting.remove(&group) else { continue };
            let (evictions, cause) = (waiting.evictions, cause.to_owned());
            self.freed.dropped.push(Dropped { evictions, cause });
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_api::keys::{RESERVATIONS, STALE_SINCE};
    use muster_engine::plan::GroupNote;

    use super::*;
    use crate::write::Desired;

    type Order = WriteOrder<String>;

    fn nomination(pod: &str, node: &str) -> AnnotationWrite {
        AnnotationWrite::pod(pod, &format!("{pod}-uid"), Desired::nomination(node, true, &[]))
    }

    fn end(pod: &str) -> AnnotationWrite {
        AnnotationWrite::pod(pod, &format!("{pod}-uid"), Desired::no_nomination([].into_iter()))
    }

    fn note(group: &str, uid: &str, pairs: &[(&'static str, Option<&str>)]) -> AnnotationWrite {
        let pairs = pairs.iter().map(|&(key, text)| (key.into(), text.map(ToOwned::to_owned)));
        let annotations = pairs.collect();
        AnnotationWrite::group(&GroupNote { gang: group.into(), uid: uid.into(), annotations })
    }

    fn group(nominated: &[&str], victims: &[&str]) -> EvictionGroup<String> {
        EvictionGroup {
            after: nominated.iter().map(|&pod| ObjectName::Pod(pod.to_owned())).collect(),
            evictions: victims.iter().map(ToString::to_string).collect(),
        }
    }

    /// What goes on since the last time.
    fn freed(order: &mut Order) -> String {
        let Freed { evictions, dropped, refused } = order.take_freed();
        let evictions = evictions.into_iter().map(|pod| format!("evict {pod}"));
        let dropped = dropped.into_iter().flat_map(|dropped| dropped.evictions);
        let dropped = dropped.map(|pod| format!("{pod} stays"));
        let refused = refused.into_iter().map(|refused| format!("{} refused", refused.pod));
        evictions.chain(dropped).chain(refused).collect::<Vec<_>>().join(", ")
    }

    fn node_of(write: &AnnotationWrite) -> &str {
        write.desired.nominated_node.as_deref().unwrap_or("nowhere")
    }

    #[test]
    fn evictions_wait_for_all_nominations_of_their_group_and_for_no_others() {
        let mut order = Order::default();
        for (pod, node) in [("a", "n1"), ("b", "n2"), ("c", "n3")] {
            order.write(nomination(pod, node));
        }
        order.evict(group(&["a", "b"], &["x", "y"]));
        order.evict(group(&["c"], &["z"]));
        // Its nomination was written long ago.
        order.evict(group(&["d"], &["w"]));
        assert_eq!(freed(&mut order), "evict w");
        let [a, b, c] = [(); 3].map(|()| order.next_write().expect("three nominations"));
        assert!(order.next_write().is_none());
        order.done(b, Outcome::Written);
        order.done(c, Outcome::Written);
        assert_eq!(freed(&mut order), "evict z");
        order.done(a, Outcome::Again);
        assert_eq!(freed(&mut order), "");
        let a = order.next_write().expect("it is tried again");
        order.done(a, Outcome::Written);
        assert_eq!(freed(&mut order), "evict x, evict y");
        assert!(order.is_empty());
    }

    #[test]
    fn a_nomination_that_cannot_be_written_evicts_no_pod() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.write(nomination("b", "n2"));
        order.evict(group(&["a", "b"], &["x", "y"]));
        let (a, b) = (order.next_write().expect("a"), order.next_write().expect("b"));
        order.done(a, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut order), "x stays, y stays, a refused");
        order.done(b, Outcome::Written);
        assert_eq!(freed(&mut order), "");
        assert!(order.is_empty());
    }

    #[test]
    fn a_replaced_nomination_ends_as_the_newer_one() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.evict(group(&["a"], &["x"]));
        let first = order.next_write().expect("a");
        order.write(nomination("a", "n2"));
        order.write(nomination("a", "n3"));
        order.evict(group(&["a"], &["y"]));
        assert!(order.next_write().is_none(), "one after the other on each pod");
        // The refused write is replaced already, but its evictions are dropped.
        order.done(first, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut order), "x stays");
        let last = order.next_write().expect("a");
        assert_eq!(node_of(&last), "n3");
        assert!(order.next_write().is_none());
        order.done(last, Outcome::Written);
        assert_eq!(freed(&mut order), "evict y");
        assert!(order.is_empty());
    }

    #[test]
    fn a_nomination_that_is_tried_again_gives_way_to_a_newer_one() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.evict(group(&["a"], &["x"]));
        let first = order.next_write().expect("a");
        order.write(nomination("a", "n2"));
        order.done(first, Outcome::Again);
        let last = order.next_write().expect("a");
        assert_eq!(node_of(&last), "n2");
        order.done(last, Outcome::Written);
        assert_eq!(freed(&mut order), "evict x");
        assert!(order.is_empty());
    }

    #[test]
    fn a_nomination_that_is_released_before_it_was_written_evicts_no_pod() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.evict(group(&["a"], &["x"]));
        order.write(end("a"));
        assert_eq!(freed(&mut order), "x stays");
        let last = order.next_write().expect("a");
        assert_eq!(node_of(&last), "nowhere");
        order.done(last, Outcome::Refused("no".to_owned()));
        assert_eq!(
            freed(&mut order),
            "",
            "the engine needn't know of an end that can't be written"
        );
        assert!(order.is_empty());
    }

    #[test]
    fn a_bind_makes_nominations_needless_but_not_their_ends() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.write(end("b"));
        order.evict(group(&["a"], &["x"]));
        order.bind("a");
        order.bind("b");
        assert_eq!(freed(&mut order), "x stays");
        // The pod is nominated again before the queue got so far.
        order.write(nomination("a", "n2"));
        let (a, b) = (order.next_write().expect("a"), order.next_write().expect("b"));
        assert_eq!((node_of(&a), node_of(&b)), ("n2", "nowhere"));
        order.write(nomination("a", "n3"));
        assert!(order.next_write().is_none(), "one after the other on each pod");
        order.done(a, Outcome::Written);
        order.done(b, Outcome::NotLeading);
        assert_eq!(node_of(&order.next_write().expect("a")), "n3");
    }

    #[test]
    fn a_pod_of_the_same_name_does_not_inherit_evictions() {
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.evict(group(&["a"], &["x"]));
        order.write(AnnotationWrite::pod("a", "new", Desired::nomination("n1", true, &[])));
        assert_eq!(freed(&mut order), "x stays");
    }

    #[test]
    fn notes_on_a_group_are_written_one_after_the_other_and_lose_nothing() {
        let texts = |write: &AnnotationWrite| {
            let pairs = write.desired.annotations.iter();
            pairs
                .map(|(key, text)| format!("{key}={}", text.as_deref().unwrap_or("none")))
                .collect::<Vec<_>>()
        };
        let mut order = Order::default();
        // A pod may have the group's name.
        order.write(nomination("a", "n1"));
        order.write(note("a", "u", &[("x", Some("1")), ("y", Some("1"))]));
        order.write(note("a", "u", &[("x", None)]));
        let (pod, first) =
            (order.next_write().expect("the pod"), order.next_write().expect("the group"));
        assert_eq!((pod.object.key(), texts(&first).join(" ")), ("a", "x=none y=1".to_owned()));
        order.write(note("a", "u", &[("y", Some("2"))]));
        assert!(order.next_write().is_none(), "one after the other");
        order.done(first, Outcome::Again);
        let second = order.next_write().expect("the group");
        assert_eq!(texts(&second), ["x=none", "y=2"]);
        // Another PodGroup of that name is told nothing of it.
        order.write(note("a", "other", &[("y", Some("3"))]));
        order.done(second, Outcome::Again);
        assert_eq!(texts(&order.next_write().expect("the group")), ["y=3"]);
    }

    #[test]
    fn no_pod_moves_before_its_podgroup_says_what_is_reserved() {
        let note = |key, text| note("ring", "u", &[(key, text)]);
        let moves = |victim: &str| {
            let mut group = group(&["a"], &[victim]);
            group.after.push(ObjectName::PodGroup("ring".to_owned()));
            group
        };
        let mut order = Order::default();
        order.write(nomination("a", "n1"));
        order.write(note(RESERVATIONS, Some("[]")));
        order.evict(moves("x"));
        // Another annotation of the PodGroup changes nothing.
        order.write(note(STALE_SINCE, None));
        let (a, group) = (order.next_write().expect("a"), order.next_write().expect("the group"));
        order.done(a, Outcome::Written);
        assert_eq!(freed(&mut order), "");
        order.done(group, Outcome::Written);
        assert_eq!(freed(&mut order), "evict x");

        order.write(note(RESERVATIONS, Some("[]")));
        order.evict(moves("y"));
        order.write(note(RESERVATIONS, None));
        assert_eq!(freed(&mut order), "y stays");
        order.write(note(RESERVATIONS, Some("[]")));
        order.evict(moves("z"));
        let group = order.next_write().expect("the group");
        order.done(group, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut order), "z stays", "and the engine hears of nothing else");
        assert!(order.is_empty());
    }
}
