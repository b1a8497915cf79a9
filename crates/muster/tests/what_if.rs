//! `muster simulate --what-if`: what additional objects would change. Runs the built binary.

mod apiserver;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use apiserver::ApiServer;

const PRESENT: [&str; 6] = [
    "-f",
    "examples/what-if/present",
    "--config",
    "examples/what-if/scheduler.conf",
    "--now",
    "2026-11-15T00:00:00Z",
];

/// Runs `muster simulate …` at the root of the repository with a text at its standard input.
fn simulate(args: &[&str], input: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_clear()
        .env("COLUMNS", "80");
    process.arg("simulate").args(args);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().expect("the binary was built for this test");
    // A command that rejects its arguments does not read its input.
    let _ = process.stdin.take().expect("piped").write_all(input.as_bytes());
    process.wait_with_output().expect("it ends")
}

#[track_caller]
fn stdout(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

#[track_caller]
fn told(input: &str, more: &[&str]) -> String {
    stdout(simulate(&[&PRESENT[..], &["--what-if", "-"], more].concat(), input))
}

#[track_caller]
fn data(input: &str, more: &[&str]) -> Value {
    serde_json::from_str(&told(input, &[more, &["-o", "json"]].concat()))
        .expect("the output is JSON")
}

fn urgent() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/what-if/urgent.yaml");
    std::fs::read_to_string(path).expect("it is in the examples")
}

#[test]
fn the_difference_is_shown() {
    let text = told(&urgent(), &[]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_difference_is_data_too() {
    let found = data(&urgent(), &[]);
    assert_eq!(found["objects"], json!({ "Pod": 2, "PodGroup": 2, "PriorityClass": 1 }));
    let starts: Vec<&Value> = found["newGangs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|gang| &gang["starts"]["afterMs"])
        .collect();
    assert_eq!(starts, [&json!(0), &json!(1000)]);
    assert_eq!(found["evictions"][0]["gang"], "default/search");
    assert_eq!(
        (&found["gangs"][0]["name"], &found["gangs"][0]["change"]),
        (&json!("default/wave"), &json!("waits"))
    );
    assert_eq!(
        (&found["gangs"][1]["name"], &found["gangs"][1]["change"]),
        (&json!("default/search"), &json!("shrinks"))
    );
    assert_eq!(found["queues"][0]["with"]["allocated"]["cpu"], "40");
}

#[test]
fn the_same_question_has_the_same_answer() {
    assert_eq!(told(&urgent(), &["-o", "json"]), told(&urgent(), &["-o", "json"]));
}

#[test]
fn a_node_that_is_cordoned_keeps_its_size() {
    let node =
        "{apiVersion: v1, kind: Node, metadata: {name: node-c}, spec: {unschedulable: true}}";
    let found = data(node, &[]);
    assert_eq!(found["replaced"], json!(["Node node-c"]));
    let gangs = found["gangs"].as_array().expect("a list");
    let changes: Vec<_> = gangs.iter().map(|gang| (&gang["name"], &gang["change"])).collect();
    assert_eq!(
        changes,
        [(&json!("default/search"), &json!("shrinks")), (&json!("default/wave"), &json!("later"))]
    );
    // If the deleted node's size were not counted, the share of the queue would be more than the
    // whole.
    assert!(found["queues"][0]["with"]["share"].as_f64().expect("a number") <= 1.0);
}

#[test]
fn a_replaced_gang_keeps_its_position_in_the_line() {
    let group = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: wave}, spec: {minMember: 1, priorityClassName: normal}}";
    let text = told(group, &[]);
    assert!(text.contains("replacing PodGroup default/wave\n"), "{text}");
    assert!(text.ends_with("nothing would change\n"), "{text}");
}

#[test]
fn gangs_that_start_later_show_the_delay() {
    let first = "{apiVersion: v1, kind: Pod, metadata: {name: first, annotations: {muster.sh/simulated-duration: 10m}}, spec: {schedulerName: muster, priority: 100, containers: [{name: c, resources: {requests: {nvidia.com/gpu: 8}}}]}}";
    let args = ["-f", "examples/first-gang", "--what-if", "-", "--until-stable", "-o", "json"];
    let found: Value =
        serde_json::from_str(&stdout(simulate(&args, first))).expect("the output is JSON");
    let ring = &found["gangs"][0];
    assert_eq!(
        (&ring["name"], &ring["change"]),
        (&json!("default/ring"), &json!("later")),
        "{found}"
    );
    let starts = [&ring["without"], &ring["with"]].map(|fate| fate["starts"]["afterMs"].as_i64());
    assert_eq!(
        starts,
        [Some(0), Some(601_000)],
        "a second after the pod has started, and ten minutes"
    );
}

#[track_caller]
fn refused(args: &[&str], input: &str, messages: &[&str]) {
    let output = simulate(args, input);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{errors}");
    assert_eq!(errors.lines().collect::<Vec<_>>(), messages);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let args = ["-f", "no-such-file.yaml", "--what-if", "-", "--what-if", "nor-this.yaml"];
    let nameless =
        "{apiVersion: v1, kind: Pod, metadata: {name: Bad_Name}, spec: {containers: [{name: c}]}}";
    let output = simulate(&args, nameless);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    for part in [
        "no-such-file.yaml: no such file",
        "standard input:1: Pod default/Bad_Name",
        "nor-this.yaml: no such file",
    ] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    refused(
        &["-f", "-", "--what-if", "-"],
        "",
        &["error: standard input can be read once only: give - to one of them"],
    );
}

#[test]
fn the_present_can_be_a_live_cluster() {
    let server = ApiServer::start([(
        "/api/v1/nodes",
        json!([{ "metadata": { "name": "n1" }, "status": { "allocatable": { "cpu": "4", "pods": "10" } } }]),
    )]);
    let path = std::env::temp_dir().join(format!("muster-what-if-{}", std::process::id()));
    std::fs::write(&path, server.kubeconfig()).expect("it can be written");
    let kubeconfig = path.display().to_string();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: small}, spec: {schedulerName: muster, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}";
    let output = simulate(&["--kubeconfig", &kubeconfig, "--what-if", "-", "-o", "json"], pod);
    let _ = std::fs::remove_file(&path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    assert_eq!(found["newGangs"][0]["binds"][0]["node"], "n1");
}
