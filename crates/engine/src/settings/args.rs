//! Typed arguments of a plugin or action.
//!
//! They are *taken*: what is left over and not even declared was misspelt. A wrong value is
//! recorded and the default stands in for it, so that plugins need no error handling and all
//! mistakes are reported at once.

use std::ops::RangeInclusive;

use muster_api::parse_duration;
use muster_yaml::{Key, Value, Yaml};

use crate::settings::argument::Argument;
use crate::settings::diagnostic::{Diagnostic, Place, describe, diagnostic, suggest};
use crate::settings::scalar;

/// The most a weight can be. Scores are sums of points times weights, and must stay far from
/// overflow.
pub const MAX_WEIGHT: i64 = 10_000;

pub struct Args<'a> {
    file: &'a str,
    /// The plugin or action to which they belong, and where it is named.
    owner: &'a str,
    at: Place,
    given: Vec<Given<'a>>,
    errors: Vec<Diagnostic>,
}

struct Given<'a> {
    key: &'a Key,
    value: &'a Yaml,
    taken: bool,
}

impl Args<'static> {
    /// No arguments: every question is answered with its default.
    pub fn none() -> Args<'static> {
        Args { file: "", owner: "", at: Place::START, given: Vec::new(), errors: Vec::new() }
    }
}

impl<'a> Args<'a> {
    pub(crate) fn new(
        file: &'a str,
        owner: &'a str,
        at: Place,
        arguments: Option<&'a Yaml>,
    ) -> Args<'a> {
        let given = match arguments.map(|arguments| &arguments.value) {
            Some(Value::Map(entries)) => {
                entries.iter().map(|(key, value)| Given { key, value, taken: false }).collect()
            }
            _ => Vec::new(),
        };
        Args { file, owner, at, given, errors: Vec::new() }
    }

    pub fn int(&mut self, key: &str, default: i64) -> i64 {
        self.take(key, "a whole number", scalar::whole).unwrap_or(default)
    }

    /// A whole number that is no less than this.
    pub fn at_least(&mut self, least: i64, key: &str, default: u64) -> u64 {
        let wanted = format!("a whole number of {least} or more");
        let read = |value: &Value| scalar::whole(value).filter(|number| *number >= least);
        self.take(key, &wanted, read).map_or(default, |number| number as u64)
    }

    /// Checks an argument that is accepted for Volcano's sake and has no effect: a whole number in
    /// this range.
    pub fn accept(&mut self, key: &str, range: RangeInclusive<i64>) {
        let wanted = match *range.end() {
            i64::MAX => format!("a whole number of {} or more", range.start()),
            most => format!("a whole number from {} to {most}", range.start()),
        };
        self.take(key, &wanted, |value| {
            scalar::whole(value).filter(|number| range.contains(number))
        });
    }

    /// A whole number from 0 to [`MAX_WEIGHT`].
    pub fn weight(&mut self, key: &str, default: i64) -> i64 {
        self.take(key, &weight_wanted(), weight).unwrap_or(default)
    }

    pub fn bool(&mut self, key: &str, default: bool) -> bool {
        self.take(key, "true or false", scalar::boolean).unwrap_or(default)
    }

    /// A decimal like 1.2, exactly, in millionths.
    pub fn millionths(&mut self, key: &str, default: i64) -> i64 {
        self.take(key, DECIMAL, decimal).unwrap_or(default)
    }

    /// A decimal from 0 to 1, exactly, in millionths.
    pub fn fraction(&mut self, key: &str, default: i64) -> i64 {
        let read = |value: &Value| decimal(value).filter(|part| (0..=ONE).contains(part));
        self.take(key, FRACTION, read).unwrap_or(default)
    }

    /// A span like 90s or 1h30m, or a whole number of seconds.
    pub fn duration_ms(&mut self, key: &str, default: Option<i64>) -> Option<i64> {
        let read = |value: &Value| duration(value).filter(|span| *span >= 0);
        self.take(key, DURATION, read).or(default)
    }

    /// The same, and longer than nothing, if it is there.
    pub fn span_ms(&mut self, key: &str) -> Option<i64> {
        let read = |value: &Value| duration(value).filter(|span| *span > 0);
        self.take(key, "a duration above zero, like 30m or 24h", read)
    }

    /// The same, and it may be negative, if it is there.
    pub fn signed_duration_ms(&mut self, key: &str) -> Option<i64> {
        self.take(key, "a duration like 90s, 30m or -1s", duration)
    }

    /// "a, b" or a list. None if there are none.
    pub fn words(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.find(key) else { return Vec::new() };
        match scalar::words(value) {
            Ok(words) => words.into_iter().map(|word| word.text).collect(),
            Err(other) => {
                self.wrong(key, "a list of names like \"a, b\"", other);
                Vec::new()
            }
        }
    }

    /// The weights under all keys that start with the prefix, by what follows it, in the order of
    /// the names.
    pub fn prefixed(&mut self, prefix: &str) -> Vec<(String, i64)> {
        self.take_prefixed(prefix, &weight_wanted(), weight)
    }

    /// The same with decimals, in millionths.
    pub fn prefixed_millionths(&mut self, prefix: &str) -> Vec<(String, i64)> {
        self.take_prefixed(prefix, DECIMAL, decimal)
    }

    /// The same with text, to be read by the plugin.
    pub fn prefixed_text(&mut self, prefix: &str) -> Vec<(String, String)> {
        let read = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        };
        self.take_prefixed(prefix, "text", read)
    }

    fn take_prefixed<T: Ord>(
        &mut self,
        prefix: &str,
        wanted: &str,
        read: fn(&Value) -> Option<T>,
    ) -> Vec<(String, T)> {
        let named = |given: &&Given| !given.taken && given.key.name.len() > prefix.len();
        let starts = |given: &&Given| given.key.name.starts_with(prefix);
        let keys: Vec<&'a Key> =
            self.given.iter().filter(named).filter(starts).map(|given| given.key).collect();
        let mut found = Vec::new();
        for key in keys {
            if let Some(value) = self.take(&key.name, wanted, read) {
                found.push((key.name[prefix.len()..].to_owned(), value));
            }
        }
        found.sort();
        found
    }

    /// One of a few words, with what it stands for.
    pub fn word<T: Copy>(&mut self, key: &str, wanted: &str, words: &[(&str, T)]) -> Option<T> {
        let read = |value: &Value| match value {
            Value::String(text) => {
                words.iter().find(|(word, _)| word == text).map(|(_, meant)| *meant)
            }
            _ => None,
        };
        self.take(key, wanted, read)
    }

    /// A plugin's own complaint about an argument.
    pub fn problem(&mut self, key: &str, message: String, help: String) {
        let at = self
            .given
            .iter()
            .find(|given| given.key.name == key)
            .map_or(self.at, |given| given.key.into());
        self.errors.push(diagnostic(self.file, at, key, message, help));
    }

    /// Leaves out arguments that are for others.
    pub(crate) fn leave(&mut self, others: &[Argument]) {
        self.given.retain(|given| !others.iter().any(|argument| argument.name == given.key.name));
    }

    /// What was wrong, including arguments that were not taken. What is declared but of no use here
    /// is fine.
    pub(crate) fn finish(mut self, declared: &[Argument]) -> Vec<Diagnostic> {
        let unknown: Vec<&'a Key> = self
            .given
            .iter()
            .filter(|given| {
                !given.taken && !declared.iter().any(|argument| names(argument, &given.key.name))
            })
            .map(|given| given.key)
            .collect();
        for key in unknown {
            let message = format!("{} has no such argument", self.owner);
            let help = suggest(&key.name, declared.iter().map(|argument| argument.name));
            self.problem(&key.name, message, help);
        }
        self.errors
    }

    /// The value of an argument, which is then taken.
    fn find(&mut self, key: &str) -> Option<&'a Yaml> {
        let given = self.given.iter_mut().find(|given| given.key.name == key)?;
        given.taken = true;
        Some(given.value)
    }

    pub(super) fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.find(key)?;
        let taken = read(&value.value);
        if taken.is_none() {
            self.wrong(key, wanted, value);
        }
        taken
    }

    fn wrong(&mut self, key: &str, wanted: &str, found: &Yaml) {
        self.problem(key, format!("expected {wanted}, found {}", describe(found)), String::new());
    }
}

