//! Problems of Kubernetes' own objects that are not pods.

use super::pod::check_node_term;
use super::{Problem, Problems};
use crate::core::{
    IntOrString, Node, PersistentVolume, PodDisruptionBudget, PriorityClass, ResourceQuota,
};
use crate::manifest::Resource;

pub fn validate_node(node: &Node) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&node.metadata);
    for (index, taint) in node.spec.taints.iter().enumerate() {
        let path = format!("spec.taints[{index}]");
        problems.check(
            !taint.key.is_empty(),
            format!("{path}.key"),
            "is missing; write the key of the taint",
        );
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        problems.one_of(format!("{path}.effect"), &taint.effect, &effects);
        let same =
            |other: &&crate::core::Taint| other.key == taint.key && other.effect == taint.effect;
        if node.spec.taints[..index].iter().find(same).is_some() {
            problems
                .add(path, format!("{}:{} is given twice; remove one", taint.key, taint.effect));
        }
    }
    problems.amounts("status.capacity", &node.status.capacity);
    problems.amounts("status.allocatable", &node.status.allocatable);
    problems.0
}

/// For kinds of which only the name is used.
pub(crate) fn validate_meta(object: &impl Resource) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(object.meta());
    problems.0
}

pub(crate) fn validate_volume(volume: &PersistentVolume) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&volume.metadata);
    let required =
        volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    for (index, term) in
        required.iter().flat_map(|required| &required.node_selector_terms).enumerate()
    {
        let path = format!("spec.nodeAffinity.required.nodeSelectorTerms[{index}]");
        check_node_term(&mut problems, &path, term);
    }
    problems.0
}

pub(crate) fn validate_priority_class(class: &PriorityClass) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&class.metadata);
    if let Some(policy) = &class.preemption_policy {
        problems.one_of("preemptionPolicy", policy, &["", "Never", "PreemptLowerPriority"]);
    }
    problems.0
}

pub(crate) fn validate_quota(quota: &ResourceQuota) -> Vec<Problem> {
    let mut problems = Problems::default();
    problems.meta(&quota.metadata);
    problems.amounts("spec.hard", &quota.spec.hard);
    problems.0
}

pub(crate) fn validate_budget(budget: &PodDisruptionBudget) -> Vec<Problem> {
    let mut problems = Problems::default();
    let spec = &budget.spec;
    problems.meta(&budget.metadata);
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        problems.add("spec.maxUnavailable", "set minAvailable or maxUnavailable, not both");
    }
    for (path, bound) in
        [("spec.minAvailable", &spec.min_available), ("spec.maxUnavailable", &spec.max_unavailable)]
    {
        match bound {
            Some(IntOrString::Int(number)) => problems.at_least(path, 0, *number),
            Some(IntOrString::String(text)) => {
                let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok());
                let message = format!(
                    "{text:?} is not a percentage; write a whole number or one like \"50%\""
                );
                problems.check(percent.is_some_and(|percent| percent <= 100), path, message);
            }
            None => {}
        }
    }
    if let Some(selector) = &spec.selector {
        problems.label_selector("spec.selector", selector);
    }
    problems.0
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems;
    use super::*;

    #[test]
    fn a_good_node_has_no_problem() {
        let text = "metadata: {name: n1}
spec: {taints: [{key: gpu, effect: NoSchedule}, {key: gpu, effect: NoExecute}]}
status: {allocatable: {cpu: 8, memory: 16Gi}}";
        assert_eq!(problems(text, validate_node), [""; 0]);
    }

    #[test]
    fn every_problem_of_a_node_is_named() {
        let text = "metadata: {name: Node_1}
spec:
  taints:
  - {key: gpu, effect: Never}
  - {effect: NoSchedule}
  - {effect: NoSchedule, key: a}
  - {effect: NoSchedule, key: a}
status: {allocatable: {cpu: -1}, capacity: {memory: -1Gi}}";
        assert_eq!(
            problems(text, validate_node),
            [
                "metadata.name: \"Node_1\" is not a valid name; use up to 253 lower case letters, digits, - and ., \
                 starting and ending with a letter or a digit",
                "spec.taints[0].effect: \"Never\" is not known; write one of NoSchedule, PreferNoSchedule, NoExecute",
                "spec.taints[1].key: is missing; write the key of the taint",
                "spec.taints[3]: a:NoSchedule is given twice; remove one",
                "status.capacity[memory]: -1Gi is negative; write 0 or more",
                "status.allocatable[cpu]: -1 is negative; write 0 or more",
            ]
        );
    }

    #[test]
    fn an_amount_of_more_than_63_bits_is_a_problem() {
        let text = "metadata: {name: n1}
status: {allocatable: {cpu: 9223372036854775808, memory: 8Ei, pods: 9223372036854775807}}";
        let message =
            "is larger than 9223372036854775807, the largest amount there is; write a smaller one";
        assert_eq!(
            problems(text, validate_node),
            ["cpu", "memory"].map(|name| format!("status.allocatable[{name}]: {message}"))
        );
    }

    #[test]
    fn a_budget_has_one_bound_that_makes_sense() {
        let text = "metadata: {name: b}
spec: {minAvailable: 150%, maxUnavailable: -1, selector: {matchExpressions: [{key: a, operator: Is}]}}";
        assert_eq!(
            problems(text, validate_budget),
            [
                "spec.maxUnavailable: set minAvailable or maxUnavailable, not both",
                "spec.minAvailable: \"150%\" is not a percentage; write a whole number or one like \"50%\"",
                "spec.maxUnavailable: -1 is too small; write 0 or more",
                "spec.selector.matchExpressions[0].operator: \"Is\" is not known; write one of In, NotIn, Exists, \
                 DoesNotExist",
            ]
        );
    }

    #[test]
    fn classes_and_quotas_are_checked_too() {
        assert_eq!(
            problems("metadata: {name: c}\npreemptionPolicy: Maybe", validate_priority_class),
            ["preemptionPolicy: \"Maybe\" is not known; write one of Never, PreemptLowerPriority"]
        );
        assert_eq!(
            problems("metadata: {name: q}\nspec: {hard: {cpu: -2}}", validate_quota),
            ["spec.hard[cpu]: -2 is negative; write 0 or more"]
        );
    }
}
