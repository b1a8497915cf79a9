//! Points in time and durations in whole milliseconds: RFC 3339 as text, an `i64` in memory.

use std::fmt;

use jiff::Timestamp;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// Milliseconds since the Unix epoch.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

/// The text is not a point in time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a time; write it like 2026-11-15T08:30:00Z")]
pub struct TimeError(String);

/// The text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a duration; write it like 90s, 30m or 1h30m")]
pub struct DurationError(String);

impl Time {
    /// Reads RFC 3339. Digits finer than a millisecond are dropped.
    pub fn parse(text: &str) -> Result<Time, TimeError> {
        text.parse::<Timestamp>()
            .map(|timestamp| Time(timestamp.as_millisecond()))
            .map_err(|_| TimeError(text.to_owned()))
    }

    pub fn plus_ms(self, milliseconds: i64) -> Time {
        Time(self.0.saturating_add(milliseconds))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Later than the year 9999 there is no calendar to print; the last printable moment is
        // printed instead.
        let nearest = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        let timestamp = Timestamp::from_millisecond(self.0).unwrap_or(nearest);
        write!(f, "{timestamp}")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => serializer.collect_str(self),
            false => serializer.serialize_i64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Time;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time like 2026-11-15T08:30:00Z")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Time, E> {
                Time::parse(text).map_err(E::custom)
            }

            fn visit_i64<E>(self, milliseconds: i64) -> Result<Time, E> {
                Ok(Time(milliseconds))
            }

            fn visit_u64<E: de::Error>(self, milliseconds: u64) -> Result<Time, E> {
                i64::try_from(milliseconds).map(Time).map_err(E::custom)
            }
        }

        match deserializer.is_human_readable() {
            true => deserializer.deserialize_str(Visitor),
            // Old journals contain the times of custom resources as text.
            false => deserializer.deserialize_any(Visitor),
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// The units of Go's durations in nanoseconds.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration in Go's syntax ("1h30m", "1.5h", "300ms") or a whole number of seconds ("90"),
/// as milliseconds. Digits finer than a millisecond are dropped; a duration longer than an `i64`
/// can hold becomes the longest.
pub fn parse_duration(text: &str) -> Result<i64, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() {
        return Err(wrong());
    }
    let nanoseconds = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        whole(digits).saturating_mul(1_000_000_000)
    } else {
        let mut sum = 0i128;
        let mut rest = digits;
        while !rest.is_empty() {
            let (part, after) = leading_part(rest).ok_or_else(wrong)?;
            sum = sum.saturating_add(part);
            rest = after;
        }
        sum
    };
    let milliseconds = sign * (nanoseconds / 1_000_000);
    Ok(milliseconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// The nanoseconds of the first number and unit ("1.5h" of "1.5h30m") and the text after them.
fn leading_part(text: &str) -> Option<(i128, &str)> {
    let (integer, rest) = split_digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    if integer.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
    // Digits past the 18th are less than a nanosecond even of an hour.
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10i128.pow(fraction.len() as u32);
    let part = whole(integer).saturating_mul(*nanoseconds) + whole(fraction) * nanoseconds / scale;
    Some((part, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number that the digits spell, or one that is far out of range.
fn whole(digits: &str) -> i128 {
    const FAR: i128 = 1 << 90;
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(FAR).min(FAR) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_and_print_rfc_3339() {
        assert_eq!(Time::parse("1970-01-01T00:00:00Z"), Ok(Time(0)));
        assert_eq!(Time::parse("1970-01-01T01:00:00.25+01:00"), Ok(Time(250)));
        assert_eq!(
            Time::parse("2026-11-15T00:00:00Z").unwrap().to_string(),
            "2026-11-15T00:00:00Z"
        );
        assert_eq!(Time(1_500).to_string(), "1970-01-01T00:00:01.5Z");
        assert!(Time::parse("yesterday").unwrap_err().to_string().contains("write it like"));
        assert!(Time::parse("2026-11-15").is_err());
    }

    #[test]
    fn times_beyond_the_calendar_saturate() {
        assert_eq!(Time(i64::MAX).plus_ms(1), Time(i64::MAX));
        assert!(Time(i64::MAX).to_string().starts_with("9999-12-30"));
        assert!(Time(i64::MIN).to_string().starts_with("-009999-01-02"));
    }

    #[test]
    fn durations_follow_go() {
        for (text, milliseconds) in [
            ("90", 90_000),
            ("0", 0),
            ("90s", 90_000),
            ("300ms", 300),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("1.s", 1_000),
            ("-1m", -60_000),
            ("+1m", 60_000),
            ("1500us", 1),
            ("1500µs", 1),
            ("2h45m30.5s", 9_930_500),
            ("99999999999999999999999999h", i64::MAX),
            ("-99999999999999999999999999999999999999999999999", i64::MIN),
        ] {
            assert_eq!(parse_duration(text), Ok(milliseconds), "{text}");
        }
    }

    #[test]
    fn durations_that_go_rejects_are_rejected_with_an_example() {
        for text in
            ["", "-", "1d", "h", "1h 30m", "1.5", ".", ".s", "1h30", "1e3s", "--1s", "soon", "1H"]
        {
            let message = parse_duration(text).unwrap_err().to_string();
            assert!(message.contains("write it like 90s"), "{text}: {message}");
        }
    }
}
