//! Reads a pattern from left to right, in the order in which Go's `regexp/syntax` does, so that of
//! several mistakes the same one is found.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Hir, Look};

use super::class::{complement, folded};
use super::error::{GoRegexError, GoRegexErrorKind};
use super::piece::{Piece, Times};

/// The number of levels that Go allows a tree.
const MAX_HEIGHT: usize = 1000;

/// The number of instructions that Go allows: 128 MB of 40 bytes each.
const MAX_SIZE: u64 = (128 << 20) / 40;

/// The number of bounds of character ranges that Go allows in a pattern: 128 MB of 4 bytes each.
const MAX_BOUNDS: usize = (128 << 20) / 4;

/// The largest count of a repetition, also as the product of nested ones.
const MAX_COUNT: u32 = 1000;

pub(super) type Parsed<T> = Result<T, GoRegexError>;

pub(super) fn parse(pattern: &str) -> Parsed<Hir> {
    let flags = Flags { fold: false, multi_line: false, dot_newline: false };
    let whole = Group::new(0, false, flags);
    let mut parser = Parser {
        pattern,
        position: 0,
        flags,
        last_repeat: None,
        last_posix_end: pattern.rfind(":]"),
        open: vec![whole],
        bounds: 0,
    };
    while let Some(next) = parser.peek() {
        let start = parser.position;
        let repeats = parser.element(next)?;
        parser.last_repeat = repeats.then_some(start);
    }
    let last = parser.end_group()?;
    match parser.open.last() {
        None => Ok(last.piece.hir),
        Some(_) => Err(parser.whole(GoRegexErrorKind::UnclosedGroup, last.start)),
    }
}

pub(super) struct Parser<'p> {
    pattern: &'p str,
    /// The byte that is read next.
    pub position: usize,
    pub flags: Flags,
    /// The start of the previous operator, if that was read just before.
    last_repeat: Option<usize>,
    /// The position of the last `:]`. Without it, every `[:` would be searched up to the end of the
    /// pattern.
    pub last_posix_end: Option<usize>,
    /// The open groups, the whole pattern first.
    open: Vec<Group>,
    /// The bounds of all ranges of characters so far.
    bounds: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Flags {
    /// `(?i)`: letters match in both cases.
    pub fold: bool,
    /// `(?m)`: `^` and `$` match at the ends of lines too.
    multi_line: bool,
    /// `(?s)`: `.` matches a newline too.
    dot_newline: bool,
}

struct Group {
    start: usize,
    captures: bool,
    /// The flags that apply again after the group.
    outer: Flags,
    alternatives: Vec<Piece>,
    sequence: Vec<Piece>,
}

impl Group {
    fn new(start: usize, captures: bool, outer: Flags) -> Self {
        Self { start, captures, outer, alternatives: Vec::new(), sequence: Vec::new() }
    }
}

/// A group that was read to its end.
struct Closed {
    start: usize,
    outer: Flags,
    piece: Piece,
}

impl<'p> Parser<'p> {
    pub fn rest(&self) -> &'p str {
        &self.pattern[self.position..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.position += next.len_utf8();
        Some(next)
    }

