//! What `muster check` accepts and rejects, and what all commands report about their input.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The exit code, the output and the errors of `muster …` with the text on its standard input.
fn muster(line: &str, input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.current_dir(root()).env_clear().args(line.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary was built for this test");
    let mut stdin = process.stdin.take().expect("it was asked for");
    // A command that reads nothing may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = process.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn pod(annotations: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{{annotations}}}}}\nspec: {{{spec}}}\n"
    )
}

#[test]
fn a_configuration_alone_is_checked() {
    let config = "examples/gpu-cluster/scheduler.conf";
    let (code, out, errors) = muster(&format!("check --config {config}"), "");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert!(out.ends_with(&format!("no errors: {config}\n")), "{out}");

    let (code, _, errors) = muster("check --config -", "actions: \"alocate\"\n");
    assert_eq!(code, Some(2));
    assert!(errors.contains("alocate"), "{errors}");
}

#[test]
fn checking_nothing_is_an_error_that_says_what_to_write() {
    let (code, out, errors) = muster("check", "");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(errors.contains("-f FILE") && errors.contains("--config FILE"), "{errors}");
}

#[test]
fn an_amount_beyond_63_bits_is_an_error() {
    let text = pod("", "containers: [{name: c, resources: {requests: {memory: 8Ei}}}]");
    let (code, _, errors) = muster("check -f -", &text);
    assert_eq!(code, Some(2));
    let expected = "error: standard input:4: Pod default/p: spec.containers[0].resources.requests[memory]: is larger \
                    than 9223372036854775807, the largest amount there is; write a smaller one\n";
    assert_eq!(errors, expected);
}

#[test]
fn misspelt_keys_and_scheduler_names_are_warnings() {
    let text = pod("scheduling.k8s.io/group-nam: ring", "schedulerName: volcan");
    let (code, out, _) = muster("check -f -", &text);
    assert_eq!(code, Some(0));
    assert_eq!(
        out,
        "warning: standard input:3: Pod default/p: metadata.annotations[scheduling.k8s.io/group-nam] is not read: did \
         you mean scheduling.k8s.io/group-name?\n\
         warning: standard input:4: Pod default/p: spec.schedulerName is \"volcan\", the name of no scheduler here: did \
         you mean volcano?\n\
         no errors, 2 warnings: 1 × Pod\n"
    );
}

/// The exit code of `muster check` without and with `--strict`, and the lines about the text.
fn checked(text: &str) -> ([Option<i32>; 2], Vec<String>) {
    let (code, out, errors) = muster("check -f -", text);
    let (strict, strict_out, _) = muster("check --strict -f -", text);
    assert_eq!(out, strict_out);
    let lines = out.lines().chain(errors.lines()).map(str::to_owned).collect();
    ([code, strict], lines)
}

#[test]
fn errors_exit_with_2_and_only_strict_checks_fail_on_warnings_and_none_on_notes() {
    let (codes, lines) = checked(&pod("", ""));
    assert_eq!((codes, lines), ([Some(0), Some(0)], vec!["no errors: 1 × Pod".to_owned()]));

    let (codes, lines) = checked("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n");
    assert_eq!(codes, [Some(0), Some(0)]);
    assert_eq!(lines[0], "note: skipped 1 of kind Service: not needed here");

    let (codes, lines) = checked(&pod("", "nodeNam: n"));
    assert_eq!(codes, [Some(0), Some(1)]);
    let warning = "warning: standard input:4: Pod default/p: spec.nodeNam is not read: did you mean nodeName?";
    assert_eq!(lines, [warning, "no errors, 1 warning: 1 × Pod"]);
    let (_, _, errors) = muster("check --strict -f -", &pod("", "nodeNam: n"));
    assert_eq!(errors, "error: 1 warning, and --strict allows none\n");

    let (codes, _) = checked(&pod("", "nodeNam: n, nodeName: Bad_Name"));
    assert_eq!(codes, [Some(2), Some(2)]);
}

#[test]
fn objects_that_nothing_acts_on_are_warnings_with_their_meaning() {
    let object = |api_version: &str, kind: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{}}\n")
    };
    for (api_version, kind, meaning) in [
        ("training.volcano.sh/v1alpha1", "HyperJob", "nothing creates Jobs from it here"),
        (
            "scheduling.volcano.sh/v1alpha2",
            "PodGroup",
            "version v1alpha2 of scheduling.volcano.sh is not known here; write \"apiVersion: \
             scheduling.volcano.sh/v1beta1\"",
        ),
        ("topology.volcano.sh/v2", "HyperNode", "version v2 of topology.volcano.sh"),
        ("scheduling.run.ai/v2", "Queue", "it is not the Queue that is read here"),
        ("v1", "Podd", "there is no such kind: did you mean Pod?"),
    ] {
        let (codes, lines) = checked(&object(api_version, kind));
        assert_eq!(codes, [Some(0), Some(1)], "{kind}: {lines:?}");
        let start = format!(
            "warning: standard input:1: {kind} of {api_version} is not acted on: {meaning}"
        );
        assert!(lines[0].starts_with(&start), "{lines:?}");
    }
    let both = format!("{0}---\n{0}", object("training.volcano.sh/v1alpha1", "HyperJob"));
    let (_, lines) = checked(&both);
    assert!(lines[0].contains("2 × HyperJob of training.volcano.sh/v1alpha1 are not acted on"));
    // A group with a wrong letter, and a version that Kubernetes does not have, are mistakes.
    for (api_version, kind) in
        [("scheduling.volcano.io/v1beta1", "PodGroup"), ("v1", "Queue"), ("v2", "Pod")]
    {
        assert_eq!(checked(&object(api_version, kind)).0, [Some(2), Some(2)], "{api_version}");
    }
}

