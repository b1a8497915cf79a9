//! What people look at: tables, the story of a run, a map of the cluster.

pub mod difference;
pub mod explanation;
mod gangs;
mod legend;
mod map;
pub mod progress;
mod queues;
pub mod story;
mod table;
mod text;
mod timeline;
pub mod topology;
