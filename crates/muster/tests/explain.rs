//! What would help a waiting gang, where the answer is a sum over nodes; and how room could be made
//! for a starving one. Runs the built binary.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The advice of `muster explain ring` in a cluster of this many nodes with 8 GPUs, of which other
/// pods use `used`.
fn help(nodes: usize, used: u32, pods: usize, gpus: u32) -> Vec<String> {
    let mut text = format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: ring}}, spec: {{minMember: {pods}}}}}\n"
    );
    let pod = |name: &str, scheduler: &str, node: &str, gpus: u32| {
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: {{scheduling.k8s.io/group-name: ring}}}}, spec: {{schedulerName: {scheduler}{node}, containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: {gpus}}}}}}}]}}}}\n"
        )
    };
    for node in 0..nodes {
        text += &format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}}}, status: {{allocatable: {{nvidia.com/gpu: 8, pods: 99}}}}}}\n"
        );
        text += &pod(&format!("other-{node}"), "other", &format!(", nodeName: n{node}"), used);
    }
    (0..pods).for_each(|index| text += &pod(&format!("ring-{index}"), "muster", "", gpus));
    serde_json::from_value(explained(&text, &[])["help"].clone()).expect("a list of texts")
}

/// The output of `muster explain ring` for a cluster.
fn explained(text: &str, more: &[&str]) -> Value {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.env_clear().args(["explain", "gang/ring", "-f", "-", "-o", "json"]).args(more);
    let mut process =
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
    process.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

#[test]
fn no_more_is_freed_on_a_node_than_it_has() {
    assert_eq!(
        help(3, 6, 5, 4),
        [
            "free 6 nvidia.com/gpu on n0",
            "free 6 nvidia.com/gpu on n1",
            "free 2 nvidia.com/gpu on n2"
        ]
    );
}

#[test]
fn a_gang_that_is_larger_than_the_cluster_needs_more_of_it() {
    let freed = "free 6 nvidia.com/gpu on n0";
    let more = "add room for 2 more pods of 4 nvidia.com/gpu: all nodes together are too small";
    assert_eq!(help(1, 6, 4, 4), [freed, more]);
    assert_eq!(
        help(1, 8, 2, 9),
        ["add 2 nodes with room for 9 nvidia.com/gpu: no node is large enough"]
    );
}

/// Two machines, on which a queue uses more than it deserves, a closed one, and a gang that wants
/// two of them.
const STARVING: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: &size {allocatable: {nvidia.com/gpu: 8, pods: 10}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2}, status: *size}
- {apiVersion: v1, kind: Node, metadata: {name: n3}, spec: {unschedulable: true}, status: *size}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: rich}, spec: {reclaimable: true, deserved: {nvidia.com/gpu: 4}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: poor}, spec: {deserved: {nvidia.com/gpu: 12}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: crowd}, spec: {minMember: 1, queue: rich}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: ring}, spec: {minMember: 2, queue: poor}}
- {apiVersion: v1, kind: Pod, metadata: {name: crowd-0, annotations: &of-crowd {scheduling.k8s.io/group-name: crowd}}, spec: {schedulerName: muster, nodeName: n1, containers: &half [{name: c, resources: {requests: {nvidia.com/gpu: 4}}}]}, status: &runs {phase: Running, startTime: "2026-11-14T00:00:00Z"}}
- {apiVersion: v1, kind: Pod, metadata: {name: crowd-1, annotations: *of-crowd}, spec: {schedulerName: muster, nodeName: n1, containers: *half}, status: *runs}
- {apiVersion: v1, kind: Pod, metadata: {name: crowd-2, annotations: *of-crowd}, spec: {schedulerName: muster, nodeName: n2, containers: *half}, status: *runs}
- {apiVersion: v1, kind: Pod, metadata: {name: crowd-3, annotations: {scheduling.k8s.io/group-name: crowd, volcano.sh/preemptable: "false"}}, spec: {schedulerName: muster, nodeName: n2, containers: *half}, status: *runs}
- {apiVersion: v1, kind: Pod, metadata: {name: ring-0, annotations: &of-ring {scheduling.k8s.io/group-name: ring}}, spec: {schedulerName: muster, containers: &all [{name: c, resources: {requests: {nvidia.com/gpu: 8}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: ring-1, annotations: *of-ring}, spec: {schedulerName: muster, containers: *all}}
"#;

#[test]
fn possible_evictions_are_listed_with_costs_and_vetoes() {
    let path = std::env::temp_dir().join(format!("muster-explain-{}.conf", std::process::id()));
    let plugins = "tiers:\n- plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: capacity}]\n";
    std::fs::write(&path, format!("actions: enqueue, allocate, reclaim\n{plugins}"))
        .expect("it can be written");
    let config = path.display().to_string();
    let found = explained(STARVING, &["--config", &config]);
    let _ = std::fs::remove_file(&path);
    let claim = &found["claims"][0];
    assert_eq!(
        (&claim["action"], &claim["placed"], &claim["wanted"]),
        (&json!("reclaim"), &json!(1), &json!(2))
    );
    let first = &claim["pods"][0];
    let (best, other) = (&first["nodes"][0], &first["nodes"][1]);
    assert_eq!(
        (&first["pod"], &first["node"], &first["closedNodes"]),
        (&json!("default/ring-0"), &json!("n1"), &json!(1))
    );
    assert_eq!(
        (&best["node"], &best["chosen"], &best["leave"][1]["pod"]),
        (&json!("n1"), &json!(true), &json!("default/crowd-0"))
    );
    assert_eq!(
        best["cost"],
        json!({ "againstBudgets": 0, "price": null, "highestPriority": 0, "sumOfPriorities": 0, "pods": 2 })
    );
    assert_eq!((&other["works"], &other["why"]), (&json!(false), &json!("lacks 4 nvidia.com/gpu")));
    assert_eq!(other["kept"][0]["rule"], "volcano.sh/preemptable: false");
    let last = &claim["pods"][1];
    assert_eq!(last["reason"], "queue poor deserves 12 nvidia.com/gpu and uses 8, want 8");
}

/// A gang of which one pod runs, one has got its node and start time but pulls its image still, and
/// one is only bound.
const STARTING: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: 8, pods: 10}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: ring}, spec: {minMember: 3, minTaskMember: {worker: 3}}}
- {apiVersion: v1, kind: Pod, metadata: {name: ring-0, labels: &worker {volcano.sh/task-spec: worker}, annotations: &of-ring {scheduling.k8s.io/group-name: ring}}, spec: &bound {schedulerName: muster, nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1}}}]}, status: {phase: Running, startTime: "2026-11-14T00:00:00Z"}}
- {apiVersion: v1, kind: Pod, metadata: {name: ring-1, labels: *worker, annotations: *of-ring}, spec: *bound, status: {phase: Pending, startTime: "2026-11-14T00:00:00Z"}}
- {apiVersion: v1, kind: Pod, metadata: {name: ring-2, labels: *worker, annotations: *of-ring}, spec: *bound, status: {phase: Pending}}
"#;

#[test]
fn bound_pods_that_have_not_started_are_starting_and_not_running() {
    let found = explained(STARTING, &[]);
    assert_eq!((&found["running"], &found["starting"]), (&json!(3), &json!(2)));
    let told = |target: &str| {
        let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
        process.env_clear().args(["explain", target, "-f", "-"]);
        let mut process =
            process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
        process.stdin.take().expect("piped").write_all(STARTING.as_bytes()).expect("it reads");
        let output = process.wait_with_output().expect("it ends");
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    };
    let gang = told("gang/ring");
    assert!(gang.contains("1 running, 2 starting, 0 pending; starts with 3"), "{gang}");
    assert!(gang.contains("worker: 1 running, 2 starting, 0 pending"), "{gang}");
    assert!(told("pod/ring-0").starts_with("pod default/ring-0 is Running on n1"));
    for pod in ["ring-1", "ring-2"] {
        let text = told(&format!("pod/{pod}"));
        assert!(text.starts_with(&format!("pod default/{pod} is Bound on n1")), "{text}");
    }
}
