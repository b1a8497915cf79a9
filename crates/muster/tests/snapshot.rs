//! A snapshot leads to the same decisions as the objects it was made from, with their names or with
//! pseudonyms; and a live cluster to the same decisions as its snapshot. Runs the built binary.

mod apiserver;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use apiserver::ApiServer;

const NOW: &str = "2026-11-15T00:00:00Z";

/// A folder for one test, deleted with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("muster-snapshot-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.file(name);
        fs::write(&path, text).expect("it can be written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn muster(args: &[&str]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).env_clear();
    process.args(args).output().expect("the binary was built for this test")
}

#[track_caller]
fn stdout(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// The decisions, without the time they took.
#[track_caller]
fn decisions(files: &[&str], more: &[&str]) -> String {
    let files: Vec<&str> = files.iter().flat_map(|file| ["-f", *file]).collect();
    let args = [&["simulate", "-o", "json", "--now", NOW, "--events"], more, &files[..]].concat();
    let mut report: Value =
        serde_json::from_str(&stdout(muster(&args))).expect("the output is JSON");
    for cycle in report["cycles"].as_array_mut().expect("a list") {
        cycle["durationMicros"] = Value::Null;
    }
    serde_json::to_string_pretty(&report).expect("it was JSON")
}

/// Replaces pseudonyms by the names, and what controllers make of a uid by the word UID.
fn named(text: &str, table: &str) -> String {
    let names: HashMap<&str, &str> =
        table.lines().filter_map(|line| line.split_once('\t')).collect();
    let of_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut named = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(of_word) {
        let end = rest[start..].find(|c| !of_word(c)).map_or(rest.len(), |length| start + length);
        named.push_str(&rest[..start]);
        let word = &rest[start..end];
        named.push_str(&original(word, &names));
        rest = &rest[end..];
    }
    named + rest
}

/// The name behind a pseudonym, also where controllers made a name of several: `work-1-role-2-0`.
fn original(word: &str, names: &HashMap<&str, &str>) -> String {
    if let Some(name) = names.get(word) {
        return (*name).to_owned();
    }
    let parts: Vec<&str> = word.split('-').collect();
    let mut found: Vec<String> = Vec::new();
    let mut at = 0;
    while at < parts.len() {
        let pair = parts.get(at..at + 2).map(|pair| pair.join("-"));
        let name = pair.and_then(|pair| names.get(&*pair));
        found.push(name.map_or(parts[at], |name| name).to_owned());
        at += if name.is_some() { 2 } else { 1 };
    }
    let is_uid = |part: &String| part.len() == 8 && part.chars().all(|c| c.is_ascii_hexdigit());
    found.iter_mut().filter(|part| is_uid(part)).for_each(|part| *part = "UID".to_owned());
    found.join("-")
}

/// The law: a snapshot, with or without pseudonyms, leads to the same decisions as the original.
#[track_caller]
fn snapshots_decide_the_same(name: &str, files: &[&str], more: &[&str]) {
    let folder = Folder::new(name);
    let before = decisions(files, more);
    let files: Vec<&str> = files.iter().flat_map(|file| ["-f", *file]).collect();
    let plain = folder.file("plain.yaml");
    stdout(muster(&[&["snapshot", "--to", &plain], &files[..]].concat()));
    assert_eq!(decisions(&[&plain], more), before, "{name}: a snapshot leads to other decisions");
    let (anonymous, table) = (folder.file("anonymous.yaml"), folder.file("names.tsv"));
    stdout(muster(
        &[&["snapshot", "--anonymize", "--to", &anonymous, "--names", &table], &files[..]].concat(),
    ));
    let table = fs::read_to_string(table).expect("it was written");
    let (after, before) = (decisions(&[&anonymous], more), named(&before, ""));
    if named(&after, &table) != before {
        let differs = named(&after, &table)
            .lines()
            .zip(before.lines())
            .find(|(a, b)| a != b)
            .map(|(a, b)| format!("{a}\n{b}"));
        panic!("{name}: with pseudonyms the decisions differ:\n{}", differs.unwrap_or_default());
    }
}

#[test]
fn examples_have_the_same_decisions_from_a_snapshot() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in fs::read_dir(&examples).expect("there are examples") {
        let name =
            entry.expect("it can be listed").file_name().into_string().expect("names are UTF-8");
        // The names of its Jobs are made of several pseudonyms, and their order decides between equals.
        if name == "job-flow" {
            continue;
        }
        let folder = format!("examples/{name}");
        let config = format!("{folder}/scheduler.conf");
        let with_config = examples.join(&name).join("scheduler.conf").exists();
        let more: &[&str] = if with_config { &["--config", &config] } else { &[] };
        snapshots_decide_the_same(&name, &[&folder], more);
        snapshots_decide_the_same(&name, &[&folder], &[more, &["--until-stable"]].concat());
    }
}

