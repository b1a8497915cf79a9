//! Words that every layer shares: ids, names, amounts, parts per million. Nothing here knows what a
//! cluster is.

pub mod ids;
pub mod names;
pub mod resources;
