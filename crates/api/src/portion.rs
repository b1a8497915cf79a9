//! A number of pods, or a part of them in percent.

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Portion {
    Count(i64),
    Percent(i64),
}

/// The text is neither a count nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a number of pods; write it like 3 or 50%")]
pub struct PortionError(String);

impl Portion {
    /// Reads "3" or "50%".
    pub fn parse(text: &str) -> Result<Portion, PortionError> {
        let wrong = || PortionError(text.to_owned());
        let trimmed = text.trim();
        let (digits, most) = match trimmed.strip_suffix('%') {
            Some(digits) => (digits, 100),
            None => (trimmed, i64::from(i32::MAX)),
        };
        let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number =
            digits.parse().ok().filter(|number| all_digits && *number <= most).ok_or_else(wrong)?;
        Ok(if digits.len() < trimmed.len() {
            Portion::Percent(number)
        } else {
            Portion::Count(number)
        })
    }

    /// The number for a set of this many, rounded up as in Kubernetes.
    pub fn of(self, all: i64) -> i64 {
        match self {
            Portion::Count(count) => count,
            Portion::Percent(percent) => (all * percent + 99) / 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_are_counts_or_percents_and_round_up() {
        assert_eq!(Portion::parse("3"), Ok(Portion::Count(3)));
        assert_eq!(Portion::parse(" 50% "), Ok(Portion::Percent(50)));
        assert_eq!(Portion::Percent(50).of(3), 2);
        assert_eq!(Portion::Percent(0).of(3), 0);
        assert_eq!(Portion::Count(5).of(3), 5);
        for text in ["", "%", "-1", "+1", "101%", "half", "1.5"] {
            assert!(Portion::parse(text).is_err(), "{text}");
        }
    }
}
