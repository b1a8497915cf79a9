//! What an administrator may set, as typed values, and how arguments are read. Nothing here knows
//! which plugins and actions exist.

pub mod actions;
pub mod args;
pub mod argument;
pub mod diagnostic;
pub mod eviction;
pub mod scalar;
