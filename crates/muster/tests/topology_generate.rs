//! `muster topology generate` from each source: its output, that it writes the same twice, that a
//! new rack only adds objects, and that mistakes are reported. Runs the built binary.

mod apiserver;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use apiserver::ApiServer;
use serde_json::json;

const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: gpu-1, labels: {zone: a, example.com/spine: S1, rack: r1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-10, labels: {zone: a, example.com/spine: S1, rack: r1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-2, labels: {zone: a, example.com/spine: S1, rack: r1}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-3, labels: {zone: a, example.com/spine: S1, rack: r2}}}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-4, labels: {zone: b, example.com/spine: s2, rack: r3}}}
---
{apiVersion: v1, kind: Node, metadata: {name: login, labels: {zone: a}}}
";

const TABLE: &str =
    "# node leaf spine\nnode leaf spine\ngpu-1 l1 s1\ngpu-10 l1 s1\ngpu-2 l1 s1\ngpu-3 l2 s1\n";

const SLURM: &str = "# topology/tree\nSwitchName=spine Switches=leaf[1-2] LinkSpeed=400\nSwitchName=leaf1 Nodes=tux[08-10]\nSwitchName=leaf2 \\\n  Nodes=tux11\n";

const PORTS: &str = r#"[
{"description": "Computer IB Port", "system_name": "gpu-1", "peer_node_name": "ib-leaf-1", "tier": 1},
{"description": "Computer IB Port", "system_name": "gpu-1", "peer_node_name": "ib-leaf-2", "tier": 1},
{"description": "Computer IB Port", "system_name": "gpu-2", "peer_node_name": "ib-leaf-2", "tier": 1},
{"description": "Computer IB Port", "system_name": "GPU-3", "peer_node_name": "ib-leaf-3", "tier": 1},
{"description": "Computer IB Port", "system_name": "Mellanox Technologies Aggregation Node", "peer_node_name": "ib-leaf-3"},
{"description": "Switch IB Port", "system_name": "ib-leaf-1", "peer_node_name": "ib-spine-1", "tier": 3},
{"description": "Switch IB Port", "system_name": "ib-spine-1", "peer_node_name": "ib-leaf-3", "tier": 4},
{"description": "Switch IB Port", "system_name": "ib-spine-1", "peer_node_name": "N/A", "tier": 4}
]"#;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("the folder for temporary files can be written")
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("it can be written");
}

/// Runs `muster topology generate …` in the folder.
fn generate(folder: &Path, line: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process
        .current_dir(folder)
        .env_clear()
        .env("UFM_PASSWORD", "hush")
        .args(["topology", "generate"]);
    process.args(line.split_whitespace()).output().expect("the binary was built for this test")
}

#[track_caller]
fn checked(text: &str) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.env_clear().args(["check", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = process.spawn().expect("the binary was built for this test");
    child.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("× HyperNode"), "{told}");
}

/// The output for a file with this text, which `muster check` accepts.
#[track_caller]
fn written(name: &str, text: &str, line: &str) -> String {
    let folder = folder();
    write(folder.path(), name, text);
    let output = generate(folder.path(), line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    checked(&text);
    format!("{errors}{text}")
}

#[track_caller]
fn refused(name: &str, text: &str, line: &str) -> String {
    let folder = folder();
    write(folder.path(), name, text);
    let output = generate(folder.path(), line);
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(2), b"".as_slice()),
        "{output:?}"
    );
    String::from_utf8(output.stderr).expect("errors are UTF-8")
}

#[test]
fn labels_of_nodes_become_hyper_nodes() {
    let line = "--from labels --labels zone,example.com/spine,rack -f nodes.yaml";
    insta::assert_snapshot!(written("nodes.yaml", NODES, line));
}

#[test]
fn labels_are_read_from_a_live_cluster_too() {
    let nodes = json!([
        { "metadata": { "name": "n1", "labels": { "rack": "r1" } } },
        { "metadata": { "name": "n2", "labels": { "rack": "r1" } } },
    ]);
    let server = ApiServer::start([("/api/v1/nodes", nodes)]);
    let text = written(
        "kubeconfig",
        &server.kubeconfig(),
        "--from labels --labels rack --kubeconfig kubeconfig",
    );
    assert!(text.contains("name: rack-r1\n") && text.contains("{name: n2}"), "{text}");
}

