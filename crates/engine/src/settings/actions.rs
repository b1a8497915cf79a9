//! The arguments of all actions.

use crate::base::purpose::Mode;
use crate::settings::eviction::EvictionSettings;

/// The arguments of actions. Each action's `configure` fills in its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In a traverse queue no gang overtakes one that has waited this long; 0 is never.
    pub traverse_head_wait_ms: i64,
    /// An admitted gang that could not start gives its admission back after this time; 0 is never.
    pub admission_timeout_ms: i64,
    /// A gang may hold places for less than its minimum this long, if `stalegangeviction` is among
    /// the actions; negative is for ever.
    pub stale_after_ms: i64,
    /// A nomination is kept this long; 0 is for ever.
    pub nomination_limit_ms: i64,
    pub preempt: EvictionSettings,
    pub reclaim: EvictionSettings,
    pub gangpreempt: EvictionSettings,
    pub gangreclaim: EvictionSettings,
    pub consolidate: EvictionSettings,
    /// A place that is kept for the successor of a pod that was moved is kept this long.
    pub reservation_limit_ms: i64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            traverse_head_wait_ms: 600_000,
            admission_timeout_ms: 300_000,
            stale_after_ms: 60_000,
            nomination_limit_ms: 1_800_000,
            preempt: EvictionSettings::default(),
            reclaim: EvictionSettings::default(),
            gangpreempt: EvictionSettings { mode: Mode::Gang, ..EvictionSettings::default() },
            gangreclaim: EvictionSettings { mode: Mode::Gang, ..EvictionSettings::default() },
            consolidate: EvictionSettings { mode: Mode::Scenario, ..EvictionSettings::default() },
            reservation_limit_ms: 300_000,
        }
    }
}
