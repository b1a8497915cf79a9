//! Counts of pods that have not been written yet: they wait until they come to rest, so that a
//! thousand pods that start one after the other are a few writes.

use muster_api::{JobStatus, Time};

/// Changes of counts are written when this long nothing has changed, but at least this often (in
/// milliseconds).
const QUIET: i64 = 300;
const AT_LEAST: i64 = 3_000;

/// The status that was seen last, since when it was not written, and since when it is the same.
#[derive(Default)]
pub struct Unwritten(Option<(JobStatus, Time, Time)>);

impl Unwritten {
    /// Whether the status is to be written now. A change of more than counts is written at once.
    pub fn is_due(&mut self, new: &JobStatus, old: &JobStatus, now: Time) -> bool {
        let seen = self.0.take();
        if new == old {
            return false;
        }
        if new.state != old.state || new.min_available != old.min_available {
            return true;
        }
        let (first, last) = match seen {
            Some((seen, first, last)) if seen == *new => (first, last),
            Some((_, first, _)) => (first, now),
            None => (now, now),
        };
        if due(first, last) <= now {
            return true;
        }
        self.0 = Some((new.clone(), first, last));
        false
    }

    /// When the counts are to be written though nothing happens.
    pub fn next(&self) -> Option<Time> {
        self.0.as_ref().map(|(_, first, last)| due(*first, *last))
    }
}

/// When counts are to be written that have been changing from the first moment to the last.
fn due(first: Time, last: Time) -> Time {
    last.plus_ms(QUIET).min(first.plus_ms(AT_LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_wait_until_they_rest_but_not_for_ever() {
        let old = JobStatus::default();
        let with = |running| JobStatus { running, ..JobStatus::default() };
        let mut unwritten = Unwritten::default();
        assert!(!unwritten.is_due(&with(1), &old, Time(0)));
        assert_eq!(unwritten.next(), Some(Time(300)));
        assert!(unwritten.is_due(&with(1), &old, Time(300)));
        for step in 0..30 {
            assert!(!unwritten.is_due(&with(step + 1), &old, Time(i64::from(step) * 100)));
        }
        assert!(unwritten.is_due(&with(40), &old, Time(3_000)));
    }

    #[test]
    fn a_change_of_phase_does_not_wait() {
        let mut new = JobStatus::default();
        new.state.reason = "x".to_owned();
        assert!(Unwritten::default().is_due(&new, &JobStatus::default(), Time(0)));
    }
}
