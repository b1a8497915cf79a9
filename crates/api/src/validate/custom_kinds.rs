//! Problems of the custom resources: everything that Volcano's schemas and webhooks check on one
//! object alone.

use muster_goregex::GoRegex;

use super::{NAME_LENGTH, Problem, Problems};
use crate::core::Meta;
use crate::{
    HyperNode, MemberSelector, NetworkTopologySpec, PodGroup, Queue, ResourceList, SubGroupPolicy,
    keys, parse_duration,
};

pub fn validate_pod_group(group: &PodGroup) -> Vec<Problem> {
    let mut problems = Problems::default();
    let meta = &group.metadata;
    let spec = &group.spec;
    problems.meta(meta);
    problems.durations(meta);
    problems.times(meta);
    problems.revocable(meta);
    // Negative means for ever.
    if let Some(Err(error)) =
        meta.annotations.get(keys::STALENESS_GRACE_PERIOD).map(|text| parse_duration(text))
    {
        let path = format!("metadata.annotations[{}]", keys::STALENESS_GRACE_PERIOD);
        problems.add(path, error.to_string());
    }
    problems.at_least("spec.minMember", 0, spec.min_member);
    for (role, least) in &spec.min_task_member {
        problems.at_least(format!("spec.minTaskMember[{role}]"), 0, *least);
    }
    if !spec.queue.is_empty() {
        problems.name("spec.queue", &spec.queue);
    }
    if !spec.priority_class_name.is_empty() {
        problems.name("spec.priorityClassName", &spec.priority_class_name);
    }
    if let Some(resources) = &spec.min_resources {
        problems.amounts("spec.minResources", resources);
    }
    if let Some(topology) = &spec.network_topology {
        check_topology(&mut problems, "spec.networkTopology", topology);
    }
    for (index, policy) in spec.sub_group_policy.iter().enumerate() {
        check_sub_group(&mut problems, &format!("spec.subGroupPolicy[{index}]"), policy);
    }
    problems.0
}

pub(super) fn check_topology(problems: &mut Problems, path: &str, topology: &NetworkTopologySpec) {
    if let Some(tier) = topology.highest_tier_allowed {
        problems.at_least(format!("{path}.highestTierAllowed"), 0, tier);
    }
    if let Some(name) = topology.highest_tier_name.as_deref().filter(|name| !name.is_empty()) {
        let path = format!("{path}.highestTierName");
        problems.at_most_long(path.clone(), NAME_LENGTH, name);
        let message = "set highestTierAllowed or highestTierName, not both";
        problems.check(topology.highest_tier_allowed.is_none(), path, message);
    }
}

fn check_sub_group(problems: &mut Problems, path: &str, policy: &SubGroupPolicy) {
    problems.at_most_long(format!("{path}.name"), NAME_LENGTH, &policy.name);
    problems.at_least(format!("{path}.subGroupSize"), 1, policy.sub_group_size);
    problems.at_least(format!("{path}.minSubGroups"), 0, policy.min_sub_groups);
    if let Some(topology) = &policy.network_topology {
        check_topology(problems, &format!("{path}.networkTopology"), topology);
    }
    if let Some(selector) = &policy.label_selector {
        problems.label_selector(&format!("{path}.labelSelector"), selector);
    }
    for (index, key) in policy.match_label_keys.iter().enumerate() {
        let message = "is empty; write the key of a pod label";
        problems.check(!key.is_empty(), format!("{path}.matchLabelKeys[{index}]"), message);
    }
}

pub fn validate_queue(queue: &Queue) -> Vec<Problem> {
    let mut problems = Problems::default();
    let meta = &queue.metadata;
    let spec = &queue.spec;
    problems.meta(meta);
    // Volcano's webhook turns 0 into 1.
    let message = format!("{} is out of range; write a number from 1 to 65535", spec.weight);
    problems.check((0..=65_535).contains(&spec.weight), "spec.weight", message);
    problems.at_least("spec.priority", 0, spec.priority);
    problems.at_most_long("spec.type", NAME_LENGTH, &spec.type_);
    if let Some(parent) = spec.parent.as_deref().filter(|parent| !parent.is_empty()) {
        problems.name("spec.parent", parent);
        let message = "is the queue itself; name another queue or leave it out";
        problems.check(parent != meta.name, "spec.parent", message);
    }
    let none = ResourceList::new();
    let capability = spec.capability.as_ref().unwrap_or(&none);
    let deserved = spec.deserved.as_ref().unwrap_or(&none);
    let guarantee = spec.guarantee.as_ref().map_or(&none, |guarantee| &guarantee.resource);
    problems.amounts("spec.capability", capability);
    problems.amounts("spec.deserved", deserved);
    problems.amounts("spec.guarantee.resource", guarantee);
    problems.within("spec.deserved", deserved, "capability", capability);
    problems.within("spec.guarantee.resource", guarantee, "deserved", deserved);
    // A queue without `deserved` deserves its guarantee.
    let unnamed = |name: &&String| !deserved.is_empty() && !deserved.contains_key(*name);
    for (name, amount) in guarantee.iter().filter(|(name, _)| unnamed(name)) {
        let message = format!("is not in deserved; add {name}: {amount} or more to spec.deserved");
        problems.add(format!("spec.guarantee.resource[{name}]"), message);
    }
    for (index, cluster) in spec.extend_clusters.iter().enumerate() {
        problems.amounts(&format!("spec.extendClusters[{index}].capacity"), &cluster.capacity);
    }
    check_hierarchy(&mut problems, meta);
    problems.min_runtimes(meta);
    problems.0
}

