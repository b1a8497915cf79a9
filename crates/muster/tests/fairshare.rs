//! `muster fairshare`, with the built binary.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

fn fairshare(manifests: &str, more: &[&str]) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process
        .env_clear()
        .env("COLUMNS", "80")
        .args(["fairshare", "-f", "-", "--now", "2026-11-15T00:00:00Z"])
        .args(more);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().expect("it was built");
    process.stdin.take().expect("piped").write_all(manifests.as_bytes()).expect("it reads");
    process.wait_with_output().expect("it ends")
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).expect("the output is UTF-8")
}

/// A node with this many GPUs, and queues that each want some: name, weight, deserved, wanted.
fn cluster(gpus: u32, queues: &[(&str, i32, u32, u32)]) -> String {
    let mut text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: n}}, status: {{allocatable: {{nvidia.com/gpu: {gpus}, pods: 99}}}}}}\n"
    );
    for (name, weight, deserved, wanted) in queues {
        text += &format!(
            "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, spec: {{weight: {weight}, deserved: {{nvidia.com/gpu: {deserved}}}}}}}\n\
             ---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}}}, spec: {{minMember: 1, queue: {name}}}}}\n\
             ---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {{scheduling.k8s.io/group-name: {name}}}}}, spec: {{schedulerName: muster, containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: {wanted}}}}}}}]}}}}\n"
        );
    }
    text
}

#[test]
fn more_may_be_deserved_than_there_is() {
    let output = fairshare(&cluster(8, &[("a", 1, 6, 9), ("b", 1, 6, 9)]), &[]);
    assert!(
        text(&output.stdout).contains("deserved    a 6, b 6; 4 more than there is"),
        "{output:?}"
    );
}

#[test]
fn enough_for_all_queues_is_said_briefly() {
    let output = fairshare(&cluster(8, &[("a", 1, 2, 3), ("b", 1, 2, 1)]), &[]);
    let printed = text(&output.stdout);
    assert!(
        printed.contains("enough      every queue gets what it wants, 4 are left"),
        "{printed}"
    );
    assert!(!printed.contains("by weight"), "{printed}");
}

#[test]
fn nothing_is_wanted_in_an_empty_cluster() {
    let node = cluster(8, &[]);
    assert_eq!(text(&fairshare(&node, &[]).stdout), "no queue wants anything\n");
    let picture = fairshare(&node, &["-o", "svg"]);
    assert!(text(&picture.stdout).contains("no queue wants anything</text>"));
}

#[test]
fn every_number_is_in_the_json() {
    let manifests = cluster(10, &[("a", 3, 2, 9), ("b", 1, 0, 9), ("c", 1, 0, 1)]);
    let output = fairshare(&manifests, &["-o", "json"]);
    let shares: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    let given = |queue: &str, weight, share, got| json!({ "queue": queue, "weight": weight, "share": share, "got": got });
    let queue = |name: &str, weight, deserved, wanted, share| {
        json!({
            "name": name, "parent": null, "depth": 0, "priority": 0, "weight": weight, "deserved": deserved,
            "capability": null, "used": 0, "wanted": wanted, "usagePpm": 0, "fairShare": share, "standing": "below",
        })
    };
    let default = json!({
        "name": "default", "parent": null, "depth": 0, "priority": 0, "weight": 1, "deserved": 0,
        "capability": null, "used": 0, "wanted": 0, "usagePpm": 0, "fairShare": 0, "standing": "within",
    });
    let round = |round, surplus, weights, parts: Vec<Value>, units: &[&str]| {
        json!({
            "priority": 0, "round": round, "surplus": surplus, "weights": weights, "parts": parts, "units": units,
        })
    };
    let expected = json!({
        "tree": false,
        "resources": [{
            "resource": "nvidia.com/gpu", "total": 10, "allocatable": 10, "usedByOthers": 0,
            "queues": [queue("a", 3, 2, 9, 8), queue("b", 1, 0, 9, 1), queue("c", 1, 0, 1, 1), default],
            "divisions": [{
                "parent": "root", "total": 10, "enough": false,
                "inQuota": [{ "queue": "a", "amount": 2 }],
                "surplus": [
                    round(1, 8, 5, vec![given("a", 3, 4, 4), given("b", 1, 1, 1), given("c", 1, 1, 1)], &[]),
                    round(2, 2, 4, vec![given("a", 3, 1, 1), given("b", 1, 0, 0)], &["a"]),
                ],
                "left": 0,
            }],
        }],
    });
    // Rounding cost both half a unit, and a is first by name.
    assert_eq!(shares, expected, "{shares:#}");
}

