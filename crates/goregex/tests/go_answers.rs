//! Compares how we read patterns with Go's own answers. `go/main.go` says how to rewrite them.

use muster_goregex::{GoRegex, GoRegexErrorKind};
use proptest::prelude::*;

/// A pattern, Go's error or none, and the indices of the names that match.
type Answer = (String, String, Vec<usize>);

fn answers() -> Vec<Answer> {
    let lines = include_str!("go/answers.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("an answer")).collect()
}

fn names() -> Vec<String> {
    serde_json::from_str(include_str!("go/names.json")).expect("a list of names")
}

/// Our answer for a pattern, in Go's form.
fn ours(pattern: &str, names: &[String]) -> (String, Vec<usize>) {
    match GoRegex::new(pattern) {
        Ok(regex) => (
            String::new(),
            (0..names.len()).filter(|number| regex.is_match(&names[*number])).collect(),
        ),
        Err(error) => {
            (format!("error parsing regexp: {}: `{}`", error.kind, error.fragment), Vec::new())
        }
    }
}

#[test]
fn patterns_are_accepted_and_match_as_in_go() {
    let names = names();
    let answers = answers();
    assert!(answers.len() > 7000, "the table has {} patterns", answers.len());
    let differs = |(pattern, error, matches): &Answer| {
        let ours = ours(pattern, &names);
        (ours != (error.clone(), matches.clone())).then(|| {
            format!("{pattern:?}\n  Go:   {error:?} {matches:?}\n  ours: {:?} {:?}", ours.0, ours.1)
        })
    };
    let differences: Vec<String> = answers.iter().filter_map(differs).collect();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn a_mistake_is_where_its_position_says() {
    for (pattern, _, _) in answers() {
        let Err(error) = GoRegex::new(&pattern) else { continue };
        let rest = &pattern[error.position..];
        let found = match error.kind {
            GoRegexErrorKind::UnclosedGroup => rest.starts_with('('),
            GoRegexErrorKind::UnopenedGroup => rest.starts_with(')'),
            GoRegexErrorKind::TrailingBackslash => rest == "\\",
            GoRegexErrorKind::TooDeep | GoRegexErrorKind::TooLarge => error.fragment == pattern,
            _ => rest.starts_with(&error.fragment),
        };
        assert!(found, "{pattern:?}: {error}");
    }
}

#[test]
fn every_match_begins_with_the_literal_prefix() {
    let names = names();
    for (pattern, _, _) in answers() {
        let Ok(regex) = GoRegex::new(&pattern) else { continue };
        for name in names.iter().filter(|name| regex.is_match(name)) {
            assert!(name.starts_with(regex.literal_prefix()), "{pattern:?} {name:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_panics(pattern: String, name: String) {
        if let Ok(regex) = GoRegex::new(&pattern) {
            regex.is_match(&name);
        }
    }

    #[test]
    fn no_text_of_symbols_panics(symbols in prop::collection::vec(prop::sample::select(SYMBOLS), 0..24), name: String) {
        match GoRegex::new(&symbols.concat()) {
            Ok(regex) => {
                regex.is_match(&name);
            }
            Err(error) => prop_assert!(error.position <= symbols.concat().len(), "{error}"),
        }
    }
}

const SYMBOLS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "+",
    "?",
    "|",
    "^",
    "$",
    ".",
    "-",
    ",",
    ":",
    "<",
    ">",
    "=",
    "!",
    "\\",
    "a",
    "Z",
    "1",
    "0",
    "é",
    "\n",
    "(?",
    "(?P<",
    "(?i",
    "[^",
    "[:",
    ":]",
    "alpha",
    "\\p",
    "\\P",
    "{L}",
    "\\x",
    "\\Q",
    "\\E",
    "\\b",
    "\\d",
    "{2}",
    "{1000}",
    "{2,}",
    "\\x{D800}",
];
