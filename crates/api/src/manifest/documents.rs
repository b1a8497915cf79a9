//! Cuts an input into documents: at `---` and `...` lines, and between JSON objects. Holds one
//! document at a time and stops at the first byte that is not text.

use std::io::{self, BufRead};

/// The largest document that is read.
pub const DOCUMENT_BYTES: usize = 1 << 30;

/// The text of one document and the number of its first line.
pub(super) struct Document {
    pub text: String,
    pub first_line: u32,
}

/// Why reading ended before the end of the input.
pub(super) enum Refusal {
    NotText { line: u32 },
    TooLarge { line: u32 },
    Unreadable { line: u32, error: io::Error },
}

impl Refusal {
    pub fn line(&self) -> u32 {
        match self {
            Refusal::NotText { line }
            | Refusal::TooLarge { line }
            | Refusal::Unreadable { line, .. } => *line,
        }
    }
}

/// How the end of the current document is recognised.
#[derive(Copy, Clone, PartialEq)]
enum Form {
    /// Nothing but blanks, comments and directives so far.
    Undecided,
    /// An opening brace; JSON if a quote or the closing brace follows.
    MaybeJson,
    /// Ends with the brace that closes it, or at a `---` line if that never comes.
    Json { depth: u32, in_string: bool, escaped: bool },
    /// Ends at a `---` or `...` line.
    Yaml,
}

pub(super) struct Documents<R> {
    input: R,
    limit: usize,
    /// The number of the line that is being read.
    line: u32,
    /// The beginning of the current document, if the line that ended the previous one belongs to
    /// it.
    carried: Vec<u8>,
    carried_line: u32,
    finished: bool,
}

/// The document that is being read.
struct Gathered {
    bytes: Vec<u8>,
    first_line: u32,
    line_start: usize,
    /// Whether the current line has only blanks so far.
    blank_line: bool,
    /// How many bytes are known to be UTF-8.
    valid: usize,
    form: Form,
    has_separator: bool,
}

/// What a piece of input did to the current document.
enum Step {
    More,
    Complete,
    /// Complete before its last line, which begins the next document.
    CompleteBeforeLine,
}

impl<R: BufRead> Documents<R> {
    pub fn new(input: R) -> Documents<R> {
        Documents::with_limit(input, DOCUMENT_BYTES)
    }

    fn with_limit(input: R, limit: usize) -> Documents<R> {
        Documents { input, limit, line: 1, carried: Vec::new(), carried_line: 1, finished: false }
    }

    pub fn next(&mut self) -> Option<Result<Document, Refusal>> {
        if self.finished {
            return None;
        }
        let next = self.gather();
        self.finished |= next.is_err();
        match next {
            Ok(document) if self.finished && document.text.trim().is_empty() => None,
            next => Some(next),
        }
    }

    fn gather(&mut self) -> Result<Document, Refusal> {
        let carried = std::mem::take(&mut self.carried);
        let has_separator = !carried.is_empty();
        let mut gathered = Gathered {
            first_line: if has_separator { self.carried_line } else { self.line },
            line_start: carried.len(),
            blank_line: true,
            valid: carried.len(),
            bytes: carried,
            form: Form::Undecided,
            has_separator,
        };
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Refusal::Unreadable { line: self.line, error }),
            };
            if chunk.is_empty() {
                self.finished = true;
                if let Step::CompleteBeforeLine = gathered.end_line() {
                    self.carry(&mut gathered);
                    self.finished = false;
                }
                return gathered.into_document(self.line);
            }
            let line_end = chunk.iter().position(|byte| *byte == b'\n');
            let mut piece = &chunk[..line_end.map_or(chunk.len(), |end| end + 1)];
            let mut json_is_over = false;
            if let Some(end) = gathered.advance(piece) {
                piece = &piece[..end];
                json_is_over = true;
            }
            if piece.contains(&0) {
                return Err(Refusal::NotText { line: self.line });
            }
            let ends_line = piece.last() == Some(&b'\n');
            gathered.bytes.extend_from_slice(piece);
            let length = piece.len();
            self.input.consume(length);
            gathered.check_text(self.line)?;
            if gathered.bytes.len() > self.limit {
                return Err(Refusal::TooLarge { line: gathered.first_line });
            }
            let step = match (json_is_over, ends_line) {
                (true, _) => Step::Complete,
                (false, true) => gathered.end_line(),
                (false, false) => Step::More,
            };
            if let Step::CompleteBeforeLine = step {
                self.carry(&mut gathered);
            }
            if ends_line {
                self.line = self.line.saturating_add(1);
            }
            if !matches!(step, Step::More) {
                return gathered.into_document(self.line);
            }
        }
    }

    /// Moves the current line to the next document.
    fn carry(&mut self, gathered: &mut Gathered) {
        self.carried = gathered.bytes.split_off(gathered.line_start);
        self.carried_line = self.line;
    }
}

