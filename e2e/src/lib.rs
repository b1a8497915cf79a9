//! A real control plane on this machine: etcd, kube-apiserver, kube-scheduler and kwok, built from
//! Go modules, started on loopback and always cleaned up. Knows nothing about scheduling.

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

/// An error outside of our code, in words: tests and developers read it, no program does.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Failure>;
