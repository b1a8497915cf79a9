//! How pods end in the embedded cluster, as annotations say it: `muster.sh/simulated-duration: 30m`
//! and then success, and `muster.sh/simulated-exit: "3 exits 137 after 5m, once"`, which means the
//! pod with index 3 of its task, and only the first time; without a number it means every pod.
//! Several such rules are separated by semicolons.

use thiserror::Error;

use crate::core::{Meta, Pod};
use crate::keys::{SIMULATED_DURATION, SIMULATED_EXIT};
use crate::{Time, parse_duration};

/// How often the Job of a pod had been restarted when the pod was created.
const RETRIES: &str = "volcano.sh/job-retry-count";

/// The end of a pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ending {
    pub at: Time,
    /// The exit code of its containers; none if it ran out of time.
    pub exit_code: Option<i32>,
}

/// The annotation can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not an exit; write it like \"exits 1 after 5m\" or \"3 exits 137 after 5m, once\""
)]
pub struct ExitError(String);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Exit {
    /// Only the pod with this index of its task.
    index: Option<u32>,
    code: i32,
    after_ms: i64,
    once: bool,
}

impl Exit {
    fn read(text: &str) -> Option<Exit> {
        let (text, once) = match text.trim().strip_suffix(", once") {
            Some(text) => (text, true),
            None => (text.trim(), false),
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let (index, rest) = match words.split_first()? {
            (&"exits", _) => (None, &words[..]),
            (index, rest) => (Some(index.parse().ok()?), rest),
        };
        let ["exits", code, "after", time] = rest else { return None };
        let (code, after_ms) = (code.parse().ok()?, parse_duration(time).ok()?);
        Some(Exit { index, code, after_ms, once })
    }

    fn includes(&self, meta: &Meta) -> bool {
        let first = meta.annotations.get(RETRIES).is_none_or(|retries| retries == "0");
        self.index.is_none_or(|index| index == meta.task_index()) && (!self.once || first)
    }
}

fn exits(text: &str) -> Result<Vec<Exit>, ExitError> {
    text.split(';').map(|rule| Exit::read(rule).ok_or_else(|| ExitError(rule.to_owned()))).collect()
}

/// What is wrong with the annotation.
pub fn exit_error(text: &str) -> Option<ExitError> {
    exits(text).err()
}

/// When and how a running pod will end, if it will.
pub fn ending(pod: &Pod) -> Option<Ending> {
    let start = pod.status.start_time?;
    let meta = &pod.metadata;
    let text = |key| meta.annotations.get(key).map(String::as_str);
    let rules = text(SIMULATED_EXIT).and_then(|text| exits(text).ok()).unwrap_or_default();
    let exits = rules
        .iter()
        .filter(|exit| exit.includes(meta))
        .map(|exit| Ending { at: start.plus_ms(exit.after_ms), exit_code: Some(exit.code) });
    let success = text(SIMULATED_DURATION)
        .and_then(|text| parse_duration(text).ok())
        .map(|run| Ending { at: start.plus_ms(run), exit_code: Some(0) });
    let deadline = pod
        .spec
        .active_deadline_seconds
        .map(|seconds| Ending { at: start.plus_ms(seconds.saturating_mul(1000)), exit_code: None });
    // Of several at one time, success counts.
    let order = |ending: &Ending| (ending.at, ending.exit_code != Some(0), ending.exit_code);
    exits.chain(success).chain(deadline).min_by_key(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, annotations: &[(&str, &str)]) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = name.to_owned();
        let annotations =
            annotations.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        pod.metadata.annotations = annotations.collect();
        pod.status.start_time = Some(Time(0));
        pod
    }

    fn told(pod: &Pod) -> Option<(i64, Option<i32>)> {
        ending(pod).map(|ending| (ending.at.0 / 1000, ending.exit_code))
    }

    #[test]
    fn the_first_end_counts() {
        let exit = (SIMULATED_EXIT, "3 exits 137 after 5m, once; exits 1 after 1h");
        let run = (SIMULATED_DURATION, "30m");
        assert_eq!(told(&pod("w-3", &[exit, run])), Some((300, Some(137))));
        assert_eq!(told(&pod("w-3", &[exit, run, (RETRIES, "1")])), Some((1800, Some(0))));
        assert_eq!(told(&pod("w-2", &[exit, run])), Some((1800, Some(0))));
        assert_eq!(told(&pod("w-2", &[exit])), Some((3600, Some(1))));
        let mut limited = pod("w-2", &[run]);
        limited.spec.active_deadline_seconds = Some(60);
        assert_eq!(told(&limited), Some((60, None)));
        assert_eq!(told(&pod("w-2", &[])), None);
    }

    #[test]
    fn exits_that_cannot_be_read_are_told_with_an_example() {
        for text in ["", "exits", "3 exit 1 after 5m", "exits x after 5m", "exits 1 after soon"] {
            let error = exit_error(text).expect(text).to_string();
            assert!(error.contains("3 exits 137 after 5m, once"), "{error}");
        }
        assert_eq!(exit_error("exits 2 after 10s; 0 exits 3 after 1m, once"), None);
    }
}
