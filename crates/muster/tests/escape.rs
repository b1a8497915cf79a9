//! Text from outside cannot control the terminal: control characters are shown, wherever they come
//! from and wherever they are printed.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// A HyperNode, a Queue and pods whose names and annotations would change the title of a terminal
/// and the colour of the text, to one that is not ours.
const OBJECTS: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: "a\e[95mb"}}
status: {allocatable: {cpu: 8, pods: 10}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack}
spec:
  tier: 1
  tierName: "\e]0;x\a"
  members: [{type: Node, selector: {exactMatch: {name: n1}}}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: red}
spec: {weight: 1, capability: {"gpu\e[95m": 4, cpu: 8}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: ring, namespace: default, annotations: {volcano.sh/stale-since: "\e[95m"}}
spec: {minMember: 1, queue: red, networkTopology: {mode: hard, highestTierName: "a\e]0;x\a"}}
---
apiVersion: v1
kind: Pod
metadata: {name: ring-0, namespace: default, annotations: {scheduling.k8s.io/group-name: ring}}
spec: {schedulerName: muster, nodeSelector: {"\e[95mzone": "\u009b95m"}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"#;

fn muster(line: &str, input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
    command.env_clear().args(line.split_whitespace());
    // As on a terminal, where our own colours appear.
    command.env("CLICOLOR_FORCE", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("the binary was built for this test");
    let mut stdin = process.stdin.take().expect("it was asked for");
    // A command that reads nothing may have ended already.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    process.wait_with_output().expect("it ends")
}

/// Fails at a control character that is not part of one of our styles. Each style must end before
/// the next begins.
#[track_caller]
fn is_harmless(what: &str, text: &[u8]) {
    let text = std::str::from_utf8(text).expect("the output is UTF-8");
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n') {
        let style = &rest[at..];
        let end = style.find('m').unwrap_or(style.len());
        let numbers = style[..end].strip_prefix("\x1b[").unwrap_or("?");
        let is_style = numbers.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
        assert!(is_style && numbers != "95", "{what}: {:?}", &style[..style.len().min(40)]);
        rest = &style[end..];
    }
}

#[test]
fn nothing_in_a_manifest_controls_the_terminal() {
    let commands = [
        "check -f -",
        "simulate -f - --now 2026-11-15T00:00:00Z",
        "simulate -f - --events -o wide",
        "simulate -f - -o json",
        "simulate -f - -o yaml",
        "explain ring -f -",
        "explain pod/ring-0 -f -",
        "explain queue/red -f -",
        "explain queue/red -f - -o json",
        "fairshare -f - --resource nothing",
        "fairshare -f -",
        "topology show -f -",
        "topology show -f - -o wide",
        "topology show -f - -o json",
        "topology show -f - -o svg",
        "topology show -f - -o dot",
        "topology check -f -",
        "snapshot -f -",
        "snapshot -f - -o json",
    ];
    let mut shown = 0;
    for line in commands {
        let output = muster(line, OBJECTS);
        is_harmless(line, &output.stdout);
        is_harmless(line, &output.stderr);
        let all = [output.stdout, output.stderr].concat();
        shown += usize::from(String::from_utf8_lossy(&all).contains("\\u{1b}"));
    }
    assert!(shown >= 8, "escaped text is shown, but only by {shown} commands");
}

#[test]
fn bad_names_are_shown_escaped() {
    let queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: \"\\e[95mred\"}\nspec: {}\n";
    let output = muster("check -f -", queue);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains(r"Queue \u{1b}[95mred"), "{errors}");
    is_harmless("check", &output.stderr);
}

#[test]
fn names_of_files_and_objects_are_shown_escaped() {
    for (args, shown) in [
        (["check", "-f", "no\x1b[95mfile"], r"no\u{1b}[95mfile: no such file"),
        (["check", "--config", "no\x1b[95mfile"], r"no\u{1b}[95mfile: no such file"),
        (["replay", "no\x1b[95mfolder", "--show"], r"no\u{1b}[95mfolder: no such folder"),
    ] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_muster")).args(args).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(shown), "{errors}");
        is_harmless(args[0], &output.stderr);
    }
}