#[test]
fn a_table_becomes_hyper_nodes() {
    insta::assert_snapshot!(written("t.txt", TABLE, "--from file t.txt"));
}

#[test]
fn slurms_topology_becomes_hyper_nodes() {
    insta::assert_snapshot!(written("topology.conf", SLURM, "--from file topology.conf"));
}

#[test]
fn ports_of_ufm_become_hyper_nodes() {
    insta::assert_snapshot!(written("ports.json", PORTS, "--from ufm ports.json"));
}

#[test]
fn a_json_list_becomes_json() {
    let text = r#"[{"node": "n1", "levels": ["r1", "row1"]}]"#;
    let line = "--from file t.json --levels row,rack -o json";
    insta::assert_snapshot!(written("t.json", text, line));
}

/// Answers one request on the loopback, if its user and password are right, and returns its
/// address.
fn ufm(status: &'static str, body: &'static str) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    let answer = move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let lines = BufReader::new(stream.try_clone().expect("it is open")).lines();
        let lines: Vec<String> =
            lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let length = body.len();
        let _ = write!(
            stream,
            "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        lines
    };
    (address, std::thread::spawn(answer))
}

#[test]
fn ufm_is_asked_with_user_and_password() {
    let (address, request) = ufm("200 OK", PORTS);
    let live = written("unused", "", &format!("--from ufm {address} --ufm-user admin"));
    let lines = request.join().expect("it was asked");
    assert_eq!(lines[0], "GET /ufmRest/resources/ports HTTP/1.1");
    // admin:hush
    assert!(
        lines.iter().any(|line| line.eq_ignore_ascii_case("authorization: Basic YWRtaW46aHVzaA==")),
        "{lines:?}"
    );
    assert_eq!(live, written("ports.json", PORTS, "--from ufm ports.json"));
}

#[test]
fn an_error_of_ufm_says_what_to_check() {
    for (status, hint) in [
        ("401 Unauthorized", "check --ufm-user and the variable UFM_PASSWORD"),
        ("500 Internal Server Error", "it answered with status 500"),
    ] {
        let (address, request) = ufm(status, "no");
        let output = generate(Path::new("."), &format!("--from ufm {address} --ufm-user admin"));
        request.join().expect("it was asked");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains(hint) && errors.contains(&address) && !errors.contains("hush"),
            "{errors}"
        );
    }
}

#[test]
fn the_output_does_not_depend_on_the_order_of_the_input() {
    let mut lines: Vec<&str> = TABLE.lines().skip(2).collect();
    let once = written("t.txt", TABLE, "--from file t.txt");
    assert_eq!(written("t.txt", TABLE, "--from file t.txt"), once);
    lines.reverse();
    assert_eq!(written("t.txt", &lines.join("\n"), "--from file t.txt"), once);
}

/// The documents and lines that the second text has in addition; everything in the first must still
/// be there.
#[track_caller]
fn added(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let (mut objects, mut lines) = (Vec::new(), Vec::new());
    let name = |document: &str| {
        document.lines().find(|line| line.starts_with("  name: ")).map(str::to_owned)
    };
    let mut old: Vec<&str> = before.split("---\n").collect();
    for document in after.split("---\n") {
        let Some(at) = old.iter().position(|old| name(old) == name(document)) else {
            objects.push(document.to_owned());
            continue;
        };
        let known: Vec<&str> = old.remove(at).lines().collect();
        assert!(
            known.iter().all(|line| document.lines().any(|new| new == *line)),
            "{known:#?} became {document}"
        );
        lines.extend(document.lines().filter(|line| !known.contains(line)).map(str::to_owned));
    }
    assert!(old.is_empty(), "gone: {old:#?}");
    (objects, lines)
}

