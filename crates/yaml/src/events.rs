//! YAML and JSON as a series of events, from which a tree is built.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::str::Chars;

use saphyr_parser::{BufferedInput, Event as Parsed, Parser, ScalarStyle, ScanError};

use super::YamlError;

/// How many characters may lie between two events. The parser holds a whole `[list]` or `{mapping}`
/// in memory, at about a hundred times its size, until it knows that it is not a key.
const LOOKAHEAD: usize = 4 << 20;

/// One step of a document. Anchors are numbered from 1; 0 is none.
pub(super) enum Event<'a> {
    Scalar {
        text: Cow<'a, str>,
        /// Whether the text alone decides what it is: true is a boolean, "true" is not.
        plain: bool,
        anchor: usize,
    },
    Alias(usize),
    SeqStart(usize),
    SeqEnd,
    MapStart(usize),
    MapEnd,
    /// The document is over, or there was none.
    End,
}

/// An event and where it starts, both counted from 1.
pub(super) struct Positioned<'a> {
    pub line: u32,
    pub column: u32,
    pub event: Event<'a>,
}

pub(super) trait Events<'a> {
    fn next(&mut self) -> Result<Positioned<'a>, YamlError>;
}

/// The characters of a text, until too many were read between two events.
struct Metered<'a> {
    chars: Chars<'a>,
    left: Rc<Cell<usize>>,
}

impl Iterator for Metered<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let left = self.left.get().checked_sub(1)?;
        self.left.set(left);
        self.chars.next()
    }
}

pub(super) struct YamlEvents<'a> {
    parser: Parser<'a, BufferedInput<Metered<'a>>>,
    left: Rc<Cell<usize>>,
    lines_before: u32,
    /// The position of the last event.
    line: u32,
    column: u32,
}

impl<'a> YamlEvents<'a> {
    pub fn new(text: &'a str, first_line: u32) -> YamlEvents<'a> {
        let left = Rc::new(Cell::new(LOOKAHEAD));
        let metered = Metered { chars: text.chars(), left: Rc::clone(&left) };
        let parser = Parser::new(BufferedInput::new(metered));
        YamlEvents { parser, left, lines_before: first_line - 1, line: first_line, column: 1 }
    }

    fn too_long(&self) -> YamlError {
        let limit = LOOKAHEAD >> 20;
        YamlError {
            line: self.line,
            column: self.column,
            path: String::new(),
            message: format!(
                "what follows here is longer than {limit} MiB; write long lists and mappings one entry on a line, \
                 without brackets"
            ),
        }
    }

    fn broken(&self, error: &ScanError) -> YamlError {
        YamlError {
            line: self.lines_before + error.marker().line() as u32,
            column: error.marker().col() as u32 + 1,
            path: String::new(),
            message: format!("the YAML is broken here: {}", error.info()),
        }
    }
}

impl<'a> Events<'a> for YamlEvents<'a> {
    fn next(&mut self) -> Result<Positioned<'a>, YamlError> {
        loop {
            self.left.set(LOOKAHEAD);
            let parsed = self.parser.next_event();
            // The parser took the limit for the end of the text.
            if self.left.get() == 0 {
                return Err(self.too_long());
            }
            let (parsed, span) = match parsed {
                Some(Ok(next)) => next,
                Some(Err(error)) => return Err(self.broken(&error)),
                None => {
                    return Ok(Positioned {
                        line: self.line,
                        column: self.column,
                        event: Event::End,
                    });
                }
            };
            let event = match parsed {
                Parsed::Nothing | Parsed::StreamStart | Parsed::DocumentStart(_) => continue,
                Parsed::DocumentEnd | Parsed::StreamEnd => Event::End,
                Parsed::Alias(anchor) => Event::Alias(anchor),
                Parsed::Scalar(text, style, anchor, tag) => {
                    let string_tag =
                        tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                    Event::Scalar {
                        text,
                        plain: style == ScalarStyle::Plain && !string_tag,
                        anchor,
                    }
                }
                Parsed::SequenceStart(anchor, _) => Event::SeqStart(anchor),
                Parsed::SequenceEnd => Event::SeqEnd,
                Parsed::MappingStart(anchor, _) => Event::MapStart(anchor),
                Parsed::MappingEnd => Event::MapEnd,
            };
            self.line = self.lines_before + span.start.line() as u32;
            self.column = span.start.col() as u32 + 1;
            return Ok(Positioned { line: self.line, column: self.column, event });
        }
    }
}
