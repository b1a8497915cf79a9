//! HyperNodes from other descriptions of the network: labels of nodes, tables, JSON lists, Slurm's
//! `topology.conf`, ports of NVIDIA UFM.
//!
//! The input is texts and objects, the output a [`Forest`] of HyperNodes. The same input gives the
//! same objects, and an addition to the network adds objects and members without changing the names
//! of others.
//!
//! ```
//! use muster_topology_sources::file::read;
//! use muster_topology_sources::places::Naming;
//!
//! let table = "node leaf spine\nn1 l1 s1\nn2 l1 s1\nn3 l2 s1";
//! let forest = read("network.txt", table, None, &[], Naming::Value).expect("a table");
//! let tiers: Vec<usize> = forest.domains.iter().map(|domain| domain.tier).collect();
//! assert_eq!(tiers, [1, 1, 2]);
//! ```

mod error;
pub mod file;
mod forest;
mod hostlist;
mod json;
pub mod labels;
mod levels;
mod names;
pub mod places;
mod slurm;
mod table;
pub mod ufm;
pub mod yaml;

pub use error::{Mistake, Origin, SourceError};
pub use forest::{Domain, Forest, ForestMistake};
