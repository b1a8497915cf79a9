//! The cluster as the scheduler knows it: the objects, their sums, events and transactions. Nothing
//! here knows settings, shares or policy.

pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod cluster;
pub mod devices;
pub(crate) mod event;
pub mod gangs;
pub mod nodes;
pub(crate) mod nominations;
pub(crate) mod notes;
pub mod pods;
pub mod queues;
pub(crate) mod reservations;
pub(crate) mod selectors;
pub mod shapes;
pub(crate) mod terms;
pub(crate) mod topology;
pub(crate) mod txn;
pub mod usage;

pub use apply::budgets::Budget;
pub use cluster::{Cluster, Guards};
pub use topology::{domains, hypernodes, subgroups};
