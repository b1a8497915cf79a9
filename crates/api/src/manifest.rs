//! Reads files of Kubernetes objects, YAML or JSON, one document at a time, and reports everything
//! that is wrong in one pass: a mistake in one document does not hide mistakes in the next.

mod documents;
mod patch;
mod skipped;
mod spelling;
mod trim;
mod unknown;
mod write;

use std::fmt;
use std::io::BufRead;

pub use crate::kinds::Object;
pub use documents::DOCUMENT_BYTES;
pub use patch::merge_patch;
pub use trim::trim;
pub use write::{document, sorted, write};

use crate::kinds::Kind;
use documents::{Document, Documents, Refusal};
use muster_yaml::{Value, Yaml, YamlError};
use spelling::Spelling;

/// One thing that was found in the input.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "handed over one at a time, never collected")]
pub enum Found {
    Object {
        object: Object,
        line: u32,
        problems: Vec<PlacedProblem>,
        /// Fields that its kind doesn't have, and keys and names that look like misspelt ones.
        unknown: Vec<PlacedProblem>,
    },
    /// An object of a kind that is not read.
    Skipped {
        kind: String,
        /// Group and version; empty for an item of a list that names none.
        api_version: String,
        line: u32,
        /// What it means that nothing acts on the object, if people would expect otherwise.
        meaning: Option<String>,
    },
    Error(ReadError),
}

/// A [`Problem`](crate::Problem) and the line of the field it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedProblem {
    pub line: u32,
    pub path: String,
    pub message: String,
}

/// A document, or an item of a list, that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The name of the input, as the caller gave it.
    pub source: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    /// What to do about it, where the message does not say so already.
    pub help: Option<String>,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.source, self.line, self.column, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {}

/// Reads all objects of the input. At most one document, or one item of a list, is decoded at a
/// time.
pub fn read(source_name: &str, input: impl BufRead, sink: &mut dyn FnMut(Found)) {
    let mut reader = Reader { source: source_name, sink, spelling: Spelling::default() };
    let mut documents = Documents::new(input);
    while let Some(next) = documents.next() {
        match next {
            Ok(document) => reader.document(&document),
            Err(refusal) => reader.refused(&refusal),
        }
    }
}

struct Reader<'a> {
    source: &'a str,
    sink: &'a mut dyn FnMut(Found),
    spelling: Spelling,
}

