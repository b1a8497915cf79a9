//! JSON as events. YAML's parser reads JSON too, but holds a whole flow mapping in memory before
//! its first event.

use std::borrow::Cow;

use super::events::{Event, Events, Positioned};
use super::{DEPTH, YamlError};

/// Whether the whole text is one JSON document, or else where it breaks.
pub(super) fn check(text: &str, first_line: u32) -> Result<(), YamlError> {
    let mut events = JsonEvents::new(text, first_line);
    while !matches!(events.next()?.event, Event::End) {}
    Ok(())
}

/// What may come next.
#[derive(Copy, Clone, PartialEq)]
enum Next {
    Value,
    /// The first entry of a map or its end.
    FirstKey,
    Key,
    /// The first item of a list or its end.
    FirstItem,
    /// A comma or the end of the open list or map.
    Separator,
    Nothing,
}

pub(super) struct JsonEvents<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    /// The closing brackets of the open lists and maps.
    open: Vec<u8>,
    next: Next,
}

impl<'a> JsonEvents<'a> {
    pub fn new(text: &'a str, first_line: u32) -> JsonEvents<'a> {
        JsonEvents {
            text,
            at: 0,
            line: first_line,
            line_start: 0,
            open: Vec::new(),
            next: Next::Value,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                _ => break,
            }
        }
    }

    fn column(&self) -> u32 {
        (self.at - self.line_start + 1).try_into().unwrap_or(u32::MAX)
    }

    fn wrong(&self, expected: &str) -> YamlError {
        let found = match self.text[self.at..].chars().next() {
            Some(found) => format!("{found:?}"),
            None => "the end of the text".to_owned(),
        };
        YamlError {
            line: self.line,
            column: self.column(),
            path: String::new(),
            message: format!("the JSON is broken here: expected {expected}, found {found}"),
        }
    }

    fn opened(&mut self, closing: u8, next: Next) -> Result<(), YamlError> {
        if self.open.len() >= DEPTH {
            return Err(YamlError {
                line: self.line,
                column: self.column(),
                path: String::new(),
                message: format!("values are nested more than {DEPTH} deep"),
            });
        }
        self.at += 1;
        self.open.push(closing);
        self.next = next;
        Ok(())
    }

    fn closed(&mut self) -> Event<'a> {
        self.at += 1;
        self.next = self.after_value(self.open.len() - 1);
        if self.open.pop() == Some(b'}') { Event::MapEnd } else { Event::SeqEnd }
    }

    fn after_value(&self, open: usize) -> Next {
        if open == 0 { Next::Nothing } else { Next::Separator }
    }

    fn value(&mut self) -> Result<Event<'a>, YamlError> {
        let event = match self.peek() {
            Some(b'{') => {
                self.opened(b'}', Next::FirstKey)?;
                return Ok(Event::MapStart(0));
            }
            Some(b'[') => {
                self.opened(b']', Next::FirstItem)?;
                return Ok(Event::SeqStart(0));
            }
            Some(b'"') => Event::Scalar { text: self.string()?, plain: false, anchor: 0 },
            _ => Event::Scalar { text: self.word()?.into(), plain: true, anchor: 0 },
        };
        self.next = self.after_value(self.open.len());
        Ok(event)
    }

    /// true, false, null or a number.
    fn word(&mut self) -> Result<&'a str, YamlError> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        if !matches!(word, "true" | "false" | "null") && !is_number(word) {
            return Err(self.wrong("a value"));
        }
        self.at += end;
        Ok(word)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, YamlError> {
        let inner = &self.text[self.at + 1..];
        let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ';
        let plain_end = inner.bytes().position(special).unwrap_or(inner.len());
        if inner.as_bytes().get(plain_end) == Some(&b'"') {
            self.at += plain_end + 2;
            return Ok(Cow::Borrowed(&inner[..plain_end]));
        }
        // The rare string with escapes is left to serde_json, from quote to quote.
        let mut end = plain_end;
        loop {
            match inner.as_bytes().get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(byte) if *byte >= b' ' => end += 1,
                _ => {
                    self.at += 1 + end.min(inner.len());
                    return Err(self.wrong("the end of a string"));
                }
            }
        }
        let quoted = &self.text[self.at..self.at + end + 2];
        let text =
            serde_json::from_str(quoted).map_err(|_| self.wrong("a string with valid escapes"))?;
        self.at += quoted.len();
        Ok(Cow::Owned(text))
    }

    fn key(&mut self) -> Result<Event<'a>, YamlError> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("a key in double quotes"));
        }
        let text = self.string()?;
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err(self.wrong("':'"));
        }
        self.at += 1;
        self.next = Next::Value;
        Ok(Event::Scalar { text, plain: false, anchor: 0 })
    }
}

