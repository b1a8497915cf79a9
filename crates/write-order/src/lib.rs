//! What must be written on pods and PodGroups before pods are evicted, and in which order.
//!
//! [`Nominations`] compares what the engine knows of nominations with what the pods' objects say;
//! only a difference is written. [`WriteOrder`] hands out these writes one after the other for each
//! object, and holds evictions back until the writes that they wait for are done. The caller sends
//! the writes, and tells the engine what came of them.

mod nominations;
mod order;
mod write;

pub use nominations::Nominations;
pub use order::{Dropped, EvictionGroup, Freed, Outcome, RefusedNomination, WriteOrder};
pub use write::{AnnotationWrite, Desired, ObjectName};
