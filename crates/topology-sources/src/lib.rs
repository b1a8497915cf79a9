//! HyperNodes from other descriptions of the network: labels of nodes, tables, JSON lists, Slurm's
//! `topology.conf`, ports of NVIDIA UFM.
//!
//! The input is texts and objects, the output a [`Forest`] of HyperNodes. The same input gives the
//! same objects, and an addition to the network adds objects and members without changing the names
//! of others.

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
