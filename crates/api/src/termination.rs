//! How long an evicted pod takes to terminate in the embedded cluster.

use thiserror::Error;

use crate::parse_duration;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Termination {
    /// The pod's own `terminationGracePeriodSeconds`.
    Grace,
    /// So many milliseconds, whatever the grace period is.
    After(i64),
}

/// The text is neither a duration nor "grace".
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" says nothing about terminating; write a duration like 45s, or grace")]
pub struct TerminationError(String);

impl Termination {
    /// Reads "45s" or "grace".
    pub fn parse(text: &str) -> Result<Termination, TerminationError> {
        if text == "grace" {
            return Ok(Termination::Grace);
        }
        let duration = parse_duration(text).ok().filter(|milliseconds| *milliseconds >= 0);
        duration.map(Termination::After).ok_or_else(|| TerminationError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_terminates_after_a_duration_or_its_grace_period() {
        assert_eq!(Termination::parse("grace"), Ok(Termination::Grace));
        assert_eq!(Termination::parse("0s"), Ok(Termination::After(0)));
        assert_eq!(Termination::parse("1m30s"), Ok(Termination::After(90_000)));
        for text in ["", "-1s", "Grace", "soon", "1d"] {
            let error = Termination::parse(text).unwrap_err().to_string();
            assert!(error.contains("write a duration like 45s, or grace"), "{error}");
        }
    }
}
