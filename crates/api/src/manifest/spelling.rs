//! Keys of annotations and labels, and names of schedulers, that are almost known ones. They are
//! allowed, but rarely intended: a pod with the annotation `scheduling.k8s.io/group-nam` belongs to
//! no gang.

use std::collections::HashMap;

use muster_yaml::{Value, Yaml};

use super::PlacedProblem;
use crate::keys::{ANNOTATIONS, CARD_NOTES, NODEGROUP_NAME, OTHER_KEYS, SCHEDULER_NAMES};

/// A name that differs in more letters is taken to be a different name.
const MOST_WRONG_LETTERS: usize = 2;

/// Remembers every key that it has seen, since thousands of pods have the same ones.
#[derive(Default)]
pub(super) struct Spelling {
    nearest: HashMap<String, Option<&'static str>>,
}

impl Spelling {
    pub(super) fn check(&mut self, object: &Yaml, found: &mut Vec<PlacedProblem>) {
        for field in ["annotations", "labels"] {
            let map = object.entry("metadata").and_then(|metadata| metadata.entry(field));
            let Some(Value::Map(entries)) = map.map(|map| &map.value) else { continue };
            for (key, _) in entries {
                if let Some(meant) = self.known_key(&key.name) {
                    let path = format!("metadata.{field}[{}]", key.name);
                    let message = format!("is not read: did you mean {meant}?");
                    found.push(PlacedProblem { line: key.line, path, message });
                }
            }
        }
        found.extend(scheduler_name(object));
    }

    /// The known key that an unknown one resembles.
    fn known_key(&mut self, key: &str) -> Option<&'static str> {
        if let Some(known) = self.nearest.get(key) {
            return *known;
        }
        let is_known = ANNOTATIONS.iter().chain(&CARD_NOTES).chain(&OTHER_KEYS).any(|k| *k == key);
        let candidates = ANNOTATIONS.into_iter().chain([NODEGROUP_NAME]);
        let nearest = if is_known { None } else { nearest(key, candidates) };
        self.nearest.insert(key.to_owned(), nearest);
        nearest
    }
}

fn scheduler_name(object: &Yaml) -> Option<PlacedProblem> {
    let tree = object.entry("spec")?.entry("schedulerName")?;
    let name = tree.as_str().filter(|name| !SCHEDULER_NAMES.contains(name))?;
    let meant = nearest(name, SCHEDULER_NAMES)?;
    Some(PlacedProblem {
        line: tree.line,
        path: "spec.schedulerName".to_owned(),
        message: format!("is {name:?}, the name of no scheduler here: did you mean {meant}?"),
    })
}

fn nearest(name: &str, known: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    known
        .into_iter()
        .filter(|known| known.len().abs_diff(name.len()) <= MOST_WRONG_LETTERS)
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min()
        .filter(|(distance, _)| *distance <= MOST_WRONG_LETTERS)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        Spelling::default().check(&muster_yaml::parse(text).expect("valid YAML"), &mut found);
        found.iter().map(|at| format!("{}: {} {}", at.line, at.path, at.message)).collect()
    }

    #[test]
    fn a_misspelt_key_is_reported_with_the_known_one() {
        let text = "kind: Pod
metadata:
  annotations:
    scheduling.k8s.io/group-nam: ring
    volcano.sh/preemptible: 'false'
  labels: {volcano.sh/taskspec: worker}
spec: {schedulerName: volcan}";
        assert_eq!(
            problems(text),
            [
                "4: metadata.annotations[scheduling.k8s.io/group-nam] is not read: did you mean \
                 scheduling.k8s.io/group-name?",
                "5: metadata.annotations[volcano.sh/preemptible] is not read: did you mean \
                 volcano.sh/preemptable?",
                "6: metadata.labels[volcano.sh/taskspec] is not read: did you mean volcano.sh/task-spec?",
                "7: spec.schedulerName is \"volcan\", the name of no scheduler here: did you mean volcano?",
            ]
        );
    }

    #[test]
    fn known_keys_and_keys_of_other_projects_are_accepted() {
        for key in ANNOTATIONS.iter().chain(&CARD_NOTES).chain(&OTHER_KEYS) {
            assert_eq!(problems(&format!("metadata: {{annotations: {{{key}: x}}}}")), [""; 0]);
        }
        let text = "metadata:
  annotations: {volcano.sh/job-name: a, volcano.sh/queue-name: b, volcano.sh/vgpu-mode: c}
  labels: {app: trainer, topology.kubernetes.io/zone: z, app.kubernetes.io/name: n}
spec: {schedulerName: default-scheduler}";
        assert_eq!(problems(text), [""; 0]);
        assert_eq!(problems("spec: {schedulerName: muster}"), [""; 0]);
    }
}
