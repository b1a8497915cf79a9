//! Problems of a pod.

use super::{Problem, Problems, is_dns_label};
use crate::core::{
    Affinity, Container, NodeTerm, Pod, PodAffinity, PodTerm, Resources, SpreadConstraint,
    Toleration,
};
use crate::{Termination, keys};

pub fn validate_pod(pod: &Pod) -> Vec<Problem> {
    let mut problems = Problems::default();
    let spec = &pod.spec;
    problems.meta(&pod.metadata);
    problems.durations(&pod.metadata);
    problems.times(&pod.metadata);
    problems.revocable(&pod.metadata);
    problems.exits(&pod.metadata);
    group_name(&mut problems, pod);
    departure(&mut problems, pod);
    for (index, container) in spec.containers.iter().enumerate() {
        check_container(&mut problems, &format!("spec.containers[{index}]"), container);
    }
    for (index, container) in spec.init_containers.iter().enumerate() {
        check_container(&mut problems, &format!("spec.initContainers[{index}]"), container);
    }
    if let Some(resources) = &spec.resources {
        check_resources(&mut problems, "spec.resources", resources);
    }
    problems.amounts("spec.overhead", &spec.overhead);
    if let Some(node) = spec.node_name.as_deref().filter(|node| !node.is_empty()) {
        problems.name("spec.nodeName", node);
    }
    if !spec.priority_class_name.is_empty() {
        problems.name("spec.priorityClassName", &spec.priority_class_name);
    }
    if let Some(policy) = &spec.preemption_policy {
        problems.one_of("spec.preemptionPolicy", policy, &["", "Never", "PreemptLowerPriority"]);
    }
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        check_toleration(&mut problems, &format!("spec.tolerations[{index}]"), toleration);
    }
    if let Some(affinity) = &spec.affinity {
        check_affinity(&mut problems, affinity);
    }
    for (index, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        check_spread(
            &mut problems,
            &format!("spec.topologySpreadConstraints[{index}]"),
            constraint,
        );
    }
    let phases = ["", "Pending", "Running", "Succeeded", "Failed", "Unknown"];
    problems.one_of("status.phase", &pod.status.phase, &phases);
    problems.0
}

/// The group that the pod says it belongs to.
fn group_name(problems: &mut Problems, pod: &Pod) {
    for key in keys::GROUP_NAME {
        for (field, map) in
            [("annotations", &pod.metadata.annotations), ("labels", &pod.metadata.labels)]
        {
            if let Some(name) = map.get(key).filter(|name| !name.is_empty()) {
                problems.name(format!("metadata.{field}[{key}]"), name);
            }
        }
    }
}

/// How the pod leaves the embedded cluster.
fn departure(problems: &mut Problems, pod: &Pod) {
    let annotation = |key: &str| {
        let text = pod.metadata.annotations.get(key)?;
        Some((format!("metadata.annotations[{key}]"), text))
    };
    if let Some((at, text)) = annotation(keys::SIMULATED_TERMINATION)
        && let Err(error) = Termination::parse(text)
    {
        problems.add(at, error.to_string());
    }
    if let Some((at, text)) = annotation(keys::SIMULATED_EVICTION_REFUSALS) {
        let message = format!("{text:?} is not a number of refusals; write it like 2");
        problems.check(text.parse::<u32>().is_ok(), at, message);
    }
}

fn check_container(problems: &mut Problems, path: &str, container: &Container) {
    if !container.name.is_empty() && !is_dns_label(&container.name) {
        problems.add(
            format!("{path}.name"),
            format!(
                "{:?} is not a valid name; use lower case letters, digits and -",
                container.name
            ),
        );
    }
    check_resources(problems, &format!("{path}.resources"), &container.resources);
    for (index, port) in container.ports.iter().enumerate() {
        let in_range = (0..=65_535).contains(&port.host_port);
        let message = format!("{} is not a port; write a number from 1 to 65535", port.host_port);
        problems.check(in_range, format!("{path}.ports[{index}].hostPort"), message);
        let protocols = ["", "TCP", "UDP", "SCTP"];
        problems.one_of(format!("{path}.ports[{index}].protocol"), &port.protocol, &protocols);
    }
}