impl Gathered {
    /// Follows JSON through a piece of a line; returns the position in it at which the document
    /// ends.
    fn advance(&mut self, piece: &[u8]) -> Option<usize> {
        if self.form == Form::Yaml {
            return None;
        }
        for (index, byte) in piece.iter().enumerate() {
            self.form = match (self.form, byte) {
                (Form::Undecided, b' ' | b'\t' | b'\r' | b'\n') => Form::Undecided,
                (Form::Undecided, b'{') if self.blank_line => Form::MaybeJson,
                // Whether the line is a separator, a comment or YAML is only known at its end.
                (Form::Undecided, _) => {
                    self.blank_line = false;
                    return None;
                }
                (Form::MaybeJson, b' ' | b'\t' | b'\r' | b'\n') => Form::MaybeJson,
                (Form::MaybeJson, b'"') => Form::Json { depth: 1, in_string: true, escaped: false },
                (Form::MaybeJson, b'}') => return Some(index + 1),
                (Form::MaybeJson | Form::Yaml, _) => {
                    self.form = Form::Yaml;
                    return None;
                }
                (Form::Json { depth, in_string: true, escaped }, byte) => Form::Json {
                    depth,
                    in_string: escaped || *byte != b'"',
                    escaped: !escaped && *byte == b'\\',
                },
                (Form::Json { depth, .. }, b'"') => {
                    Form::Json { depth, in_string: true, escaped: false }
                }
                (Form::Json { depth, .. }, b'{') => {
                    Form::Json { depth: depth + 1, in_string: false, escaped: false }
                }
                (Form::Json { depth: 1, .. }, b'}') => return Some(index + 1),
                (Form::Json { depth, .. }, b'}') => {
                    Form::Json { depth: depth - 1, in_string: false, escaped: false }
                }
                (json, _) => json,
            };
        }
        None
    }

    /// Looks at the line that was just completed.
    fn end_line(&mut self) -> Step {
        let line = self.bytes[self.line_start..].trim_ascii_end();
        let is_marker = |marker: &[u8]| {
            line.strip_prefix(marker)
                .is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
        };
        if is_marker(b"---") {
            let begins_here = self.form == Form::Undecided && !self.has_separator;
            if !begins_here {
                return Step::CompleteBeforeLine;
            }
            self.has_separator = true;
        } else if is_marker(b"...") {
            return Step::Complete;
        } else if self.form == Form::Undecided && !self.blank_line {
            let is_comment = line.trim_ascii_start().starts_with(b"#");
            let is_directive = line.starts_with(b"%") && !self.has_separator;
            if !is_comment && !is_directive {
                self.form = Form::Yaml;
            }
        }
        self.line_start = self.bytes.len();
        self.blank_line = true;
        Step::More
    }

