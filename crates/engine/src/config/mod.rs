//! Volcano's scheduler configuration: which actions run, which plugins are asked, with which
//! arguments.
//!
//! A mistake is a [`Diagnostic`] with its position, and all mistakes are reported at once. Names
//! that Volcano knows and Muster doesn't are ignored with a warning, so that a configuration can be
//! used unchanged.

mod actions;
mod lint;
pub(crate) mod lists;
mod modes;
mod reading;
mod switches;
mod tiers;

use std::ptr;

use muster_yaml::{Value, Yaml};

use crate::base::purpose::{Mode, Purpose};
use crate::config::reading::field;
use crate::order::session::{Action, MakesRoom};
use crate::policy::answers::Policy;
use crate::settings::actions::Settings;
use crate::settings::diagnostic::{Place, Report, describe, suggest};
use crate::settings::eviction::EvictionSettings;

pub use crate::settings::args::Args;
pub use crate::settings::diagnostic::{Class, Diagnostic};

/// The default configuration.
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
    /// Warnings and advice.
    pub warnings: Vec<Diagnostic>,
}

impl Config {
    /// Reads a configuration. The name of the file is only for messages. The errors are all
    /// mistakes, in the order of the text.
    pub fn parse(file: &str, text: &str) -> Result<Config, Vec<Diagnostic>> {
        Config::parse_with(file, text, &mut Vec::new())
    }

    /// The same, with the warnings also if there are errors.
    pub fn parse_with(
        file: &str,
        text: &str,
        heard: &mut Vec<Diagnostic>,
    ) -> Result<Config, Vec<Diagnostic>> {
        let mut report = Report::new(file);
        let parts = read(text, &mut report);
        let (errors, warnings) = report.finish();
        heard.clone_from(&warnings);
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

    /// Whether an action is among the configured ones.
    pub fn runs(&self, action: &'static Action) -> bool {
        self.actions.iter().any(|listed| ptr::eq(*listed, action))
    }

    /// How the action of that name makes room, if it does.
    pub fn eviction_settings(&self, action: &str) -> Option<&EvictionSettings> {
        let makes_room = lists::action(action)?.makes_room.as_ref()?;
        Some((makes_room.settings)(&self.settings))
    }

    pub fn builtin() -> Config {
        Config::parse("builtin", BUILTIN).unwrap_or_else(|errors| {
            let errors: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
            panic!("the built-in configuration is wrong:\n{}", errors.join("\n"))
        })
    }
}

const TOP_KEYS: [&str; 4] = ["actions", "tiers", "configurations", "metrics"];

type Parts = (Vec<&'static Action>, Policy, Settings);

/// `None` if the text contains no configuration at all; mistakes in one go to the report.
fn read(text: &str, report: &mut Report) -> Option<Parts> {
    let root = match muster_yaml::parse(text) {
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
    let (plugins, configured) = tiers::read(&root, &mut said, report);
    said.settle(&named, &mut settings, report);
    let setup = lint::Setup {
        actions: &named,
        plugins: &plugins,
        tiers_at: field(&root, "tiers").map_or(Place::START, |(at, _)| at),
    };
    setup.conflicts(report);
    setup.lint(report);
    let mut policy = Policy::new(configured);
    let by_fair_shares = |makes_room: &MakesRoom| {
        makes_room.purpose != Purpose::Consolidate
            && (makes_room.settings)(&settings).mode == Mode::Scenario
    };
    if named.actions.iter().filter_map(|action| action.makes_room.as_ref()).any(by_fair_shares) {
        policy.measure_by_fair_shares();
    }
    Some((named.actions, policy, settings))
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

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
