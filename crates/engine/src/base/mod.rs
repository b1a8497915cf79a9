//! Words that every layer shares: ids, names, amounts, parts per million. Nothing here knows what a
//! cluster is.

pub mod cards;
pub mod ids;
pub mod names;
pub mod parts_per_million;
pub mod purpose;
pub mod resources;
pub mod room;
