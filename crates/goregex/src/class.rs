//! Classes of characters and escapes. Perl's and POSIX's classes are ASCII, as in Go; case is
//! ignored by Unicode's simple folding.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::error::GoRegexErrorKind;
use super::parse::{Parsed, Parser};
use super::unicode;

const DIGIT: &[(char, char)] = &[('0', '9')];
const SPACE: &[(char, char)] = &[('\t', '\n'), ('\x0c', '\r'), (' ', ' ')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

const POSIX: &[(&str, &[(char, char)])] = &[
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7f')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1f'), ('\x7f', '\x7f')]),
    ("digit", DIGIT),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    // Unlike \s it has the vertical tab.
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", WORD),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

fn class_of(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last)))
}

/// All characters that are not in the class. `ClassUnicode::negate` adds U+D7FF and U+E000 if one
/// range ends with the first and another begins with the second.
pub(super) fn complement(class: &ClassUnicode) -> ClassUnicode {
    let mut others = class_of(&[('\0', char::MAX)]);
    others.difference(class);
    others
}

/// The class, and all characters that differ only in case from one in it.
pub(super) fn folded(class: ClassUnicode) -> ClassUnicode {
    let mut same = class.clone();
    same.difference(unicode::newly_cased());
    same.try_case_fold_simple().expect("the tables for case are compiled in");
    same.difference(unicode::newly_cased());
    same.union(&class);
    same
}

impl Parser<'_> {
    /// Reads a class in brackets.
    pub fn bracketed_class(&mut self) -> Parsed<()> {
        let start = self.position;
        self.position += 1;
        let negated = self.skip("^");
        let mut ranges = Vec::new();
        // A bracket that comes first is literal.
        let mut first = true;
        while first || !self.skip("]") {
            first = false;
            let part = match self.posix_class()? {
                Some(part) => part,
                None => match self.class_escape()? {
                    Some(part) => part,
                    None => self.range(start)?,
                },
            };
            ranges.extend_from_slice(part.ranges());
        }
        let class = ClassUnicode::new(ranges);
        self.class(if negated { complement(&class) } else { class })
    }

    /// Reads one character, or two with a `-` between them.
    fn range(&mut self, class_start: usize) -> Parsed<ClassUnicode> {
        let start = self.position;
        let first = self.class_character(class_start)?;
        let mut last = first;
        let rest = self.rest();
        if rest.len() >= 2 && rest.starts_with('-') && !rest.starts_with("-]") {
            self.position += 1;
            last = self.class_character(class_start)?;
            if last < first {
                return self.mistake(GoRegexErrorKind::CharacterRange, start);
            }
        }
        Ok(self.with_flags(between(first, last), false))
    }

    fn class_character(&mut self, class_start: usize) -> Parsed<u32> {
        match self.peek() {
            None => self.mistake_to_end(GoRegexErrorKind::UnclosedClass, class_start),
            Some('\\') => self.character_escape(),
            Some(c) => {
                self.position += c.len_utf8();
                Ok(c.into())
            }
        }
    }

    fn with_flags(&self, class: ClassUnicode, negated: bool) -> ClassUnicode {
        let class = if self.flags.fold { folded(class) } else { class };
        if negated { complement(&class) } else { class }
    }

    /// Reads a class such as `[:alpha:]`, if there is one.
    fn posix_class(&mut self) -> Parsed<Option<ClassUnicode>> {
        let start = self.position;
        if self.last_posix_end.is_none_or(|end| end < start) {
            return Ok(None);
        }
        let Some(inner) = self.rest().strip_prefix("[:") else { return Ok(None) };
        let Some(length) = inner.find(":]") else { return Ok(None) };
        self.position += "[:".len() + length + ":]".len();
        let name = &inner[..length];
        let (name, negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        match POSIX.iter().find(|(known, _)| *known == name) {
            Some((_, ranges)) => Ok(Some(self.with_flags(class_of(ranges), negated))),
            None => self.mistake(GoRegexErrorKind::CharacterRange, start),
        }
    }

    /// Reads a class such as `\d` or `\p{Greek}`, if there is one.
    pub fn class_escape(&mut self) -> Parsed<Option<ClassUnicode>> {
        let Some(&[b'\\', letter]) = self.rest().as_bytes().first_chunk() else { return Ok(None) };
        let ranges = match letter {
            b'd' | b'D' => DIGIT,
            b's' | b'S' => SPACE,
            b'w' | b'W' => WORD,
            b'p' | b'P' => return self.unicode_class(letter == b'P').map(Some),
            _ => return Ok(None),
        };
        self.position += 2;
        Ok(Some(self.with_flags(class_of(ranges), letter.is_ascii_uppercase())))
    }

    /// Reads a class such as `\pL`, `\p{Lu}` or `\p{^Greek}`.
    fn unicode_class(&mut self, negated: bool) -> Parsed<ClassUnicode> {
        let start = self.position;
        let rest = self.rest();
        self.position += 2;
        let name = if self.next() == Some('{') {
            let Some(end) = rest.find('}') else {
                return self.mistake_to_end(GoRegexErrorKind::CharacterRange, start);
            };
            self.position = start + end + 1;
            &rest[r"\p{".len()..end]
        } else {
            &rest[2..self.position - start]
        };
        let (name, negated) =
            name.strip_prefix('^').map_or((name, negated), |name| (name, !negated));
        match unicode::named(name, self.flags.fold) {
            Some(class) => Ok(if negated { complement(&class) } else { class }),
            None => self.mistake(GoRegexErrorKind::CharacterRange, start),
        }
    }

    /// Reads an escape for one character.
    pub fn character_escape(&mut self) -> Parsed<u32> {
        let start = self.position;
        self.position += 1;
        let Some(c) = self.next() else {
            self.position = start;
            return self.mistake(GoRegexErrorKind::TrailingBackslash, start);
        };
        let digit_follows = self.peek().is_some_and(|next| next.is_digit(8));
        let code = match c {
            // One digit alone would be a back-reference.
            '1'..='7' if digit_follows => Some(self.octal(c)),
            '0' => Some(self.octal(c)),
            'x' => self.hexadecimal(),
            'a' => Some(0x07),
            'f' => Some(0x0c),
            'n' => Some('\n'.into()),
            'r' => Some('\r'.into()),
            't' => Some('\t'.into()),
            'v' => Some(0x0b),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
            _ => None,
        };
        match code {
            Some(code) => Ok(code),
            None => self.mistake(GoRegexErrorKind::Escape, start),
        }
    }

    /// Reads up to two more octal digits.
    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.position += 1;
        }
        code
    }

    /// Reads two hexadecimal digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next()?;
        if first != '{' {
            let second = self.next()?;
            return Some(first.to_digit(16)? * 16 + second.to_digit(16)?);
        }
        let mut code = None;
        loop {
            match self.next()? {
                '}' => return code,
                digit => {
                    let larger = code.unwrap_or(0) * 16 + digit.to_digit(16)?;
                    code = Some(larger).filter(|code| *code <= char::MAX.into());
                    code?;
                }
            }
        }
    }
}

/// The characters of a range. Halves of surrogate pairs are not characters.
fn between(first: u32, last: u32) -> ClassUnicode {
    let below = (first, last.min(0xd7ff));
    let above = (first.max(0xe000), last);
    let character = |code| char::from_u32(code).expect("not a surrogate");
    let ranges = [below, above].into_iter().filter(|(first, last)| first <= last);
    ClassUnicode::new(
        ranges.map(|(first, last)| ClassUnicodeRange::new(character(first), character(last))),
    )
}
