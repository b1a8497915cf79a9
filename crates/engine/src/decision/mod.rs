//! What a cycle decides and why, as data. Nothing here knows the model, or how anything is decided.

pub mod plan;
pub mod reason;
