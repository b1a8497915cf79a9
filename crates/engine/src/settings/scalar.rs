//! Single values as people write them for Volcano: numbers and booleans with or without quotes,
//! lists as lists or with commas.

use muster_yaml::{Value, Yaml};

use crate::settings::diagnostic::Place;

pub(crate) const MILLION: i128 = 1_000_000;

pub(crate) fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A whole number: 10, 10.0 or "10".
pub(crate) fn whole(value: &Value) -> Option<i64> {
    let millionths = millionths(value)?;
    (millionths % MILLION == 0).then(|| i64::try_from(millionths / MILLION).ok())?
}

/// A number in millionths, exactly; nothing if it needs more digits than that.
pub(crate) fn millionths(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number) * MILLION),
        // A float prints as the shortest decimal that reads as the same float: the one that was
        // written.
        Value::Float(number) => decimal(&number.to_string()),
        Value::String(text) => decimal(text.trim()),
        _ => None,
    }
}

fn decimal(text: &str) -> Option<i128> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction = fraction.trim_end_matches('0');
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(integer) || !all_digits(fraction) || fraction.len() > 6 {
        return None;
    }
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let integer: i128 = if integer.is_empty() { 0 } else { integer.parse().ok()? };
    let fraction: i128 = format!("{fraction:0<6}").parse().ok()?;
    Some(sign * integer.checked_mul(MILLION)?.checked_add(fraction)?)
}

/// A word of a list, and where it, or the text that it is in, starts.
#[derive(Debug, PartialEq)]
pub(crate) struct Word {
    pub at: Place,
    pub text: String,
}

/// The words of "a, b" or of a list. If it isn't one, the value that spoils it.
pub(crate) fn words(value: &Yaml) -> Result<Vec<Word>, &Yaml> {
    let texts = match &value.value {
        Value::Seq(items) => items.as_slice(),
        _ => std::slice::from_ref(value),
    };
    let mut words = Vec::new();
    for item in texts {
        let text = item.as_str().ok_or(item)?;
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        words.extend(parts.map(|part| Word { at: item.into(), text: part.to_owned() }));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use muster_yaml::parse;

    use super::*;

    fn value(text: &str) -> Value {
        parse(text).unwrap().value
    }

    #[test]
    fn numbers_may_be_quoted_and_have_a_point() {
        for (text, number) in [
            ("10", 10),
            ("\"10\"", 10),
            ("10.0", 10),
            ("\"10.00\"", 10),
            ("-3", -3),
            ("\"+3\"", 3),
            ("1e3", 1000),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(whole(&value(text)), Some(number), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_whole_number_is_refused() {
        for text in [
            "ten",
            "10.5",
            "\"\"",
            "\"-\"",
            "\".\"",
            "\"1.2.3\"",
            "\"1 0\"",
            "true",
            "[]",
            "{}",
            "~",
            ".nan",
            ".inf",
            "1e300",
            "99999999999999999999",
            "\"999999999999999999999999999999999999999999\"",
            "\"--1\"",
        ] {
            assert_eq!(whole(&value(text)), None, "{text}");
        }
    }

    #[test]
    fn decimals_are_exact() {
        for (text, number) in [
            ("1.2", 1_200_000),
            ("\"1.2\"", 1_200_000),
            ("1.1", 1_100_000),
            ("0.000001", 1),
            ("-0.5", -500_000),
            ("\".5\"", 500_000),
            ("2", 2_000_000),
            ("1.20000000", 1_200_000),
        ] {
            assert_eq!(millionths(&value(text)), Some(number), "{text}");
        }
        assert_eq!(millionths(&value("1.0000001")), None);
    }

    #[test]
    fn booleans_may_be_quoted() {
        assert_eq!(boolean(&value("true")), Some(true));
        assert_eq!(boolean(&value("\"false\"")), Some(false));
        for text in ["yes", "1", "\"True story\"", "~", "[true]"] {
            assert_eq!(boolean(&value(text)), None, "{text}");
        }
    }

    #[test]
    fn words_are_a_list_or_separated_by_commas() {
        for text in ["a, b", "\" a ,b, \"", "[a, b]", "- a\n- b"] {
            let tree = parse(text).unwrap();
            let words: Vec<String> =
                words(&tree).unwrap().into_iter().map(|word| word.text).collect();
            assert_eq!(words, ["a", "b"], "{text}");
        }
        assert_eq!(words(&parse("\" , \"").unwrap()), Ok(vec![]));
        assert_eq!(words(&parse("[a, [b]]").unwrap()).unwrap_err().column, 5);
        assert!(words(&parse("{a: b}").unwrap()).is_err());
    }
}
