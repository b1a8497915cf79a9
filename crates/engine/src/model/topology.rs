//! Network topology: domains, the HyperNodes they come from, and how near a gang's pods must be.

pub mod domains;
pub mod hypernodes;
pub mod idle_policies;
pub mod places;
pub mod subgroups;
