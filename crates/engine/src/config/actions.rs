//! `actions`: what a cycle does, in order; and `configurations`: their arguments.

use std::ptr;

use muster_yaml::{Value, Yaml};

use crate::config::lists::{self, ACTIONS};
use crate::config::modes::Said;
use crate::config::reading::{arguments, field, items, name};
use crate::order::session::Action;
use crate::settings::actions::Settings;
use crate::settings::args::Args;
use crate::settings::diagnostic::{Place, Report, describe, quoted, suggest};
use crate::settings::scalar;

/// The actions as the configuration names them.
pub(super) struct Named {
    pub at: Place,
    pub actions: Vec<&'static Action>,
}

impl Named {
    pub fn runs(&self, action: &'static Action) -> bool {
        self.actions.iter().any(|listed| ptr::eq(*listed, action))
    }
}

pub(super) fn read(root: &Yaml, report: &mut Report) -> Named {
    let mut named = Named { at: Place::START, actions: Vec::new() };
    let help = "write, for example, actions: \"enqueue, allocate, backfill\"";
    let Some((at, value)) = field(root, "actions") else {
        let message = "there are no actions, so nothing would ever be scheduled";
        report.error(root.into(), "actions", message, help);
        return named;
    };
    named.at = at;
    match scalar::words(value) {
        Err(other) => {
            let message = format!("expected the names of actions, found {}", describe(other));
            report.error(other.into(), "actions", message, help);
        }
        Ok(words) if words.is_empty() => {
            report.error(
                at,
                "actions",
                "there are no actions, so nothing would ever be scheduled",
                help,
            );
        }
        Ok(words) => {
            let mut seen: Vec<String> = Vec::new();
            for word in words {
                if seen.contains(&word.text) {
                    let message = format!("{} is there twice", quoted(&word.text));
                    report.error(word.at, "actions", message, "remove one of them");
                    continue;
                }
                named.actions.extend(registered(&word.text, word.at, "actions", report));
                seen.push(word.text);
            }
        }
    }
    named
}

/// Gives the actions their arguments.
pub(super) fn configure<'y>(
    root: &'y Yaml,
    named: &mut Named,
    said: &mut Said<'y>,
    report: &mut Report,
) -> Settings {
    let mut settings = Settings::default();
    let mut seen: Vec<(&str, u32)> = Vec::new();
    for item in items(
        root,
        "configurations",
        "write one - name: for each action, with its arguments:",
        report,
    ) {
        let Value::Map(entries) = &item.value else {
            let message =
                format!("expected an action with its arguments, found {}", describe(item));
            let help = "write - name: and arguments:";
            report.error(item.into(), "configurations", message, help);
            continue;
        };
        let keys = ["name", "arguments"];
        for (key, _) in entries.iter().filter(|(key, _)| !keys.contains(&key.name.as_str())) {
            report.error(
                key.into(),
                &key.name,
                "a configuration has no such key",
                suggest(&key.name, keys),
            );
        }
        let Some((at, name)) = name(item, "action", report) else { continue };
        if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
            let message =
                format!("{} is there twice: in line {first} and in line {}", quoted(name), at.line);
            report.error(at, "name", message, "write all of its arguments in one place");
        }
        seen.push((name, at.line));
        let arguments = arguments(item, report);
        let Some(action) = registered(name, at, "name", report) else { continue };

        said.by_action(action, arguments, report);
        let mut args = Args::new(&report.file, action.name, at, arguments);
        (action.configure)(&mut args, &mut settings);
        let errors = args.finish(action.arguments);
        report.extend(errors);
        if !named.runs(action) {
            let message =
                format!("{name} is not among the actions, so its arguments have no effect");
            report.warning(at, "name", message, format!("add {name} to actions, or remove this"));
        }
    }
    settings
}

fn registered(name: &str, at: Place, key: &str, report: &mut Report) -> Option<&'static Action> {
    let found = lists::action(name);
    if found.is_none() {
        let known = ACTIONS.iter().map(|action| action.name);
        report.error(at, key, format!("there is no action {}", quoted(name)), suggest(name, known));
    }
    found
}
