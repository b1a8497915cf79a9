//! Typed arguments of a plugin or action.
//!
//! They are *taken*: what is left over and not even declared was misspelt. A wrong value is
//! recorded and the default stands in for it, so that plugins need no error handling and all
//! mistakes are reported at once.

use muster_api::parse_duration;
use muster_yaml::{Key, Value, Yaml};

use crate::base::purpose::{Method, Mode};
use crate::settings::argument::Argument;
use crate::settings::diagnostic::{Diagnostic, Place, describe, diagnostic, suggest};
use crate::settings::eviction::{BundleSettings, EvictionSettings};
use crate::settings::scalar;

/// The most a weight can be. Scores are sums of points times weights, and must stay far from
/// overflow.
pub const MAX_WEIGHT: i64 = 10_000;

pub struct Args<'a> {
    file: &'a str,
    /// Whose arguments they are, and where it is named.
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

    /// How an action takes room from others.
    pub fn eviction_settings(&mut self) -> EvictionSettings {
        EvictionSettings { mode: self.mode(), ..self.eviction_settings_by_gang() }
    }

    /// The same for one that only takes whole gangs.
    pub fn eviction_settings_by_gang(&mut self) -> EvictionSettings {
        let (method, bundle_settings) = (self.eviction_method(), self.bundle_settings());
        EvictionSettings {
            mode: Mode::Gang,
            method,
            bundle_settings,
            ..EvictionSettings::default()
        }
    }

    /// Modes that aren't built are accepted, and take nothing. What else says the mode is settled
    /// in `modes.rs`.
    fn mode(&mut self) -> Mode {
        let read = |value: &Value| match value {
            Value::String(text) => Mode::named(text),
            _ => None,
        };
        self.take("mode", "task, gang or scenario", read).unwrap_or_default()
    }

    fn eviction_method(&mut self) -> Method {
        let words = [("eviction", Method::Evict), ("delete", Method::Delete)];
        self.word("evictionMethod", "eviction or delete", &words).unwrap_or_default()
    }

    fn bundle_settings(&mut self) -> BundleSettings {
        let BundleSettings {
            max_domains,
            allow_whole,
            evict_broken,
            roi_threshold,
            steps_per_gang,
            steps,
            ..
        } = BundleSettings::default();
        let words = [("safe-first", false), ("priority-first", true)];
        BundleSettings {
            max_domains: self.at_least(1, "maxDomains", max_domains as u64) as usize,
            allow_whole: self.bool("allowWholeBundle", allow_whole),
            evict_broken: self.bool("evictBrokenGang", evict_broken),
            roi_threshold: self.millionths("roiThreshold", roi_threshold),
            priority_first: self
                .word("order", "safe-first or priority-first", &words)
                .unwrap_or_default(),
            counts_moved: !self.bool("allowConsolidatingReclaim", true),
            steps_per_gang: self.at_least(1, "maxStepsPerGang", steps_per_gang),
            steps: self.at_least(1, "maxSteps", steps),
        }
    }

    /// The same for an action that moves pods.
    pub fn eviction_settings_by_moves(&mut self) -> EvictionSettings {
        let max_moves =
            self.at_least(0, "maxMoves", EvictionSettings::default().max_moves as u64) as usize;
        EvictionSettings { mode: Mode::Scenario, max_moves, ..self.eviction_settings_by_gang() }
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

    /// What was wrong, including what nobody took. What is declared but of no use here is fine.
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

    fn take<T>(
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
mod tests {
    use muster_yaml::parse;

    use super::*;

    const fn argument(name: &'static str) -> Argument {
        Argument { name, default: "", meaning: "" }
    }

    const DECLARED: &[Argument] =
        &[argument("load.weight"), argument("load.of.<name>"), argument("load.unused")];
    const AT: Place = Place { line: 9, column: 9 };

    /// What a reader gets from arguments, and what is wrong with them.
    fn with<T>(text: &str, read: impl Fn(&mut Args) -> T) -> (T, Vec<String>) {
        let tree = parse(text).unwrap();
        let mut args = Args::new("f", "load", AT, Some(&tree));
        let value = read(&mut args);
        (value, args.finish(DECLARED).iter().map(Diagnostic::to_string).collect())
    }

    fn fine<T>(value: T) -> (T, Vec<String>) {
        (value, Vec::new())
    }

    fn bad<T>(value: T, error: &str) -> (T, Vec<String>) {
        (value, vec![error.to_owned()])
    }

    #[test]
    fn numbers_are_taken_in_every_way_they_are_written() {
        for text in ["n: 10", "n: '10'", "n: 10.0"] {
            assert_eq!(with(text, |args| args.int("n", 1)), fine(10), "{text}");
            assert_eq!(with(text, |args| args.weight("n", 1)), fine(10), "{text}");
            assert_eq!(with(text, |args| args.millionths("n", 1)), fine(10_000_000), "{text}");
        }
        assert_eq!(with("n: 1.2", |args| args.millionths("n", 1)), fine(1_200_000));
        assert_eq!(with("n: -3", |args| args.int("n", 1)), fine(-3));
        assert_eq!(with("b: 'false'", |args| args.bool("b", true)), fine(false));
    }

    #[test]
    fn what_is_absent_has_its_default() {
        assert_eq!(with("{}", |args| args.int("n", 7)), fine(7));
        assert_eq!(with("{}", |args| args.weight("n", 7)), fine(7));
        assert_eq!(with("{}", |args| args.bool("n", true)), fine(true));
        assert_eq!(with("{}", |args| args.millionths("n", 7)), fine(7));
        assert_eq!(with("{}", |args| args.duration_ms("n", None)), fine(None));
        assert_eq!(with("{}", |args| args.duration_ms("n", Some(5))), fine(Some(5)));
        assert_eq!(with("{}", |args| args.words("n")), fine(vec![]));
        assert_eq!(with("{}", |args| args.prefixed("n.")), fine(vec![]));
        assert_eq!(Args::none().int("n", 7), 7);
    }

    #[test]
    fn a_wrong_value_is_reported_and_the_default_stands_in() {
        assert_eq!(
            with("a: 1\nn: ten", |args| (args.int("a", 0), args.int("n", 7))),
            bad((1, 7), "f:2:1: n: expected a whole number, found the string \"ten\"")
        );
        assert_eq!(
            with("n: 10001", |args| args.weight("n", 7)),
            bad(7, "f:1:1: n: expected a whole number from 0 to 10000, found the number 10001")
        );
        assert_eq!(
            with("n: -1", |args| args.weight("n", 7)),
            bad(7, "f:1:1: n: expected a whole number from 0 to 10000, found the number -1")
        );
        assert_eq!(
            with("n: 1.23456789", |args| args.millionths("n", 7)),
            bad(
                7,
                "f:1:1: n: expected a number with at most 6 digits after the point, found the number 1.23456789"
            )
        );
        assert_eq!(
            with("n: maybe", |args| args.bool("n", true)),
            bad(true, "f:1:1: n: expected true or false, found the string \"maybe\"")
        );
        assert_eq!(
            with("n:", |args| args.bool("n", true)),
            bad(true, "f:1:1: n: expected true or false, found nothing")
        );
        assert_eq!(
            with("n: {a: b}", |args| args.words("n")),
            bad(vec![], "f:1:1: n: expected a list of names like \"a, b\", found a mapping")
        );
    }

    #[test]
    fn durations_are_spans_or_seconds_and_negative_only_where_that_means_something() {
        assert_eq!(with("n: 1h30m", |args| args.duration_ms("n", None)), fine(Some(5_400_000)));
        assert_eq!(with("n: 90", |args| args.duration_ms("n", None)), fine(Some(90_000)));
        assert_eq!(with("n: 0", |args| args.duration_ms("n", Some(1))), fine(Some(0)));
        for (text, found) in
            [("soon", "string \"soon\""), ("-5s", "string \"-5s\""), ("1.5", "number 1.5")]
        {
            let error =
                format!("f:1:1: n: expected a duration like 90s, 30m or 1h30m, found the {found}");
            assert_eq!(
                with(&format!("n: {text}"), |args| args.duration_ms("n", None)),
                bad(None, &error)
            );
        }
        assert_eq!(with("n: -5s", |args| args.signed_duration_ms("n")), fine(Some(-5000)));
        assert_eq!(with("n: -1", |args| args.signed_duration_ms("n")), fine(Some(-1000)));
        assert_eq!(with("{}", |args| args.signed_duration_ms("n")), fine(None));
    }

    #[test]
    fn limits_that_mean_nothing_are_errors() {
        for (text, error) in [
            ("maxSteps: -5", "maxSteps: expected a whole number of 1 or more, found the number -5"),
            (
                "maxStepsPerGang: 0",
                "maxStepsPerGang: expected a whole number of 1 or more, found the number 0",
            ),
            (
                "maxDomains: 0",
                "maxDomains: expected a whole number of 1 or more, found the number 0",
            ),
            ("maxMoves: -1", "maxMoves: expected a whole number of 0 or more, found the number -1"),
        ] {
            let standard = Args::none().eviction_settings_by_moves();
            assert_eq!(
                with(text, |args| args.eviction_settings_by_moves()),
                bad(standard, &format!("f:1:1: {error}"))
            );
        }
        for text in ["0s", "-1h"] {
            let error =
                "f:1:1: n: expected a duration above zero, like 30m or 24h, found the string";
            let error = format!("{error} \"{text}\"");
            assert_eq!(with(&format!("n: {text}"), |args| args.span_ms("n")), bad(None, &error));
        }
    }

    #[test]
    fn pods_are_evicted_or_deleted() {
        assert_eq!(with("{}", |args| args.eviction_method()), fine(Method::Evict));
        assert_eq!(
            with("evictionMethod: eviction", |args| args.eviction_method()),
            fine(Method::Evict)
        );
        assert_eq!(
            with("evictionMethod: delete", |args| args.eviction_method()),
            fine(Method::Delete)
        );
        assert_eq!(
            with("evictionMethod: kill", |args| args.eviction_method()),
            bad(
                Method::Evict,
                "f:1:1: evictionMethod: expected eviction or delete, found the string \"kill\""
            )
        );
    }

    #[test]
    fn prefixed_keys_are_all_taken_and_sorted() {
        let text = "load.of.b: 2\nload.of.a: '1'\nload.of: x\nload.weight: 3";
        let read = |args: &mut Args| (args.words("load.of"), args.prefixed("load.of."));
        let weights = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
        assert_eq!(with(text, read), fine((vec!["x".to_owned()], weights)));
        assert_eq!(
            with("load.of.a: x", |args| args.prefixed("load.of.")),
            bad(
                vec![],
                "f:1:1: load.of.a: expected a whole number from 0 to 10000, found the string \"x\""
            )
        );
    }

    #[test]
    fn what_is_left_over_was_misspelt_unless_it_is_declared() {
        assert_eq!(with("load.unused: 1\nload.of.x: 1", |_| ()), fine(()));
        assert_eq!(
            with("load.wieght: 1", |args| args.weight("load.weight", 7)),
            bad(
                7,
                "f:1:1: load.wieght: load has no such argument\n  help: did you mean load.weight?"
            )
        );
    }

    #[test]
    fn a_plugins_own_complaint_stands_at_its_key() {
        let complain = |key: &'static str| {
            move |args: &mut Args| args.problem(key, "too small".to_owned(), "write 1".to_owned())
        };
        assert_eq!(
            with("load.unused: 0\nload.weight: 0", complain("load.weight")),
            bad((), "f:2:1: load.weight: too small\n  help: write 1")
        );
        assert_eq!(
            with("{}", complain("load.weight")),
            bad((), "f:9:9: load.weight: too small\n  help: write 1")
        );
    }
}
