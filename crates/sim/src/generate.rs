//! Made-up clusters and workloads with the proportions of real ones, written as ordinary manifests.
//!
//! The same spec gives the same bytes on every machine and in every year: random numbers come from
//! ChaCha8, time from the spec, and nothing is rounded by a platform's own mathematics (see
//! `draw`). The numbers behind the tables were counted in public traces: Alibaba's openb
//! (gpu-v2023), spot-gpu (v2026) and DLRM (gpu-v2025), Microsoft's Philly, and the published
//! summaries of Acme, Helios and PAI.
//!
//! A cluster and a workload do not know each other. They fit together because both take their queue
//! names, priority classes and GPU models from the same tables (`tenants`, `shapes`).

mod arrivals;
mod cluster;
pub mod draw;
mod durations;
mod gangs;
mod manifest;
mod network;
mod podgroups;
mod profiles;
mod shapes;
mod tenants;
mod workload;

pub use cluster::{ClusterSpec, cluster};
pub use profiles::Profile;
pub use shapes::Template;
pub use workload::{Amount, WorkloadSpec, workload};

/// 2026-01-05T00:00:00Z, a Monday: a fixed start keeps the wall clock out of the output, and the
/// week begins with its busy days.
pub const DEFAULT_START: i64 = 1_767_571_200;
