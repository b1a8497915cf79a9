//! Input that makes no sense has a message with its line, or a stated meaning. Runs the built
//! binary.

use std::io::Write;
use std::process::{Command, Stdio};

const NOW: &str = "2026-11-15T00:00:00Z";

/// The exit code, the output and the errors of `muster …` with the text on its standard input.
fn muster(line: &str, input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.env_clear().args(line.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary was built for this test");
    let mut stdin = process.stdin.take().expect("it was asked for");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A configuration with an argument of an action in line 3 or of a plugin in line 8.
fn config(action: &str, plugin: &str) -> String {
    let (name, argument) = action.split_once(' ').unwrap_or(("allocate", ""));
    let (of, value) = plugin.split_once(' ').unwrap_or(("gang", ""));
    format!(
        "actions: \"enqueue, allocate, {name}\"\nconfigurations:\n- {{name: {name}, arguments: \
         {{{argument}}}}}\ntiers:\n- plugins:\n  - name: priority\n  - name: predicates\n  - {{name: \
         {of}, arguments: {{{value}}}}}\n"
    )
    .replace("enqueue, allocate, allocate", "enqueue, allocate")
}

#[test]
fn a_limit_that_makes_no_sense_is_an_error_with_its_line() {
    let limits = [
        ("preempt maxDomains", 1),
        ("preempt maxSteps", 1),
        ("preempt maxStepsPerGang", 1),
        ("preempt topologyAwarePreemptWorkerNum", 1),
        ("preempt minCandidateNodesPercentage", 0),
        ("preempt minCandidateNodesAbsolute", 0),
        ("preempt maxCandidateNodesAbsolute", 0),
        ("reclaim maxDomains", 1),
        ("gangpreempt maxDomains", 1),
        ("gangreclaim maxDomains", 1),
        ("consolidate maxDomains", 1),
        ("consolidate maxMoves", 0),
    ];
    for (argument, least) in limits {
        for value in ["0", "-1", "x", "1.5", "~", "[]", ".nan"] {
            let text = config(&format!("{argument}: {value}"), "");
            let (code, out, errors) = muster("check --config -", &text);
            let key = argument.split(' ').next_back().expect("two words");
            if value == "0" && least == 0 {
                assert_eq!(code, Some(0), "{argument}: {value}: {out}{errors}");
            } else {
                assert_eq!(code, Some(2), "{argument}: {value}: {out}");
                assert!(errors.starts_with("error: standard input:3:"), "{errors}");
                assert!(errors.contains(&format!("{key}: expected a whole number")), "{errors}");
            }
        }
    }
    for argument in ["network-topology-aware hypernode.gradient.evict.max-hypernodes"] {
        for value in ["0", "-1", "x"] {
            let (code, _, errors) =
                muster("check --config -", &config("", &format!("{argument}: {value}")));
            assert_eq!(code, Some(2), "{value}");
            assert!(errors.starts_with("error: standard input:8:"), "{errors}");
        }
    }
}

#[test]
fn a_threshold_is_a_number_from_0_to_1() {
    for action in ["preempt", "reclaim", "gangpreempt", "gangreclaim"] {
        for (value, code) in [
            ("0", 0),
            ("1", 0),
            ("0.05", 0),
            ("-0.01", 2),
            ("1.01", 2),
            (".nan", 2),
            ("NaN", 2),
            (".inf", 2),
            ("x", 2),
        ] {
            let text = config(&format!("{action} roiThreshold: {value}"), "");
            let (found, _, errors) = muster("check --config -", &text);
            assert_eq!(found, Some(code), "{action} {value}: {errors}");
            if code == 2 {
                assert!(
                    errors.contains(":3:")
                        && errors.contains("roiThreshold: expected a number from 0 to 1")
                );
            }
        }
    }
}

/// A full node, and a pod of higher priority that waits; and these budgets, each with its selector.
fn with_budgets(budgets: &[&str]) -> String {
    let mut text = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, \
                    pods: 10}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: old, labels: {app: \
                    web}}\nspec: {schedulerName: muster, nodeName: n, containers: [{name: c, \
                    resources: {requests: {cpu: 4}}}]}\nstatus: {phase: Running}\n---\napiVersion: \
                    v1\nkind: Pod\nmetadata: {name: urgent}\nspec: {schedulerName: muster, priority: \
                    100, containers: [{name: c, resources: {requests: {cpu: 4}}}]}\n"
        .to_owned();
    for (at, budget) in budgets.iter().enumerate() {
        text += &format!(
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: b{at}}}\nspec: \
             {{{budget}}}\n"
        );
    }
    text
}

#[test]
fn selectors_of_budgets_mean_what_kubernetes_says() {
    let web = "minAvailable: 0, selector: {matchLabels: {app: web}}";
    for (budgets, is_evicted) in [
        (&[][..], true),
        // An empty selector is about all pods of the namespace, none at all about none.
        (&["minAvailable: 1, selector: {}"], false),
        (&["minAvailable: 1"], true),
        (&["minAvailable: 1, selector: {matchLabels: {app: db}}"], true),
        (&["maxUnavailable: 2, selector: {}"], true),
        // The pod that waits is missing already.
        (&["maxUnavailable: 1, selector: {}"], false),
        (&["maxUnavailable: 0%, selector: {}"], false),
        // A budget without a bound allows everything.
        (&["selector: {}"], true),
        (&[web], true),
        // The API server refuses to evict a pod in several budgets, whatever they allow.
        (&[web, web], false),
        (&[web, "minAvailable: 0"], true),
    ] {
        let (code, out, _) =
            muster(&format!("simulate -f - --now {NOW} -o json"), &with_budgets(budgets));
        assert_eq!(code, Some(0));
        assert_eq!(
            out.contains("\"evictions\":[{\"pod\":\"default/old\""),
            is_evicted,
            "{budgets:?}"
        );
    }
}

#[test]
fn times_that_are_none_are_errors_with_their_line_and_far_ones_do_no_harm() {
    let pod = |time: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  deletionTimestamp: {time}\nspec: \
             {{schedulerName: muster, nodeName: n, containers: []}}\nstatus: {{phase: Running}}\n---\n\
             apiVersion: v1\nkind: Node\nmetadata: {{name: n}}\nstatus: {{allocatable: {{cpu: 1}}}}\n"
        )
    };
    for time in ["soon", "2026-13-01T00:00:00Z", "\"\"", "12", "{}", "99999-01-01T00:00:00Z"] {
        let (code, _, errors) = muster("check -f -", &pod(time));
        assert_eq!(code, Some(2), "{time}");
        assert!(errors.starts_with("error: standard input:5:"), "{errors}");
    }
    for time in ["9999-12-30T22:00:00Z", "2126-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "~"] {
        for line in [
            format!("simulate -f - --now {NOW} --cycles 3"),
            format!("simulate -f - --now {NOW} --until-stable"),
            "simulate -f - --now 9999-12-30T21:59:59Z --until-stable".to_owned(),
            "simulate -f - --now 0001-01-01T00:00:00Z --until-stable".to_owned(),
            format!("simulate -f - --now {NOW} --grace --until-stable -o json"),
            "explain pod/p -f -".to_owned(),
        ] {
            let (code, _, errors) = muster(&line, &pod(time));
            assert_eq!(code, Some(0), "{time}, {line}: {errors}");
        }
    }
}
