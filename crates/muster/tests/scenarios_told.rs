//! The output when room is made by scenarios and by moving pods. Runs the built binary; accept
//! changes as in `examples.rs`.

use std::io::Write;
use std::process::{Command, Stdio};

const NOW: &str = "2026-11-15T00:00:00Z";

const PLUGINS: &str = "
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity}, {name: binpack}]
";

/// The whole configuration; `more` configures further actions.
fn config(more: &str) -> String {
    let modes = "- {name: reclaim, arguments: {mode: scenario}}\n- {name: preempt, arguments: {mode: scenario}}";
    format!(
        "actions: \"allocate, consolidate, reclaim, preempt, stalegangeviction\"\nconfigurations:\n{modes}\n{more}\n{PLUGINS}"
    )
}

/// Machines with 8 GPUs.
fn nodes(names: &[&str]) -> String {
    let node = |name: &&str| {
        format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{nvidia.com/gpu: 8, pods: 99}}}}}}\n"
        )
    };
    names.iter().map(node).collect()
}

fn queue(name: &str, deserved: u32) -> String {
    format!(
        "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {{name: {name}}}, spec: {{reclaimable: true, deserved: {{nvidia.com/gpu: {deserved}}}}}}}\n"
    )
}

fn gang(name: &str, spec: &str, annotations: &str) -> String {
    format!(
        "---\n{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}, annotations: {{{annotations}}}}}, spec: {{{spec}}}}}\n"
    )
}

/// Pods of a gang, one for each entry: its node, or `None` for a waiting pod.
fn pods(gang: &str, gpus: u32, places: &[&str]) -> String {
    let pod = |(at, node): (usize, &&str)| {
        let meta = format!(
            "{{name: {gang}-{at}, labels: {{gang: {gang}}}, annotations: {{scheduling.k8s.io/group-name: {gang}}}}}"
        );
        let (place, status) = match *node {
            "" => (String::new(), ""),
            node => (
                format!(", nodeName: {node}"),
                ", status: {phase: Running, startTime: \"2026-11-14T20:00:00Z\"}",
            ),
        };
        format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {meta}, spec: {{schedulerName: muster{place}, containers: [{{name: c, resources: {{requests: {{nvidia.com/gpu: {gpus}}}}}}}]}}{status}}}\n"
        )
    };
    places.iter().enumerate().map(pod).collect()
}

/// Makes all pods of a gang non-preemptable.
fn budget(gang: &str) -> String {
    format!(
        "---\n{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {gang}}}, spec: {{minAvailable: 1, selector: {{matchLabels: {{gang: {gang}}}}}}}, status: {{disruptionsAllowed: 0}}}}\n"
    )
}