impl Reader<'_> {
    fn document(&mut self, document: &Document) {
        let Document { text, first_line } = document;
        let mut take_item = |list_kind: &str, item: Yaml| self.item(list_kind, &item);
        match muster_yaml::read(text, *first_line, Some(&mut take_item)) {
            Ok(root) => self.root(&root),
            Err(error) => {
                let help = help_with(document, &error);
                self.error(&error, help);
            }
        }
    }

    fn root(&mut self, root: &Yaml) {
        match &root.value {
            Value::Null => {}
            Value::Map(entries) if entries.is_empty() => {}
            // The items were passed on while the text was read.
            Value::Map(_) if is_list(root) => {}
            Value::Map(_) => self.object(root, None),
            _ => {
                let message = format!("expected a Kubernetes object, found {}", root.description());
                self.complain(root, message, Some("start it with apiVersion and kind".to_owned()));
            }
        }
    }

    /// An item of a list. The items of a list of one kind ("PodList") may leave out their kind.
    fn item(&mut self, list_kind: &str, item: &Yaml) {
        match item.entry("items").map(|items| &items.value) {
            Some(Value::Seq(inner)) if is_list(item) => {
                let kind = item.entry("kind").and_then(Yaml::as_str).unwrap_or_default();
                for item in inner {
                    self.item(kind, item);
                }
            }
            _ => self.object(item, list_kind.strip_suffix("List").filter(|kind| !kind.is_empty())),
        }
    }

    fn object(&mut self, tree: &Yaml, implied_kind: Option<&str>) {
        let kind_name = match tree.entry("kind") {
            None => implied_kind,
            Some(kind) => kind.as_str(),
        };
        let Some(kind_name) = kind_name.filter(|name| !name.is_empty()) else {
            let message = "kind is missing; write for example \"kind: Pod\"";
            return self.complain(tree.entry("kind").unwrap_or(tree), message, None);
        };
        let says_kind = tree.entry("kind").is_some();
        let api_version = tree.entry("apiVersion");
        let version = api_version.and_then(Yaml::as_str).filter(|version| !version.is_empty());
        let Some(kind) = Kind::named(kind_name) else {
            if version.is_none() && says_kind {
                let message = format!("apiVersion is missing in this {kind_name}");
                return self.complain(api_version.unwrap_or(tree), message, None);
            }
            return self.skip(tree, kind_name, version);
        };
        match version {
            Some(version) if version == kind.api_version() => {}
            None if says_kind => {
                let message =
                    format!("apiVersion is missing; write \"apiVersion: {}\"", kind.api_version());
                return self.complain(api_version.unwrap_or(tree), message, None);
            }
            Some(version) if skipped::is_of_another_api(kind, version) => {
                return self.skip(tree, kind_name, Some(version));
            }
            Some(version) => {
                let message = format!("{version:?} has no {kind_name} that is known here");
                let help = format!("write \"apiVersion: {}\"", kind.api_version());
                return self.complain(api_version.unwrap_or(tree), message, Some(help));
            }
            None => {}
        }
        match kind.decode(tree) {
            Ok(object) => {
                let place = |problem: crate::Problem| PlacedProblem {
                    line: tree.line_of(&problem.path),
                    path: problem.path,
                    message: problem.message,
                };
                let problems = object.problems().into_iter().map(place).collect();
                let mut unknown = unknown::unknown_fields(kind.name(), tree);
                self.spelling.check(tree, &mut unknown);
                (self.sink)(Found::Object { object, line: tree.line, problems, unknown });
            }
            Err(error) => self.error(&error, None),
        }
    }

    fn skip(&mut self, tree: &Yaml, kind: &str, api_version: Option<&str>) {
        let api_version = api_version.unwrap_or_default();
        (self.sink)(Found::Skipped {
            kind: kind.to_owned(),
            api_version: api_version.to_owned(),
            line: tree.line,
            meaning: skipped::meaning(kind, api_version),
        });
    }

    fn complain(&mut self, at: &Yaml, message: impl Into<String>, help: Option<String>) {
        let message = message.into();
        self.error(
            &YamlError { line: at.line, column: at.column, path: String::new(), message },
            help,
        );
    }

    fn error(&mut self, error: &YamlError, help: Option<String>) {
        (self.sink)(Found::Error(ReadError {
            source: self.source.to_owned(),
            line: error.line,
            column: error.column,
            message: error.to_string(),
            help,
        }));
    }

    fn refused(&mut self, refusal: &Refusal) {
        let (message, help) = match refusal {
            Refusal::NotText { .. } => {
                let help = "save it as text in UTF-8";
                ("this is not a YAML or JSON file".to_owned(), Some(help.to_owned()))
            }
            Refusal::TooLarge { .. } => {
                let limit = DOCUMENT_BYTES >> 20;
                let help = "split it into several files, or into documents with lines of ---";
                (format!("this document is larger than {limit} MiB"), Some(help.to_owned()))
            }
            Refusal::Unreadable { error, .. } => {
                (format!("cannot read on from here: {error}"), None)
            }
        };
        let error = YamlError { line: refusal.line(), column: 1, path: String::new(), message };
        self.error(&error, help);
    }
}

fn is_list(tree: &Yaml) -> bool {
    let kind = tree.entry("kind").and_then(Yaml::as_str);
    kind.is_some_and(|kind| kind.ends_with("List")) && tree.entry("items").is_some()
}

/// Advice for the most common mistakes.
fn help_with(document: &Document, error: &YamlError) -> Option<String> {
    let indented_with_tab = |line: &str| line.trim_start_matches(' ').starts_with('\t');
    // The parser may report the line after the one that is wrong.
    let first = (error.line.saturating_sub(document.first_line) as usize).saturating_sub(1);
    if document.text.lines().skip(first).take(2).any(indented_with_tab) {
        return Some("indent with spaces; YAML does not allow tabs".to_owned());
    }
    if error.message.contains("mapping values are not allowed") {
        return Some(
            "check the indentation, and put a value that contains \": \" in quotes".to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests;
