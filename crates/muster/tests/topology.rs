//! `muster topology show` and `check`: the output about the network and its mistakes. Runs the
//! built binary. After an intended change, update the snapshots with `INSTA_UPDATE=always`. The
//! picture is compared with the README's, in `readme.rs`.

mod apiserver;
mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use apiserver::ApiServer;
use serde_json::{Value, json};
use support::has_keys;

const NOW: &str = "2026-11-15T00:00:00Z";

/// Runs `muster …` from the root of the repository with this on its standard input.
fn muster(line: &str, input: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_clear()
        .env("COLUMNS", "80");
    process
        .args(line.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = process.spawn().expect("the binary was built for this test");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it is read");
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn printed(line: &str, input: &str) -> String {
    let output = muster(line, input);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn show(more: &str) -> String {
    printed(&format!("topology show -f examples/topology --now {NOW} {more}"), "")
}

/// Nodes n0, n1, … with eight GPUs each, and more.
fn nodes(count: usize, more: &str) -> String {
    let node = |at| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n{at}, labels: {{rack: r{}}}}}, status: {{allocatable: {{nvidia.com/gpu: 8, cpu: 64, pods: 99}}}}}}\n---\n",
            at / 8
        )
    };
    (0..count).map(node).collect::<String>() + more
}

fn hyper(name: &str, tier: u32, more: &str, members: &[&str]) -> String {
    let member = |member: &&str| {
        let node = member.contains("labelMatch") || member.contains("name: n");
        let kind = if node { "Node" } else { "HyperNode" };
        format!("{{type: {kind}, selector: {{{member}}}}}")
    };
    let members: Vec<String> = members.iter().map(member).collect();
    format!(
        "---\n{{apiVersion: topology.volcano.sh/v1alpha1, kind: HyperNode, metadata: {{name: {name}}}, spec: {{tier: {tier}{more}, members: [{}]}}}}\n",
        members.join(", ")
    )
}

fn exact(name: &str) -> String {
    format!("exactMatch: {{name: {name}}}")
}