/// What a command prints of a cluster; it fits on a terminal.
fn printed(command: &[&str], cluster: &[String], config: &str) -> String {
    let thread = std::thread::current();
    let name = thread.name().expect("a test has a name").replace("::", "-");
    let path = format!("{}/{name}-{}.conf", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    std::fs::write(&path, config).expect("it can be written");
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process
        .env_clear()
        .env("COLUMNS", "80")
        .args(command)
        .args(["-f", "-", "--now", NOW, "--config", &path]);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = process.spawn().expect("it was built");
    process.stdin.take().expect("piped").write_all(cluster.concat().as_bytes()).expect("it reads");
    let output = process.wait_with_output().expect("it ends");
    let _ = std::fs::remove_file(&path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let wide = text.lines().find(|line| line.chars().count() > 80 && !line.starts_with('{'));
    assert_eq!(wide, None, "wider than 80 columns");
    text
}

/// Two machines, each half used by a gang that may not be moved, and a gang that wants a whole one.
fn in_pieces() -> Vec<String> {
    vec![
        nodes(&["n1", "n2"]),
        queue("a", 16),
        gang("x", "minMember: 1, queue: a", "") + &pods("x", 4, &["n1"]) + &budget("x"),
        gang("y", "minMember: 1, queue: a", "") + &pods("y", 4, &["n2"]) + &budget("y"),
        gang("claim", "minMember: 1, queue: a", "") + &pods("claim", 8, &[""]),
    ]
}

#[test]
fn moves_that_a_rule_prevents_are_explained() {
    insta::assert_snapshot!(printed(&["explain", "claim"], &in_pieces(), &config("")));
}

#[test]
fn deserved_and_fair_share_are_shown_separately() {
    let cluster = [
        nodes(&["n1", "n2", "n3"]),
        queue("a", 8) + &queue("b", 4),
        gang("x", "minMember: 1, queue: a", "") + &pods("x", 4, &["n1", "n1", "n2", "n2"]),
        gang("y", "minMember: 1, queue: b", "") + &pods("y", 4, &["n3", "n3"]),
    ];
    let table = printed(&["simulate"], &cluster, &config(""));
    let queue = printed(&["explain", "queue/a"], &cluster, &config(""));
    insta::assert_snapshot!(format!("{table}\n{queue}"));
    let found = printed(&["explain", "queue/a", "-o", "json"], &cluster, &config(""));
    let found: serde_json::Value = serde_json::from_str(&found).expect("it is JSON");
    let gpus = |of: &str| found[of]["nvidia.com/gpu"].clone();
    assert_eq!((gpus("deserved"), gpus("fairShare")), ("8".into(), "16".into()));
}

#[test]
fn pods_are_moved_for_a_growing_gang_but_not_for_a_non_preemptible_one() {
    let mut cluster = vec![
        nodes(&["n1", "n2"]),
        queue("a", 16),
        gang("x", "minMember: 1, queue: a", "") + &pods("x", 4, &["n1"]),
        gang("y", "minMember: 1, queue: a", "") + &pods("y", 4, &["n2"]),
    ];
    let moved =
        |cluster: &[String]| printed(&["simulate"], cluster, &config("")).contains("moves to");
    let claim = |cluster: &[String]| {
        let page = printed(&["explain", "claim"], cluster, &config(""));
        let (_, rest) =
            page.split_once("evictions that could make room\n").expect("the section is there");
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let spec = "minMember: 1, queue: a";
    cluster
        .push(gang("claim", spec, "volcano.sh/preemptable: \"false\"") + &pods("claim", 8, &[""]));
    let of_protected = claim(&cluster);
    assert!(!moved(&cluster));
    cluster[0] = nodes(&["n1", "n2", "n3"]);
    cluster[4] = gang("claim", spec, "") + &pods("claim", 8, &["n3", ""]);
    assert!(moved(&cluster));
    insta::assert_snapshot!(of_protected);
}

/// A queue with more than it deserves on two machines, and four small gangs of another queue that
/// wait.
fn four_that_wait() -> Vec<String> {
    let waits = |name: &str| gang(name, "minMember: 1, queue: b", "") + &pods(name, 4, &[""]);
    vec![
        nodes(&["n1", "n2"]),
        queue("a", 8) + &queue("b", 8),
        gang("x", "minMember: 1, queue: a", "") + &pods("x", 4, &["n1", "n1", "n2", "n2"]),
        ["c1", "c2", "c3", "c4"].map(waits).concat(),
    ]
}

#[test]
fn a_gang_like_a_failed_one_says_which_action_found_no_room() {
    let page = printed(&["explain", "c3"], &four_that_wait(), &config(""));
    assert!(
        page.contains("consolidate did not try: it found no room for default/c1, which"),
        "{page}"
    );
}

#[test]
fn events_tell_what_was_tried_and_the_outcome() {
    let events = |cluster: &[String], config: &str| {
        let story = printed(&["simulate", "--events"], cluster, config);
        story.split("\n\n").nth(1).unwrap_or_default().to_owned()
    };
    let allowed = events(&in_pieces(), &config(""));
    let limit = "- {name: consolidate, arguments: {maxSteps: 1}}";
    let mut cluster = in_pieces();
    cluster[2] = gang("x", "minMember: 1, queue: a", "") + &pods("x", 4, &["n1"]);
    cluster.push(gang("other", "minMember: 1, queue: a", "") + &pods("other", 7, &[""]));
    let stopped = events(&cluster, &config(limit));
    let pod_by_pod = config("").replace("mode: scenario", "mode: task");
    let task = events(&in_pieces(), &pod_by_pod);
    insta::assert_snapshot!(format!("{allowed}\n----\n{stopped}\n----\n{task}"));
}

#[test]
fn a_queue_shows_exactly_what_it_would_reclaim() {
    let told = |cluster: &[String], config: &str| {
        let page = printed(&["explain", "queue/b", "--cycles", "1"], cluster, config);
        let (_, rest) = page.split_once("reclaims    ").expect("the page has the row");
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let full = |spec: &str| gang("x", spec, "") + &pods("x", 4, &["n1", "n1", "n2", "n2"]);
    let waits = |gpus, places: &[&str]| {
        gang("claim", "minMember: 1, queue: b", "") + &pods("claim", gpus, places)
    };
    let queues = queue("a", 8) + &queue("b", 8);
    // All pods that may be evicted are not enough.
    let kept = [
        nodes(&["n1", "n2"]),
        queues.clone(),
        full("minMember: 4, queue: a") + &budget("x"),
        waits(8, &[""]),
    ];
    // It can't be evicted, and its queue deserves nothing.
    let forbidden = [
        nodes(&["n1", "n2"]),
        queue("a", 8) + &queue("b", 0),
        full("minMember: 1, queue: a"),
        gang("claim", "minMember: 1, queue: b", "volcano.sh/preemptable: \"false\"")
            + &pods("claim", 4, &[""]),
    ];
    // It has its minimum and wants more pods, and no gang has surplus pods.
    let grows = [
        nodes(&["n1", "n2"]),
        queues,
        gang("x", "minMember: 3, queue: a", "") + &pods("x", 4, &["n1", "n1", "n2"]),
        waits(4, &["n2", ""]),
    ];
    let within = config("").replace(
        "{name: capacity}",
        "{name: capacity, arguments: {nonPreemptibleWithinDeserved: true}}",
    );
    let without = config("").replace("{name: capacity}, ", "");
    let told = [
        told(&kept, &config("")),
        told(&forbidden, &within),
        told(&kept, &without),
        told(&grows, &config("")),
    ];
    insta::assert_snapshot!(told.join("\n----\n"));
}

#[test]
fn a_stale_gang_says_what_it_lacks_and_when_it_is_evicted() {
    let told = |annotations: &str, config: &str| {
        let stale =
            gang("st", "minMember: 3, queue: a", annotations) + &pods("st", 8, &["n1", "n2"]);
        let page =
            printed(&["explain", "st"], &[nodes(&["n1", "n2"]), queue("a", 16), stale], config);
        let (_, rest) = page.split_once("stale since ").expect("it says so");
        rest.to_owned()
    };
    let unwatched = config("").replace(", stalegangeviction", "");
    let told = [
        told("", &config("")),
        told("volcano.sh/staleness-grace-period: \"-1s\"", &config("")),
        told("volcano.sh/preemptable: \"false\"", &config("")),
        told("", &unwatched),
    ];
    insta::assert_snapshot!(told.join("----\n"));
}

#[test]
fn reserved_room_is_not_drawn_as_free() {
    let half =
        |name: &str, node: &str| gang(name, "minMember: 1, queue: a", "") + &pods(name, 4, &[node]);
    let cluster = [
        nodes(&["n1", "n2"]),
        queue("a", 16),
        half("x", "n1") + &half("y", "n2"),
        gang("claim", "minMember: 1, queue: a", "") + &pods("claim", 8, &[""]),
    ];
    let story = printed(&["simulate", "--cycles", "2", "--no-recreate"], &cluster, &config(""));
    let (_, map) = story.split_once("MAP").expect("there is a map");
    assert!(map.contains("n1 cccccccc   n2 yyyy++++"), "{map}");
}

#[test]
fn advice_never_suggests_requesting_nothing_or_a_useless_weight() {
    let advice = |of_a: u32, of_b: u32, y: &[&str]| {
        let cluster = [
            nodes(&["n1", "n2"]),
            queue("a", of_a) + &queue("b", of_b),
            gang("x", "minMember: 2, queue: a", "") + &pods("x", 4, &["n1", "n1"]),
            gang("y", "minMember: 1, queue: b", "") + &pods("y", 4, y),
            gang("claim", "minMember: 1, queue: b", "") + &pods("claim", 8, &[""]),
        ];
        let page = printed(&["explain", "claim", "-o", "json"], &cluster, &config(""));
        let page: serde_json::Value = serde_json::from_str(&page).expect("it is JSON");
        let help: Vec<String> =
            serde_json::from_value(page["help"].clone()).expect("a list of texts");
        help.into_iter().find(|help| help.contains("muster fairshare")).unwrap_or_default()
    };
    assert_eq!(advice(8, 8, &["n2", "n2"]), "raise what queue b deserves: muster fairshare");
    let some_left = "raise what queue b deserves or its weight, or request 4 nvidia.com/gpu less: muster fairshare";
    assert_eq!(advice(4, 4, &["n2"]), some_left);
}