fn weight(value: &Value) -> Option<i64> {
    scalar::whole(value).filter(|weight| (0..=MAX_WEIGHT).contains(weight))
}

const DURATION: &str = "a duration like 90s, 30m or 1h30m";

fn duration(value: &Value) -> Option<i64> {
    match value {
        Value::Int(seconds) => parse_duration(&seconds.to_string()).ok(),
        Value::String(text) => parse_duration(text.trim()).ok(),
        _ => None,
    }
}

const FRACTION: &str = "a number from 0 to 1 with at most 6 digits after the point";

/// In millionths.
const ONE: i64 = scalar::MILLION as i64;

const DECIMAL: &str = "a number with at most 6 digits after the point";

fn decimal(value: &Value) -> Option<i64> {
    i64::try_from(scalar::millionths(value)?).ok()
}

fn weight_wanted() -> String {
    format!("a whole number from 0 to {MAX_WEIGHT}")
}

/// Whether a declared argument is the key; `binpack.resources.<name>` stands for all that start
/// like it.
fn names(argument: &Argument, key: &str) -> bool {
    match argument.name.split_once('<') {
        Some((prefix, _)) => key.len() > prefix.len() && key.starts_with(prefix),
        None => argument.name == key,
    }
}

#[cfg(test)]
mod tests;
