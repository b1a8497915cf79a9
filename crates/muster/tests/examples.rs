//! Runs the built binary on every example and compares its output. After an intended change, update
//! the snapshots with `INSTA_UPDATE=always cargo test -p muster --test examples` and read the
//! difference.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::has_keys;

const NOW: &str = "2026-11-15T00:00:00Z";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs `muster <command> -f <example> --now …` from the root of the repository, in a pipe.
fn muster(command: &[&str], example: &str, more: &[&str]) -> Output {
    process(command, example, more).output().expect("the binary was built for this test")
}

fn process(command: &[&str], example: &str, more: &[&str]) -> Command {
    let mut process = Command::new(env!("CARGO_BIN_EXE_muster"));
    process.current_dir(examples().join("..")).env_clear();
    process.args(command).args(["-f", &format!("examples/{example}"), "--now", NOW]);
    let config = format!("examples/{example}/scheduler.conf");
    if examples().join(example).join("scheduler.conf").exists() {
        process.args(["--config", &config]);
    }
    process.args(more);
    process
}

fn stdout(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

/// On 80 columns, no line is longer.
#[track_caller]
fn fits_80_columns(mut process: Command) {
    let text = process.env("COLUMNS", "80").output().expect("the binary was built for this test");
    for line in stdout(text).lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
        assert!(!line.contains('\x1b'), "colours where there is no terminal: {line:?}");
    }
}

/// One test for each example, so that a failure says which.
macro_rules! scenarios {
    ($($name:ident: $example:literal $($more:literal)*;)*) => {
        $(
            #[test]
            fn $name() {
                fits_80_columns(process(&["simulate"], $example, &[$($more),*]));
                let text = stdout(muster(&["simulate"], $example, &[$($more),*]));
                insta::assert_snapshot!(text);
            }
        )*

        #[test]
        fn every_example_is_tested() {
            let tested = [$($example),*];
            let folders = std::fs::read_dir(examples()).expect("there are examples");
            for folder in folders.map(|entry| entry.expect("it can be listed").path()).filter(|path| path.is_dir()) {
                let name = folder.file_name().and_then(|name| name.to_str()).expect("names are UTF-8");
                assert!(tested.contains(&name), "examples/{name} has no test");
                assert!(folder.join("README.md").exists(), "examples/{name} does not say what it shows");
            }
        }
    };
}

scenarios! {
    backfill_starts_gangs_that_end_in_time: "backfill";
    backfill_delays_no_gang: "backfill" "--until-stable";
    limits_apply_up_the_tree_of_queues: "capacity-tree";
    minimums_come_before_the_elastic_rest: "elastic";
    weights_divide_the_cluster: "fair-queues";
    usage_at_night_reduces_the_share_by_day: "fairshare";
    whole_gangs_or_nothing: "first-gang";
    the_second_gang_starts_when_the_first_ends: "first-gang" "--until-stable";
    events_are_shown_cycle_by_cycle: "first-gang" "--until-stable" "--events";
    room_is_made_by_consolidation_and_by_reclaim: "gpu-cluster" "--until-stable" "--events";
    finished_steps_of_a_flow_start_the_next: "job-flow";
    only_the_broken_partition_is_restarted: "job-partitions";
    a_job_is_restarted_and_completed: "mpi-job";
    a_gang_without_its_launcher_waits: "roles";
    pods_that_share_gpus_need_a_card: "shared-gpus";
    rules_between_pods_hold_for_gangs: "spread-and-affinity";
    gangs_stay_close_together: "topology";
    broken_gangs_are_repaired_close_together: "topology-failure";
    every_reason_has_its_numbers: "why-pending";
    objects_that_arrive_together_are_decided_together: "what-if";
    a_whole_gang_is_evicted_for_one_of_higher_priority: "whole-gangs";
}

#[test]
fn wide_has_more_columns() {
    let text = stdout(muster(&["simulate"], "first-gang", &["-o", "wide"]));
    insta::assert_snapshot!(text);
}