#[test]
fn advice_about_a_configuration_is_a_note() {
    let text = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n";
    let (code, out, _) = muster("check --strict --config -", text);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("note: ") && out.contains("there is no quota plugin"), "{out}");
    let (code, out, _) = muster("check --strict --config -", &text.replace("gang", "capacity"));
    assert_eq!(code, Some(1), "{out}");
    assert!(out.starts_with("warning: ") && out.contains("gangs start in part"), "{out}");
}

#[test]
fn warnings_are_shown_beside_errors() {
    let text = pod("scheduling.k8s.io/group-nam: ring", "nodeName: Bad_Name");
    let (code, out, errors) = muster("check -f -", &text);
    assert_eq!(code, Some(2));
    assert!(out.starts_with("warning: ") && out.contains("group-nam]"), "{out}");
    assert!(errors.starts_with("error: ") && errors.contains("Bad_Name"), "{errors}");

    let (code, out, errors) = muster("simulate -f -", &text);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    let (warning, error) = (errors.find("warning: "), errors.find("error: "));
    assert!(warning.is_some_and(|at| error.is_some_and(|error| at < error)), "{errors}");
}

#[test]
fn warnings_of_a_configuration_are_shown_beside_its_errors() {
    let text = "actions: \"alocate\"\nmetrics: {}\n";
    let (code, out, errors) = muster("check --config -", text);
    assert_eq!(code, Some(2));
    assert!(out.contains("metrics") && !errors.contains("metrics"), "{out}{errors}");
}

#[test]
fn a_file_that_is_given_twice_is_one_error() {
    let file = "examples/first-gang/cluster.yaml";
    let given = [
        (
            format!("-f {file} -f {file}"),
            format!("error: {file}: is given twice, first as {file}: leave one out\n"),
        ),
        (
            format!("-f examples/first-gang -f ./{file}"),
            format!("error: ./{file}: is given twice, first as {file}: leave one out\n"),
        ),
        (
            "-f - -f -".to_owned(),
            "error: standard input can be read once only: give - to one of them\n".to_owned(),
        ),
    ];
    for (files, expected) in given {
        let (code, _, errors) = muster(&format!("check {files}"), &pod("", ""));
        assert_eq!((code, errors), (Some(2), expected), "{files}");
    }
}

#[test]
fn no_objects_are_an_error_and_no_pods_of_ours_a_note() {
    for command in
        ["simulate", "simulate --what-if /dev/null", "explain x", "fairshare", "topology show"]
    {
        let (code, out, errors) = muster(&format!("{command} -f /dev/null"), "");
        assert_eq!((code, out.as_str()), (Some(2), ""), "{command}");
        assert_eq!(errors, "error: nothing to schedule: no objects in /dev/null\n", "{command}");
    }
    let (code, _, errors) = muster("simulate -f -", &pod("", ""));
    assert_eq!(code, Some(0));
    assert_eq!(errors, "note: nothing to schedule: no pod has schedulerName volcano or muster\n");
    let (code, _, errors) = muster("check -f /dev/null", "");
    assert_eq!((code, errors.as_str()), (Some(0), ""));
}

/// A page should not tell users to apply nodes that do not exist.
#[test]
fn no_page_tells_users_to_apply_fake_nodes() {
    let mut applied = 0;
    for page in ["README.md", "docs/install.md", "docs/operate.md", "docs/snapshot.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("it is there");
        for rest in text.split("kubectl apply -f ").skip(1) {
            let path = rest.split_whitespace().next().unwrap_or_default();
            if path == "-" {
                continue;
            }
            applied += 1;
            let (_, out, errors) = muster(&format!("check -f {path}"), "");
            assert!(out.contains("no errors"), "{page}: {path}: {errors}");
            assert!(!out.contains("× Node"), "{page} applies the nodes in {path}");
        }
    }
    assert!(applied >= 2, "the manifests of the scheduler, and a first gang");
}

#[test]
fn pods_in_several_budgets_and_budgets_without_pods_are_warnings() {
    let budget = |name: &str, selector: &str| {
        format!(
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{name: {name}}}\n\
             spec: {{minAvailable: 1{selector}}}\n"
        )
    };
    let one = pod("", "") + &budget("all", ", selector: {}");
    let (codes, lines) = checked(&one);
    assert_eq!(codes, [Some(0), Some(0)], "{lines:?}");

    let (codes, lines) = checked(&(one.clone() + &budget("again", ", selector: {}")));
    assert_eq!(codes, [Some(0), Some(1)]);
    assert_eq!(
        lines[0],
        "warning: standard input:1: Pod default/p: is in several PodDisruptionBudgets \
         (default/again, default/all): the API server never evicts such a pod"
    );

    // Without a selector it is about no pod, not about all.
    let (codes, lines) = checked(&(one + &budget("none", "")));
    assert_eq!(codes, [Some(0), Some(1)]);
    assert!(
        lines[0].ends_with("so it protects no pod; write {} to protect all pods of its namespace")
    );
    assert_eq!(lines.len(), 2, "{lines:?}");
}