#[test]
fn an_unknown_resource_is_an_error_that_names_the_known_ones() {
    let output = fairshare(&cluster(8, &[]), &["--resource", "gpu", "--resource", "pods"]);
    assert_eq!(
        (output.status.code(), text(&output.stderr)),
        (
            Some(2),
            "error: no node, queue or pod here names the resource gpu: name one of nvidia.com/gpu, cpu, memory, ephemeral-storage\n\
             error: pods are not divided among queues: name one of nvidia.com/gpu, cpu, memory, ephemeral-storage\n"
        )
    );
}

#[test]
fn manifests_that_can_not_be_read_are_an_error() {
    let output = fairshare("{kind: Node", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: standard input:"), "{output:?}");
}

#[test]
fn a_configuration_without_shares_is_noted() {
    let folder = std::env::temp_dir().join(format!("muster-fairshare-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let config = folder.join("scheduler.conf");
    std::fs::write(
        &config,
        "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: proportion}]}]\n",
    )
    .expect("there is room");
    let output =
        fairshare(&cluster(8, &[("a", 1, 0, 1)]), &["--config", &config.display().to_string()]);
    std::fs::remove_dir_all(&folder).expect("it is ours");
    assert_eq!(
        text(&output.stderr),
        "note: these shares have no effect: name the plugin capacity in the configuration's tiers\n"
    );
}

/// Queue a has all eight GPUs, and b wants them too; the usage of the last hour counts.
#[test]
fn past_usage_is_shown_and_drawn() {
    let folder = std::env::temp_dir().join(format!("muster-curves-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let (config, picture) = (folder.join("scheduler.conf"), folder.join("curves.svg"));
    let plugins =
        "[{name: gang}, {name: predicates}, {name: capacity, arguments: {usageWindow: 1h}}]";
    std::fs::write(&config, format!("actions: allocate\ntiers: [{{plugins: {plugins}}}]\n"))
        .expect("there is room");
    let manifests = cluster(8, &[("a", 1, 0, 8), ("b", 1, 0, 8)]);
    let config = config.display().to_string();
    let shares = fairshare(&manifests, &["--config", &config, "--cycles", "200", "-o", "json"]);
    let shares: Value = serde_json::from_slice(&shares.stdout).expect("the output is JSON");
    let queues = &shares["resources"][0]["queues"];
    let figures =
        |place: usize| [&queues[place]["usagePpm"], &queues[place]["fairShare"]].map(Value::clone);
    assert_eq!([figures(0), figures(1)], [[json!(1_000_000), json!(0)], [json!(0), json!(8)]]);
    let told = fairshare(&manifests, &["--config", &config, "--cycles", "200"]);
    let told = text(&told.stdout);
    assert!(told.contains("USAGE") && told.contains("less by past usage"), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
    let drawn = curves(&manifests, &config, &picture, &["--cycles", "200"]);
    std::fs::remove_dir_all(&folder).expect("it is ours");
    assert_eq!(drawn.matches("<polyline").count(), 6, "two queues in three pictures");
    assert!(drawn.contains(">nvidia.com/gpu of queues over time<"), "{drawn}");
}

/// The pod of queue a ends after ten minutes; then nothing happens for hours, but its past usage
/// decays.
#[test]
fn past_usage_decays_while_nothing_happens() {
    let folder = std::env::temp_dir().join(format!("muster-forgotten-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is room");
    let (config, picture) = (folder.join("scheduler.conf"), folder.join("curves.svg"));
    let plugins =
        "[{name: gang}, {name: predicates}, {name: capacity, arguments: {usageHalfLife: 1h}}]";
    std::fs::write(&config, format!("actions: allocate\ntiers: [{{plugins: {plugins}}}]\n"))
        .expect("there is room");
    let ends = |name: &str, after: &str| {
        let group = format!("{{scheduling.k8s.io/group-name: {name}}}");
        (
            group,
            format!(
                "{{scheduling.k8s.io/group-name: {name}, muster.sh/simulated-duration: {after}}}"
            ),
        )
    };
    let mut manifests = cluster(8, &[("a", 1, 0, 4), ("b", 1, 0, 4)]);
    for (from, to) in [ends("a", "10m"), ends("b", "6h")] {
        manifests = manifests.replace(&from, &to);
    }
    let drawn = curves(&manifests, &config.display().to_string(), &picture, &["--until-stable"]);
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let points = |line: &str| {
        line.split_once("points=\"").map_or(0, |(_, points)| points.split(' ').count())
    };
    let steps: Vec<usize> =
        drawn.lines().filter(|line| line.contains("<polyline")).map(points).collect();
    assert!(steps[4] > 40, "{steps:?} points of a and b in three pictures");
}

/// The picture of the usage of queues that `simulate` draws.
fn curves(manifests: &str, config: &str, picture: &Path, more: &[&str]) -> String {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.args(["simulate", "-f", "-", "--config", config]).args(more).arg("--usage-curves");
    process.arg(picture).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = process.spawn().expect("it was built");
    process.stdin.take().expect("piped").write_all(manifests.as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
    std::fs::read_to_string(picture).expect("it was written")
}
