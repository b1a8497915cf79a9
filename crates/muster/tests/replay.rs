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
        plan.binds[0].node = "n1".into();
    }
    journal.cycle(NOW, &plan);
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

#[test]
fn a_cut_segment_is_replayed_up_to_the_cut_which_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    journal(folder.path(), false);
    let file = folder.path().join("muster-000001.journal");
    let whole = std::fs::read(&file).expect("a segment");
    std::fs::write(&file, &whole[..whole.len() - 60]).expect("it can be cut");
    let (code, out, errors) = muster(folder.path(), &[]);
    let told = "(not closed: its writer was stopped or still writes; record 6 is incomplete and \
                left out: ";
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(out.contains(told) && out.contains(" of the uncompressed stream)\n"), "{out}");

    let (_, out, _) = muster(folder.path(), &["-o", "json"]);
    let summary: Value = serde_json::from_str(&out).expect("JSON");
    let segment = &summary["segments"][0];
    assert_eq!((&segment["cutShort"], &segment["torn"]["record"]), (&true.into(), &6.into()));

    let (code, out, errors) = muster(folder.path(), &["--show"]);
    assert_eq!((code, out.lines().count()), (Some(0), 5));
    assert!(errors.starts_with("note: muster-000001.journal: not closed: "), "{errors}");
}

#[test]
fn a_damaged_segment_is_an_error_that_says_where() {
    let folder = tempfile::tempdir().expect("a folder");
    journal(folder.path(), false);
    let file = folder.path().join("muster-000001.journal");
    let mut bytes = std::fs::read(&file).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&file, bytes).expect("it can be written");
    for more in [&[][..], &["--show"]] {
        let (code, _, errors) = muster(folder.path(), more);
        assert_eq!(code, Some(2), "{errors}");
        let told = "muster-000001.journal: record ";
        assert!(errors.contains(told) && errors.contains(", at byte "), "{errors}");
        let advice = "later segments can be replayed with --from";
        assert!(errors.trim_end().ends_with(advice), "{errors}");
    }
}
