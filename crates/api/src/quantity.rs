//! Amounts of resources with Kubernetes' exact meaning ("500m", "16Gi", "1e3"), as whole
//! nano-units.
//!
//! Nothing here wraps or panics: an amount that is out of range becomes the nearest one in range,
//! and anything finer than a nano-unit is rounded away from zero, both as Kubernetes does.

#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// Amounts by resource name.
pub type ResourceList = BTreeMap<String, Quantity>;

const NANO: i128 = 1_000_000_000;
/// Kubernetes' own upper limit for amounts.
const MAX_NANO: i128 = i64::MAX as i128 * NANO;
/// A number with more digits than this before the decimal point is beyond the limit, and a digit
/// further behind the point is finer than a nano-unit.
const DIGITS: i64 = 40;

/// An amount of a resource.
#[derive(Copy, Clone, Debug, Default)]
pub struct Quantity {
    nano: i128,
    /// Whether to print it with Ki, Mi, Gi …; never part of a comparison.
    binary: bool,
    /// Whether the amount as written was larger; never part of a comparison.
    capped: bool,
}

/// The text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a quantity; write it like 500m, 4 or 16Gi")]
pub struct QuantityError(String);

impl Quantity {
    pub const ZERO: Quantity = Quantity { nano: 0, binary: false, capped: false };

    pub fn from_units(units: i64) -> Quantity {
        Quantity::capped(i128::from(units) * NANO, false)
    }

    pub fn from_milli(milli: i64) -> Quantity {
        Quantity::capped(i128::from(milli) * (NANO / 1_000), false)
    }

    /// Whole units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.in_units_of(NANO)
    }

    /// Thousandths of a unit, rounded away from zero.
    pub fn milli_value(self) -> i64 {
        self.in_units_of(NANO / 1_000)
    }

    pub fn is_zero(self) -> bool {
        self.nano == 0
    }

    pub fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whether the amount as written is beyond the largest there is, which is used instead.
    pub fn is_capped(self) -> bool {
        self.capped
    }

    pub fn plus(self, other: Quantity) -> Quantity {
        let binary = if self.is_zero() { other.binary } else { self.binary };
        Quantity::capped(self.nano + other.nano, binary)
    }

    fn capped(nano: i128, binary: bool) -> Quantity {
        let within = nano.clamp(-MAX_NANO, MAX_NANO);
        Quantity { nano: within, binary, capped: within != nano }
    }

    fn in_units_of(self, unit: i128) -> i64 {
        let away = if self.nano % unit == 0 { 0 } else { self.nano.signum() };
        (self.nano / unit + away).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}

/// What a suffix multiplies by: a power of ten and a power of two.
struct Scale {
    ten: i64,
    two: u32,
}

fn suffix_scale(suffix: &str) -> Option<Scale> {
    let (ten, two) = match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            // With larger exponents the amount is far out of range anyway.
            let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
            (if exponent.starts_with('-') { -size } else { size }, 0)
        }
    };
    Some(Scale { ten, two })
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        let wrong = || QuantityError(text.to_owned());
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digit_count = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (integer, rest) = unsigned.split_at(digit_count(unsigned));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digit_count(rest)),
            None => ("", rest),
        };
        if integer.is_empty() && fraction.is_empty() {
            return Err(wrong());
        }
        let scale = suffix_scale(suffix).ok_or_else(wrong)?;
        let size = magnitude(integer, fraction, &scale);
        let nano = if text.starts_with('-') { -size } else { size };
        Ok(Quantity::capped(nano, scale.two > 0))
    }
}

