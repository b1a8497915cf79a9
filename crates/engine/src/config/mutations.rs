//! A real configuration with random changes gets an answer, never a panic.

use crate::config::Config;
use crate::settings::diagnostic::Diagnostic;

use proptest::prelude::*;

/// A configuration with a bit of everything.
const RICH: &str = r#"actions: "enqueue, allocate, backfill, consolidate"
configurations:
- name: allocate
  arguments:
    predicateErrorCacheEnable: true
tiers:
- plugins:
  - name: priority
    enabledOverused: false
  - name: gang
    enablePreemptable: false
- plugins:
  - name: drf
    enableHierarchy: false
  - name: predicates
  - name: nodeorder
    arguments:
      leastrequested.weight: 0
      nodeaffinity.weight: "2"
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.resources: "nvidia.com/gpu, example.com/x"
      binpack.resources.nvidia.com/gpu: 2
  - name: capacity
  - name: usage
metrics: {type: prometheus}
"#;

/// Between bars: texts with a meaning in YAML or here.
const SCRAPS: &str =
    "| |\n|\t|:|- |\"|'|{|}|[|]|,|~|#|&a |*a|<<: |? |>\n|-1|1e9|0.1|true|name: |gang|tiers:\n";
/// Between bars: values that leave the YAML valid.
const VALUES: &str = "|~|7|-1|0|\"5\"|1.5|99999999999999999999|1e300|.nan|true|\"\"|gang|drf|enqueue|[]|[[]]|{}|{a: 1}";

fn one_of(choices: &'static str) -> impl Strategy<Value = &'static str> {
    prop::sample::select(choices.split('|').collect::<Vec<_>>())
}

/// Replaces a few letters by a fragment.
fn with_scrap(text: &str, at: prop::sample::Index, removed: usize, scrap: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let at = at.index(letters.len() + 1);
    let after = (at + removed).min(letters.len());
    letters[..at]
        .iter()
        .copied()
        .chain(scrap.chars())
        .chain(letters[after..].iter().copied())
        .collect()
}

/// Gives the key in a line another value.
fn with_value(text: &str, line: prop::sample::Index, value: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let changed = line.index(lines.len());
    let rewritten = lines.iter().enumerate().map(|(at, line)| match line.split_once(": ") {
        Some((key, _)) if at == changed => format!("{key}: {value}\n"),
        _ => format!("{line}\n"),
    });
    rewritten.collect()
}

/// Every answer has a position and a text.
fn answered(text: &str) -> Result<(), TestCaseError> {
    let found = match Config::parse("f", text) {
        Ok(config) => config.warnings,
        Err(errors) => errors,
    };
    for diagnostic in found {
        prop_assert!(diagnostic.line >= 1 && diagnostic.column >= 1, "{diagnostic}");
        prop_assert!(!diagnostic.message.is_empty());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_is_too_broken_to_be_answered(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, one_of(SCRAPS)), 1..4),
    ) {
        let change = |text: String, (at, removed, scrap)| with_scrap(&text, at, removed, scrap);
        answered(&changes.into_iter().fold(RICH.to_owned(), change))?;
    }

    #[test]
    fn no_value_is_too_odd_to_be_answered(
        changes in prop::collection::vec((any::<prop::sample::Index>(), one_of(VALUES)), 1..6),
    ) {
        let change = |text: String, (line, value)| with_value(&text, line, value);
        answered(&changes.into_iter().fold(RICH.to_owned(), change))?;
    }
}

#[test]
fn the_rich_configuration_is_sound() {
    let config = Config::parse("f", RICH).expect("it is sound");
    let warnings: Vec<String> = config.warnings.iter().map(Diagnostic::to_string).collect();
    assert_eq!(
        warnings.join("\n"),
        "f:26:11: name: usage is ignored: not built yet\n\
         f:27:1: metrics: ignored: no built plugin reads measured load\n  help: remove it, or keep it for Volcano"
    );
}
