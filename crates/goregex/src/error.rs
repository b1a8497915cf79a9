//! What is wrong with a pattern, in Go's words, and what to write instead.

use std::fmt;

/// A mistake in a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoRegexError {
    pub kind: GoRegexErrorKind,
    /// The text that Go quotes: the mistake, or the whole pattern if the mistake has no single
    /// place.
    pub fragment: String,
    /// The byte of the pattern at which the mistake begins.
    pub position: usize,
}

/// The kinds of mistakes that Go reports, displayed as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoRegexErrorKind {
    #[error("invalid character class range")]
    CharacterRange,
    #[error("invalid escape sequence")]
    Escape,
    #[error("invalid named capture")]
    GroupName,
    #[error("invalid or unsupported Perl syntax")]
    PerlSyntax,
    #[error("invalid nested repetition operator")]
    NestedRepetition,
    #[error("invalid repeat count")]
    RepeatCount,
    #[error("missing closing ]")]
    UnclosedClass,
    #[error("missing closing )")]
    UnclosedGroup,
    #[error("missing argument to repetition operator")]
    NothingToRepeat,
    #[error("trailing backslash at end of expression")]
    TrailingBackslash,
    #[error("unexpected )")]
    UnopenedGroup,
    #[error("expression nests too deeply")]
    TooDeep,
    #[error("expression too large")]
    TooLarge,
}

impl std::error::Error for GoRegexError {}

impl fmt::Display for GoRegexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use GoRegexErrorKind::*;
        let Self { kind, fragment, position } = self;
        match kind {
            TooLarge => write!(f, "{kind}")?,
            UnclosedGroup | UnopenedGroup | TrailingBackslash | TooDeep => {
                write!(f, "{kind} at byte {position}")?;
            }
            _ => write!(f, "{kind} {fragment:?} at byte {position}")?,
        }
        match self.advice() {
            "" => Ok(()),
            advice => write!(f, "; {advice}"),
        }
    }
}

impl GoRegexError {
    /// What to write instead, or what Go lacks. Empty if neither is obvious.
    fn advice(&self) -> &'static str {
        use GoRegexErrorKind::*;
        match self.kind {
            CharacterRange => self.advice_on_range(),
            Escape => self.advice_on_escape(),
            GroupName if self.fragment.starts_with("(?<=") || self.fragment.starts_with("(?<!") => {
                "Go's regular expressions have no look-behind"
            }
            GroupName => "write (?P<name>...) with letters, digits and _ in the name",
            PerlSyntax => self.advice_on_group(),
            NestedRepetition if self.fragment.ends_with('+') => {
                "Go's regular expressions have no possessive repetition; write one operator"
            }
            NestedRepetition => "write one operator, or a group between two: (?:x*)*",
            RepeatCount => {
                "write the smaller number first and at most 1000, also as the product of nested counts"
            }
            UnclosedClass => r"write the ], or \[ for the character itself",
            UnclosedGroup => r"write the ), or \( for the character itself",
            NothingToRepeat => r"write what to repeat before it, or a \ for the character itself",
            TrailingBackslash => r"write \\ for the character itself",
            UnopenedGroup => r"write \) for the character itself",
            TooDeep => "write it with fewer groups inside groups",
            TooLarge => "write several members with smaller patterns",
        }
    }

    fn advice_on_range(&self) -> &'static str {
        if self.fragment.starts_with(r"\p") || self.fragment.starts_with(r"\P") {
            r"Go knows no such class; write a category or script, such as \p{L} or \p{Greek}"
        } else if self.fragment.starts_with("[:") {
            "Go knows no such class; write one such as [:alnum:], [:alpha:] or [:digit:]"
        } else {
            "write the smaller character first"
        }
    }

    fn advice_on_escape(&self) -> &'static str {
        match self.fragment.as_bytes().get(1) {
            Some(b'1'..=b'9' | b'g' | b'k') => "Go's regular expressions have no back-references",
            Some(b'b') => r"write \x08 for a backspace in a class",
            Some(b'C' | b'N') => "write . for any character",
            Some(b'D' | b'S' | b'W' | b'd' | b's' | b'w') => {
                "write a single character as the end of a range"
            }
            Some(b'Z') => r"write \z for the end of the text",
            Some(b'e') => r"write \x1b",
            Some(b'h') => r"write [\t ]",
            Some(b'U' | b'u') => r"write \x{...} with the character's hexadecimal number",
            Some(b'x') => {
                r"write two hexadecimal digits, or a number up to 10FFFF in braces: \x{3b1}"
            }
            _ => "",
        }
    }

    fn advice_on_group(&self) -> &'static str {
        match self.fragment.as_str() {
            "(?=" | "(?!" => "Go's regular expressions have no look-ahead",
            "(?>" => "Go's regular expressions have no atomic groups; write (?:...)",
            "(?#" => "Go's regular expressions have no comments",
            "(?P" | "(?'" | "(?<" => "write (?P<name>...) for a group with a name",
            fragment if fragment.ends_with('x') => "Go's regular expressions have no flag x",
            _ => "write (?:...) for a group; the flags are i, m, s and U",
        }
    }
}
