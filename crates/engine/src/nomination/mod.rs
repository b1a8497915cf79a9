//! The life of a nomination: restored, reaffirmed, fulfilled, released, published; and reservations
//! for pods that will be made again. Nothing here knows eviction.

pub mod reaffirm;
pub mod reservations;
