//! What people look at: tables, the story of a run, a map of the cluster.

pub mod progress;
pub mod story;
