//! Names of the levels of a network.

use muster_text::counted;
use thiserror::Error;

/// The default names of levels, from the bottom.
const LEVELS: [&str; 3] = ["leaf", "spine", "core"];

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "--levels has {} and the network has {}: write one name for each, from the top to the bottom",
    counted(*names as u64, "name"),
    counted(*levels as u64, "level")
)]
pub struct LevelMistake {
    pub names: usize,
    pub levels: usize,
}

/// The names of levels from the bottom: the given ones, which are from the top, or the default
/// ones.
pub fn level_names(given: &[String], count: usize) -> Result<Vec<String>, LevelMistake> {
    let usual = |level: usize| {
        LEVELS.get(level).map_or_else(|| format!("tier{}", level + 1), |name| (*name).to_owned())
    };
    match given.len() {
        0 => Ok((0..count).map(usual).collect()),
        given_count if given_count == count => Ok(given.iter().rev().cloned().collect()),
        names => Err(LevelMistake { names, levels: count }),
    }
}
