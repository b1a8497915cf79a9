//! What the reader makes of whole files.

use std::path::Path;

use proptest::prelude::*;

use super::*;

fn found(text: impl AsRef<[u8]>) -> Vec<Found> {
    let mut all = Vec::new();
    read("test.yaml", text.as_ref(), &mut |next| all.push(next));
    all
}

/// Everything that was found, one per line.
fn lines(text: impl AsRef<[u8]>) -> Vec<String> {
    let mut lines = Vec::new();
    for next in found(text) {
        match next {
            Found::Object { object, line, problems, .. } => {
                lines.push(format!("{line}: {} {}", object.kind(), object.key()));
                lines.extend(
                    problems.iter().map(|at| format!("{}: {}: {}", at.line, at.path, at.message)),
                );
            }
            Found::Skipped { kind, line, .. } => lines.push(format!("{line}: skipped {kind}")),
            Found::Error(error) => lines.push(error.to_string()),
        }
    }
    lines
}

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n";
const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: p1}\n";

#[test]
fn a_file_of_several_documents_is_read_in_order() {
    let text = format!(
        "# head\n---\n{NODE}---\n---\n{POD}---\napiVersion: v1\nkind: Service\nmetadata: {{}}\n"
    );
    assert_eq!(lines(text), ["3: Node n1", "8: Pod default/p1", "12: skipped Service"]);
    assert_eq!(lines(""), [""; 0]);
    assert_eq!(lines("---\n# nothing\n---\n"), [""; 0]);
}

#[test]
fn lists_are_read_item_by_item() {
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: n1}\n\
                - apiVersion: v1\n  kind: Pod\n  metadata: {name: p1}\n  spec: {priority: high}\n- {}\n";
    assert_eq!(
        lines(yaml),
        [
            "4: Node n1",
            "test.yaml:10:20: spec.priority: expected an integer, found the string \"high\"",
            "test.yaml:11:3: kind is missing; write for example \"kind: Pod\"",
        ]
    );
    let json = r#"{"apiVersion": "v1", "items": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}}]}
    ], "kind": "List"}"#;
    assert_eq!(lines(json), ["2: Node n1", "3: Node n2"]);
    let typed = "kind: PodList\napiVersion: v1\nitems:\n- metadata: {name: a}\n- metadata: {name: b, namespace: c}\n";
    assert_eq!(lines(typed), ["4: Pod default/a", "5: Pod c/b"]);
    assert_eq!(lines("apiVersion: v1\nkind: List\nitems: []\n"), [""; 0]);
}

#[test]
fn json_objects_may_follow_each_other() {
    let one = |name: &str| {
        format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{name}"}}}}"#)
    };
    let text = format!("{}{}\n{}\n", one("a"), one("b"), one("c"));
    assert_eq!(lines(text), ["1: Node a", "1: Node b", "2: Node c"]);
}

#[test]
fn a_mistake_in_one_document_does_not_hide_the_next() {
    let text = format!(
        "a: [1\n---\n{NODE}---\nkind: Pod\n---\napiVersion: v2\nkind: Pod\n---\njust text\n"
    );
    let found = lines(text);
    assert!(found[0].starts_with("test.yaml:"), "{}", found[0]);
    assert!(found[0].contains("the YAML is broken here"), "{}", found[0]);
    assert_eq!(
        found[1..],
        [
            "3: Node n1",
            "test.yaml:7:1: apiVersion is missing; write \"apiVersion: v1\"",
            "test.yaml:9:13: \"v2\" has no Pod that is known here (write \"apiVersion: v1\")",
            "test.yaml:12:1: expected a Kubernetes object, found the string \"just text\" (start it with apiVersion and \
             kind)",
        ]
    );
}

#[test]
fn problems_have_the_line_of_their_field() {
    let text = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata:\n  name: ring\nspec:\n  \
                minMember: -1\n  subGroupPolicy:\n  - name: a\n  - name: b\n    networkTopology:\n      \
                highestTierAllowed: 1\n      highestTierName: rack\n";
    assert_eq!(
        lines(text),
        [
            "1: PodGroup default/ring",
            "6: spec.minMember: -1 is too small; write 0 or more",
            "12: spec.subGroupPolicy[1].networkTopology.highestTierName: set highestTierAllowed or highestTierName, \
             not both",
        ]
    );
}

#[test]
fn tabs_and_stray_colons_get_advice() {
    let tabs = lines("apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n");
    assert!(tabs[0].contains("indent with spaces"), "{}", tabs[0]);
    let colon = lines("apiVersion: v1\nkind: Pod\nmetadata: name: a\n");
    assert!(colon[0].contains("check the indentation"), "{}", colon[0]);
}

#[test]
fn input_that_is_not_yaml_is_rejected_at_once() {
    assert_eq!(
        lines(b"\x1f\x8b\x08\x00"),
        ["test.yaml:1:1: this is not a YAML or JSON file (save it as text in UTF-8)"]
    );
    assert_eq!(
        lines(b"a: 1\n\xff\xfe"),
        ["test.yaml:2:1: this is not a YAML or JSON file (save it as text in UTF-8)"]
    );
}

#[test]
fn a_very_long_line_does_not_take_forever() {
    for start in ["a: ", "a: \"", "[", "{", "{\"a\": \"", "- ", "# ", "a: |\n  "] {
        for filler in ["x", "[", "{", "- ", "\"", "a: ", "&a ", "? ", " ", "*", "!"] {
            found(format!("{start}{}", filler.repeat(2_000_000 / filler.len())));
        }
    }
}

#[test]
fn every_shared_case_is_read_without_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let Ok(cases) = std::fs::read_dir(folder) else { return };
    for case in cases {
        let path = case.expect("a folder that can be listed").path().join("cluster.yaml");
        let Ok(text) = std::fs::read(&path) else { continue };
        for next in found(text) {
            assert!(
                matches!(&next, Found::Object { problems, .. } if problems.is_empty()),
                "{}: {next:#?}",
                path.display()
            );
        }
    }
}

/// A manifest with a bit of everything, to be mutated.
const SAMPLE: &str = "\
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: &meta
  name: ring
  labels: {a: 'b', \"c\": d}
spec:
  minMember: 2
  minResources: {cpu: 500m, memory: 1Gi}
---
# a comment
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: &m
    <<: {name: x}
    annotations:
      text: |
        several
        lines
  spec:
    containers:
    - name: a
      resources: {requests: {cpu: 1}}
- *m
---
{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n\\u00e9\"}, \"status\": {\"capacity\": {\"cpu\": 1e3}}}
";

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        found(bytes);
    }

    #[test]
    fn random_yaml_like_text_never_panics(text in "[-:{}\\[\\]&*!|>'\"%@`#?,.~ \\t\\nab01<]{0,80}") {
        found(text);
    }

    #[test]
    fn mutated_manifests_never_panic(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0usize..12, "[-:{}\\[\\]&*!|>'\"%#?, \\t\\na0]{0,3}"), 1..6),
    ) {
        let mut text: Vec<char> = SAMPLE.chars().collect();
        for (place, removed, added) in edits {
            let at = place.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, added.chars());
        }
        found(text.into_iter().collect::<String>());
    }

    #[test]
    fn cut_off_manifests_never_panic(length in 0..SAMPLE.len()) {
        found(&SAMPLE.as_bytes()[..length]);
    }
}