/// The path of a queue and its weights, one for each step: "root/eng/dev" and "1/2/8".
fn check_hierarchy(problems: &mut Problems, meta: &Meta) {
    let text = |key| meta.annotations.get(key).map_or("", String::as_str);
    let (path, weights) = (text(keys::HIERARCHY), text(keys::HIERARCHY_WEIGHTS));
    if path.is_empty() && weights.is_empty() {
        return;
    }
    let at = format!("metadata.annotations[{}]", keys::HIERARCHY_WEIGHTS);
    let (steps, numbers) = (path.split('/').count(), weights.split('/').count());
    if steps != numbers {
        let message = format!(
            "has {numbers} weights for {steps} steps in {:?}; write one for each step",
            path
        );
        problems.add(at.clone(), message);
    }
    for weight in weights.split('/') {
        let positive = weight.parse::<f64>().is_ok_and(|weight| weight > 0.0 && weight.is_finite());
        problems.check(
            positive,
            at.clone(),
            format!("{weight:?} is not a weight; write a number above 0"),
        );
    }
}

pub fn validate_hyper_node(hyper_node: &HyperNode) -> Vec<Problem> {
    let mut problems = Problems::default();
    let spec = &hyper_node.spec;
    problems.meta(&hyper_node.metadata);
    problems.at_least("spec.tier", 0, spec.tier);
    problems.at_most_long("spec.tierName", NAME_LENGTH, &spec.tier_name);
    problems.check(!spec.members.is_empty(), "spec.members", "is empty; write at least one member");
    for (index, member) in spec.members.iter().enumerate() {
        check_selector(&mut problems, &format!("spec.members[{index}].selector"), &member.selector);
    }
    problems.0
}

