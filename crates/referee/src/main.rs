//! `muster-referee MUSTER FIRST-SEED COUNT [FOLDER [RULE]]`: tries that many seeds, and keeps the cases
//! that break a rule (or that rule) below the folder, made small.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use muster_referee::case::Case;
use muster_referee::rules::Violation;
use muster_referee::run::Runner;
use muster_referee::shrink::shrink;
use muster_referee::{make_case, try_case};

const USAGE: &str = "usage: muster-referee MUSTER FIRST-SEED COUNT [FOLDER [RULE]]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(muster), Some(Ok(first)), Some(Ok(count))) = (
        arguments.first(),
        arguments.get(1).map(|text| text.parse::<u64>()),
        arguments.get(2).map(|text| text.parse::<u64>()),
    ) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let folder = std::env::temp_dir().join(format!("muster-referee-{}", std::process::id()));
    let runner = Runner { muster: PathBuf::from(muster), folder };
    let mut broken: BTreeMap<&str, usize> = BTreeMap::new();
    // What the rules had to look at: a clean run in which nothing happens proves nothing.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in first..first + count {
        let case = make_case(seed);
        match try_case(&runner, &case) {
            Ok((output, violations)) => {
                *seen.entry("binds".to_owned()).or_default() += output.binds.len();
                *seen.entry("nominations".to_owned()).or_default() += output.nominations.len();
                for eviction in output.evictions {
                    *seen.entry(eviction.action).or_default() += 1;
                }
                for Violation { rule, cycle, text } in &violations {
                    *broken.entry(rule).or_default() += 1;
                    println!("seed {seed} cycle {cycle}: {rule}: {text}");
                }
                if let Some(folder) = arguments.get(3) {
                    let wanted = arguments.get(4).map(String::as_str);
                    keep(&runner, &case, &violations, Path::new(folder), wanted);
                }
            }
            Err(error) => {
                *broken.entry("runs").or_default() += 1;
                println!("seed {seed}: {error}");
            }
        }
    }
    let _ = std::fs::remove_dir_all(&runner.folder);
    println!("{count} clusters from seed {first}, with {seen:?}: {broken:?}");
    if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn keep(
    runner: &Runner,
    case: &Case,
    violations: &[Violation],
    folder: &Path,
    wanted: Option<&str>,
) {
    let rules: BTreeSet<&str> = violations.iter().map(|violation| violation.rule).collect();
    for rule in rules.into_iter().filter(|rule| wanted.is_none_or(|wanted| wanted == *rule)) {
        let folder = folder.join(format!("{rule}-{}", case.seed));
        if let Err(error) = keep_small(runner, case, rule, &folder) {
            eprintln!("{}: {error}", folder.display());
        }
    }
}

/// Writes the smallest case that breaks a rule, with the command and what it breaks.
fn keep_small(runner: &Runner, case: &Case, rule: &str, folder: &Path) -> Result<(), String> {
    let broken = |case: &Case| {
        let (_, mut found) = try_case(runner, case)?;
        found.retain(|violation| violation.rule == rule);
        Ok::<_, String>(found)
    };
    let small = shrink(case, |case| broken(case).is_ok_and(|found| !found.is_empty()));
    let mut text = String::new();
    for Violation { cycle, text: line, .. } in broken(&small)? {
        text += &format!("cycle {cycle}: {line}\n");
    }
    let arguments = small.arguments().join(" ");
    text += &format!("muster simulate -f cluster.yaml --config config.yaml {arguments}\n");
    let written = small.write(folder).and_then(|()| std::fs::write(folder.join("README"), text));
    written.map_err(|error| error.to_string())
}
