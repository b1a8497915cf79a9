//! What commands say of a gang that loses nominations, and of policies that hold for no pod. Runs
//! the built binary.

use std::io::Write;
use std::process::{Command, Stdio};

const NOW: &str = "2026-11-15T00:00:00Z";

/// The output of `muster …` with the text on its standard input.
fn muster(line: &str, input: &str) -> String {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.env_clear().env("COLUMNS", "200").args(line.split_whitespace());
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().expect("the binary was built for this test");
    process.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

fn group(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}, creationTimestamp: \"{NOW}\"}}, spec: {{{spec}}}, status: {{phase: Inqueue}}}}\n---\n"
    )
}

/// A pod of a gang that requests so many GPUs; `meta` and `spec` begin with a comma.
fn pod(name: &str, (gang, gpus): (&str, u32), notes: &str, meta: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, creationTimestamp: \"{NOW}\", annotations: {{scheduling.k8s.io/group-name: {gang}{notes}}}{meta}}}, spec: {{schedulerName: volcano, containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: {gpus}}}}}}}]{spec}}}}}\n---\n"
    )
}

fn node(gpus: u32) -> String {
    format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: a}}, status: {{allocatable: {{nvidia.com/gpu: {gpus}, pods: 99}}}}}}\n---\n"
    )
}

/// A gang that holds a nomination of an earlier process, and one of higher priority that has come
/// since.
fn nominated_and_urgent() -> String {
    let class = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 10}\n---\n";
    let leaves = ", deletionTimestamp: \"2026-11-15T01:00:00Z\", deletionGracePeriodSeconds: 3600";
    let nominated = ", volcano.sh/pipelined-status: \"true\", volcano.sh/pipelined-node: a, volcano.sh/eviction-occurred: \"true\"";
    [
        node(6),
        class.to_owned(),
        group("old", "minMember: 1"),
        pod("old-0", ("old", 6), "", leaves, ", nodeName: a"),
        group("low", "minMember: 1"),
        pod("low-0", ("low", 4), nominated, "", ""),
        group("urgent", "minMember: 1, priorityClassName: high"),
        pod("urgent-0", ("urgent", 4), "", "", ""),
    ]
    .concat()
}

#[test]
fn the_story_and_explain_say_which_gang_lost_its_nomination_and_to_which() {
    let text = nominated_and_urgent();
    let told = "1 nomination released for default/urgent, which has priority 10";
    let story = muster(&format!("simulate -f - --cycles 1 --now {NOW}"), &text);
    assert!(story.contains(&format!("low {told}")), "{story}");
    assert!(!story.contains("low waits"), "{story}");
    let explained = muster(&format!("explain gang/low -f - --cycles 1 --now {NOW}"), &text);
    assert!(explained.contains(told), "{explained}");
    let objects = muster(&format!("simulate -f - --cycles 1 --now {NOW} -o yaml"), &text);
    assert!(objects.contains(told) && objects.contains("NominationsLost"), "{objects}");
    // The next cycle says only what is so then.
    let objects = muster(&format!("simulate -f - --cycles 2 --now {NOW} -o yaml"), &text);
    assert!(!objects.contains("NominationsLost"), "{objects}");
}

/// A gang whose pods lack the label that its policy names, with so many of its two pods.
fn without_labels(pods: u32, labels: &str) -> String {
    let policy = "{name: stage, matchLabelKeys: [example.com/stage], networkTopology: {mode: hard, highestTierAllowed: 1}}";
    let mut text = node(8) + &group("ring", &format!("minMember: 2, subGroupPolicy: [{policy}]"));
    for index in 0..pods {
        text += &pod(&format!("ring-{index}"), ("ring", 1), "", labels, "");
    }
    text
}

#[test]
fn a_policy_that_holds_for_no_pod_is_told() {
    let told = "subGroupPolicy stage holds for no pod: none of 2 pods that it selects has the label example.com/stage";
    for command in ["check -f -", "topology check -f -"] {
        let out = muster(command, &without_labels(2, ""));
        assert!(out.contains(&format!("PodGroup default/ring: {told}")), "{command}: {out}");
        // More pods may come, and then one with the label may be among them.
        let out = muster(command, &without_labels(1, ""));
        assert!(!out.contains("holds for no pod"), "{command}: {out}");
        let out = muster(command, &without_labels(2, ", labels: {example.com/stage: \"0\"}"));
        assert!(!out.contains("holds for no pod"), "{command}: {out}");
    }
    // The story of events has the condition of the PodGroup.
    let story = format!("simulate -f - --cycles 2 --now {NOW} --events");
    let story = muster(&story, &without_labels(2, ""));
    assert!(story.contains(&format!("ring Running: {told}")), "{story}");
}

#[test]
fn a_policy_whose_selector_matches_no_pod_is_told_as_well() {
    let policy = "{name: stage, labelSelector: {matchLabels: {example.com/role: worker}}}";
    let text = node(8)
        + &group("ring", &format!("minMember: 1, subGroupPolicy: [{policy}]"))
        + &pod("ring-0", ("ring", 1), "", "", "");
    let out = muster("check -f -", &text);
    let told = "subGroupPolicy stage holds for no pod: its labelSelector matches none of 1 pod";
    assert!(out.contains(told), "{out}");
}
