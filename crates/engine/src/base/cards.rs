//! What a pod asks of shared cards.

use serde::{Deserialize, Serialize};

/// All cores of a card, in percent. A pod that asks for them shares the card with no other.
pub const ALL_CORES: i64 = 100;

/// So many cards, and the same of each of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub cards: u32,
    pub memory: Memory,
    /// In percent.
    pub cores: i64,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    Mib(i64),
    /// Of the card.
    Percent(i64),
}

impl Memory {
    /// In MiB, of a card with so much.
    pub fn of(self, whole: i64) -> i64 {
        match self {
            Memory::Mib(amount) => amount,
            Memory::Percent(percent) => whole.saturating_mul(percent) / 100,
        }
    }
}
