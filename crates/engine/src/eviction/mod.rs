//! Which pods leave for which gang. Nothing here knows which action asked, but for its name.

pub mod arguments;
pub mod bundles;
pub mod cheapest_nodes;
pub mod claims;
pub mod domain_fit;
pub mod failed_searches;
pub mod gang_claims;
pub mod order;
pub mod relocate;
pub mod rights;
pub mod trace;
pub mod victims;