fn check_selector(problems: &mut Problems, path: &str, selector: &MemberSelector) {
    let MemberSelector { exact_match, regex_match, label_match } = selector;
    let count = [exact_match.is_some(), regex_match.is_some(), label_match.is_some()];
    let message = "set exactly one of exactMatch, regexMatch and labelMatch";
    problems.check(count.into_iter().filter(|set| *set).count() == 1, path, message);
    if let Some(exact) = exact_match {
        problems.name(format!("{path}.exactMatch.name"), &exact.name);
    }
    if let Some(regex) = regex_match {
        let path = format!("{path}.regexMatch.pattern");
        problems.check(
            !regex.pattern.is_empty(),
            path.clone(),
            "is empty; write a regular expression",
        );
        if let Err(error) = GoRegex::new(&regex.pattern) {
            let message =
                format!("{:?} is not a regular expression in Go's syntax: {error}", regex.pattern);
            problems.add(path, message);
        }
    }
    if let Some(labels) = label_match {
        problems.label_selector(&format!("{path}.labelMatch"), labels);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems;
    use super::*;

    #[test]
    fn a_good_pod_group_has_no_problem() {
        let text = "
metadata: {name: ring, namespace: default}
spec:
  minMember: 4
  minTaskMember: {worker: 3}
  queue: team
  minResources: {cpu: 4}
  networkTopology: {mode: hard, highestTierAllowed: 2}
  subGroupPolicy: [{name: pair, subGroupSize: 2, networkTopology: {highestTierName: rack}, matchLabelKeys: [pair]}]";
        assert_eq!(problems(text, validate_pod_group), [""; 0]);
    }

    #[test]
    fn every_problem_of_a_pod_group_is_named() {
        let text = "
metadata: {namespace: Bad}
spec:
  minMember: -1
  minTaskMember: {worker: -2}
  queue: Team
  minResources: {cpu: -4}
  networkTopology: {highestTierAllowed: -1}
  subGroupPolicy:
  - {name: a, subGroupSize: 0, minSubGroups: -1}
  - {networkTopology: {highestTierAllowed: 1, highestTierName: rack}, labelSelector: {matchExpressions: [{}]}}";
        let found = problems(text, validate_pod_group);
        let paths: Vec<&str> =
            found.iter().map(|line| line.split(": ").next().expect("a path")).collect();
        assert_eq!(
            paths,
            [
                "metadata.name",
                "metadata.namespace",
                "spec.minMember",
                "spec.minTaskMember[worker]",
                "spec.queue",
                "spec.minResources[cpu]",
                "spec.networkTopology.highestTierAllowed",
                "spec.subGroupPolicy[0].subGroupSize",
                "spec.subGroupPolicy[0].minSubGroups",
                "spec.subGroupPolicy[1].networkTopology.highestTierName",
                "spec.subGroupPolicy[1].labelSelector.matchExpressions[0].key",
                "spec.subGroupPolicy[1].labelSelector.matchExpressions[0].operator",
            ]
        );
    }

    #[test]
    fn quotas_of_a_queue_must_be_in_order() {
        let good = "
metadata: {name: team, annotations: {volcano.sh/hierarchy: root/eng, volcano.sh/hierarchy-weights: 1/2.5}}
spec: {parent: root, capability: {cpu: 8}, deserved: {cpu: 4, memory: 1Gi}, guarantee: {resource: {cpu: 2}}}";
        assert_eq!(problems(good, validate_queue), [""; 0]);
        let lean = "{metadata: {name: team}, spec: {weight: 0, guarantee: {resource: {cpu: 2}}}}";
        assert_eq!(problems(lean, validate_queue), [""; 0]);
        let bad = "
metadata: {name: team, annotations: {volcano.sh/hierarchy: root/eng/a, volcano.sh/hierarchy-weights: 1/0}}
spec:
  parent: team
  weight: -1
  priority: -1
  capability: {cpu: 4}
  deserved: {cpu: 8, gpu: -1}
  guarantee: {resource: {cpu: 9, memory: 1Gi}}";
        assert_eq!(
            problems(bad, validate_queue),
            [
                "spec.weight: -1 is out of range; write a number from 1 to 65535",
                "spec.priority: -1 is too small; write 0 or more",
                "spec.parent: is the queue itself; name another queue or leave it out",
                "spec.deserved[gpu]: -1 is negative; write 0 or more",
                "spec.deserved[cpu]: 8 is more than 4 in capability; lower it or raise capability",
                "spec.guarantee.resource[cpu]: 9 is more than 8 in deserved; lower it or raise deserved",
                "spec.guarantee.resource[memory]: is not in deserved; add memory: 1Gi or more to spec.deserved",
                "metadata.annotations[volcano.sh/hierarchy-weights]: has 2 weights for 3 steps in \"root/eng/a\"; \
                 write one for each step",
                "metadata.annotations[volcano.sh/hierarchy-weights]: \"0\" is not a weight; write a number above 0",
            ]
        );
    }

    #[test]
    fn minimum_run_times_of_a_queue_are_durations() {
        let queue = |preempt: &str, reclaim: &str| {
            format!(
                "metadata: {{name: team, annotations: {{volcano.sh/preempt-min-runtime: {preempt}, \
                 volcano.sh/reclaim-min-runtime: {reclaim}}}}}\nspec: {{}}"
            )
        };
        assert_eq!(problems(&queue("10m", "0s"), validate_queue), [""; 0]);
        assert_eq!(
            problems(&queue("a while", "-5s"), validate_queue),
            [
                "metadata.annotations[volcano.sh/preempt-min-runtime]: \"a while\" is not a duration; write it like 90s, 30m \
                 or 1h30m",
                "metadata.annotations[volcano.sh/reclaim-min-runtime]: \"-5s\" is negative; write 0s or more",
            ]
        );
    }

    #[test]
    fn members_of_a_hyper_node_are_selected_in_exactly_one_way() {
        let good = "
metadata: {name: rack}
spec:
  tier: 1
  members:
  - {type: Node, selector: {exactMatch: {name: n1}}}
  - {type: Node, selector: {regexMatch: {pattern: '^n[0-9]+$'}}}
  - {type: Node, selector: {labelMatch: {matchLabels: {rack: a}}}}";
        assert_eq!(problems(good, validate_hyper_node), [""; 0]);
        let bad = "
metadata: {name: rack}
spec:
  tier: -1
  members:
  - {type: Node}
  - {type: Node, selector: {exactMatch: {name: N}, labelMatch: {}}}
  - {type: HyperNode, selector: {regexMatch: {pattern: '(?=x)'}}}
  - {type: Node, selector: {regexMatch: {pattern: '(a)\\1'}}}
  - {type: Node, selector: {regexMatch: {pattern: ''}}}";
        let found = problems(bad, validate_hyper_node);
        let paths: Vec<&str> =
            found.iter().map(|line| line.split(": ").next().expect("a path")).collect();
        assert_eq!(
            paths,
            [
                "spec.tier",
                "spec.members[0].selector",
                "spec.members[1].selector",
                "spec.members[1].selector.exactMatch.name",
                "spec.members[2].selector.regexMatch.pattern",
                "spec.members[3].selector.regexMatch.pattern",
                "spec.members[4].selector.regexMatch.pattern",
            ]
        );
        assert!(
            found[4].contains("at byte 0; Go's regular expressions have no look-ahead"),
            "{}",
            found[4]
        );
        assert!(
            found[5].contains("at byte 3; Go's regular expressions have no back-ref"),
            "{}",
            found[5]
        );
        assert_eq!(
            problems("metadata: {name: a}\nspec: {tier: 1}", validate_hyper_node),
            ["spec.members: is empty; write at least one member"]
        );
    }
}