/// A network with every mistake there is, and gangs that rely on it.
fn broken() -> String {
    let named = |name: &str, tier, more: &str, members: &[&str]| {
        let members: Vec<String> = members.iter().map(|member| exact(member)).collect();
        hyper(name, tier, more, &members.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut text = nodes(10, "");
    text += &named("a", 1, ", tierName: rack", &["n0", "n1"]);
    text += &named("b", 1, "", &["n2", "n1"]);
    text += &named("c", 2, ", tierName: rack", &["a"]);
    text += &named("d", 1, "", &["n3", "n99", "ghost"]);
    text += &named("e", 2, "", &["f"]);
    text += &named("f", 2, "", &["e"]);
    text += &named("g", 3, "", &["h"]);
    text += &named("h", 3, "", &["i"]);
    text += &named("i", 1, "", &["n4"]);
    text += &named("j", 3, "", &["d"]);
    text += &named("k", 3, "", &["d"]);
    text += &named("m", 1, "", &["n3"]);
    text += &hyper("l", 1, "", &["labelMatch: {matchLabels: {rack: r9}}"]);
    let group = |name: &str, spec: &str| {
        format!(
            "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}}}, spec: {{minMember: 1, {spec}}}}}\n"
        )
    };
    text += &group("named", "networkTopology: {mode: hard, highestTierName: hall}");
    text += &group("low", "networkTopology: {mode: hard, highestTierAllowed: 0}");
    text += &group("wish", "networkTopology: {mode: soft, highestTierName: hall}");
    text += &group(
        "parts",
        "subGroupPolicy: [{name: p, matchLabelKeys: [part], subGroupSize: 2, networkTopology: {highestTierName: row}}]",
    );
    text
}

#[track_caller]
fn fits_80_columns(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn the_network_is_shown() {
    let text = show("");
    fits_80_columns(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn gangs_are_shown_at_their_domain() {
    let text = show("--cycles 1");
    fits_80_columns(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn wide_has_a_line_for_every_node() {
    insta::assert_snapshot!(show("--cycles 1 -o wide"));
}

#[test]
fn graphviz_gets_the_tree() {
    insta::assert_snapshot!(show("--cycles 1 -o dot"));
}

#[test]
fn hyper_nodes_outside_the_tree_are_shown_with_the_reason() {
    let text = printed("topology show -f -", &broken());
    fits_80_columns(&text);
    insta::assert_snapshot!(text);
    let picture = printed("topology show -f - -o svg", &broken());
    assert!(
        picture.contains("in no HyperNode") && picture.contains("e: it is below itself"),
        "{picture}"
    );
}

#[test]
fn a_cluster_without_hyper_nodes_is_one_domain() {
    insta::assert_snapshot!(printed("topology show -f -", &nodes(3, "")));
}

/// This many racks of eight nodes, and spines of forty racks.
fn racks(count: usize) -> String {
    let mut text = nodes(count * 8, "");
    for rack in 0..count {
        text += &hyper(
            &format!("rack-{rack:04}"),
            1,
            "",
            &[&format!("labelMatch: {{matchLabels: {{rack: r{rack}}}}}")],
        );
    }
    for spine in 0..count.div_ceil(40) {
        let below = spine * 40..count.min(spine * 40 + 40);
        let members: Vec<String> = below.map(|rack| exact(&format!("rack-{rack:04}"))).collect();
        let members: Vec<&str> = members.iter().map(String::as_str).collect();
        text += &hyper(&format!("spine-{spine}"), 2, ", tierName: spine", &members);
    }
    text
}

#[test]
fn large_clusters_are_summarised() {
    for (count, most) in [(30, 80), (200, 500), (300, 40)] {
        let text = printed("topology show -f -", &racks(count));
        fits_80_columns(&text);
        assert!(text.lines().count() <= most, "{count} racks: {} lines", text.lines().count());
    }
    insta::assert_snapshot!(printed("topology show -f -", &racks(300)));
    for count in [30, 300] {
        let picture = printed("topology show -f - -o svg", &racks(count));
        assert!(
            picture.starts_with("<svg") && picture.len() < 4_000_000,
            "{} bytes",
            picture.len()
        );
    }
}

#[test]
fn the_json_keeps_its_contract() {
    let network: Value =
        serde_json::from_str(&show("--cycles 1 -o json")).expect("the output is JSON");
    has_keys(&network, &["resource", "domains", "nodes", "gangs", "leftOut"]);
    let domain = ["name", "tier", "tierName", "parent", "nodes", "used", "free", "total", "gangs"];
    has_keys(&network["domains"][0], &domain);
    has_keys(
        &network["nodes"][0],
        &["name", "domain", "ready", "schedulable", "used", "free", "total", "gangs"],
    );
    has_keys(&network["gangs"][0], &["name", "domain", "tier", "placed"]);
    let broken = printed("topology show -f - -o json", &broken());
    let broken: Value = serde_json::from_str(&broken).expect("the output is JSON");
    has_keys(&broken["leftOut"][0], &["name", "reason"]);
}

#[test]
fn a_good_network_passes() {
    assert_eq!(
        printed("topology check -f examples/topology", ""),
        "no errors: 7 HyperNodes, 8 nodes\n"
    );
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let output = muster("topology check -f -", &broken());
    assert_eq!(output.status.code(), Some(2));
    let told = [output.stdout, output.stderr].concat();
    insta::assert_snapshot!(String::from_utf8(told).expect("the output is UTF-8"));
}

#[test]
fn check_reports_hyper_nodes_that_are_left_out() {
    let output = muster("check -f -", &broken());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("HyperNode e: is left out: it is below itself (e > f > e)"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 8, "{errors}");
}

#[test]
fn unknown_tiers_are_reported_with_the_known_names() {
    let group = "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 1, networkTopology: {highestTierName: row}}}";
    let text =
        nodes(8, &hyper("r", 1, ", tierName: rack", &["labelMatch: {matchLabels: {rack: r0}}"]))
            + group;
    let output = muster("topology check -f -", &text);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("no HyperNode has a tier named row: write one of rack"), "{told}");
}

#[test]
fn a_cluster_without_hyper_nodes_has_one_tier() {
    let group = "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: 1, networkTopology: {highestTierAllowed: 1}}}";
    let note = "note: there are no HyperNodes: all of 3 nodes count as equally close";
    let text = printed("topology check -f -", &(nodes(3, "") + group));
    assert_eq!(text, format!("{note}\nno errors: 0 HyperNodes, 3 nodes\n"));
}

#[test]
fn notes_are_not_errors() {
    let text = nodes(9, &hyper("rack", 1, "", &["labelMatch: {matchLabels: {rack: r0}}"]));
    insta::assert_snapshot!(printed("topology check -f -", &text));
}

#[test]
fn a_live_cluster_is_shown_and_checked() {
    let node = |name| json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "9"}}});
    let rack = |name| {
        let members = json!([{"type": "Node", "selector": {"exactMatch": {"name": "n0"}}}]);
        json!({"metadata": {"name": name}, "spec": {"tier": 1, "members": members}})
    };
    let server = ApiServer::start([
        ("/api/v1/nodes", json!([node("n0"), node("n1")])),
        ("/apis/topology.volcano.sh/v1alpha1/hypernodes", json!([rack("a"), rack("b")])),
    ]);
    let folder = tempfile::tempdir().expect("the folder for temporary files can be written");
    let config = folder.path().join("kubeconfig");
    std::fs::write(&config, server.kubeconfig()).expect("it can be written");
    let shown = muster(&format!("topology show --kubeconfig {}", config.display()), "");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("2 nodes, 1 HyperNode, 0 of 16 cpu in use"), "{shown}");
    let checked = muster(&format!("topology check --kubeconfig {}", config.display()), "");
    let errors = String::from_utf8_lossy(&checked.stderr);
    let error = "error: HyperNode b: is left out: its node n0 is in a already: remove it from one of the two";
    assert!(checked.status.code() == Some(2) && errors.contains(error), "{errors}");
}
