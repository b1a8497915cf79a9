//! One file per command.

pub mod bench;
pub mod check;
pub mod completions;
pub mod crds;
mod embedded;
pub mod explain;
pub mod fairshare;
pub mod generate;
mod manifests;
pub mod plugins;
pub mod replay;
pub mod scheduler;
pub mod simulate;
pub mod snapshot;
pub mod topology;
pub mod version;
