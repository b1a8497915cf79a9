//! Mistakes in a source, and where they are. A source is read to its end, so that all mistakes are
//! found at once.

use std::fmt;

use thiserror::Error;

use crate::forest::ForestMistake;
use crate::json::JsonMistake;
use crate::labels::LabelMistake;
use crate::levels::LevelMistake;
use crate::places::PlaceMistake;
use crate::slurm::SlurmMistake;
use crate::table::TableMistake;
use crate::ufm::UfmMistake;

/// A mistake in a source, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The name of the file, or the address; `None` for labels of nodes.
    pub source: Option<String>,
    pub line: Option<usize>,
    pub mistake: Box<Mistake>,
}

/// One mistake, with what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mistake {
    #[error(transparent)]
    Labels(#[from] LabelMistake),
    #[error(transparent)]
    Levels(#[from] LevelMistake),
    #[error(transparent)]
    Table(#[from] TableMistake),
    #[error(transparent)]
    Json(#[from] JsonMistake),
    #[error(transparent)]
    Slurm(#[from] SlurmMistake),
    #[error(transparent)]
    Ufm(#[from] UfmMistake),
    #[error(transparent)]
    Place(#[from] PlaceMistake),
    #[error(transparent)]
    Forest(#[from] ForestMistake),
}

impl SourceError {
    /// A mistake that is not in a file.
    pub(crate) fn new(mistake: impl Into<Mistake>) -> SourceError {
        SourceError { source: None, line: None, mistake: Box::new(mistake.into()) }
    }

    /// A mistake in the file as a whole.
    pub(crate) fn of(file: &str, mistake: impl Into<Mistake>) -> SourceError {
        SourceError { source: Some(file.to_owned()), ..SourceError::new(mistake) }
    }

    /// A mistake in a line of a file.
    pub(crate) fn at(file: &str, line: usize, mistake: impl Into<Mistake>) -> SourceError {
        SourceError { line: Some(line), ..SourceError::of(file, mistake) }
    }

    /// A mistake in a line of a file, if the line is known.
    pub(crate) fn from_origin(origin: Option<&Origin>, mistake: impl Into<Mistake>) -> SourceError {
        match origin {
            Some(Origin { file, line }) => SourceError::at(file, *line, mistake),
            None => SourceError::new(mistake),
        }
    }
}

impl std::error::Error for SourceError {}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.source, self.line) {
            (Some(source), Some(line)) => write!(f, "{source}:{line}: {}", self.mistake),
            (Some(source), None) => write!(f, "{source}: {}", self.mistake),
            (None, _) => write!(f, "{}", self.mistake),
        }
    }
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub file: String,
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