fn check_resources(problems: &mut Problems, path: &str, resources: &Resources) {
    let requests = format!("{path}.requests");
    problems.amounts(&requests, &resources.requests);
    problems.amounts(&format!("{path}.limits"), &resources.limits);
    problems.within(&requests, &resources.requests, "limits", &resources.limits);
    // Devices and other extended resources cannot be split.
    for (field, amounts) in [("requests", &resources.requests), ("limits", &resources.limits)] {
        for (name, amount) in amounts.iter().filter(|(name, _)| is_countable(name)) {
            let whole = amount.milli_value() % 1_000 == 0;
            let message = format!(
                "{amount} is not a whole number; {name} can only be requested in whole units"
            );
            problems.check(whole, format!("{path}.{field}[{name}]"), message);
        }
    }
}

/// Whether the name of the resource has a prefix of its own, as the names of device plugins have.
fn is_countable(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

fn check_toleration(problems: &mut Problems, path: &str, toleration: &Toleration) {
    let Toleration { key, operator, value, effect } = toleration;
    problems.one_of(format!("{path}.operator"), operator, &["", "Equal", "Exists"]);
    problems.one_of(
        format!("{path}.effect"),
        effect,
        &["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
    );
    if operator == "Exists" {
        problems.check(
            value.is_empty(),
            format!("{path}.value"),
            "must be left out; Exists takes no value",
        );
    } else {
        let message =
            "is missing; write the key of a taint, or operator Exists to tolerate every taint";
        problems.check(!key.is_empty(), format!("{path}.key"), message);
    }
}

fn check_affinity(problems: &mut Problems, affinity: &Affinity) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(node) = &affinity.node_affinity {
        let path = "spec.affinity.nodeAffinity";
        if let Some(required) = &node.required {
            let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
            let message = "is empty; write at least one term, or no node can be used";
            problems.check(!required.node_selector_terms.is_empty(), path.clone(), message);
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                check_node_term(problems, &format!("{path}[{index}]"), term);
            }
        }
        for (index, preferred) in node.preferred.iter().enumerate() {
            let path = format!("{path}.{PREFERRED}[{index}]");
            check_weight(problems, &path, preferred.weight);
            check_node_term(problems, &format!("{path}.preference"), &preferred.preference);
        }
    }
    let mut between_pods = |path: &str, terms: &PodAffinity| {
        for (index, term) in terms.required.iter().enumerate() {
            check_pod_term(problems, &format!("{path}.{REQUIRED}[{index}]"), term);
        }
        for (index, preferred) in terms.preferred.iter().enumerate() {
            let path = format!("{path}.{PREFERRED}[{index}]");
            check_weight(problems, &path, preferred.weight);
            check_pod_term(
                problems,
                &format!("{path}.podAffinityTerm"),
                &preferred.pod_affinity_term,
            );
        }
    };
    if let Some(terms) = &affinity.pod_affinity {
        between_pods("spec.affinity.podAffinity", terms);
    }
    if let Some(terms) = &affinity.pod_anti_affinity {
        between_pods("spec.affinity.podAntiAffinity", terms);
    }
}

fn check_weight(problems: &mut Problems, path: &str, weight: i32) {
    let message = format!("{weight} is out of range; write a number from 1 to 100");
    problems.check((1..=100).contains(&weight), format!("{path}.weight"), message);
}

