//! What would help a gang that waits, where the answer is a sum over nodes. Runs the built binary.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What `muster explain ring` advises in a cluster of so many nodes with 8 GPUs, of which others use `used`.
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
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.env_clear().args(["explain", "gang/ring", "-f", "-", "-o", "json"]);
    let mut process = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was built");
    process.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    let explanation: Value = serde_json::from_slice(&output.stdout).expect("the output is JSON");
    serde_json::from_value(explanation["help"].clone()).expect("a list of texts")
}

#[test]
fn no_more_is_freed_on_a_node_than_it_has() {
    assert_eq!(
        help(3, 6, 5, 4),
        ["free 6 nvidia.com/gpu on n0", "free 6 nvidia.com/gpu on n1", "free 2 nvidia.com/gpu on n2"]
    );
}

#[test]
fn a_gang_that_is_larger_than_the_cluster_needs_more_of_it() {
    let freed = "free 6 nvidia.com/gpu on n0";
    let more = "add room for 2 more pods of 4 nvidia.com/gpu: all nodes together are too small";
    assert_eq!(help(1, 6, 4, 4), [freed, more]);
    assert_eq!(help(1, 8, 2, 9), ["add 2 nodes with room for 9 nvidia.com/gpu: no node is large enough"]);
}