/// One test for each explanation.
macro_rules! explanations {
    ($($name:ident: $what:literal $example:literal;)*) => {$(
        #[test]
        fn $name() {
            fits_80_columns(process(&["explain", $what], $example, &[]));
            let text = stdout(muster(&["explain", $what], $example, &[]));
            insta::assert_snapshot!(text);
        }
    )*};
}

explanations! {
    a_pending_gang_is_explained: "wave" "first-gang";
    a_gang_that_almost_fits_is_explained: "gang/default/no-room" "why-pending";
    a_pod_that_no_node_accepts_is_explained: "pod/picky" "why-pending";
    a_gang_with_rules_between_its_pods_is_explained: "pg/quorum" "spread-and-affinity";
    a_running_pod_is_explained: "early-0" "backfill";
    a_gang_that_no_domain_holds_is_explained: "large" "topology";
    a_queue_is_explained: "queue/vision" "capacity-tree";
    a_queue_that_can_t_reclaim_is_explained: "queue/product" "gpu-cluster";
    a_starving_gang_is_explained: "giant" "what-if";
    a_nomination_is_explained: "urgent" "what-if";
    a_gang_for_which_evicting_gangs_does_not_help_is_explained: "train" "whole-gangs";
}

#[track_caller]
fn refused(what: &str, message: &str) {
    let output = muster(&["explain", what], "why-pending", &[]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), errors.trim()), (Some(2), message));
}

#[test]
fn an_unknown_name_is_an_error_with_a_suggestion() {
    refused("rusn", "error: there is no pod, gang or queue rusn; did you mean gang/default/runs?");
    refused("queue/defualt", "error: there is no queue defualt; did you mean queue/default?");
    refused(
        "q/tihgt",
        "error: queue tihgt does not exist; named by 1 gang: create it, or change theirs",
    );
    refused("pod/nothing-like-it", "error: there is no pod nothing-like-it");
}

fn json(command: &[&str], example: &str, more: &[&str]) -> Value {
    let text = stdout(muster(command, example, &[more, &["-o", "json"]].concat()));
    serde_json::from_str(&text).expect("the output is JSON")
}

#[test]
fn json_names_the_cards_of_pods_that_share_them() {
    let report = json(&["simulate"], "shared-gpus", &[]);
    let binds = report["binds"].as_array().expect("a list");
    let cards: Vec<&str> = binds.iter().filter_map(|bind| bind["cards"].as_str()).collect();
    assert_eq!(cards, ["0", "1"]);
    assert_eq!(json(&["simulate"], "first-gang", &[])["binds"][0].get("cards"), None);
}

#[test]
fn the_json_of_a_run_keeps_its_contract() {
    let report = json(&["simulate"], "why-pending", &[]);
    let lists = ["binds", "evictions", "nominations", "heldNominations", "gangs", "queues"];
    has_keys(&report, &[&["now", "cycles"][..], &lists].concat());
    assert_eq!(report["now"], NOW);
    has_keys(&report["binds"][0], &["pod", "node", "cycle"]);
    has_keys(
        &report["cycles"][0],
        &["cycle", "now", "durationMicros", "binds", "evictions", "nominations"],
    );
    let queue = [
        "name",
        "share",
        "shareOf",
        "allocated",
        "nominated",
        "deserved",
        "capability",
        "weight",
        "parent",
        "running",
        "pending",
    ];
    has_keys(&report["queues"][0], &queue);
    let gang = [
        "name",
        "queue",
        "phase",
        "priority",
        "minMember",
        "running",
        "pending",
        "nominated",
        "succeeded",
        "failed",
        "terminating",
        "domain",
        "reasons",
    ];
    let gangs = report["gangs"].as_array().expect("a list");
    gangs.iter().for_each(|line| has_keys(line, &gang));
    let no_room =
        gangs.iter().find(|line| line["name"] == "default/no-room").expect("it is in the example");
    let reason = &no_room["reasons"][0];
    has_keys(reason, &["stage", "reason", "message", "nodes"]);
    has_keys(&reason["nodes"], &["total", "fit", "unfit"]);
    has_keys(&reason["nodes"]["unfit"][0], &["nodes", "why", "resource", "want", "best"]);
}