/// The nano-units of `integer.fraction` times `scale`, rounded up; a number beyond the limit if the
/// result is beyond it.
fn magnitude(integer: &str, fraction: &str, scale: &Scale) -> i128 {
    let digits = || integer.bytes().chain(fraction.bytes()).map(|byte| i128::from(byte - b'0'));
    let Some(leading_zeros) = digits().position(|digit| digit != 0) else { return 0 };
    let digits = || digits().skip(leading_zeros);
    let count = (integer.len() + fraction.len() - leading_zeros) as i64;
    // How many of the digits are before the decimal point; negative when zeros follow the point.
    let point = integer.len() as i64 - leading_zeros as i64 + scale.ten;
    if point > DIGITS {
        return i128::MAX;
    }
    if point < -DIGITS {
        return 1;
    }
    let unit = NANO << scale.two;
    let mut whole = 0i128;
    for digit in digits().take(point.max(0) as usize) {
        whole = whole.saturating_mul(10).saturating_add(digit);
    }
    for _ in count..point {
        whole = whole.saturating_mul(10);
    }
    // From the last digit to the first, so that every step is an exact floor however many digits
    // there are.
    let mut part = 0i128;
    let mut inexact = false;
    let zeros_after_point = (-point).max(0) as usize;
    let after_point = integer.bytes().chain(fraction.bytes()).rev();
    let after_point = after_point
        .take((count - point.max(0)).max(0) as usize)
        .map(|byte| i128::from(byte - b'0'));
    for digit in after_point.chain(std::iter::repeat_n(0, zeros_after_point)) {
        let sum = digit * unit + part;
        inexact |= sum % 10 != 0;
        part = sum / 10;
    }
    whole.saturating_mul(unit).saturating_add(part + i128::from(inexact))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let (mut amount, base, suffixes) = if self.binary && self.nano % (NANO * 1_024) == 0 {
            (self.nano / NANO, 1_024, &BINARY[..])
        } else {
            (self.nano, 1_000, &DECIMAL[..])
        };
        if amount == 0 {
            return f.write_str("0");
        }
        let mut power = 0;
        while amount % base == 0 && power + 1 < suffixes.len() {
            amount /= base;
            power += 1;
        }
        write!(f, "{amount}{}", suffixes[power])
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity like 500m, 4 or 16Gi")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
                Ok(Quantity::from_units(units))
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                Ok(Quantity::capped(i128::from(units) * NANO, false))
            }

            fn visit_f64<E: de::Error>(self, units: f64) -> Result<Quantity, E> {
                // The shortest decimal that reads back as the float is what the author wrote.
                units.to_string().parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The pattern is Kubernetes' own. The length limits the cost that the API server estimates for
    /// CEL rules.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "maxLength": 64,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|message| panic!("{message}"))
    }

    #[test]
    fn suffixes_have_their_kubernetes_meaning() {
        for (text, nano) in [
            ("0", 0),
            ("1n", 1),
            ("1u", 1_000),
            ("1m", 1_000_000),
            ("1", NANO),
            ("+1", NANO),
            ("-1", -NANO),
            (".5", NANO / 2),
            ("5.", 5 * NANO),
            ("1k", 1_000 * NANO),
            ("1e3", 1_000 * NANO),
            ("1E3", 1_000 * NANO),
            ("1e+3", 1_000 * NANO),
            ("1E-3", NANO / 1_000),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            ("1Ki", 1_024 * NANO),
            ("1.5Gi", 3 * (NANO << 29)),
            ("0.5Mi", NANO << 19),
            ("1Ei", NANO << 60),
            ("000123", 123 * NANO),
            ("0.000", 0),
            ("1.25e1", 125 * NANO / 10),
        ] {
            assert_eq!(quantity(text).nano, nano, "{text}");
        }
    }

    #[test]
    fn amounts_finer_than_a_nano_unit_round_away_from_zero() {
        assert_eq!(quantity("0.1n").nano, 1);
        assert_eq!(quantity("-0.1n").nano, -1);
        assert_eq!(quantity("1.0000000001").nano, NANO + 1);
        assert_eq!(quantity("1e-1000000").nano, 1);
        assert_eq!(quantity(&format!("0.{}1", "0".repeat(5_000))).nano, 1);
        assert_eq!(quantity(&format!("1.{}1Ki", "0".repeat(5_000))).nano, 1_024 * NANO + 1);
        assert_eq!(quantity("0.0000000000000000001Ei").nano, 115_292_151);
    }

    #[test]
    fn amounts_that_are_too_large_become_the_largest() {
        for text in [
            "9223372036854775807",
            "9223372036854775808",
            "8Ei",
            "100E",
            "1e99999999999999999999",
            "1e40",
        ] {
            assert_eq!(quantity(text).value(), i64::MAX, "{text}");
            assert_eq!(quantity(&format!("-{text}")).value(), -i64::MAX, "-{text}");
        }
        assert_eq!(quantity(&"9".repeat(10_000)).value(), i64::MAX);
        assert_eq!(quantity("10E").plus(quantity("10E")).value(), i64::MAX);
        assert_eq!(quantity("8E").milli_value(), i64::MAX);
        assert_eq!(Quantity::from_units(i64::MIN).value(), -i64::MAX);
    }

    #[test]
    fn an_amount_beyond_the_largest_says_that_it_is_capped() {
        for text in ["9223372036854775808", "-9223372036854775808", "8Ei", "10E", "1e40", "1e300"] {
            assert!(quantity(text).is_capped(), "{text}");
        }
        for text in ["9223372036854775807", "-9223372036854775807", "7Ei", "9E", "0", "1e-300"] {
            assert!(!quantity(text).is_capped(), "{text}");
        }
        let from = |json: &str| serde_json::from_str::<Quantity>(json).expect("a quantity");
        assert!(from("18446744073709551615").is_capped() && from("1e300").is_capped());
        assert!(!from("9223372036854775807").is_capped());
    }

    #[test]
    fn values_round_away_from_zero() {
        for (text, value, milli) in [
            ("1500m", 2, 1_500),
            ("-1500m", -2, -1_500),
            ("1n", 1, 1),
            ("-1n", -1, -1),
            ("100u", 1, 1),
            ("2", 2, 2_000),
            ("1Ki", 1_024, 1_024_000),
        ] {
            assert_eq!(
                (quantity(text).value(), quantity(text).milli_value()),
                (value, milli),
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_text_is_rejected_with_an_example() {
        for text in [
            "", " ", "1 Gi", " 1", "1 ", "0x1", "1ki", "1KI", "1K", "--1", "+-1", "1.1.1", "1e",
            "1e+", "1e1.5", "Ki", ".", "-", "1gi", "1Mii", "1mm", "1,5", "one", "١", "1_000",
            "NaN", "inf", "1i",
        ] {
            let message = text.parse::<Quantity>().expect_err(text).to_string();
            assert!(message.contains("write it like"), "{text}: {message}");
        }
    }

    #[test]
    fn quantities_print_short() {
        for (text, printed) in [
            ("0", "0"),
            ("0Ki", "0"),
            ("500m", "500m"),
            ("0.5", "500m"),
            ("4000m", "4"),
            ("4", "4"),
            ("16Gi", "16Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1000", "1k"),
            ("1e3", "1k"),
            ("16384", "16384"),
            ("-2Gi", "-2Gi"),
            ("1500u", "1500u"),
            ("9E", "9E"),
        ] {
            assert_eq!(quantity(text).to_string(), printed, "{text}");
        }
    }

    #[test]
    fn numbers_and_strings_decode_alike() {
        let from = |json: &str| serde_json::from_str::<Quantity>(json).unwrap();
        assert_eq!(from("2"), quantity("2"));
        assert_eq!(from("0.1"), quantity("100m"));
        assert_eq!(from("\"100m\""), quantity("100m"));
        assert_eq!(from("-1"), quantity("-1"));
        assert_eq!(from("18446744073709551615").value(), i64::MAX);
        assert_eq!(from("1e300").value(), i64::MAX);
        assert!(serde_json::from_str::<Quantity>("true").is_err());
        assert_eq!(serde_json::to_string(&quantity("1Gi")).unwrap(), "\"1Gi\"");
    }

    proptest! {
        #[test]
        fn printing_and_reading_gives_the_same_amount(nano in -MAX_NANO..=MAX_NANO, binary: bool) {
            let given = Quantity { nano, binary, capped: false };
            prop_assert_eq!(quantity(&given.to_string()), given);
        }

        #[test]
        fn order_agrees_with_the_numbers(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000, s in 0usize..3) {
            let suffix = ["m", "", "Ki"][s];
            let (left, right) = (quantity(&format!("{a}{suffix}")), quantity(&format!("{b}{suffix}")));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }

        #[test]
        fn no_text_panics(text in "[-+]?[0-9.]{0,50}[a-zA-Z]{0,3}[-+]?[0-9]{0,30}") {
            if let Ok(read) = text.parse::<Quantity>() {
                prop_assert_eq!(quantity(&read.to_string()), read);
            }
        }
    }
}
