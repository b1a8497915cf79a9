//! Errors in the user's input. Every message says where, and what to do.

use std::fmt;
use std::io;

use muster_api::manifest::{PlacedProblem, ReadError};
use muster_engine::config::Diagnostic;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum InputError {
    #[error("{name}: {}", in_words(source))]
    Unreadable { name: String, source: io::Error },
    #[error("{folder}: no .yaml, .yml or .json file in this folder")]
    EmptyFolder { folder: String },
    #[error("{name}: is given twice, first as {first}: leave one out")]
    GivenTwice { name: String, first: String },
    #[error("standard input can be read once only: give - to one of them")]
    StandardInputTwice,
    /// A document that cannot be read.
    #[error(transparent)]
    Document(#[from] ReadError),
    #[error("{at}: there is no kind {kind}: did you mean {known}?")]
    Kind { at: Location, kind: String, known: &'static str },
    #[error("{}: {object}: {}: {}", Location::new(file, problem.line), problem.path, problem.message)]
    Field { file: String, object: String, problem: PlacedProblem },
    #[error("{at}: {object} is defined twice, first at {first}: delete one of them")]
    DefinedTwice { at: Location, object: String, first: Location },
    #[error("nothing to schedule: no objects in {files}")]
    NoObjects { files: String },
    #[error(
        "nothing to check: name manifests with -f FILE (- for standard input), a configuration \
         with --config FILE, or both"
    )]
    NothingToCheck,
    #[error("{0}")]
    Config(Diagnostic),
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    file: String,
    line: u32,
}

impl Location {
    pub fn new(file: &str, line: u32) -> Location {
        Location { file: file.to_owned(), line }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// What went wrong while reading a file.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or folder".to_owned(),
        io::ErrorKind::InvalidData => "not a text file".to_owned(),
        _ => error.to_string(),
    }
}
