//! What `muster simulate -o json` says, as far as the rules read it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    pub binds: Vec<Placement>,
    pub evictions: Vec<Eviction>,
    pub nominations: Vec<Placement>,
    pub held_nominations: Vec<Held>,
    pub gangs: Vec<GangLine>,
    pub cycles: Vec<CycleLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    pub pod: String,
    pub node: String,
    pub cycle: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub pod: String,
    pub node: String,
    pub cycle: usize,
    pub evicted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    pub pod: String,
    pub gang: String,
    pub node: String,
    pub cycle: usize,
    pub action: String,
    #[serde(rename = "for")]
    pub preemptor: Option<String>,
    #[serde(rename = "movesTo", default)]
    pub moves_to: Option<String>,
    pub reason: String,
}

/// A gang at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GangLine {
    pub name: String,
    pub running: usize,
    pub pending: usize,
    pub nominated: usize,
    pub terminating: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleLine {
    pub cycle: usize,
    pub binds: usize,
    pub evictions: usize,
    pub nominations: usize,
}

impl Output {
    pub fn parse(text: &str) -> Result<Output, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("the output is not as expected: {error}"))
    }
}
