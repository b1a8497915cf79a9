//! What an administrator may set, as typed values, and how arguments are read. Nothing here knows
//! which plugins and actions exist.

pub mod args;
pub mod diagnostic;
pub mod scalar;