    fn check_text(&mut self, line: u32) -> Result<(), Refusal> {
        match std::str::from_utf8(&self.bytes[self.valid..]) {
            Ok(_) => self.valid = self.bytes.len(),
            // A character may continue in the next piece.
            Err(error) if error.error_len().is_none() => self.valid += error.valid_up_to(),
            Err(_) => return Err(Refusal::NotText { line }),
        }
        Ok(())
    }

    fn into_document(self, line: u32) -> Result<Document, Refusal> {
        let first_line = self.first_line;
        let text = String::from_utf8(self.bytes).map_err(|_| Refusal::NotText { line })?;
        // Some editors begin a file with a byte order mark.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Document { text, first_line })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    /// The documents as (first line, text); a refusal as its line.
    fn cut(input: &[u8], buffer: usize) -> Vec<Result<(u32, String), u32>> {
        let mut documents = Documents::with_limit(BufReader::with_capacity(buffer, input), 1_000);
        let mut found = Vec::new();
        while let Some(next) = documents.next() {
            found.push(match next {
                Ok(document) => Ok((document.first_line, document.text)),
                Err(refusal) => Err(refusal.line()),
            });
        }
        found
    }

    #[test]
    fn documents_end_where_yaml_and_json_end() {
        for (text, expected) in [
            ("", &[][..]),
            ("a: 1\n", &[(1, "a: 1\n")]),
            ("a: 1\n---\nb: 2", &[(1, "a: 1\n"), (2, "---\nb: 2")]),
            ("---\na: 1\n---\nb: 2\n", &[(1, "---\na: 1\n"), (3, "---\nb: 2\n")]),
            ("# c\n%YAML 1.2\n---\na: 1\n", &[(1, "# c\n%YAML 1.2\n---\na: 1\n")]),
            ("a: 1\n...\nb: 2\n", &[(1, "a: 1\n...\n"), (3, "b: 2\n")]),
            ("a: |\n  ---\n----\n", &[(1, "a: |\n  ---\n----\n")]),
            (
                "{\"a\": 1}{\"b\": \"}\\\"\"}\n{}",
                &[(1, "{\"a\": 1}"), (1, "{\"b\": \"}\\\"\"}"), (1, "\n{}")],
            ),
            ("{a: 1}\n---\nb: 2\n", &[(1, "{a: 1}\n"), (2, "---\nb: 2\n")]),
            ("{\"a\": [\n---\nb: 2\n", &[(1, "{\"a\": [\n"), (2, "---\nb: 2\n")]),
            ("- a\n- b\n", &[(1, "- a\n- b\n")]),
            ("a: 1\n---", &[(1, "a: 1\n"), (2, "---")]),
            ("\u{feff}a: 1\n", &[(1, "a: 1\n")]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(line, text)| Ok((*line, text.to_string()))).collect();
            for buffer in [1, 2, 7, 4_096] {
                assert_eq!(cut(text.as_bytes(), buffer), expected, "{text:?} by {buffer}");
            }
        }
    }

    #[test]
    fn input_that_is_not_text_is_rejected_with_its_line() {
        assert_eq!(cut(b"a: 1\nb: \0\n", 3), [Err(2)]);
        assert_eq!(cut(b"a: 1\nb: \xff\n", 3), [Err(2)]);
        assert_eq!(cut(b"a: \xc3", 3), [Err(1)]);
        assert_eq!(cut("a: é€😀\n".as_bytes(), 1), [Ok((1, "a: é€😀\n".to_owned()))]);
    }

    #[test]
    fn a_document_beyond_the_limit_is_rejected() {
        let text = format!("a: 1\n---\nb: {}\n", "x".repeat(2_000));
        assert_eq!(cut(text.as_bytes(), 64), [Ok((1, "a: 1\n".to_owned())), Err(2)]);
    }

    #[test]
    fn the_rest_of_a_binary_file_is_not_read() {
        let mut documents = Documents::new(BufReader::new(io::repeat(0).take(1 << 40)));
        assert!(matches!(documents.next(), Some(Err(Refusal::NotText { line: 1 }))));
        assert!(documents.next().is_none());
    }
}
