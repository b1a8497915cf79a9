//! Which node a pod gets, and which domain a gang. Nothing here knows whose turn it is.

pub mod domains;
pub mod fit;
pub mod place;
pub mod place_one;
pub mod ranking;
pub mod rankings;
pub mod request;
pub mod search;
pub mod winner_tree;
