//! What an unquoted scalar means.

use std::borrow::Cow;

use super::Value;

/// What a plain scalar is, by YAML's core schema.
pub(super) fn resolve(text: Cow<'_, str>) -> Value {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        other => number(other).unwrap_or_else(|| Value::String(text.into_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned.as_bytes() {
        [b'0', b'x', digits @ ..]
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) =>
        {
            i64::from_str_radix(text.strip_prefix("0x")?, 16).ok().map(Value::Int)
        }
        [b'0', b'o', digits @ ..]
            if !digits.is_empty() && digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) =>
        {
            i64::from_str_radix(text.strip_prefix("0o")?, 8).ok().map(Value::Int)
        }
        [b'0'..=b'9', ..] if unsigned.bytes().all(|byte| byte.is_ascii_digit()) => {
            match text.parse() {
                Ok(number) => Some(Value::Int(number)),
                Err(_) => text.parse().ok().map(Value::Float),
            }
        }
        [b'0'..=b'9' | b'.', ..]
            if unsigned.bytes().all(|byte| b"0123456789.eE+-".contains(&byte)) =>
        {
            text.parse().ok().map(Value::Float)
        }
        _ => match text {
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
                Some(Value::Float(f64::INFINITY))
            }
            "-.inf" | "-.Inf" | "-.INF" => Some(Value::Float(f64::NEG_INFINITY)),
            ".nan" | ".NaN" | ".NAN" => Some(Value::Float(f64::NAN)),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn plain_scalars_follow_the_core_schema() {
        let string = |text: &str| Value::String(text.to_owned());
        for (text, expected) in [
            ("~", Value::Null),
            ("true", Value::Bool(true)),
            ("'true'", string("true")),
            ("yes", string("yes")),
            ("off", string("off")),
            ("12", Value::Int(12)),
            ("+12", Value::Int(12)),
            ("-12", Value::Int(-12)),
            ("'12'", string("12")),
            ("!!str 12", string("12")),
            ("0x1F", Value::Int(31)),
            ("0o17", Value::Int(15)),
            ("-0x1F", string("-0x1F")),
            ("0x", string("0x")),
            ("1e3", Value::Float(1000.0)),
            (".5", Value::Float(0.5)),
            ("5.", Value::Float(5.0)),
            ("-.inf", Value::Float(f64::NEG_INFINITY)),
            (".", string(".")),
            ("inf", string("inf")),
            ("1.2.3", string("1.2.3")),
            ("1E", string("1E")),
            ("16Gi", string("16Gi")),
            ("99999999999999999999", Value::Float(1e20)),
            ("2026-11-15T00:00:00Z", string("2026-11-15T00:00:00Z")),
            ("|-\n  12", string("12")),
        ] {
            assert_eq!(parse(text).unwrap().value, expected, "{text}");
        }
    }
}
