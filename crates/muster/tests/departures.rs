//! When pods leave the embedded cluster: evicted ones after a second unless they say otherwise, and
//! those that come with a deletionTimestamp at that time.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

const NOW: &str = "2026-11-15T00:00:00Z";

/// What `muster simulate` prints about a node with room for one pod, a pod that runs there, and an
/// urgent one that waits.
fn simulate(metadata: &str, spec: &str, options: &str) -> String {
    let cluster = format!(
        "apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\n\
         status: {{allocatable: {{cpu: 4, pods: 10}}}}\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: old, namespace: x, {metadata}}}\n\
         spec: {{schedulerName: muster, nodeName: n, priority: 1, {spec} containers: [{{name: c, \
         resources: {{requests: {{cpu: 4}}}}}}]}}\n\
         status: {{phase: Running, startTime: \"2026-11-14T00:00:00Z\"}}\n\
         ---\napiVersion: v1\nkind: Pod\nmetadata: {{name: urgent, namespace: x}}\n\
         spec: {{schedulerName: muster, priority: 100, containers: [{{name: c, resources: \
         {{requests: {{cpu: 4}}}}}}]}}\n"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.args(["simulate", "-f", "-", "--now", NOW]).args(options.split_whitespace());
    // Sentences are not wrapped.
    command.env_clear().env("COLUMNS", "200");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary was built for this test");
    let mut stdin = process.stdin.take().expect("it was asked for");
    stdin.write_all(cluster.as_bytes()).expect("it reads the cluster");
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{options}: {errors}\n{cluster}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

struct Run(Value);

impl Run {
    fn of(metadata: &str, spec: &str, options: &str) -> Run {
        let json = simulate(metadata, spec, &format!("{options} -o json"));
        Run(serde_json::from_str(&json).expect("JSON"))
    }

    /// When the urgent pod was bound.
    fn bound(&self) -> &str {
        let binds = self.0["binds"].as_array().expect("a list");
        let bind = binds.iter().find(|bind| bind["pod"] == "x/urgent").expect("it was bound");
        let cycles = self.0["cycles"].as_array().expect("a list");
        let cycle = cycles.iter().find(|cycle| cycle["cycle"] == bind["cycle"]).expect("it ran");
        cycle["now"].as_str().expect("a time")
    }

    fn gang(&self, name: &str) -> &Value {
        let gangs = self.0["gangs"].as_array().expect("a list");
        gangs.iter().find(|gang| gang["name"] == name).expect("it is there")
    }
}

fn annotated(annotations: &str) -> String {
    format!("annotations: {{{annotations}}}")
}

#[test]
fn an_evicted_pod_leaves_after_a_second() {
    let run = Run::of("", "terminationGracePeriodSeconds: 20,", "--until-stable");
    assert_eq!(run.bound(), "2026-11-15T00:00:01Z");
    let eviction = &run.0["evictions"][0];
    assert!(eviction.get("terminated").is_none() && eviction.get("refused").is_none());
    assert!(run.0.get("terminating").is_none());
}

#[test]
fn with_grace_it_takes_its_grace_period() {
    for (spec, bound) in [
        ("terminationGracePeriodSeconds: 20,", "2026-11-15T00:00:20Z"),
        ("", "2026-11-15T00:00:30Z"),
        // As in Kubernetes, a negative period counts as a second.
        ("terminationGracePeriodSeconds: -7,", "2026-11-15T00:00:01Z"),
        ("terminationGracePeriodSeconds: 0,", "2026-11-15T00:00:01Z"),
    ] {
        let run = Run::of("", spec, "--grace --until-stable");
        assert_eq!(run.bound(), bound, "{spec}");
    }
    let run = Run::of("", "terminationGracePeriodSeconds: 20,", "--grace --until-stable");
    assert_eq!(run.0["evictions"][0]["terminated"], "2026-11-15T00:00:20Z");
    assert_eq!(run.0["evictions"][0]["graceSeconds"], 20);
}

#[test]
fn an_annotation_says_how_long_it_takes() {
    let grace = annotated("muster.sh/simulated-termination: grace");
    let run = Run::of(&grace, "terminationGracePeriodSeconds: 20,", "--until-stable");
    assert_eq!(run.bound(), "2026-11-15T00:00:20Z");
    // It wins over --grace.
    let slow = annotated("muster.sh/simulated-termination: 45s");
    for options in ["--until-stable", "--until-stable --grace"] {
        assert_eq!(Run::of(&slow, "", options).bound(), "2026-11-15T00:00:45Z", "{options}");
    }
}

#[test]
fn a_finalizer_keeps_the_object_and_not_the_room() {
    let kept = annotated("muster.sh/simulated-finalizer: 10s");
    let run = Run::of(&kept, "", "--cycles 5");
    assert_eq!(run.bound(), "2026-11-15T00:00:01Z");
    assert_eq!(run.0["evictions"][0]["gone"], "2026-11-15T00:00:11Z");
    let waits = |run: &Run| run.gang("x/old")["pending"].as_u64();
    assert_eq!(waits(&run), Some(0), "it is not created again yet");
    assert_eq!(waits(&Run::of(&kept, "", "--cycles 12")), Some(1), "now it is");
}

#[test]
fn an_eviction_is_refused_as_often_as_the_pod_says() {
    let stubborn = annotated("muster.sh/simulated-eviction-refusals: '2'");
    let run = Run::of(&stubborn, "", "--until-stable");
    let evictions = run.0["evictions"].as_array().expect("a list");
    let refused: Vec<&str> = evictions.iter().filter_map(|one| one["refused"].as_str()).collect();
    assert_eq!(
        refused,
        [
            "the API server refuses to evict the pod (1 of 2 times)",
            "the API server refuses to evict the pod (2 of 2 times)"
        ]
    );
    assert_eq!(evictions.len(), 3);
    assert!(run.bound() > "2026-11-15T00:00:01Z");
    let story = simulate(&stubborn, "", "--until-stable");
    assert!(
        story.contains("old not evicted for urgent: the API server refuses to evict"),
        "{story}"
    );
}

#[test]
fn a_pod_with_a_deletion_timestamp_leaves_then() {
    for (deleted, bound) in [
        ("2026-11-15T00:00:20Z", "2026-11-15T00:00:20Z"),
        ("2026-11-15T00:00:20.5Z", "2026-11-15T00:00:20.5Z"),
        ("2026-11-14T23:59:00Z", "2026-11-15T00:00:01Z"),
    ] {
        let metadata = format!("deletionTimestamp: \"{deleted}\"");
        assert_eq!(Run::of(&metadata, "", "--until-stable").bound(), bound, "{deleted}");
    }
    let metadata = "deletionTimestamp: \"2026-11-15T00:00:20Z\"";
    let run = Run::of(metadata, "", "--cycles 3");
    assert!(run.0["binds"].as_array().is_some_and(Vec::is_empty), "it is still there");
    assert_eq!(run.0["terminating"][0]["pod"], "x/old");
    assert_eq!(run.0["terminating"][0]["terminated"], "2026-11-15T00:00:20Z");
}

#[test]
fn a_deletion_years_away_is_waited_for_and_one_years_ago_is_over() {
    for (deleted, bound) in [
        ("2126-11-15T00:00:00Z", "2126-11-15T00:00:00Z"),
        ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00Z"),
        ("1926-11-15T00:00:00Z", "2026-11-15T00:00:01Z"),
        ("-009999-01-02T01:59:59Z", "2026-11-15T00:00:01Z"),
    ] {
        let metadata = format!("deletionTimestamp: \"{deleted}\"");
        assert_eq!(Run::of(&metadata, "", "--until-stable").bound(), bound, "{deleted}");
    }
    let finalizer = annotated("muster.sh/simulated-finalizer: 99999999999999999999h");
    let run = Run::of(&finalizer, "", "--until-stable");
    assert_eq!(run.bound(), "2026-11-15T00:00:01Z");
}

#[test]
fn the_story_says_how_long_it_takes_and_when_the_pod_has_left() {
    let story = simulate("", "terminationGracePeriodSeconds: 20,", "--grace --until-stable");
    assert!(story.contains("old evicted for urgent (leaves at +20s, grace 20s): "), "{story}");
    assert!(story.contains("old 1 pod left: n"), "{story}");

    let metadata = "deletionTimestamp: \"2026-11-15T00:00:20Z\"";
    let story = simulate(metadata, "terminationGracePeriodSeconds: 25,", "--until-stable");
    assert!(story.contains("old 1 pod terminating (leaves at +20s, grace 25s): n"), "{story}");
    assert!(story.contains("old 1 pod left: n"), "{story}");

    let kept = annotated("muster.sh/simulated-finalizer: 1m");
    let story = simulate(&kept, "", "--until-stable --no-recreate");
    assert!(story.contains("(leaves at +1s, kept by a finalizer until +1m1s)"), "{story}");
    let at = |text: &str| story.find(text).unwrap_or_else(|| panic!("{text} in {story}"));
    assert!(at("old evicted") < at("old 1 pod terminated: n"));
    assert!(at("old 1 pod terminated: n") < at("old 1 pod gone: n"));
}