#[test]
fn generated_clusters_have_the_same_decisions_from_a_snapshot() {
    for seed in ["1", "2", "3"] {
        let folder = Folder::new(&format!("generated-{seed}"));
        let cluster = ["generate", "cluster", "--nodes", "40", "--seed", seed];
        let cluster = folder.write("cluster.yaml", &stdout(muster(&cluster)));
        let workload = ["generate", "workload", "--gangs", "60", "--queues", "6", "--seed", seed];
        let workload = folder.write("workload.yaml", &stdout(muster(&workload)));
        snapshots_decide_the_same(
            &format!("seed-{seed}"),
            &[&cluster, &workload],
            &["--cycles", "3"],
        );
    }
}

/// Names with a surprising order, before and after those that are kept, in a cluster where names
/// decide everything.
#[test]
fn pseudonyms_break_ties_like_the_names() {
    let mut text = String::new();
    for name in ["z9", "a10", "a9", "m"] {
        text += &format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: 4, pods: 110}}}}}}\n"
        );
    }
    for name in ["alpha", "zeta", "gold"] {
        text += &format!(
            "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}}}\n"
        );
    }
    let spaces = ["default", "default-b", "a", "kube-system", "kube-public", "team", "team-a"];
    for (space, queue) in spaces.iter().zip(["default", "alpha", "zeta", "gold"].iter().cycle()) {
        text += &format!(
            "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: g, namespace: {space}}}, spec: {{minMember: 2, queue: {queue}}}}}\n"
        );
        for pod in ["g-10", "g-9", "alone"] {
            let group = if pod == "alone" { "" } else { "scheduling.k8s.io/group-name: g" };
            text += &format!(
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {pod}, namespace: {space}, annotations: {{{group}}}}}, spec: {{schedulerName: muster, containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}}}\n"
            );
        }
    }
    let folder = Folder::new("ties");
    let file = folder.write("cluster.yaml", &text);
    snapshots_decide_the_same("ties", &[&file], &["--cycles", "2"]);
}

fn pod(name: &str, node: Option<&str>, cpu: &str) -> Value {
    json!({
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-of-{name}"), "resourceVersion": "7" },
        "spec": {
            "schedulerName": "muster",
            "nodeName": node,
            "containers": [{
                "name": "main",
                "env": [{ "name": "TOKEN", "value": "hush" }],
                "resources": { "requests": { "cpu": cpu } },
            }],
        },
        "status": { "phase": if node.is_some() { "Running" } else { "Pending" } },
    })
}

fn cluster() -> ApiServer {
    let nodes = json!([{ "metadata": { "name": "n1" }, "status": { "allocatable": { "cpu": "4", "pods": "10" } } }]);
    let odd = json!({
        "metadata": { "name": "odd", "namespace": "default", "annotations": { "volcano.sh/running-estimate": "soon" } },
        "spec": { "minMember": 1 },
    });
    let broken = json!({ "metadata": { "name": "broken", "namespace": "default" }, "spec": { "minMember": "two" } });
    ApiServer::start([
        ("/api/v1/nodes", nodes),
        ("/api/v1/pods", json!([pod("runs", Some("n1"), "3"), pod("waits", None, "2")])),
        ("/apis/scheduling.volcano.sh/v1beta1/podgroups", json!([odd, broken])),
    ])
}

