//! What users read: the plan of a cycle by names, words for reasons and causes, the status of
//! PodGroups, notes on cards. Nothing here knows settings, policy or whatever decides.

pub mod cards;
pub mod plan;
pub mod status;
pub mod words;
