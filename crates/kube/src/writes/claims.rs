//! Promises and notes first, evictions after. For each object the newest wins; the evictions of a
//! claim go out when every promise of it was taken by the API server, and not at all if one of them
//! can't be written or is taken back before. Then the engine hears that nobody was asked to leave,
//! and plans anew.

use std::collections::{HashMap, VecDeque};

use muster_engine::Event;
use tracing::info;

use super::evict::Evict;
use super::promise::{Bearer, Outcome, Promise};
use crate::clock::wall_clock;

const TAKEN_BACK: &str = "the promise was taken back";

/// Pods that leave for the sake of a gang, once all of its pods have their promises, and the
/// PodGroups of those that leave say what is kept for their successors.
#[derive(Debug)]
pub struct Claim {
    /// Objects with a promise or a note, written or not.
    pub promised: Vec<Bearer>,
    pub evictions: Vec<Evict>,
}

/// What may go on now, and what the engine is to be told.
#[derive(Default)]
pub struct Freed {
    pub evictions: Vec<Evict>,
    pub events: Vec<Event>,
}

#[derive(Default)]
pub struct Claims {
    /// Objects in the order in which something was to be written on them.
    queue: VecDeque<Bearer>,
    newest: HashMap<Bearer, Queued>,
    /// Those that are being written on, and the claims that wait for it.
    under_way: HashMap<Bearer, Vec<u64>>,
    waiting: HashMap<u64, Waiting>,
    count: u64,
    pub freed: Freed,
}

struct Queued {
    promise: Promise,
    claims: Vec<u64>,
}

struct Waiting {
    /// Promises that are not written yet.
    left: usize,
    evictions: Vec<Evict>,
}

