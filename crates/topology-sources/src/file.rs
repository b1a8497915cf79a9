//! A file that describes the network, in one of three formats.

use crate::error::SourceError;
use crate::forest::Forest;
use crate::places::{self, Naming};
use crate::{json, slurm, table};

#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Format {
    /// One line per node: node leaf spine
    Table,
    /// [{"node": "n1", "levels": ["leaf1", "spine1"]}]
    Json,
    /// Slurm's topology.conf
    Slurm,
}

pub fn read(
    file: &str,
    text: &str,
    format: Option<Format>,
    levels: &[String],
    naming: Naming,
) -> Result<Forest, Vec<SourceError>> {
    let (names, places) = match format.unwrap_or_else(|| detect(text)) {
        Format::Slurm => return slurm::read(file, text, levels),
        Format::Table => table::read(file, text, levels)?,
        Format::Json => json::read(file, text, levels)?,
    };
    places::forest(&names, &places, naming)
}

/// The format that the text seems to have.
fn detect(text: &str) -> Format {
    if text.trim_start().starts_with(['[', '{']) {
        Format::Json
    } else if text.lines().any(slurm::is_line) {
        Format::Slurm
    } else {
        Format::Table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_detected_from_the_text() {
        for (text, format) in [
            ("\n [{\"node\": 1}]", Format::Json),
            ("{}", Format::Json),
            ("# switches\n  switchname=a Nodes=b", Format::Slurm),
            ("BlockName=a Nodes=b", Format::Slurm),
            ("node leaf", Format::Table),
            ("", Format::Table),
        ] {
            assert_eq!(detect(text), format, "{text}");
        }
    }
}
