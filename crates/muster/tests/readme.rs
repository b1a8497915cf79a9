//! The README and the pages under docs/ show what their commands print, and manifests as they are
//! in the examples.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What `muster …` prints into a pipe at the root of the repository.
fn printed(line: &str) -> String {
    let timeless = ["topology check", "bench"].iter().any(|start| line.starts_with(start));
    let now: &[&str] = if timeless { &[] } else { &["--now", "2026-11-15T00:00:00Z"] };
    let output = Command::new(env!("CARGO_BIN_EXE_muster"))
        .args(line.split_whitespace())
        .args(now)
        .env_remove("COLUMNS")
        .current_dir(root())
        .output()
        .expect("the command runs");
    String::from_utf8(output.stdout).expect("text")
}

/// Compares the output of a command with the page that shows it; `MUSTER_REWRITE=1` updates the
/// page.
#[track_caller]
fn check(page: &str, line: &str, shown: &str) {
    let printed = printed(line);
    if std::env::var_os("MUSTER_REWRITE").is_some() {
        let text = read(page).replacen(shown.trim_end(), printed.trim_end(), 1);
        std::fs::write(root().join(page), text).expect("the page can be written");
        return;
    }
    assert!(shown.trim_end() == printed.trim_end(), "{page}: muster {line} prints\n{printed}");
}

#[test]
fn the_readme_shows_what_its_commands_print() {
    let readme = read("README.md");
    for line in ["simulate -f examples/first-gang", "topology show -f examples/topology --cycles 1"]
    {
        let command = format!("cargo run --release -- {line}\n");
        let (_, rest) = readme.split_once(&command).expect("the README has the command");
        let (_, rest) = rest.split_once("```text\n").expect("the README shows what it prints");
        check("README.md", line, rest.split("```").next().unwrap_or_default());
    }
}

#[test]
fn the_readme_shows_the_current_picture() {
    assert!(read("README.md").contains("](docs/topology.svg)"));
    let printed = printed("topology show -f examples/topology --cycles 1 -o svg");
    let command = "muster topology show -f examples/topology --cycles 1 -o svg > docs/topology.svg";
    assert!(read("docs/topology.svg") == printed, "write it anew, and look at it: {command}");
}

#[test]
fn a_page_shows_the_current_picture_of_shares() {
    let line = "fairshare -f examples/fairshare --config examples/fairshare/scheduler.conf -o svg";
    assert!(read("docs/fairshare.md").contains("](fairshare.svg)"));
    let message = format!("write it anew, and look at it: muster {line} > docs/fairshare.svg");
    assert!(read("docs/fairshare.svg") == printed(line), "{message}");
}

#[test]
fn a_page_shows_how_a_simulation_is_replayed() {
    let folder = tempfile::tempdir().expect("the folder for temporary files can be written");
    let journal = folder.path().join("journal").display().to_string();
    let simulate = "muster simulate -f examples/first-gang --now 2026-11-15T00:00:00Z --journal";
    let run = |args: &[&str]| {
        let mut muster = Command::new(env!("CARGO_BIN_EXE_muster"));
        let output = muster.args(args).arg(&journal).current_dir(root()).output();
        String::from_utf8(output.expect("the command runs").stdout).expect("text")
    };
    run(&simulate.split(' ').skip(1).collect::<Vec<_>>());
    let replayed = run(&["replay"]);
    let shown = format!(
        "$ {simulate} /tmp/journal > story.txt\n$ muster replay /tmp/journal\n{replayed}```"
    );
    assert!(read("docs/journal.md").contains(&shown), "put this into docs/journal.md:\n{shown}");
}

#[test]
fn manifests_in_the_readme_are_those_of_the_examples() {
    let (readme, gangs) = (read("README.md"), read("examples/topology/gangs.yaml"));
    let blocks: Vec<&str> =
        readme.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1, "a new one needs its example here");
    assert!(gangs.contains(blocks[0]), "this is missing in examples/topology:\n{}", blocks[0]);
}

/// A block with one command, and after it a block with its output.
#[track_caller]
fn shows_what_is_printed(page: &str, least: usize) {
    let text = read(page);
    let mut commands = 0;
    for rest in text.split("```sh\nmuster ").skip(1) {
        let (line, rest) =
            rest.split_once("\n```\n\n```text\n").expect("a command and what it prints");
        let shown = rest.split("```").next().unwrap_or_default();
        check(page, line, shown);
        commands += 1;
    }
    assert!(commands >= least, "only {commands} commands are on {page}");
}

#[test]
fn pages_show_what_their_commands_print() {
    shows_what_is_printed("docs/topology.md", 6);
    shows_what_is_printed("docs/what-if.md", 1);
    shows_what_is_printed("docs/evictions.md", 2);
    shows_what_is_printed("docs/fairshare.md", 1);
}

#[test]
fn the_page_about_performance_shows_how_good_choices_are() {
    shows_what_is_printed("docs/performance.md", 1);
}