#[test]
fn a_new_rack_only_adds_itself_and_a_line_in_its_parent() {
    let slurm_after = SLURM.replace("leaf[1-2]", "leaf[0-2]") + "SwitchName=leaf0 Nodes=tux01";
    let cable = |from: &str, to: &str, what: &str| {
        format!(
            ",{{\"description\": \"{what} IB Port\", \"system_name\": \"{from}\", \"peer_node_name\": \"{to}\"}}]"
        )
    };
    let ports_after = PORTS.replace(']', &cable("gpu-0", "ib-leaf-0", "Computer"));
    let ports_after = ports_after.replace(']', &cable("ib-leaf-0", "ib-spine-1", "Switch"));
    let label = "---\n{apiVersion: v1, kind: Node, metadata: {name: a0, labels: {zone: b, example.com/spine: s2, rack: R 3}}}\n";
    let cases = [
        (
            "nodes.yaml",
            NODES.to_owned(),
            format!("{NODES}{label}"),
            "--from labels --labels zone,example.com/spine,rack -f nodes.yaml",
        ),
        ("t.txt", TABLE.to_owned(), format!("{TABLE}a0 L_1 s1\n"), "--from file t.txt"),
        ("t.conf", SLURM.to_owned(), slurm_after, "--from file t.conf"),
        ("ports.json", PORTS.to_owned(), ports_after, "--from ufm ports.json"),
    ];
    for (file, before, after, line) in cases {
        let (before, after) = (written(file, &before, line), written(file, &after, line));
        let (objects, lines) = added(&before, &after);
        assert_eq!((objects.len(), lines.len()), (1, 1), "{line}: {objects:#?} {lines:#?}");
        assert!(
            objects[0].contains("tier: 1") && lines[0].contains("type: HyperNode"),
            "{objects:#?} {lines:#?}"
        );
    }
}

#[test]
fn racks_with_the_same_name_are_reported_and_can_be_distinguished() {
    let text = "node rack zone\nn1 r1 a\nn2 r1 a\nn3 r1 b\n";
    insta::assert_snapshot!(refused("t.txt", text, "--from file t.txt"));
    let names = written("t.txt", text, "--from file t.txt --names path");
    let names: Vec<&str> = names.lines().filter(|line| line.starts_with("  name: ")).collect();
    insta::assert_snapshot!(names.join("\n"));
}

#[test]
fn only_nodes_of_the_cluster_count() {
    let folder = folder();
    write(folder.path(), "nodes.yaml", NODES);
    write(folder.path(), "t.txt", &format!("{TABLE}nas l9 s9\n"));
    let output = generate(folder.path(), "--from file t.txt -f nodes.yaml");
    let notes = String::from_utf8_lossy(&output.stderr);
    insta::assert_snapshot!(notes);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("s9"));
}

#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let slurm = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-3]\nSwitchName=c Switches=a,d\nSwitchName=e Switches=f\nSwitchName=f Switches=e\n";
    insta::assert_snapshot!(refused("t.conf", slurm, "--from file t.conf"));
    let table = "n1 l1 s1\nn1 l2 s1\nN_2 l1 s1\n";
    insta::assert_snapshot!(refused("t.txt", table, "--from file t.txt"));
}

#[test]
fn options_that_exclude_each_other_are_errors_that_say_what_to_write() {
    for (line, hint) in [
        ("--from labels -f nodes.yaml", "--labels zone,spine,rack"),
        ("--from labels --labels rack,rack -f nodes.yaml", "a name twice"),
        ("--from labels --labels zone,,rack -f nodes.yaml", "an empty name"),
        ("--from labels --labels shelf -f nodes.yaml", "none of 6 nodes has the label shelf"),
        ("--from labels --labels rack nodes.yaml", "-f FILE"),
        ("--from labels --labels rack -f missing.yaml", "missing.yaml: no such file or folder"),
        ("--from file", "--from file topology.conf"),
        ("--from file missing.txt", "missing.txt: no such file or folder"),
        ("--from file nodes.yaml --labels rack", "--labels goes with --from labels"),
        ("--from ufm nodes.yaml --format slurm", "--format goes with --from file"),
        ("--from ufm", "https://ufm.example.com"),
        ("--from ufm nodes.yaml", "nodes.yaml: not a list of ports"),
        ("--from ufm https://admin:hush@ufm", "UFM_PASSWORD"),
        ("--from file nodes.yaml --ufm-user admin", "go with --from ufm"),
    ] {
        let errors = refused("nodes.yaml", NODES, line);
        assert!(errors.contains(hint), "{line}: {errors}");
    }
}
