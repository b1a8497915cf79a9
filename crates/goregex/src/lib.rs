//! Regular expressions with the syntax and meaning of Go, since Volcano selects the members of a
//! HyperNode with Go's `regexp`. A pattern that Go accepts is accepted and means the same; a
//! pattern that Go rejects is rejected with Go's words and the position of the mistake.
//!
//! The syntax is parsed by Go's rules (`parse`, `class`) into the form from which the automata of
//! the `regex` crate are built. The answers that Go 1.26 gave for thousands of patterns are in
//! `tests/go`.
//!
//! ```
//! use muster_goregex::GoRegex;
//!
//! let leaf = GoRegex::new("^leaf-[0-9]+$").expect("Go accepts it");
//! assert!(leaf.is_match("leaf-12"));
//!
//! let error = GoRegex::new("leaf-(").expect_err("Go doesn't");
//! assert_eq!((error.kind.to_string().as_str(), error.position), ("missing closing )", 5));
//! ```

mod class;
mod error;
mod parse;
mod piece;
mod unicode;

use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Hir, Look, literal::Extractor};

pub use error::{GoRegexError, GoRegexErrorKind};

/// Memory for one automaton. Go stops at 128 MB, but there a class of characters costs no more than
/// one character. Here it costs up to tens of kilobytes. This limit is enough for `\pL{1000}`.
const AUTOMATON_BYTES: usize = 64 << 20;

/// A regular expression in Go's syntax, ready to match.
#[derive(Clone, Debug)]
pub struct GoRegex {
    automaton: meta::Regex,
    literal_prefix: String,
}

impl GoRegex {
    pub fn new(pattern: &str) -> Result<Self, GoRegexError> {
        let hir = parse::parse(pattern)?;
        let config = meta::Config::new()
            .nfa_size_limit(Some(AUTOMATON_BYTES))
            // Captures are never used.
            .which_captures(WhichCaptures::Implicit);
        let automaton =
            meta::Builder::new().configure(config).build_from_hir(&hir).map_err(|_| {
                let kind = GoRegexErrorKind::TooLarge;
                GoRegexError { kind, fragment: pattern.to_owned(), position: 0 }
            })?;
        Ok(Self { automaton, literal_prefix: literal_prefix(&hir) })
    }

    /// Whether the pattern matches the name or any part of it, as Go's `MatchString`.
    pub fn is_match(&self, name: &str) -> bool {
        self.automaton.is_match(name)
    }

    /// The prefix of every name that matches. Empty unless the pattern is anchored at the start.
    pub fn literal_prefix(&self) -> &str {
        &self.literal_prefix
    }
}

fn literal_prefix(hir: &Hir) -> String {
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return String::new();
    }
    let beginnings = Extractor::new().extract(hir);
    let common = beginnings.longest_common_prefix().unwrap_or_default();
    // Alternatives may differ in the middle of a character.
    let whole = common.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    whole.to_owned()
}

#[cfg(test)]
mod tests;
