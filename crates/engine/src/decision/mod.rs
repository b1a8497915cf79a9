//! What a cycle decides and why, as data. Nothing here knows the model, or how anything is decided.

pub mod cause;
pub mod choice;
pub mod counters;
pub mod decisions;
pub mod node_reason;
pub mod reason;
pub mod staleness;
