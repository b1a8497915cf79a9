//! Volcano's scheduler configuration: which actions run, which plugins are asked, with which
//! arguments.
//!
//! A mistake is a [`Diagnostic`] with its place, and all mistakes are reported at once. What
//! Volcano knows and Muster doesn't is ignored with a warning, so that a configuration can be
//! brought along as it is.

pub mod actions;
pub mod lint;
pub mod lists;
pub mod modes;
pub mod switches;
pub mod tiers;

use muster_api::yaml;
use muster_api::yaml::{Value, Yaml};

use crate::decision::plan::Method;
use crate::order::session::Action;
use crate::policy::answers::{Policy, Purpose};
use crate::settings::diagnostic::{Place, Report, describe, suggest};

pub use crate::settings::args::Args;
pub use crate::settings::diagnostic::Diagnostic;

/// What is used when no configuration is given.
pub const BUILTIN: &str = r#"actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: capacity
  - name: nodeorder
    arguments:
      # So that it doesn't pull against binpack.
      leastrequested.weight: 0
  - name: binpack
  - name: network-topology-aware
configurations:
- name: reclaim
  arguments: {mode: gang}
- name: preempt
  arguments: {mode: gang}
"#;

pub struct Config {
    pub actions: Vec<&'static Action>,
    pub policy: Policy,
    pub settings: Settings,
    pub warnings: Vec<Diagnostic>,
}

impl Config {
    /// Reads a configuration. The file's name is only for messages. On error, all of them in the
    /// order of the text.
    pub fn parse(file: &str, text: &str) -> Result<Config, Vec<Diagnostic>> {
        let mut report = Report::new(file);
        let parts = read(text, &mut report);
        let (errors, warnings) = report.finish();
        match parts {
            Some((actions, policy, settings)) if errors.is_empty() => {
                Ok(Config { actions, policy, settings, warnings })
            }
            _ => {
                assert!(!errors.is_empty(), "a configuration is refused with a reason");
                Err(errors)
            }
        }
    }

    pub fn builtin() -> Config {
        Config::parse("builtin", BUILTIN).unwrap_or_else(|errors| {
            let errors: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
            panic!("the built-in configuration is wrong:\n{}", errors.join("\n"))
        })
    }
}

/// The arguments of actions. Each action's `configure` fills in its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In a traverse queue nobody passes a gang that has waited this long; 0 is never.
    pub traverse_head_wait_ms: i64,
    /// An admitted gang that could not start gives its admission back after this time; 0 is never.
    pub admission_timeout_ms: i64,
    /// A gang may hold places for less than its minimum this long, if `stalegangeviction` is among
    /// the actions; negative is for ever.
    pub stale_after_ms: i64,
    /// A promised place is kept this long; 0 is for ever.
    pub nomination_limit_ms: i64,
    pub preempt: Taking,
    pub reclaim: Taking,
    pub gangpreempt: Taking,
    pub gangreclaim: Taking,
    pub consolidate: Taking,
    /// A place that is kept for the successor of a pod that was moved is kept this long.
    pub reservation_limit_ms: i64,
}

impl Settings {
    /// How an action takes room, if it does.
    pub fn taking(&self, action: &str) -> Option<(Purpose, &Taking)> {
        match action {
            "preempt" => Some((Purpose::Preempt, &self.preempt)),
            "reclaim" => Some((Purpose::Reclaim, &self.reclaim)),
            "gangpreempt" => Some((Purpose::Preempt, &self.gangpreempt)),
            "gangreclaim" => Some((Purpose::Reclaim, &self.gangreclaim)),
            "consolidate" => Some((Purpose::Consolidate, &self.consolidate)),
            _ => None,
        }
    }
}

/// How an action takes room from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    pub mode: Mode,
    pub method: Method,
    pub bundling: Bundling,
    /// How many pods may be moved for one gang, where nobody is to be lost.
    pub max_moves: usize,
}

impl Default for Taking {
    fn default() -> Self {
        Taking {
            mode: Mode::default(),
            method: Method::default(),
            bundling: Bundling::default(),
            max_moves: 64,
        }
    }
}

impl Taking {
    /// The same, but no gang may be broken.
    pub fn breaking_nobody(&self) -> Taking {
        let bundling = Bundling { allow_whole: false, ..self.bundling.clone() };
        Taking { bundling, ..self.clone() }
    }
}

/// How whole gangs are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundling {
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

impl Default for Bundling {
    fn default() -> Self {
        Bundling {
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

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Pod by pod.
    #[default]
    Task,
    /// By bundles of gangs.
    Gang,
    /// By what gangs can lose and whole gangs in the order of their queues, with whoever leaves
    /// placed elsewhere if there is room.
    Scenario,
}

impl Mode {
    pub const NAMES: [(&str, Mode); 3] =
        [("task", Mode::Task), ("gang", Mode::Gang), ("scenario", Mode::Scenario)];

    pub fn named(text: &str) -> Option<Mode> {
        Mode::NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, mode)| mode)
    }

