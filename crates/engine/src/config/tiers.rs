//! `tiers`: the plugins in the order in which they are asked.

use std::collections::BTreeMap;

use muster_yaml::{Key, Value, Yaml};

use crate::config::lists::{self, PLUGINS, VOLCANO_ONLY};
use crate::config::modes::Said;
use crate::config::reading::{arguments, items, name};
use crate::config::{modes, switches};
use crate::policy::answers::ConfiguredPlugin;
use crate::policy::plugin::Entry;
use crate::policy::question::{Question, Switches};
use crate::settings::args::Args;
use crate::settings::diagnostic::{Place, Report, describe, quoted, suggest};
use crate::settings::scalar;

/// A plugin as the configuration names it.
pub struct Chosen<'y> {
    pub entry: &'static Entry,
    pub at: Place,
    /// Counted from 0.
    pub tier: usize,
    pub switches: Switches,
    pub answers: Vec<Question>,
    /// The key that turned the hierarchy on or off.
    pub hierarchy_key: Option<&'y Key>,
    arguments: Option<&'y Yaml>,
}

impl Chosen<'_> {
    /// The value of a number among the arguments, or its default.
    pub fn number(&self, argument: &str) -> Option<i64> {
        if let Some(given) = self.arguments.and_then(|arguments| arguments.entry(argument)) {
            return scalar::whole(&given.value);
        }
        let declared = self.entry.arguments.iter().find(|declared| declared.name == argument)?;
        declared.default.parse().ok()
    }
}

/// The plugins with what the text says about them, and the same plugins built.
pub(super) fn read<'y>(
    root: &'y Yaml,
    said: &mut Said<'y>,
    report: &mut Report,
) -> (Vec<Chosen<'y>>, Vec<ConfiguredPlugin>) {
    let mut chosen = Vec::new();
    let mut configured = Vec::new();
    let mut seen: Vec<(&str, u32)> = Vec::new();
    let tiers = items(root, "tiers", "write - plugins: under tiers:, once for each tier", report);
    for (place, tier) in tiers.iter().enumerate() {
        let plugins = plugins_of(tier, report);
        let own = arguments(tier, report);
        said.by_tier(own, report);
        let others = Args::new(&report.file, "a tier", tier.into(), own).finish(modes::SWITCHES);
        report.extend(others);
        for item in plugins {
            let (reader, name) = fields(item, report);
            let Some((at, name)) = name else { continue };
            if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
                let message = format!(
                    "{} is there twice: in line {first} and in line {}",
                    quoted(name),
                    at.line
                );
                report.error(at, "name", message, "remove one of them");
            }
            seen.push((name, at.line));
            let arguments = arguments(item, report);
            said.by_tier(arguments, report);
            let Some(entry) = registered(name, at, report) else { continue };

            let mut args = Args::new(&report.file, entry.name, at, arguments);
            args.leave(modes::SWITCHES);
            let plugin = (entry.build)(&mut args, &reader.switches);
            let errors = args.finish(entry.arguments);
            report.extend(errors);
            let answers = plugin.answers();
            configured.push(ConfiguredPlugin {
                name: entry.name,
                tier: place,
                plugin,
                switches: reader.switches.clone(),
                arguments: texts(arguments),
            });
            let hierarchy_key = reader.key("enableHierarchy");
            chosen.push(Chosen {
                entry,
                at,
                tier: place,
                switches: reader.switches,
                answers,
                hierarchy_key,
                arguments,
            });
        }
    }
    (chosen, configured)
}

/// The arguments that are single values, as text.
fn texts(arguments: Option<&Yaml>) -> BTreeMap<String, String> {
    let Some(Value::Map(entries)) = arguments.map(|arguments| &arguments.value) else {
        return BTreeMap::new();
    };
    let text = |value: &Yaml| match &value.value {
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Null | Value::Seq(_) | Value::Map(_) => None,
    };
    entries.iter().filter_map(|(key, value)| Some((key.name.clone(), text(value)?))).collect()
}

fn plugins_of<'y>(tier: &'y Yaml, report: &mut Report) -> &'y [Yaml] {
    let Value::Map(entries) = &tier.value else {
        let message = format!("expected a tier, found {}", describe(tier));
        report.error(
            tier.into(),
            "tiers",
            message,
            "write - plugins: and below it the plugins of the tier",
        );
        return &[];
    };
    let keys = ["plugins", "arguments"];
    for (key, _) in entries.iter().filter(|(key, _)| !keys.contains(&key.name.as_str())) {
        report.error(key.into(), &key.name, "a tier has no such key", suggest(&key.name, keys));
    }
    items(tier, "plugins", "write one - name: for each plugin", report)
}

/// The switches and the name of a plugin. Every other key is an error, except `arguments`.
fn fields<'y>(
    item: &'y Yaml,
    report: &mut Report,
) -> (switches::Reader<'y>, Option<(Place, &'y str)>) {
    let mut reader = switches::Reader::default();
    let Value::Map(entries) = &item.value else {
        let help = format!("write - name: {}", item.as_str().unwrap_or("gang"));
        report.error(
            item.into(),
            "plugins",
            format!("expected a plugin, found {}", describe(item)),
            help,
        );
        return (reader, None);
    };
    for (key, value) in entries {
        if matches!(key.name.as_str(), "name" | "arguments") || reader.take(key, value, report) {
            continue;
        }
        let (message, help) = match argument_of_plugin(item, &key.name) {
            Some(plugin) => (
                format!("this is an argument of {plugin}, not a key of a plugin"),
                "write it under arguments:".to_owned(),
            ),
            None => {
                let valid = ["name", "arguments"].into_iter().chain(switches::names());
                ("a plugin has no such key or switch".to_owned(), suggest(&key.name, valid))
            }
        };
        report.error(key.into(), &key.name, message, help);
    }
    (reader, name(item, "plugin", report))
}

/// The plugin of an item, if it has such an argument.
fn argument_of_plugin(item: &Yaml, key: &str) -> Option<&'static str> {
    let name = item.entry("name")?.as_str()?;
    let entry = lists::plugin(name)?;
    entry.arguments.iter().any(|argument| argument.name == key).then_some(entry.name)
}

fn registered(name: &str, at: Place, report: &mut Report) -> Option<&'static Entry> {
    let found = lists::plugin(name);
    if found.is_some() {
        return found;
    }
    if VOLCANO_ONLY.contains(&name) {
        report.warning(at, "name", format!("{name} is ignored: not built yet"), "");
    } else {
        let known = PLUGINS.iter().map(|entry| entry.name).chain(VOLCANO_ONLY.iter().copied());
        report.error(
            at,
            "name",
            format!("there is no plugin {}", quoted(name)),
            suggest(name, known),
        );
    }
    None
}
