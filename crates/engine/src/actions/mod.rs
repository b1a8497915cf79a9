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

use crate::settings::argument::Argument;

/// Arguments of Volcano that `preempt` and `reclaim` accept.
const GANG_AWARE_ENABLE: Argument =
    Argument { name: "gangAwareEnable", default: "false", meaning: "the same as mode: gang" };
const PREDICATE_ERROR_CACHE_ENABLE: Argument =
    Argument { name: "predicateErrorCacheEnable", default: "true", meaning: "accepted, always on" };