impl Claims {
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.under_way.is_empty() && self.waiting.is_empty()
    }

    /// Promises that are queued or under way.
    pub fn len(&self) -> usize {
        self.newest.len() + self.under_way.len()
    }

    /// Something new is to be written on an object.
    pub fn promise(&mut self, mut promise: Promise) {
        let bearer = promise.bearer.clone();
        let mut claims = Vec::new();
        match self.newest.remove(&bearer) {
            Some(old) => {
                let same = old.promise.uid == promise.uid;
                promise.replace(old.promise);
                match promise.wish.promises() && same {
                    true => claims = old.claims,
                    false => self.give_up(old.claims, TAKEN_BACK),
                }
            }
            None if self.under_way.contains_key(&bearer) => {}
            None => self.queue.push_back(bearer.clone()),
        }
        self.newest.insert(bearer, Queued { promise, claims });
    }

    /// Others are to leave for the sake of pods whose promises were taken before.
    pub fn claim(&mut self, claim: Claim) {
        let id = self.count;
        self.count += 1;
        let mut left = 0;
        for bearer in claim.promised {
            let claims = match self.newest.get_mut(&bearer) {
                Some(queued) => Some(&mut queued.claims),
                None => self.under_way.get_mut(&bearer),
            };
            if let Some(claims) = claims {
                claims.push(id);
                left += 1;
            }
        }
        match left {
            0 => self.freed.evictions.extend(claim.evictions),
            _ => drop(self.waiting.insert(id, Waiting { left, evictions: claim.evictions })),
        }
    }

    /// A pod is about to be bound: what it was promised is of no interest any more. That a promise
    /// ends still is.
    pub fn bind(&mut self, pod: &str) {
        let bearer = Bearer::Pod(pod.to_owned());
        if let Some(queued) = self.newest.remove(&bearer) {
            if queued.promise.wish.promises() {
                self.give_up(queued.claims, "the pod is bound already");
            } else {
                self.newest.insert(bearer, queued);
            }
        }
    }

    /// The next promise to be written. On each object one after the other.
    pub fn next(&mut self) -> Option<Promise> {
        loop {
            let bearer = self.queue.pop_front()?;
            if self.under_way.contains_key(&bearer) {
                continue;
            }
            if let Some(Queued { promise, claims }) = self.newest.remove(&bearer) {
                self.under_way.insert(bearer, claims);
                return Some(promise);
            }
        }
    }

    /// What came of the write that was under way.
    pub fn done(&mut self, promise: Promise, outcome: Outcome) {
        let claims = self.under_way.remove(&promise.bearer).unwrap_or_default();
        let bearer = promise.bearer.clone();
        match outcome {
            Outcome::Written => claims.into_iter().for_each(|claim| self.written(claim)),
            Outcome::Again => match self.newest.get_mut(&bearer) {
                Some(newer) => {
                    let same = newer.promise.uid == promise.uid;
                    newer.promise.replace(promise);
                    match newer.promise.wish.promises() && same {
                        true => newer.claims.extend(claims),
                        false => self.give_up(claims, TAKEN_BACK),
                    }
                }
                None => drop(self.newest.insert(bearer.clone(), Queued { promise, claims })),
            },
            Outcome::Refused(cause) => {
                self.give_up(claims, &format!("a promise could not be written: {cause}"));
                // Of a gang's PodGroup the engine needs no answer: nobody has left for what isn't
                // noted.
                if promise.wish.promises()
                    && !self.newest.contains_key(&bearer)
                    && let Promise { bearer: Bearer::Pod(key), uid, .. } = promise
                {
                    self.freed.events.push(Event::NominationRefused {
                        key,
                        uid,
                        cause,
                        at: wall_clock(),
                    });
                }
            }
            Outcome::Deposed => claims.iter().for_each(|claim| drop(self.waiting.remove(claim))),
        }
        if self.newest.contains_key(&bearer) {
            self.queue.push_back(bearer);
        }
    }

    fn written(&mut self, claim: u64) {
        let Some(waiting) = self.waiting.get_mut(&claim) else { return };
        waiting.left -= 1;
        if waiting.left == 0
            && let Some(waiting) = self.waiting.remove(&claim)
        {
            self.freed.evictions.extend(waiting.evictions);
        }
    }

    /// Nobody leaves for these.
    fn give_up(&mut self, claims: Vec<u64>, cause: &str) {
        for claim in claims {
            let Some(waiting) = self.waiting.remove(&claim) else { continue };
            info!(pods = waiting.evictions.len(), cause, "pods that were to leave stay");
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
    use crate::promises::Wish;

    fn promise(pod: &str, node: &str) -> Promise {
        Promise::new(pod.to_owned(), format!("{pod}-uid"), Wish::promise(node, true, &[]))
    }

    fn end(pod: &str) -> Promise {
        Promise::new(pod.to_owned(), format!("{pod}-uid"), Wish::nothing([].into_iter()))
    }

    fn claim(promised: &[&str], victims: &[&str]) -> Claim {
        let evict = |&pod: &&str| Evict {
            pod: pod.to_owned(),
            uid: format!("{pod}-uid"),
            method: Method::default(),
        };
        Claim {
            promised: promised.iter().map(|&pod| Bearer::Pod(pod.to_owned())).collect(),
            evictions: victims.iter().map(evict).collect(),
        }
    }

    /// What goes on since the last time: evictions by name, events by kind and name.
    fn freed(claims: &mut Claims) -> String {
        let Freed { evictions, events } = std::mem::take(&mut claims.freed);
        let evictions = evictions.iter().map(|evict| format!("evict {}", evict.pod));
        let events = events.iter().map(|event| match event {
            Event::EvictionRefused { key, .. } => format!("{key} stays"),
            Event::NominationRefused { key, .. } => format!("{key} refused"),
            other => format!("{other:?}"),
        });
        evictions.chain(events).collect::<Vec<_>>().join(", ")
    }

    fn node_of(promise: &Promise) -> &str {
        promise.wish.nominated.as_deref().unwrap_or("nowhere")
    }

    #[test]
    fn evictions_wait_for_all_promises_of_their_claim_and_for_no_others() {
        let mut claims = Claims::default();
        for (pod, node) in [("a", "n1"), ("b", "n2"), ("c", "n3")] {
            claims.promise(promise(pod, node));
        }
        claims.claim(claim(&["a", "b"], &["x", "y"]));
        claims.claim(claim(&["c"], &["z"]));
        // Its promises were written long ago.
        claims.claim(claim(&["d"], &["w"]));
        assert_eq!(freed(&mut claims), "evict w");
        let [a, b, c] = [(); 3].map(|()| claims.next().expect("three promises"));
        assert!(claims.next().is_none());
        claims.done(b, Outcome::Written);
        claims.done(c, Outcome::Written);
        assert_eq!(freed(&mut claims), "evict z");
        claims.done(a, Outcome::Again);
        assert_eq!(freed(&mut claims), "");
        let a = claims.next().expect("it is tried again");
        claims.done(a, Outcome::Written);
        assert_eq!(freed(&mut claims), "evict x, evict y");
        assert!(claims.is_empty());
    }

    #[test]
    fn a_promise_that_cannot_be_written_evicts_nobody() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.promise(promise("b", "n2"));
        claims.claim(claim(&["a", "b"], &["x", "y"]));
        let (a, b) = (claims.next().expect("a"), claims.next().expect("b"));
        claims.done(a, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut claims), "x stays, y stays, a refused");
        claims.done(b, Outcome::Written);
        assert_eq!(freed(&mut claims), "");
        assert!(claims.is_empty());
    }

    #[test]
    fn a_replaced_promise_ends_as_the_newer_one() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.claim(claim(&["a"], &["x"]));
        let first = claims.next().expect("a");
        claims.promise(promise("a", "n2"));
        claims.promise(promise("a", "n3"));
        claims.claim(claim(&["a"], &["y"]));
        assert!(claims.next().is_none(), "one after the other on each pod");
        // What was refused is of no interest any more; who was to leave for it stays.
        claims.done(first, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut claims), "x stays");
        let last = claims.next().expect("a");
        assert_eq!(node_of(&last), "n3");
        assert!(claims.next().is_none());
        claims.done(last, Outcome::Written);
        assert_eq!(freed(&mut claims), "evict y");
        assert!(claims.is_empty());
    }

    #[test]
    fn a_promise_that_is_tried_again_gives_way_to_a_newer_one() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.claim(claim(&["a"], &["x"]));
        let first = claims.next().expect("a");
        claims.promise(promise("a", "n2"));
        claims.done(first, Outcome::Again);
        let last = claims.next().expect("a");
        assert_eq!(node_of(&last), "n2");
        claims.done(last, Outcome::Written);
        assert_eq!(freed(&mut claims), "evict x");
        assert!(claims.is_empty());
    }

    #[test]
    fn a_promise_that_is_taken_back_before_it_was_written_evicts_nobody() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.claim(claim(&["a"], &["x"]));
        claims.promise(end("a"));
        assert_eq!(freed(&mut claims), "x stays");
        let last = claims.next().expect("a");
        assert_eq!(node_of(&last), "nowhere");
        claims.done(last, Outcome::Refused("no".to_owned()));
        assert_eq!(
            freed(&mut claims),
            "",
            "the engine needn't know of an end that can't be written"
        );
        assert!(claims.is_empty());
    }

    #[test]
    fn a_bind_makes_promises_vain_but_not_their_ends() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.promise(end("b"));
        claims.claim(claim(&["a"], &["x"]));
        claims.bind("a");
        claims.bind("b");
        assert_eq!(freed(&mut claims), "x stays");
        // The pod is promised something again before the queue got so far.
        claims.promise(promise("a", "n2"));
        let (a, b) = (claims.next().expect("a"), claims.next().expect("b"));
        assert_eq!((node_of(&a), node_of(&b)), ("n2", "nowhere"));
        claims.promise(promise("a", "n3"));
        assert!(claims.next().is_none(), "one after the other on each pod");
        claims.done(a, Outcome::Written);
        claims.done(b, Outcome::Deposed);
        assert_eq!(node_of(&claims.next().expect("a")), "n3");
    }

    #[test]
    fn a_pod_of_the_same_name_does_not_inherit_a_claim() {
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.claim(claim(&["a"], &["x"]));
        claims.promise(Promise::new(
            "a".to_owned(),
            "new".to_owned(),
            Wish::promise("n1", true, &[]),
        ));
        assert_eq!(freed(&mut claims), "x stays");
    }

    #[test]
    fn notes_on_a_group_are_written_one_after_the_other_and_lose_nothing() {
        let note = |uid: &str, pairs: &[(&'static str, Option<&str>)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|&(key, text)| (key, text.map(ToOwned::to_owned))).collect();
            Promise::note("a".to_owned(), uid.to_owned(), &pairs)
        };
        let texts = |promise: &Promise| {
            let pairs = promise.wish.annotations.iter();
            pairs
                .map(|(key, text)| format!("{key}={}", text.as_deref().unwrap_or("none")))
                .collect::<Vec<_>>()
        };
        let mut claims = Claims::default();
        // A pod may have the group's name.
        claims.promise(promise("a", "n1"));
        claims.promise(note("u", &[("x", Some("1")), ("y", Some("1"))]));
        claims.promise(note("u", &[("x", None)]));
        let (pod, first) = (claims.next().expect("the pod"), claims.next().expect("the group"));
        assert_eq!((pod.bearer.key(), texts(&first).join(" ")), ("a", "x=none y=1".to_owned()));
        claims.promise(note("u", &[("y", Some("2"))]));
        assert!(claims.next().is_none(), "one after the other");
        claims.done(first, Outcome::Again);
        let second = claims.next().expect("the group");
        assert_eq!(texts(&second), ["x=none", "y=2"]);
        // One that took the group's place is told nothing of it.
        claims.promise(note("other", &[("y", Some("3"))]));
        claims.done(second, Outcome::Again);
        assert_eq!(texts(&claims.next().expect("the group")), ["y=3"]);
    }

    #[test]
    fn nobody_moves_before_his_group_says_what_is_kept_for_him() {
        let note = |key: &'static str, text: Option<&str>| {
            Promise::note("ring".to_owned(), "u".to_owned(), &[(key, text.map(ToOwned::to_owned))])
        };
        let moves = |victim: &str| {
            let mut claim = claim(&["a"], &[victim]);
            claim.promised.push(Bearer::Group("ring".to_owned()));
            claim
        };
        let mut claims = Claims::default();
        claims.promise(promise("a", "n1"));
        claims.promise(note(RESERVATIONS, Some("[]")));
        claims.claim(moves("x"));
        // What else is noted of the gang changes nothing.
        claims.promise(note(STALE_SINCE, None));
        let (a, group) = (claims.next().expect("a"), claims.next().expect("the group"));
        claims.done(a, Outcome::Written);
        assert_eq!(freed(&mut claims), "");
        claims.done(group, Outcome::Written);
        assert_eq!(freed(&mut claims), "evict x");

        claims.promise(note(RESERVATIONS, Some("[]")));
        claims.claim(moves("y"));
        claims.promise(note(RESERVATIONS, None));
        assert_eq!(freed(&mut claims), "y stays");
        claims.promise(note(RESERVATIONS, Some("[]")));
        claims.claim(moves("z"));
        let group = claims.next().expect("the group");
        claims.done(group, Outcome::Refused("no".to_owned()));
        assert_eq!(freed(&mut claims), "z stays", "and the engine hears of nothing else");
        assert!(claims.is_empty());
    }
}
