//! Output for people: tables, the story of a run, a map of the cluster.

pub mod curves;
pub mod difference;
pub mod explanation;
pub mod fairshare;
mod gangs;
mod jobs;
mod legend;
mod map;
pub mod plot;
pub mod progress;
pub mod quality;
mod queues;
pub mod screen;
pub mod story;
mod svg;
mod table;
mod text;
mod timeline;
pub mod topology;

pub use map::scarce;