#[test]
fn events_are_in_the_json_if_requested() {
    let report = json(&["simulate"], "first-gang", &["--events"]);
    has_keys(&report["events"][0], &["cycle", "object", "event"]);
}

#[test]
fn searches_for_room_are_data_too() {
    let gang = json(&["explain", "giant"], "what-if", &[]);
    let claim = &gang["claims"][0];
    assert_eq!(
        (&claim["action"], &claim["placed"], &claim["wanted"]),
        (&"preempt".into(), &0.into(), &3.into())
    );
    let pod = &claim["pods"][0];
    has_keys(pod, &["pod", "node", "reason", "nodes", "moreNodes", "nobodyNodes", "closedNodes"]);
    let node = &pod["nodes"][0];
    has_keys(node, &["node", "works", "chosen", "leave", "unpromised", "cost", "kept", "why"]);
    assert_eq!((&node["node"], &node["works"]), (&"node-b".into(), &false.into()));
    assert_eq!(node["kept"][0]["rule"], "gang at its minimum");
}

#[test]
fn searches_among_whole_gangs_are_data_too() {
    let gang = json(&["explain", "train"], "whole-gangs", &[]);
    let claim = &gang["claims"][0];
    has_keys(claim, &["action", "placed", "wanted", "pods", "passes", "reasons"]);
    let passes = claim["passes"].as_array().expect("a list");
    let bundles: Vec<&Value> = passes.iter().map(|pass| &pass["bundles"]).collect();
    assert_eq!((&claim["placed"], bundles), (&0.into(), vec![&"safe".into(), &"whole".into()]));
    let pass = &passes[1];
    has_keys(pass, &["bundles", "domains", "moreDomains", "notTried", "tooSmall"]);
    assert_eq!(pass["tooSmall"][0], "rack-d");
    // What can be cleared by sums comes first.
    let domain = &pass["domains"][1];
    has_keys(domain, &["domain", "works", "chosen", "leave", "costPpm", "kept", "why"]);
    assert_eq!(
        (&domain["domain"], &domain["why"]),
        (&"rack-a".into(), &"lacks 8 nvidia.com/gpu".into())
    );
    let bundle = &pass["domains"][0]["leave"][0];
    has_keys(bundle, &["gang", "kind", "priority", "pods", "roiPpm"]);
    assert_eq!((&bundle["gang"], &bundle["kind"]), (&"default/batch".into(), &"whole".into()));
    has_keys(&domain["kept"][0], &["gang", "rule", "pods"]);
    assert_eq!(domain["kept"][0]["rule"], "volcano.sh/preemptable: false");
}

#[test]
fn nominations_are_data_too() {
    let gang = json(&["explain", "urgent"], "what-if", &[]);
    let nomination = &gang["promises"][0];
    assert_eq!((&nomination["node"], &nomination["evicted"]), (&"node-a".into(), &true.into()));
    let leaving = &nomination["leaving"][1];
    has_keys(leaving, &["pod", "gang", "deleted", "until", "graceSeconds"]);
    assert_eq!((&leaving["pod"], &leaving["until"]), (&"default/search-1".into(), &NOW.into()));
}

#[test]
fn an_explanation_is_data_too() {
    let gang = json(&["explain", "no-room"], "why-pending", &[]);
    assert_eq!((&gang["kind"], &gang["name"]), (&"gang".into(), &"default/no-room".into()));
    assert_eq!(gang["closest"][0]["lacks"]["nvidia.com/gpu"], "1");
    assert_eq!(gang["help"][0], "free 1 nvidia.com/gpu on gpu-1");
    let pod = json(&["explain", "driver"], "why-pending", &[]);
    assert_eq!((&pod["kind"], &pod["protectedBy"]), (&"pod".into(), &"kube-system".into()));
    let queue = json(&["explain", "tight"], "why-pending", &[]);
    assert_eq!(
        (&queue["kind"], &queue["waiting"][0]["gang"]),
        (&"queue".into(), &"default/over-quota".into())
    );
}
