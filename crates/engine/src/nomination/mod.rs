//! The life of a nomination: restored, reaffirmed, fulfilled, released, published; and reservations
//! for pods that will be created again. Nothing here knows eviction.

pub mod backoff;
pub mod fulfil;
pub mod held;
pub mod lost;
pub mod publish;
pub mod reaffirm;
pub mod release;
pub mod reservations;
pub mod restore;
pub mod still_fit;
