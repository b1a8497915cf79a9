//! Proposes for each gang and subgroup the domain that leaves the most room for others: see
//! `search.rs`.

use crate::policy::plugin::{Entry, Plugin, answers};

pub static ENTRY: Entry = Entry {
    name: "propose",
    summary: "prefers, among domains of one tier that hold as many of a gang's pods, the one that \
              keeps the largest other domains free, and of those the one with the least room left",
    arguments: &[],
    differs: "Volcano has no such plugin; its design 003 leaves it open. A gang that finds no \
              room this way is placed without it.",
    build: |_, _| Box::new(Propose),
};

struct Propose;

#[answers]
impl Plugin for Propose {
    fn spares_whole_domains(&self) -> bool {
        true
    }
}