pub fn check_node_term(problems: &mut Problems, path: &str, term: &NodeTerm) {
    for (index, requirement) in term.match_expressions.iter().enumerate() {
        problems.requirement(&format!("{path}.matchExpressions[{index}]"), requirement, true);
    }
    for (index, requirement) in term.match_fields.iter().enumerate() {
        let path = format!("{path}.matchFields[{index}]");
        problems.one_of(format!("{path}.key"), &requirement.key, &["metadata.name"]);
        problems.one_of(format!("{path}.operator"), &requirement.operator, &["In", "NotIn"]);
        let message = "needs exactly one value, the name of a node";
        problems.check(requirement.values.len() == 1, format!("{path}.values"), message);
    }
}

fn check_pod_term(problems: &mut Problems, path: &str, term: &PodTerm) {
    let message = "is missing; write the key of a node label, for example kubernetes.io/hostname";
    problems.check(!term.topology_key.is_empty(), format!("{path}.topologyKey"), message);
    if let Some(selector) = &term.label_selector {
        problems.label_selector(&format!("{path}.labelSelector"), selector);
    }
    if let Some(selector) = &term.namespace_selector {
        problems.label_selector(&format!("{path}.namespaceSelector"), selector);
    }
}

fn check_spread(problems: &mut Problems, path: &str, constraint: &SpreadConstraint) {
    problems.at_least(format!("{path}.maxSkew"), 1, constraint.max_skew);
    let message =
        "is missing; write the key of a node label, for example topology.kubernetes.io/zone";
    problems.check(!constraint.topology_key.is_empty(), format!("{path}.topologyKey"), message);
    let choices = ["DoNotSchedule", "ScheduleAnyway"];
    problems.one_of(format!("{path}.whenUnsatisfiable"), &constraint.when_unsatisfiable, &choices);
    if let Some(domains) = constraint.min_domains {
        problems.at_least(format!("{path}.minDomains"), 1, domains);
        let message = "must be left out unless whenUnsatisfiable is DoNotSchedule";
        let strict = constraint.when_unsatisfiable == "DoNotSchedule";
        problems.check(strict, format!("{path}.minDomains"), message);
    }
    for (field, policy) in [
        ("nodeAffinityPolicy", &constraint.node_affinity_policy),
        ("nodeTaintsPolicy", &constraint.node_taints_policy),
    ] {
        if let Some(policy) = policy {
            problems.one_of(format!("{path}.{field}"), policy, &["Honor", "Ignore"]);
        }
    }
    if let Some(selector) = &constraint.label_selector {
        problems.label_selector(&format!("{path}.labelSelector"), selector);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems;
    use super::*;

    #[test]
    fn a_good_pod_has_no_problem() {
        let text = "
metadata:
  name: p-0
  namespace: default
  annotations: {scheduling.k8s.io/group-name: ring, volcano.sh/running-estimate: 90m}
spec:
  containers:
  - {name: main, resources: {requests: {cpu: 500m, nvidia.com/gpu: 8}, limits: {cpu: 1}}}
  tolerations: [{operator: Exists}, {key: a, value: b, effect: NoSchedule}]
status: {phase: Running}";
        assert_eq!(problems(text, validate_pod), [""; 0]);
    }

    #[test]
    fn resources_are_neither_negative_nor_above_their_limit_nor_split_devices() {
        let text = "
metadata: {name: p}
spec:
  containers:
  - resources: {requests: {cpu: -1, nvidia.com/gpu: 500m}}
  - resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}
  overhead: {cpu: -1}";
        assert_eq!(
            problems(text, validate_pod),
            [
                "spec.containers[0].resources.requests[cpu]: -1 is negative; write 0 or more",
                "spec.containers[0].resources.requests[nvidia.com/gpu]: 500m is not a whole number; nvidia.com/gpu can \
                 only be requested in whole units",
                "spec.containers[1].resources.requests[memory]: 2Gi is more than 1Gi in limits; lower it or raise limits",
                "spec.overhead[cpu]: -1 is negative; write 0 or more",
            ]
        );
    }

    #[test]
    fn annotations_that_the_scheduler_reads_must_make_sense() {
        let text = "
metadata:
  name: p
  labels: {volcano.sh/cooldown-time: a while}
  annotations:
    scheduling.k8s.io/group-name: Ring_1
    volcano.sh/cooldown-time: 10m
    volcano.sh/running-estimate: 1 day
    muster.sh/simulated-duration: -5s
    muster.sh/simulated-eviction-refusals: often
    muster.sh/simulated-finalizer: 1 week
    muster.sh/simulated-termination: later
    volcano.sh/last-checkpoint-time: noon
    volcano.sh/expected-end-time: 2026-11-15T08:30:00+01:00
    volcano.sh/jdb-min-available: 120%
    volcano.sh/jdb-max-unavailable: 50%
    volcano.sh/revocable-zone: night
    volcano.sh/sla-waiting-time: soon";
        let found = problems(text, validate_pod);
        let starts = [
            "metadata.annotations[volcano.sh/running-estimate]: \"1 day\" is not a duration; write it like 90s",
            "metadata.annotations[muster.sh/simulated-duration]: \"-5s\" is negative; write 0s or more",
            "metadata.annotations[muster.sh/simulated-finalizer]: \"1 week\" is not a duration",
            "metadata.annotations[volcano.sh/sla-waiting-time]: \"soon\" is not a duration",
            "metadata.labels[volcano.sh/cooldown-time]: \"a while\" is not a duration",
            "metadata.annotations[volcano.sh/last-checkpoint-time]: \"noon\" is not a time; write it like",
            "metadata.annotations[volcano.sh/revocable-zone]: \"night\" names a zone; write \"*\"",
            "metadata.annotations[volcano.sh/jdb-min-available]: \"120%\" is not a number of pods; write it like",
            "metadata.annotations[scheduling.k8s.io/group-name]: \"Ring_1\" is not a valid name",
            "metadata.annotations[muster.sh/simulated-termination]: \"later\" says nothing about terminating",
            "metadata.annotations[muster.sh/simulated-eviction-refusals]: \"often\" is not a number of refusals",
        ];
        assert_eq!(found.len(), starts.len(), "{found:#?}");
        for (line, start) in found.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn selectors_tolerations_and_spreads_are_checked_field_by_field() {
        let text = "
metadata: {name: p}
spec:
  preemptionPolicy: Sometimes
  tolerations: [{key: a, operator: Equals}, {operator: Equal}, {operator: Exists, value: x, effect: No}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: a, operator: Gt, values: [x]}, {key: b, operator: Exists, values: [y]}]
          matchFields: [{key: metadata.uid, operator: Exists}]
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {}}]
  topologySpreadConstraints: [{minDomains: 0}]
status: {phase: Happy}";
        let found = problems(text, validate_pod);
        let paths: Vec<&str> =
            found.iter().map(|line| line.split(": ").next().expect("a path")).collect();
        let terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
        let preferred =
            "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
        assert_eq!(
            paths,
            [
                "spec.preemptionPolicy",
                "spec.tolerations[0].operator",
                "spec.tolerations[1].key",
                "spec.tolerations[2].effect",
                "spec.tolerations[2].value",
                &format!("{terms}.matchExpressions[0].values"),
                &format!("{terms}.matchExpressions[1].values"),
                &format!("{terms}.matchFields[0].key"),
                &format!("{terms}.matchFields[0].operator"),
                &format!("{terms}.matchFields[0].values"),
                &format!("{preferred}.weight"),
                &format!("{preferred}.podAffinityTerm.topologyKey"),
                "spec.topologySpreadConstraints[0].maxSkew",
                "spec.topologySpreadConstraints[0].topologyKey",
                "spec.topologySpreadConstraints[0].whenUnsatisfiable",
                "spec.topologySpreadConstraints[0].minDomains",
                "spec.topologySpreadConstraints[0].minDomains",
                "status.phase",
            ]
        );
    }
}
