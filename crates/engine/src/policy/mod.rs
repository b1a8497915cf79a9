//! The questions that plugins answer, what they are asked about, and how answers combine. Nothing
//! here knows a plugin by name.

pub mod answers;
pub mod bundle;
pub mod plugin;
pub mod preemptor;
pub mod question;