    pub fn name(self) -> &'static str {
        Mode::NAMES.into_iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            traverse_head_wait_ms: 600_000,
            admission_timeout_ms: 300_000,
            stale_after_ms: 60_000,
            nomination_limit_ms: 1_800_000,
            preempt: Taking::default(),
            reclaim: Taking::default(),
            gangpreempt: Taking { mode: Mode::Gang, ..Taking::default() },
            gangreclaim: Taking { mode: Mode::Gang, ..Taking::default() },
            consolidate: Taking { mode: Mode::Scenario, ..Taking::default() },
            reservation_limit_ms: 300_000,
        }
    }
}

const TOP_KEYS: [&str; 4] = ["actions", "tiers", "configurations", "metrics"];

type Parts = (Vec<&'static Action>, Policy, Settings);

/// Nothing if the text has no configuration in it at all; what is wrong in one goes to the report.
fn read(text: &str, report: &mut Report) -> Option<Parts> {
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let at = Place { line: error.line, column: error.column };
            report.error(at, &error.path, error.message, "");
            return None;
        }
    };
    top_level(&root, report)?;

    let mut named = actions::read(&root, report);
    let mut said = modes::Said::default();
    let mut settings = actions::configure(&root, &mut named, &mut said, report);
    let (plugins, seats) = tiers::read(&root, &mut said, report);
    said.settle(&named.names, &mut settings, report);
    let setup = lint::Setup {
        actions: &named.names,
        actions_at: named.at,
        plugins: &plugins,
        tiers_at: field(&root, "tiers").map_or(Place::START, |(at, _)| at),
    };
    setup.conflicts(report);
    setup.lint(report);
    let mut policy = Policy::new(seats);
    let by_scenario = |(purpose, taking): (Purpose, &Taking)| {
        purpose != Purpose::Consolidate && taking.mode == Mode::Scenario
    };
    if named.built.iter().any(|action| settings.taking(action.name).is_some_and(by_scenario)) {
        policy.measure_by_fair_shares();
    }
    Some((named.built, policy, settings))
}

fn top_level(root: &Yaml, report: &mut Report) -> Option<()> {
    let example =
        "write, for example, actions: \"enqueue, allocate, backfill\" and tiers: with the plugins";
    let Value::Map(entries) = &root.value else {
        let message = match &root.value {
            Value::Null => "the configuration is empty".to_owned(),
            _ => format!("expected a mapping with actions and tiers, found {}", describe(root)),
        };
        report.error(root.into(), "", message, example);
        return None;
    };
    for (key, _) in entries {
        match key.name.as_str() {
            "metrics" => report.warning(
                key.into(),
                "metrics",
                "ignored: no built plugin reads measured load",
                "remove it, or keep it for Volcano",
            ),
            name if TOP_KEYS.contains(&name) => {}
            name => report.error(key.into(), name, "there is no such key", suggest(name, TOP_KEYS)),
        }
    }
    Some(())
}

/// The entry of a map and the place of its key. An entry without a value counts as absent, as it
/// does in Go.
pub fn field<'y>(map: &'y Yaml, name: &str) -> Option<(Place, &'y Yaml)> {
    let Value::Map(entries) = &map.value else { return None };
    let (key, value) = entries.iter().find(|(key, _)| key.name == name)?;
    (value.value != Value::Null).then(|| (key.into(), value))
}

/// The items of a list under a key; none if the key is absent.
pub fn items<'y>(map: &'y Yaml, name: &str, help: &str, report: &mut Report) -> &'y [Yaml] {
    match field(map, name) {
        None => &[],
        Some((_, Yaml { value: Value::Seq(items), .. })) => items,
        Some((at, other)) => {
            report.error(at, name, format!("expected a list, found {}", describe(other)), help);
            &[]
        }
    }
}

/// The name in an item of a list, where a missing one is an error.
pub fn name<'y>(item: &'y Yaml, what: &str, report: &mut Report) -> Option<(Place, &'y str)> {
    let help = format!("write - name: and the name of the {what}");
    match field(item, "name") {
        None => {
            let message = format!("the name of the {what} is missing");
            report.error(item.into(), "name", message, help);
            None
        }
        Some((_, value)) if value.as_str().is_some() => {
            value.as_str().map(|name| (value.into(), name))
        }
        Some((at, other)) => {
            let message = format!("expected the name of the {what}, found {}", describe(other));
            report.error(at, "name", message, help);
            None
        }
    }
}

/// The map under `arguments`, if there is one.
pub fn arguments<'y>(item: &'y Yaml, report: &mut Report) -> Option<&'y Yaml> {
    let (at, value) = field(item, "arguments")?;
    if matches!(value.value, Value::Map(_)) {
        return Some(value);
    }
    let message = format!("expected a mapping, found {}", describe(value));
    report.error(at, "arguments", message, "write one argument per line, as in binpack.weight: 5");
    None
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
