//! How pods leave: when a pod that is being deleted has terminated, when its object is gone, and
//! how often its eviction is refused before that. What a manifest says of it is in annotations of
//! the pod.

use std::collections::BTreeMap;

use muster_api::core::Pod;
use muster_api::keys::{SIMULATED_EVICTION_REFUSALS, SIMULATED_FINALIZER, SIMULATED_TERMINATION};
use muster_api::{Termination, Time, parse_duration};

/// No pod terminates faster: the clock of the embedded cluster ticks once a second.
const SOONEST_MS: i64 = 1000;

/// When a pod leaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When its containers have ended; from then on its room is free.
    pub terminated: Time,
    /// When no finalizer keeps its object any more.
    pub gone: Time,
    /// Its grace period in seconds, if it takes all of that. Of a pod that comes with a
    /// deletionTimestamp: if it names one.
    pub grace_seconds: Option<i64>,
}

#[derive(Clone, Default)]
pub(super) struct Departures {
    /// Evicted pods that leave otherwise than within a second, by key.
    evicted: BTreeMap<String, Departure>,
    /// How often the eviction of a pod was refused, by uid.
    refused: BTreeMap<String, u32>,
}

impl Departures {
    /// Counts a refusal if the pod says that this eviction is refused, and returns how many of how
    /// many that are.
    pub fn refuse(&mut self, pod: &Pod) -> Option<(u32, u32)> {
        let limit = annotation(pod, SIMULATED_EVICTION_REFUSALS)?.parse().ok()?;
        let count = self.refused.entry(pod.metadata.uid.clone()).or_default();
        (*count < limit).then(|| {
            *count += 1;
            (*count, limit)
        })
    }

    /// Decides when a pod leaves that is evicted now, and returns its deletionTimestamp.
    pub fn evict(&mut self, pod: &Pod, now: Time, all_take_their_grace: bool) -> Time {
        let termination = annotation(pod, SIMULATED_TERMINATION)
            .and_then(|text| Termination::parse(text).ok())
            .or(all_take_their_grace.then_some(Termination::Grace));
        let grace_seconds = pod.spec.grace_seconds();
        let after_grace = now.plus_ms(grace_seconds.saturating_mul(1000));
        let (terminated, deleted) = match termination {
            None => (now, now),
            Some(Termination::Grace) => (after_grace, after_grace),
            Some(Termination::After(milliseconds)) => (now.plus_ms(milliseconds), after_grace),
        };
        let terminated = terminated.max(now.plus_ms(SOONEST_MS));
        let gone = terminated.plus_ms(finalizer_ms(pod));
        if termination.is_some() || gone > terminated {
            let takes_grace = termination == Some(Termination::Grace);
            let grace_seconds = takes_grace.then_some(grace_seconds);
            let departure = Departure { terminated, gone, grace_seconds };
            self.evicted.insert(pod.metadata.key(), departure);
        }
        deleted
    }

    pub fn forget(&mut self, key: &str) {
        self.evicted.remove(key);
    }

    /// When a pod that is being deleted leaves; nothing for any other pod.
    pub fn of(&self, key: &str, pod: &Pod) -> Option<Departure> {
        let deleted = pod.metadata.deletion_timestamp?;
        Some(self.stated(key).unwrap_or(Departure {
            terminated: deleted,
            gone: deleted.plus_ms(finalizer_ms(pod)),
            grace_seconds: pod.spec.termination_grace_period_seconds,
        }))
    }

    /// When an evicted pod leaves, if that is not within a second.
    pub fn stated(&self, key: &str) -> Option<Departure> {
        self.evicted.get(key).copied()
    }
}

fn finalizer_ms(pod: &Pod) -> i64 {
    let text = annotation(pod, SIMULATED_FINALIZER);
    text.and_then(|text| parse_duration(text).ok()).unwrap_or(0).max(0)
}

fn annotation<'p>(pod: &'p Pod, key: &str) -> Option<&'p str> {
    pod.metadata.annotations.get(key).map(String::as_str)
}
