//! One scheduling opinion per file. Plugins know nothing of placement, eviction or each other;
//! `config/lists.rs` lists them.

pub mod binpack;
pub mod capacity;
pub mod cdp;
pub mod conformance;
pub mod deviceshare;
pub mod drf;
pub mod gang;
pub mod minruntime;
pub mod network_topology_aware;
pub mod nodegroup;
pub mod nodeorder;
pub mod overcommit;
pub mod pdb;
pub mod predicates;
pub mod priority;
pub mod proportion;
pub mod propose;
pub mod resourcequota;
pub mod sla;
pub mod tdm;
