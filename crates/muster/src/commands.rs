//! One file a command.

pub mod bench;
pub mod check;
pub mod completions;
pub mod crds;
pub mod explain;
pub mod fairshare;
pub mod generate;
pub mod plugins;
pub mod replay;
pub mod scheduler;
pub mod simulate;
pub mod snapshot;
pub mod topology;