/// JSON's grammar: no leading zeros, no bare points.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let word = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match word.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (word, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    digits(integer)
        && (integer == "0" || !integer.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent
            .is_none_or(|exponent| digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

impl<'a> Events<'a> for JsonEvents<'a> {
    fn next(&mut self) -> Result<Positioned<'a>, YamlError> {
        self.skip_blanks();
        if self.next == Next::Separator {
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.next =
                        if self.open.last() == Some(&b'}') { Next::Key } else { Next::Value };
                    self.skip_blanks();
                }
                closing if closing == self.open.last().copied() => {}
                _ => {
                    let closing =
                        char::from(*self.open.last().expect("a separator stands inside brackets"));
                    return Err(self.wrong(&format!("',' or '{closing}'")));
                }
            }
        }
        let (line, column) = (self.line, self.column());
        let closing = self.open.last().copied();
        let event = match self.next {
            Next::Nothing if self.at == self.text.len() => Event::End,
            Next::Nothing => return Err(self.wrong("nothing more")),
            Next::Separator => self.closed(),
            Next::FirstKey | Next::FirstItem if self.peek() == closing => self.closed(),
            Next::FirstKey | Next::Key => self.key()?,
            Next::FirstItem | Next::Value => self.value()?,
        };
        Ok(Positioned { line, column, event })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn json_is_accepted_and_rejected_as_by_serde_json() {
        for text in [
            "{}",
            "[]",
            "[1, 2.5, -3e+7, 0, 0.1]",
            r#"{"a": {"b": ["c", null, true]}, "d": "\u00e9\n\"\\"}"#,
            "{\"a\": 1,}",
            "[1,]",
            "[01]",
            "[.5]",
            "[1.]",
            "[--1]",
            "[1 2]",
            "{a: 1}",
            "{\"a\" 1}",
            "{\"a\": }",
            "{",
            "[\"a",
            "[\"\\",
            "[\"\\x\"]",
            "[\"a\nb\"]",
            "{} {}",
            "]",
            "",
            "truex",
            "[1}",
        ] {
            assert_eq!(
                check(text, 1).is_ok(),
                serde_json::from_str::<serde_json::Value>(text).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn mistakes_have_a_position() {
        let error = check("{\n  \"a\": 1\n  \"b\": 2\n}", 1).unwrap_err();
        assert_eq!((error.line, error.column), (3, 3));
        assert_eq!(error.message, "the JSON is broken here: expected ',' or '}', found '\"'");
    }

    #[test]
    fn twenty_thousand_brackets_are_rejected() {
        assert!(
            check(&"[".repeat(20_000), 1)
                .unwrap_err()
                .message
                .contains("nested more than 128 deep")
        );
    }

    proptest! {
        #[test]
        fn it_agrees_with_serde_json(text in "[\\[\\]{}\",: 0-9a-ftrue.\\\\nl-]{0,24}") {
            let expected = serde_json::from_str::<serde_json::Value>(&text);
            // Only there a number that no float can hold is rejected.
            prop_assume!(!expected.as_ref().is_err_and(|error| error.to_string().contains("out of range")));
            prop_assert_eq!(check(&text, 1).is_ok(), expected.is_ok());
        }
    }
}
