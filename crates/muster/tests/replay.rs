//! `muster replay` on a journal that the test writes.

use std::path::Path;
use std::process::{Command, Output};

use muster_api::Time;
use muster_api::manifest::{Found, read};
use muster_engine::config::Config;
use muster_engine::{Engine, Event};
use muster_journal::{Configuration, Journal, Limits};
use serde_json::Value;

const NOW: Time = Time(1_800_000_000_000);

const OBJECTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: 4, pods: 10}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, pods: 10}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, uid: u}
spec: {schedulerName: volcano, containers: [{name: main, resources: {requests: {cpu: 1}}}]}
";

fn events() -> Vec<Event> {
    let mut events = Vec::new();
    read("test", OBJECTS.as_bytes(), &mut |found| match found {
        Found::Object { object, .. } => events.push(Event::from(object)),
        Found::Error(error) => panic!("{error}"),
        Found::Skipped { kind, .. } => panic!("{kind}"),
    });
    events
}

/// A journal with one bind; with a false bind if `lies`.
fn journal(folder: &Path, lies: bool) {
    let names = vec!["volcano".to_owned()];
    let mut engine = Engine::new(Config::builtin(), names.clone());
    let mut journal = Journal::create(folder, Limits::default(), names, Configuration::builtin())
        .expect("a folder");
    journal.checkpoint(engine.checkpoint());
    for event in events() {
        journal.event(&event);
        engine.apply(event);
    }
    let mut plan = engine.cycle(NOW);
    if lies {
        plan.binds[0].node = engine.cluster().nodes.find("n1").expect("it is there");
    }
    journal.cycle(NOW, &plan, &engine);
}

fn muster(folder: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    let Output { status, stdout, stderr } = process
        .env_clear()
        .arg("replay")
        .arg(folder)
        .args(more)
        .output()
        .expect("the binary was built");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_journal_is_reproduced() {
    let folder = tempfile::tempdir().expect("a folder");
    journal(folder.path(), false);
    let (code, out, errors) = muster(folder.path(), &[]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let span = "3 events, 1 cycle, 1 bind, 2027-01-15T08:00:00Z to 2027-01-15T08:00:00Z";
    assert_eq!(
        out,
        format!("muster-000001.journal: {span}\n1 segment: {span}\nevery plan was reproduced\n")
    );

    let (_, out, _) = muster(folder.path(), &["-o", "json"]);
    let summary: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (&summary["binds"], &summary["segments"][0]["cutShort"]),
        (&Value::from(1), &Value::from(false))
    );
}

#[test]
fn a_difference_exits_with_1_and_shows_both_sides() {
    let folder = tempfile::tempdir().expect("a folder");
    journal(folder.path(), true);
    let (code, _, errors) = muster(folder.path(), &[]);
    assert_eq!(code, Some(1));
    for line in ["error: muster-000001.journal, record 6: the cycle at", "to n1\n", "to n0\n"] {
        assert!(errors.contains(line), "{line} is not in {errors}");
    }
    let (code, out, _) = muster(folder.path(), &["-o", "json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (code, &report["difference"]["recorded"]["binds"][0]["node"]),
        (Some(1), &Value::from("n1"))
    );
}

#[test]
fn records_are_shown_as_lines_of_json() {
    let folder = tempfile::tempdir().expect("a folder");
    journal(folder.path(), false);
    let (code, out, _) = muster(folder.path(), &["--show"]);
    assert_eq!(code, Some(0));
    let lines: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0]["header"]["config"]["name"], "builtin");
    assert_eq!(lines[1]["checkpoint"]["pods"], 0);
    assert_eq!(lines[4]["event"]["Pod"]["metadata"]["name"], "p");
    assert_eq!(lines[5]["cycle"]["plan"]["binds"][0]["node"], "n0");
}

#[test]
fn a_folder_without_a_journal_is_an_error_with_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("nowhere");
    for (folder, what) in
        [(folder.path(), "no segment of a journal in"), (&nowhere, "no such folder")]
    {
        for more in [&[][..], &["--show"]] {
            let (code, out, errors) = muster(folder, more);
            assert_eq!((code, out.as_str()), (Some(2), ""), "{errors}");
            let expected = "write the folder that was given to muster scheduler --journal";
            assert!(errors.contains(what) && errors.trim_end().ends_with(expected), "{errors}");
        }
    }
}
