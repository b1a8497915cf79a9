//! `muster plugins`: the registry as the table of `docs/plugins.md`.

use clap::{Args, ValueEnum};
use muster_engine::ACTIONS;
use muster_engine::{Argument, PLUGINS, VOLCANO_ONLY};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal;

#[derive(Args)]
pub struct PluginsArgs {
    #[arg(short, long, value_enum, default_value_t = Format::Markdown)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    /// The tables of docs/plugins.md
    Markdown,
    Json,
}

pub fn run(args: PluginsArgs) -> Result<(), Failure> {
    match args.output {
        Format::Markdown => terminal::print(&page())?,
        Format::Json => terminal::print_json(&registry())?,
    }
    Ok(())
}

/// The same as JSON.
fn registry() -> Value {
    let of = |arguments: &[Argument]| -> Vec<Value> {
        let one =
            |a: &Argument| json!({ "name": a.name, "default": a.default, "meaning": a.meaning });
        arguments.iter().map(one).collect()
    };
    let plugins = PLUGINS.iter().map(|entry| {
        json!({
            "name": entry.name,
            "summary": entry.summary,
            "differsFromVolcano": entry.differs,
            "arguments": of(entry.arguments),
        })
    });
    let actions = ACTIONS.iter().map(|action| {
        json!({
            "name": action.name,
            "summary": action.summary,
            "arguments": of(action.arguments),
        })
    });
    json!({
        "plugins": plugins.collect::<Vec<_>>(),
        "actions": actions.collect::<Vec<_>>(),
        "ignoredOfVolcano": VOLCANO_ONLY,
    })
}

/// The whole page, in Markdown.
pub fn page() -> String {
    let mut page = String::from(
        "# Plugins and actions\n\n<!-- Made by `muster plugins` from the registry; a test compares them. -->\n\n\
         ## Plugins\n\n| plugin | what it does | where it differs from Volcano, on purpose |\n|---|---|---|\n",
    );
    for entry in PLUGINS {
        page += &format!("| `{}` | {} | {} |\n", entry.name, entry.summary, dash(entry.differs));
    }
    page += "\n## Arguments of plugins\n\n| plugin | argument | default | meaning |\n|---|---|---|---|\n";
    for entry in PLUGINS {
        page += &arguments(entry.name, entry.arguments);
    }
    page += &format!(
        "\nKnown from Volcano and not built (yet), ignored with a warning: {}.\n",
        VOLCANO_ONLY.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    );
    page += "\n## Actions\n\n| action | what it does |\n|---|---|\n";
    for action in ACTIONS {
        page += &format!("| `{}` | {} |\n", action.name, action.summary);
    }
    page += "\n## Arguments of actions\n\n| action | argument | default | meaning |\n|---|---|---|---|\n";
    for action in ACTIONS {
        page += &arguments(action.name, action.arguments);
    }
    page
}

fn arguments(owner: &str, arguments: &[Argument]) -> String {
    let line = |a: &Argument| {
        let default =
            if a.default.is_empty() { "–".to_owned() } else { format!("`{}`", a.default) };
        format!("| `{owner}` | `{}` | {default} | {} |\n", a.name, a.meaning)
    };
    arguments.iter().map(line).collect()
}

fn dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_in_docs_matches_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == super::page(),
            "write it anew with: cargo run -- plugins > docs/plugins.md"
        );
    }
}
