//! Which node a pod gets, and which domain a gang. Nothing here knows whose turn it is.

pub mod ranking;
pub mod rankings;
pub mod search;
