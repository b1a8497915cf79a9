//! Manifests that cannot be decoded: the error names the field, the place and what to write.

use muster_api::core::{IntOrString, Pod, PodDisruptionBudget};
use muster_api::{PodGroup, PodGroupPhase};
use muster_yaml::{YamlError, parse};
use serde::Deserialize;

fn decode<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, YamlError> {
    T::deserialize(&parse(text).expect("valid YAML"))
}

#[test]
fn errors_name_the_field_the_place_and_what_to_write() {
    for (text, place, message) in [
        (
            "spec:\n  minMember: two",
            (2, 14),
            "spec.minMember: expected an integer, found the string \"two\"",
        ),
        (
            "spec:\n  minMember: 1.5",
            (2, 14),
            "spec.minMember: expected an integer, found the number 1.5",
        ),
        (
            "spec:\n  minMember: 3000000000",
            (2, 14),
            "spec.minMember: expected a whole number from -2147483648 to 2147483647, found integer `3000000000`",
        ),
        (
            "spec: {queue: 5}",
            (1, 15),
            "spec.queue: expected a string (in quotes), found the number 5",
        ),
        ("spec: []", (1, 7), "spec: expected a mapping, found a list"),
        (
            "spec:\n  subGroupPolicy:\n  - name: a\n  - networkTopology: {mode: firm}",
            (4, 29),
            "spec.subGroupPolicy[1].networkTopology.mode: \"firm\" is not known; write one of hard, soft",
        ),
        (
            "spec: {minResources: {nvidia.com/gpu: lots}}",
            (1, 39),
            "spec.minResources[nvidia.com/gpu]: \"lots\" is not a quantity; write it like 500m, 4 or 16Gi",
        ),
        (
            "metadata: {creationTimestamp: now}\nspec: {}\nstatus: {conditions: [{lastTransitionTime: now}]}",
            (1, 31),
            "metadata.creationTimestamp: ",
        ),
    ] {
        let error = decode::<PodGroup>(&format!("{text}\n")).expect_err(text);
        assert_eq!((error.line, error.column), place, "{error}");
        assert!(error.to_string().starts_with(message), "{error}\n{message}");
    }
}

#[test]
fn null_is_absent_and_numbers_are_quantities() {
    let group: PodGroup = decode(
        "metadata: {name: a, labels: null}\nspec: {minMember: null, queue: ~, minResources: {cpu: 2}}\n",
    )
    .unwrap();
    assert_eq!(group.spec.min_member, 0);
    assert_eq!(group.spec.queue, "default");
    assert_eq!(group.spec.min_resources.unwrap()["cpu"].value(), 2);
    assert_eq!(group.status, None);
}

#[test]
fn an_empty_phase_is_pending() {
    let group: PodGroup = decode("metadata: {}\nspec: {}\nstatus: {phase: ''}\n").unwrap();
    assert_eq!(group.status.unwrap().phase, PodGroupPhase::Pending);
}

#[test]
fn unknown_fields_are_ignored() {
    let pod: Pod =
        decode("metadata: {name: a, novel: [1]}\nspec: {hostNetwork: true}\nextra: {}\n").unwrap();
    assert_eq!(pod.metadata.name, "a");
}

#[test]
fn a_number_or_percentage_accepts_both() {
    let budget: PodDisruptionBudget =
        decode("spec: {minAvailable: 2, maxUnavailable: 50%}\n").unwrap();
    assert_eq!(budget.spec.min_available, Some(IntOrString::Int(2)));
    assert_eq!(budget.spec.max_unavailable, Some(IntOrString::String("50%".to_owned())));
    assert!(decode::<PodDisruptionBudget>("spec: {minAvailable: [2]}\n").is_err());
}
