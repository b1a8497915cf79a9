//! Where a replay decided differently, as text for people.

use std::fmt;

use muster_api::Time;
use muster_engine::Plan;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub segment: String,
    /// The record of the cycle, from 1.
    pub record: u64,
    pub now: Time,
    /// The version of muster that recorded it.
    pub muster: String,
    pub recorded: Plan,
    pub computed: Plan,
}

/// At most this many lines of each side are shown.
const SHOWN: usize = 20;

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { segment, record, now, muster, recorded, computed } = self;
        write!(f, "{segment}, record {record}: the cycle at {now} decides differently")?;
        let ours = env!("CARGO_PKG_VERSION");
        if muster != ours {
            write!(f, "; it was recorded by muster {muster}, and this is {ours}")?;
        }
        let (recorded, computed) = (recorded.lines(), computed.lines());
        let only = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|line| !those.contains(line)).cloned().collect()
        };
        let (missing, new) = (only(&recorded, &computed), only(&computed, &recorded));
        if missing.is_empty() && new.is_empty() {
            list(f, "recorded, in this order", &recorded)?;
            return list(f, "now, in this order", &computed);
        }
        list(f, "only in the recorded plan", &missing)?;
        list(f, "only in the plan of now", &new)?;
        let same = recorded.len() - missing.len();
        write!(f, "\nthe same in both: {same}")
    }
}

fn list(f: &mut fmt::Formatter<'_>, title: &str, lines: &[String]) -> fmt::Result {
    write!(f, "\n{title}:")?;
    if lines.is_empty() {
        write!(f, " nothing")?;
    }
    for line in lines.iter().take(SHOWN) {
        write!(f, "\n  {line}")?;
    }
    match lines.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, "\n  and {more} more"),
    }
}
