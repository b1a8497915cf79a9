//! How an action takes room from others, and the arguments that say so.

use muster_yaml::Value;

use crate::base::purpose::{Method, Mode};
use crate::settings::args::Args;

/// How an action takes room from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictionSettings {
    pub mode: Mode,
    pub method: Method,
    pub bundle_settings: BundleSettings,
    /// How many pods may be moved for one gang, where none may be lost.
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
    pub fn without_breaking_gangs(&self) -> EvictionSettings {
        let bundle_settings = BundleSettings { allow_whole: false, ..self.bundle_settings.clone() };
        EvictionSettings { bundle_settings, ..self.clone() }
    }
}

/// How whole gangs are evicted.
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
    /// The priority of gangs counts before whether they break.
    pub priority_first: bool,
    /// Pods that leave and find another node count as gone from where they were.
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

impl Args<'_> {
    /// How an action takes room from others.
    pub fn eviction_settings(&mut self) -> EvictionSettings {
        EvictionSettings { mode: self.mode(), ..self.eviction_settings_by_gang() }
    }

    /// The same for one that only takes whole gangs.
    pub fn eviction_settings_by_gang(&mut self) -> EvictionSettings {
        let (method, bundle_settings) = (self.eviction_method(), self.bundle_settings());
        EvictionSettings {
            mode: Mode::Gang,
            method,
            bundle_settings,
            ..EvictionSettings::default()
        }
    }

    /// Modes that aren't built are accepted, and have no effect. Other arguments that set the mode
    /// are settled in `modes.rs`.
    fn mode(&mut self) -> Mode {
        let read = |value: &Value| match value {
            Value::String(text) => Mode::named(text),
            _ => None,
        };
        self.take("mode", "task, gang or scenario", read).unwrap_or_default()
    }

    pub(super) fn eviction_method(&mut self) -> Method {
        let words = [("eviction", Method::Evict), ("delete", Method::Delete)];
        self.word("evictionMethod", "eviction or delete", &words).unwrap_or_default()
    }

    fn bundle_settings(&mut self) -> BundleSettings {
        let BundleSettings {
            max_domains,
            allow_whole,
            evict_broken,
            roi_threshold,
            steps_per_gang,
            steps,
            ..
        } = BundleSettings::default();
        let words = [("safe-first", false), ("priority-first", true)];
        BundleSettings {
            max_domains: self.at_least(1, "maxDomains", max_domains as u64) as usize,
            allow_whole: self.bool("allowWholeBundle", allow_whole),
            evict_broken: self.bool("evictBrokenGang", evict_broken),
            roi_threshold: self.fraction("roiThreshold", roi_threshold),
            priority_first: self
                .word("order", "safe-first or priority-first", &words)
                .unwrap_or_default(),
            counts_moved: !self.bool("allowConsolidatingReclaim", true),
            steps_per_gang: self.at_least(1, "maxStepsPerGang", steps_per_gang),
            steps: self.at_least(1, "maxSteps", steps),
        }
    }

    /// The same for an action that moves pods.
    pub fn eviction_settings_by_moves(&mut self) -> EvictionSettings {
        let max_moves =
            self.at_least(0, "maxMoves", EvictionSettings::default().max_moves as u64) as usize;
        EvictionSettings { mode: Mode::Scenario, max_moves, ..self.eviction_settings_by_gang() }
    }
}
