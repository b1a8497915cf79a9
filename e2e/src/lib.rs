//! A real control plane on this machine: etcd, kube-apiserver, kube-scheduler and kwok, built from
//! Go modules, started on loopback and never left behind. Knows nothing of how anything is
//! scheduled.

pub mod bed;
pub mod bench;
pub mod binaries;
pub mod checks;
pub mod cluster;
pub mod controlplane;
pub mod dice;
pub mod guard;
pub mod proxy;
pub mod scheduler;
pub mod witness;
pub mod workload;

/// What went wrong outside, in words; a test or a developer reads it, no program does.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Failure>;
