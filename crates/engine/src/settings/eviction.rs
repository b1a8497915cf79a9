//! How an action takes room from others.

use crate::base::purpose::{Method, Mode};

/// How an action takes room from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionSettings {
    pub mode: Mode,
    pub method: Method,
    pub bundle_settings: BundleSettings,
    /// How many pods may be moved for one gang, where nobody is to be lost.
    pub max_moves: usize,
}

impl Default for EvictionSettings {
    fn default() -> Self {
        EvictionSettings {
            mode: Mode::default(),
            method: Method::default(),
            bundle_settings: BundleSettings::default(),
            max_moves: 64,
        }
    }
}

impl EvictionSettings {
    /// The same, but no gang may be broken.
    pub fn breaking_nobody(&self) -> EvictionSettings {
        let bundle_settings = BundleSettings { allow_whole: false, ..self.bundle_settings.clone() };
        EvictionSettings { bundle_settings, ..self.clone() }
    }
}

/// How whole gangs are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleSettings {
    /// How many domains are tried.
    pub max_domains: usize,
    /// Gangs may be broken.
    pub allow_whole: bool,
    /// What is left of a broken gang elsewhere goes too.
    pub evict_broken: bool,
    /// Returns that differ by no more are equal, in parts per million.
    pub roi_threshold: i64,
    /// The priority of gangs goes before what breaks nobody.
    pub priority_first: bool,
    /// Those who leave and find another place count as gone from where they were.
    pub counts_moved: bool,
    /// How many moves of pods may be tried for a gang.
    pub steps_per_gang: u64,
    /// The same for all gangs of a cycle.
    pub steps: u64,
}

impl Default for BundleSettings {
    fn default() -> Self {
        BundleSettings {
            max_domains: 8,
            allow_whole: true,
            evict_broken: false,
            roi_threshold: 50_000,
            priority_first: false,
            counts_moved: false,
            steps_per_gang: 1_000_000,
            steps: 4_000_000,
        }
    }
}
