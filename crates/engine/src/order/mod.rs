//! Whose turn it is and what holds a gang back; and `Session`, which a turn works with. Nothing here
//! knows eviction or a single action.

pub mod failed_searches;
pub mod gates;
pub mod line;
pub mod pods;
pub mod session;
