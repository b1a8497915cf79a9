//! The cluster as the scheduler knows it: the objects, their sums, events and transactions. Nothing
//! here knows settings, shares or policy.

pub mod apply;
pub mod audit;
pub mod changes;
pub mod cluster;
pub mod devices;
pub mod event;
pub mod gangs;
pub mod nodes;
pub mod nominations;
pub mod notes;
pub mod pods;
pub mod queues;
pub mod reservations;
pub mod selectors;
pub mod shapes;
pub mod terms;
pub mod topology;
pub mod txn;
pub mod usage;

pub use cluster::{Cluster, Guards};
pub use topology::{domains, hypernodes, subgroups};
