//! One action per file. Actions call what is below them; `config/lists.rs` lists them.

pub mod allocate;
pub mod backfill;
pub mod consolidate;
pub mod enqueue;
pub mod gangpreempt;
pub mod gangreclaim;
pub mod preempt;
pub mod reclaim;
pub mod shuffle;
pub mod stalegangeviction;