#[test]
fn a_live_cluster_has_the_same_decisions_as_its_snapshot() {
    let server = cluster();
    let folder = Folder::new("live");
    let kubeconfig = folder.write("kubeconfig", &server.kubeconfig());
    let live = decisions(&[], &["--kubeconfig", &kubeconfig]);
    assert!(live.contains("want 2, best has 1"), "{live}");
    let snapshot = folder.file("cluster.yaml");
    let output = muster(&["snapshot", "--kubeconfig", &kubeconfig, "--to", &snapshot]);
    let notes = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        notes.contains("warning: PodGroup default/broken can't be read and is left out"),
        "{notes}"
    );
    assert!(
        notes.contains(
            "warning: PodGroup default/odd: metadata.annotations[volcano.sh/running-estimate]"
        ),
        "{notes}"
    );
    assert!(
        notes.ends_with("cluster.yaml: 1 × Node, 2 × Pod, 1 × PodGroup, 2 × Queue\n"),
        "{notes}"
    );
    assert_eq!(decisions(&[&snapshot], &[]), live);
    let text = fs::read_to_string(&snapshot).expect("it was written");
    assert!(
        !text.contains("hush")
            && !text.contains("resourceVersion")
            && text.contains("uid-of-waits"),
        "{text}"
    );
}

#[test]
fn files_are_added_to_the_named_cluster() {
    let server = cluster();
    let folder = Folder::new("on-top");
    let kubeconfig = folder.write("kubeconfig", &server.kubeconfig());
    let smaller = "{apiVersion: v1, kind: Pod, metadata: {name: waits, namespace: default}, spec: {schedulerName: muster, containers: [{name: main, resources: {requests: {cpu: 1}}}]}}";
    let file = folder.write("smaller.yaml", smaller);
    let together = decisions(&[&file], &["--kubeconfig", &kubeconfig]);
    assert!(
        together.contains("\"pod\": \"default/waits\""),
        "it is bound where one CPU is left: {together}"
    );
    let alone = decisions(&[&file], &[]);
    assert!(
        alone.contains("0/0 nodes fit") || !alone.contains("\"node\": \"n1\""),
        "no cluster unless named: {alone}"
    );
}

#[test]
fn explain_reads_the_default_cluster_too() {
    let server = cluster();
    let folder = Folder::new("explain");
    let kubeconfig = folder.write("kubeconfig", &server.kubeconfig());
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.env_clear().env("KUBECONFIG", &kubeconfig).args(["explain", "waits", "-o", "json"]);
    let text = stdout(process.output().expect("it runs"));
    let explanation: Value = serde_json::from_str(&text).expect("the output is JSON");
    assert_eq!(explanation["gang"]["help"][0], "free 1 cpu on n1");
}

#[track_caller]
fn refused(args: &[&str], code: i32, message: &str) {
    let output = muster(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.trim()), (Some(code), message));
    assert!(output.stdout.is_empty());
}

#[test]
fn unreadable_clusters_are_explained() {
    let server = cluster();
    let folder = Folder::new("refused");
    let kubeconfig = folder.write("kubeconfig", &server.kubeconfig());
    refused(
        &["simulate", "--kubeconfig", &kubeconfig, "--context", "production"],
        2,
        "error: the kubeconfig has no context \"production\"; it has test",
    );
    drop(server);
    refused(
        &["snapshot", "--kubeconfig", &kubeconfig],
        1,
        "error: the API server can't be reached: Connection refused (os error 111)",
    );
    let output = muster(&["simulate"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("-f FILE") && errors.contains("--kubeconfig FILE"), "{errors}");
}
