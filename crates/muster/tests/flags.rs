//! A flag means the same in every command; old forms still work, with a warning that shows the new
//! form.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).env_clear().args(args);
    command
}

fn muster(args: &[&str]) -> Output {
    command(args).output().expect("the binary was built for this test")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn json(args: &[&str]) -> Value {
    let output = muster(args);
    assert!(output.status.success(), "{}", errors(&output));
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

const CLUSTER: [&str; 4] = ["generate", "cluster", "--nodes", "3"];

#[test]
fn to_is_a_file_and_o_is_a_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cluster.yaml").display().to_string();
    let output = muster(&[&CLUSTER[..], &["--to", &file]].concat());
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""));
    let yaml = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(yaml.as_bytes(), muster(&CLUSTER).stdout);

    let snapshot = folder.path().join("snapshot.json").display().to_string();
    let output = muster(&["snapshot", "-f", &file, "-o", "json", "--to", &snapshot]);
    assert!(errors(&output).starts_with("wrote "), "{}", errors(&output));
    let of_both = [&file, &snapshot].map(|file| muster(&["check", "-f", file]).stdout);
    assert_eq!(of_both[0], of_both[1], "a snapshot has the same objects");
}

#[test]
fn json_of_manifests_has_the_same_objects() {
    let folder = tempfile::tempdir().expect("a folder");
    for args in [
        &CLUSTER[..],
        &["generate", "workload", "--gangs", "5"],
        &["snapshot", "-f", "examples/topology"],
    ] {
        let list = json(&[args, &["-o", "json"]].concat());
        assert_eq!(list["kind"], "List");
        let checked = ["yaml", "json"].map(|format| {
            let file = folder.path().join(format!("objects.{format}")).display().to_string();
            let output = muster(&[args, &["-o", format, "--to", &file]].concat());
            assert!(output.status.success(), "{}", errors(&output));
            muster(&["check", "-f", &file]).stdout
        });
        assert_eq!(checked[0], checked[1], "{args:?}");
        assert!(checked[0].starts_with(b"no errors: "), "{args:?}");
    }
}

#[test]
fn old_forms_work_and_show_the_new_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cluster.yaml").display().to_string();
    let output = muster(&[&CLUSTER[..], &["-o", &file]].concat());
    let warning = format!(
        "warning: -o {file} is no format, yaml or json, and was taken as a file: write --to {file}\n"
    );
    assert_eq!((output.status.code(), errors(&output)), (Some(0), warning.clone()));
    assert_eq!(std::fs::read(&file).expect("it was written"), muster(&CLUSTER).stdout);

    let output = muster(&["snapshot", "-f", "examples/first-gang", "-o", &file]);
    assert!(errors(&output).starts_with(&warning), "{}", errors(&output));
    assert!(std::fs::read_to_string(&file).expect("it was written").contains("name: ring"));

    let output = muster(&["generate", "cluster", "-n", "3"]);
    let warning = "warning: -n is a namespace elsewhere: write --nodes 3\n";
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), warning));
    assert_eq!(output.stdout, muster(&CLUSTER).stdout);

    let output = muster(&[&CLUSTER[..], &["-o", &file, "--to", "other"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("is no format"), "{}", errors(&output));
}

#[test]
fn n_is_a_namespace() {
    let workload = muster(&["generate", "workload", "--gangs", "2", "-n", "team"]);
    let text = String::from_utf8(workload.stdout).expect("UTF-8");
    assert!(text.contains("namespace: team") && !text.contains("namespace: default"), "{text}");

    let example = ["-f", "examples/first-gang", "--now", "2026-11-15T00:00:00Z"];
    let short = muster(&[&["explain", "wave", "-n", "default"], &example[..]].concat());
    let long = muster(&[&["explain", "default/wave"], &example[..]].concat());
    assert_eq!(short.stdout, long.stdout);
    assert!(short.status.success() && !short.stdout.is_empty());
    let elsewhere = muster(&[&["explain", "wave", "-n", "elsewhere"], &example[..]].concat());
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(errors(&elsewhere).contains("elsewhere/wave"), "{}", errors(&elsewhere));
}

#[test]
fn the_version_is_printed_as_text_and_as_json() {
    let version = env!("CARGO_PKG_VERSION");
    for args in [["version"], ["--version"]] {
        let output = muster(&args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text, format!("muster {version}\n"));
    }
    assert_eq!(json(&["version", "-o", "json"])["version"], version);
}

#[test]
fn plugins_are_listed_for_programs_too() {
    let registry = json(&["plugins", "-o", "json"]);
    let names = |list: &str| -> Vec<String> {
        let list = registry[list].as_array().expect("a list");
        list.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
    };
    let page = String::from_utf8(muster(&["plugins"]).stdout).expect("UTF-8");
    let all = [names("plugins"), names("actions")].concat();
    assert!(all.len() > 20 && all.iter().all(|name| page.contains(&format!("| `{name}` |"))));
    assert!(
        registry["plugins"][0]["arguments"].is_array()
            && registry["actions"][0]["summary"].is_string()
    );
}

#[test]
fn a_journal_of_a_simulation_is_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal").display().to_string();
    let config = "examples/gpu-cluster/scheduler.conf";
    let run = ["simulate", "-f", "examples/gpu-cluster", "--config", config, "--until-stable"];
    let now = ["--now", "2026-11-15T00:00:00Z"];
    let recorded = muster(&[&run[..], &now, &["--journal", &journal]].concat());
    assert_eq!(errors(&recorded), "");
    assert_eq!(
        recorded.stdout,
        muster(&[&run[..], &now].concat()).stdout,
        "recording changes nothing"
    );

    let summary = json(&["replay", &journal, "-o", "json"]);
    assert!(
        summary["binds"].as_u64() > Some(2) && summary["cycles"].as_u64() > Some(3),
        "{summary}"
    );
    let report = json(&[&run[..], &now, &["-o", "json"]].concat());
    assert_eq!(
        summary["binds"].as_u64(),
        report["binds"].as_array().map(|binds| binds.len() as u64)
    );
    let output = muster(&["simulate", "--chaos", "--journal", &journal]);
    assert_eq!(output.status.code(), Some(2));
}

