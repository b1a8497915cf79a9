//! What users read: words for reasons and causes, the status of PodGroups, notes on cards. Nothing
//! here knows settings, policy or how anything is decided.

pub mod cards;
pub mod plan;
pub mod status;
pub mod words;