    pub fn skip(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.position += text.len();
        }
        found
    }

    /// A mistake that extends from a byte up to the current position.
    pub fn mistake<T>(&self, kind: GoRegexErrorKind, start: usize) -> Parsed<T> {
        Err(GoRegexError {
            kind,
            fragment: self.pattern[start..self.position].to_owned(),
            position: start,
        })
    }

    /// A mistake that extends from a byte to the end of the pattern.
    pub fn mistake_to_end<T>(&self, kind: GoRegexErrorKind, start: usize) -> Parsed<T> {
        Err(GoRegexError { kind, fragment: self.pattern[start..].to_owned(), position: start })
    }

    /// A mistake for which Go quotes the whole pattern.
    fn whole(&self, kind: GoRegexErrorKind, position: usize) -> GoRegexError {
        GoRegexError { kind, fragment: self.pattern.to_owned(), position }
    }

    /// Reads one element and returns whether it was a repetition.
    fn element(&mut self, next: char) -> Parsed<bool> {
        match next {
            '(' if self.rest().starts_with("(?") => self.special_group()?,
            '(' => self.open_group(self.position, true, 1),
            ')' => self.close_group()?,
            '|' => self.next_alternative()?,
            '[' => self.bracketed_class()?,
            '\\' => self.escaped()?,
            '^' => {
                self.assertion(1, if self.flags.multi_line { Look::StartLF } else { Look::Start })?
            }
            '$' => {
                self.assertion(1, if self.flags.multi_line { Look::EndLF } else { Look::End })?
            }
            '.' => self.dot()?,
            '*' => return self.repetition(1, Times::ZeroOrMore),
            '+' => return self.repetition(1, Times::OneOrMore),
            '?' => return self.repetition(1, Times::ZeroOrOne),
            '{' => return self.braces(),
            _ => {
                self.position += next.len_utf8();
                self.character(next.into())?;
            }
        }
        Ok(false)
    }

    fn push(&mut self, piece: Piece) -> Parsed<()> {
        let piece = self.within_limits(piece)?;
        self.innermost().sequence.push(piece);
        Ok(())
    }

    fn innermost(&mut self) -> &mut Group {
        self.open.last_mut().expect("the whole pattern is closed last")
    }

    fn within_limits(&self, piece: Piece) -> Parsed<Piece> {
        if piece.size > MAX_SIZE || self.bounds > MAX_BOUNDS {
            Err(self.whole(GoRegexErrorKind::TooLarge, self.position))
        } else if piece.height > MAX_HEIGHT {
            Err(self.whole(GoRegexErrorKind::TooDeep, self.position))
        } else {
            Ok(piece)
        }
    }

    /// Reads a symbol of some bytes that matches a position between characters.
    fn assertion(&mut self, bytes: usize, look: Look) -> Parsed<()> {
        self.position += bytes;
        self.push(Piece::assertion(look))
    }

    fn dot(&mut self) -> Parsed<()> {
        self.position += 1;
        let newline = (!self.flags.dot_newline).then(|| ClassUnicodeRange::new('\n', '\n'));
        self.class(complement(&ClassUnicode::new(newline)))
    }

    pub fn class(&mut self, class: ClassUnicode) -> Parsed<()> {
        self.bounds += 2 * class.ranges().len();
        self.push(Piece::class(class))
    }

    /// Adds a literal character. Half a surrogate pair is accepted and matches nothing.
    fn character(&mut self, code: u32) -> Parsed<()> {
        let same = char::from_u32(code).map(|c| ClassUnicodeRange::new(c, c));
        let mut class = ClassUnicode::new(same);
        if self.flags.fold {
            class = folded(class);
        }
        self.bounds += 1;
        self.push(Piece::character(class, self.flags.fold))
    }

    fn escaped(&mut self) -> Parsed<()> {
        let start = self.position;
        match self.rest().as_bytes().get(1) {
            Some(b'A') => self.assertion(2, Look::Start),
            Some(b'z') => self.assertion(2, Look::End),
            Some(b'b') => self.assertion(2, Look::WordAscii),
            Some(b'B') => {
                self.position += 2;
                self.push(Piece::no_word_boundary())
            }
            Some(b'C') => {
                self.position += 2;
                self.mistake(GoRegexErrorKind::Escape, start)
            }
            Some(b'Q') => {
                self.position += 2;
                self.quoted()
            }
            _ => match self.class_escape()? {
                Some(class) => self.class(class),
                None => {
                    let code = self.character_escape()?;
                    self.character(code)
                }
            },
        }
    }

    /// Reads the text between `\Q` and `\E`, or the end of the pattern.
    fn quoted(&mut self) -> Parsed<()> {
        while !self.skip(r"\E") {
            let Some(c) = self.next() else { break };
            self.character(c.into())?;
        }
        Ok(())
    }

    /// Reads `{2}`, `{2,}` or `{2,3}`. In anything else the brace is literal.
    fn braces(&mut self) -> Parsed<bool> {
        let start = self.position;
        let Some((least, most)) = self.counts() else {
            self.position = start + 1;
            self.character('{'.into())?;
            return Ok(false);
        };
        if least > MAX_COUNT || most.is_some_and(|most| most > MAX_COUNT || most < least) {
            return self.mistake(GoRegexErrorKind::RepeatCount, start);
        }
        let bytes = self.position - start;
        self.position = start;
        self.repetition(bytes, Times::Counted { least, most })
    }

    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        self.position += 1;
        let least = self.number()?;
        let most = if !self.skip(",") {
            Some(least)
        } else if self.rest().starts_with('}') {
            None
        } else {
            Some(self.number()?)
        };
        self.skip("}").then_some((least, most))
    }

    /// Reads a number without leading zeros. A number that is too large for us is too large for Go.
    fn number(&mut self) -> Option<u32> {
        let rest = self.rest();
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = &rest[..length];
        if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
            return None;
        }
        self.position += length;
        Some(digits.parse().unwrap_or(u32::MAX))
    }

    /// Applies an operator of some bytes to the previous element.
    fn repetition(&mut self, bytes: usize, times: Times) -> Parsed<bool> {
        let start = self.position;
        self.position += bytes;
        self.skip("?");
        if let Some(last) = self.last_repeat {
            return self.mistake(GoRegexErrorKind::NestedRepetition, last);
        }
        let Some(piece) = self.innermost().sequence.pop() else {
            return self.mistake(GoRegexErrorKind::NothingToRepeat, start);
        };
        let piece = self.within_limits(piece.repeated(times))?;
        // As in Go, an element that is repeated at most once is not examined.
        let counted = matches!(times, Times::Counted { least, most } if least >= 2 || most.is_some_and(|most| most >= 2));
        if counted && piece.copies > MAX_COUNT.into() {
            return self.mistake(GoRegexErrorKind::RepeatCount, start);
        }
        self.innermost().sequence.push(piece);
        Ok(true)
    }

    /// Opens a group whose beginning has some bytes.
    fn open_group(&mut self, start: usize, captures: bool, bytes: usize) {
        self.position = start + bytes;
        self.open.push(Group::new(start, captures, self.flags));
    }

    fn next_alternative(&mut self) -> Parsed<()> {
        self.position += 1;
        let sequence = std::mem::take(&mut self.innermost().sequence);
        let alternative = self.within_limits(Piece::sequence(sequence))?;
        self.innermost().alternatives.push(alternative);
        Ok(())
    }

    fn close_group(&mut self) -> Parsed<()> {
        let position = self.position;
        let closed = self.end_group()?;
        if self.open.is_empty() {
            return Err(self.whole(GoRegexErrorKind::UnopenedGroup, position));
        }
        self.position += 1;
        self.flags = closed.outer;
        self.push(closed.piece)
    }

    fn end_group(&mut self) -> Parsed<Closed> {
        let Group { start, captures, outer, mut alternatives, sequence } =
            self.open.pop().expect("the whole pattern is closed last");
        alternatives.push(self.within_limits(Piece::sequence(sequence))?);
        let piece = self.within_limits(Piece::choice(alternatives))?;
        Ok(Closed { start, outer, piece: if captures { piece.captured() } else { piece } })
    }

    /// Reads what begins with `(?`: a group with a name, a group that is not captured, or flags.
    fn special_group(&mut self) -> Parsed<()> {
        let start = self.position;
        let rest = self.rest();
        if rest.len() > 4 && rest.starts_with("(?P<") {
            self.named_group(start, 4)
        } else if rest.len() > 3 && rest.starts_with("(?<") {
            self.named_group(start, 3)
        } else {
            self.flags(start)
        }
    }

    fn named_group(&mut self, start: usize, name_at: usize) -> Parsed<()> {
        let Some(end) = self.rest().find('>') else {
            return self.mistake_to_end(GoRegexErrorKind::GroupName, start);
        };
        let name = &self.rest()[name_at..end];
        let good = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if name.is_empty() || !name.chars().all(good) {
            self.position += end + 1;
            return self.mistake(GoRegexErrorKind::GroupName, start);
        }
        self.open_group(start, true, end + 1);
        Ok(())
    }

    /// Reads flags up to `)`, which apply from there on, or up to `:`, which opens a group to which
    /// they apply.
    fn flags(&mut self, start: usize) -> Parsed<()> {
        self.position += 2;
        let mut flags = self.flags;
        let (mut on, mut named_one) = (true, false);
        while let Some(c) = self.next() {
            match c {
                'i' => flags.fold = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                // Lazy or greedy makes no difference here.
                'U' => {}
                '-' if on => {
                    (on, named_one) = (false, false);
                    continue;
                }
                ':' | ')' if on || named_one => {
                    if c == ':' {
                        self.open_group(start, false, self.position - start);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            named_one = true;
        }
        self.mistake(GoRegexErrorKind::PerlSyntax, start)
    }
}