const COMMANDS: [&str; 17] = [
    "scheduler",
    "simulate",
    "explain",
    "fairshare",
    "snapshot",
    "check",
    "replay",
    "topology show",
    "topology check",
    "topology generate",
    "generate cluster",
    "generate workload",
    "bench",
    "crds",
    "plugins",
    "version",
    "completions",
];

/// The lines of a help page on a terminal of this many columns.
fn help(name: &str, columns: usize) -> Vec<String> {
    let args: Vec<&str> = name.split(' ').chain(["--help"]).collect();
    let output = command(&args).env("COLUMNS", columns.to_string()).output().expect("it runs");
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

/// A line that was broken by hand is broken again where the terminal is narrower.
#[test]
fn no_line_of_a_help_page_is_broken_twice() {
    for (name, columns) in COMMANDS.iter().flat_map(|name| [(name, 80), (name, 120)]) {
        let width = columns.min(100);
        let lines = help(name, columns);
        for (line, next) in lines.iter().zip(&lines[1..]) {
            let length = line.chars().count();
            assert!(length <= width, "{name} is too wide for {columns} columns: {line}");
            let is_prose = |line: &str| line.starts_with(|c: char| !c.is_whitespace());
            let first = next.split_whitespace().next().unwrap_or_default();
            let would_fit = length + 1 + first.chars().count() <= width;
            let broken = is_prose(line) && is_prose(next) && would_fit;
            assert!(!broken, "{name} on {columns} columns breaks a line by hand:\n{line}\n{next}");
        }
    }
}

#[test]
fn examples_on_help_pages_are_not_broken() {
    let examples = |name: &str, columns: usize| -> Vec<String> {
        let lines = help(name, columns).into_iter();
        let lines = lines.skip_while(|line| !line.starts_with("Example")).skip(1);
        lines.take_while(|line| line.starts_with("  ")).collect()
    };
    let mut seen = 0;
    for name in COMMANDS {
        assert_eq!(examples(name, 80), examples(name, 120), "{name}");
        seen += examples(name, 80).len();
    }
    assert!(seen > 30, "only {seen} examples");
}
