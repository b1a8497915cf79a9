//! Which faults hit which requests. The random choice depends on the address and how often it was
//! requested, so that the same pods have the same fate whatever the order of requests.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Method;
use tokio::sync::watch;

/// What is done to a request instead of passing it on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The answer is an error with this code, and the server does not see the request.
    Refuse(u16),
    /// The connection ends without an answer, and the server does not see the request.
    Lose,
    /// The server executes the request, and the connection ends without an answer: the client can't
    /// know.
    Swallow,
    /// There is never an answer; the server may have seen the request or not.
    Hang {
        forwarded: bool,
    },
    /// The server sees the request when the rule is removed, not before.
    Hold,
    Delay(Duration),
    /// A watch breaks after this many events.
    Break {
        after: usize,
    },
    /// A watch is told that its resource version has expired.
    Expire,
}

/// A request, as rules see it.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub body: Bytes,
}

impl Ask {
    pub fn is_bind(&self) -> bool {
        self.method == Method::POST && self.path.ends_with("/binding")
    }

    pub fn is_eviction(&self) -> bool {
        self.method == Method::POST && self.path.ends_with("/eviction")
    }

    /// The path is that of a pod, PodGroup or queue.
    pub fn is_status(&self) -> bool {
        self.method == Method::PATCH && !self.is_lease()
    }

    pub fn is_watch(&self) -> bool {
        self.query.contains("watch=")
    }

    /// The path is that of all objects of a kind, for example `pods`.
    pub fn is_list(&self, kind: &str) -> bool {
        self.method == Method::GET && !self.is_watch() && self.path.rsplit('/').next() == Some(kind)
    }

    pub fn is_lease(&self) -> bool {
        self.path.starts_with("/apis/coordination.k8s.io/")
    }

    pub fn is_any(&self) -> bool {
        true
    }

    /// The pod and the node of a bind.
    pub fn binds(&self) -> Option<(String, String)> {
        let pod =
            self.path.strip_suffix("/binding").filter(|_| self.is_bind())?.rsplit('/').next()?;
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some((pod.to_owned(), body["target"]["name"].as_str()?.to_owned()))
    }
}

/// A fault for a share of some requests, until it is removed.
pub struct Rule {
    pub(super) fault: Fault,
    /// In percent.
    share: u64,
    picks: Box<dyn Fn(&Ask) -> bool + Send + Sync>,
    /// Makes the random choices of one rule differ from those of another.
    seed: u64,
    strikes: Mutex<Strikes>,
    lifted: watch::Sender<bool>,
}

#[derive(Default)]
struct Strikes {
    /// How often each address was requested.
    asked: HashMap<String, u64>,
    struck: Vec<Ask>,
}

impl Rule {
    pub(super) fn new(
        fault: Fault,
        share: u64,
        picks: impl Fn(&Ask) -> bool + Send + Sync + 'static,
        seed: u64,
    ) -> Rule {
        let lifted = watch::Sender::new(false);
        Rule { fault, share, picks: Box::new(picks), seed, strikes: Mutex::default(), lifted }
    }

    /// The requests that were hit so far.
    pub fn struck(&self) -> Vec<Ask> {
        self.strikes().struck.clone()
    }

    pub fn count(&self) -> usize {
        self.strikes().struck.len()
    }

    /// No further request is hit, and those that were held go on.
    pub fn lift(&self) {
        self.lifted.send_replace(true);
    }

    pub fn is_lifted(&self) -> bool {
        *self.lifted.borrow()
    }

    pub(super) async fn until_lifted(&self) {
        // The sender is here, so there is always an answer.
        let _ = self.lifted.subscribe().wait_for(|lifted| *lifted).await;
    }

    pub(super) fn strikes_at(&self, ask: &Ask) -> bool {
        if self.is_lifted() || !(self.picks)(ask) {
            return false;
        }
        let mut strikes = self.strikes();
        let time = strikes.asked.entry(ask.path.clone()).or_default();
        *time += 1;
        let mut dice = DefaultHasher::new();
        (self.seed, &ask.path, *time).hash(&mut dice);
        let hit = dice.finish() % 100 < self.share;
        if hit {
            strikes.struck.push(ask.clone());
        }
        hit
    }

    fn strikes(&self) -> MutexGuard<'_, Strikes> {
        self.strikes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
