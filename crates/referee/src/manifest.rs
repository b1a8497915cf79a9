//! A cluster as Kubernetes manifests.

use serde_json::{Map, Value, json};

use crate::cluster::{
    Amounts, Budget, CPU, Cluster, Disruptions, GPU, Gang, HyperNode, Labels, MEMORY, Node, PODS,
    Pod, PriorityClass, Queue, Quota, RESOURCES, Seconds, Term, Topology,
};

/// The time of the first cycle.
pub const NOW: &str = "2026-11-15T00:00:00Z";

impl Cluster {
    /// All objects, in an order that a person can follow.
    pub fn manifests(&self) -> Vec<Value> {
        let mut all: Vec<Value> = self.classes.iter().map(class).collect();
        all.extend(self.queues.iter().map(queue));
        all.extend(self.nodes.iter().map(node));
        all.extend(self.hypernodes.iter().map(|domain| hypernode(self, domain)));
        all.extend(self.gangs.iter().map(gang));
        all.extend(self.pods.iter().map(|one| pod(self, one)));
        all.extend(self.budgets.iter().map(budget));
        all
    }
}

/// A time within two weeks of [`NOW`].
pub fn time(at: Seconds) -> String {
    let (day, second) = (15 + at.div_euclid(86_400), at.rem_euclid(86_400));
    assert!((1..=30).contains(&day), "only November 2026 is written: day {day}");
    format!("2026-11-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

fn amount(resource: usize, amount: i64) -> String {
    match resource {
        CPU => format!("{amount}m"),
        MEMORY => format!("{amount}Mi"),
        _ => amount.to_string(),
    }
}

fn amounts(amounts: &Amounts) -> Value {
    let named = [CPU, MEMORY, GPU, PODS].into_iter().filter(|&at| amounts.0[at] > 0);
    let map: Map<String, Value> =
        named.map(|at| (RESOURCES[at].to_owned(), json!(amount(at, amounts.0[at])))).collect();
    Value::Object(map)
}

fn quota(quota: &Quota) -> Option<Value> {
    let named = quota.iter().enumerate().filter_map(|(at, limit)| Some((at, (*limit)?)));
    let map: Map<String, Value> =
        named.map(|(at, limit)| (RESOURCES[at].to_owned(), json!(amount(at, limit)))).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

fn labels(labels: &Labels) -> Value {
    json!(labels)
}

fn class(class: &PriorityClass) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": class.name}, "value": class.value,
    })
}

fn queue(queue: &Queue) -> Value {
    let mut spec = json!({"weight": queue.weight});
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec[key] = value;
        }
    };
    set("parent", queue.parent.as_ref().map(|parent| json!(parent)));
    set("capability", quota(&queue.capability));
    set("deserved", quota(&queue.deserved));
    set("guarantee", quota(&queue.guarantee).map(|resource| json!({ "resource": resource })));
    set("reclaimable", queue.reclaimable.map(Value::from));
    set("dequeueStrategy", queue.fifo.then(|| json!("fifo")));
    let mut annotations = Map::new();
    let mut note = |key: &str, time: Option<Seconds>| {
        if let Some(time) = time {
            annotations.insert(key.to_owned(), json!(format!("{time}s")));
        }
    };
    note("volcano.sh/preempt-min-runtime", queue.preempt_min_runtime);
    note("volcano.sh/reclaim-min-runtime", queue.reclaim_min_runtime);
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {
            "name": queue.name, "annotations": annotations, "creationTimestamp": time(-86_400),
        },
        "spec": spec,
        "status": {"state": "Open"},
    })
}

fn node(node: &Node) -> Value {
    let taint = |value| json!([{"key": "own", "value": value, "effect": "NoSchedule"}]);
    let spec = node.taint.as_ref().map_or(json!({}), |value| json!({"taints": taint(value)}));
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": node.name, "labels": labels(&node.labels), "creationTimestamp": time(-86_400),
        },
        "spec": spec,
        "status": {
            "allocatable": amounts(&node.allocatable),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn hypernode(cluster: &Cluster, domain: &HyperNode) -> Value {
    let kind = |name: &str| if cluster.node(name).is_some() { "Node" } else { "HyperNode" };
    let member =
        |name: &String| json!({"type": kind(name), "selector": {"exactMatch": {"name": name}}});
    json!({
        "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
        "metadata": {"name": domain.name},
        "spec": {
            "tier": domain.tier,
            "members": domain.members.iter().map(member).collect::<Vec<Value>>(),
        },
    })
}

fn topology(topology: Topology) -> Value {
    let mode = if topology.hard { "hard" } else { "soft" };
    json!({"mode": mode, "highestTierAllowed": topology.highest_tier})
}

fn gang(gang: &Gang) -> Value {
    let mut spec = json!({
        "minMember": gang.min_member, "queue": gang.queue, "priorityClassName": gang.class,
    });
    if !gang.roles.is_empty() {
        spec["minTaskMember"] = json!(gang.roles);
    }
    if let Some(rule) = gang.topology {
        spec["networkTopology"] = topology(rule);
    }
    if let Some(subgroups) = &gang.subgroups {
        let mut policy = json!({
            "name": "part", "subGroupSize": subgroups.size, "minSubGroups": subgroups.minimum,
            "matchLabelKeys": ["part"],
        });
        if let Some(rule) = subgroups.topology {
            policy["networkTopology"] = topology(rule);
        }
        spec["subGroupPolicy"] = json!([policy]);
    }
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {
            "name": gang.name, "namespace": gang.namespace, "creationTimestamp": time(gang.created),
            "annotations": preemptable(gang.preemptable),
        },
        "spec": spec,
        "status": {"phase": if gang.admitted { "Inqueue" } else { "Pending" }},
    })
}

fn preemptable(says: Option<bool>) -> Map<String, Value> {
    let note = |says: bool| ("volcano.sh/preemptable".to_owned(), json!(says.to_string()));
    says.map(note).into_iter().collect()
}

fn terms(terms: &[Term]) -> Value {
    let term = |term: &Term| {
        json!({
            "labelSelector": {"matchLabels": {&*term.label.0: term.label.1}},
            "topologyKey": term.key,
        })
    };
    json!({
        "requiredDuringSchedulingIgnoredDuringExecution":
            terms.iter().map(term).collect::<Vec<Value>>(),
    })
}

fn pod_annotations(pod: &Pod) -> Map<String, Value> {
    let mut annotations = preemptable(pod.preemptable);
    let mut note = |key: &str, text: &str| annotations.insert(key.to_owned(), json!(text));
    if let Some(group) = &pod.group {
        note("scheduling.k8s.io/group-name", group);
    }
    if let Some(queue) = &pod.queue {
        note("scheduling.volcano.sh/queue-name", queue);
    }
    if let Some((node, evicted)) = &pod.nominated {
        note("volcano.sh/pipelined-status", "true");
        note("volcano.sh/pipelined-node", node);
        if *evicted {
            note("volcano.sh/eviction-occurred", "true");
        }
    }
    annotations
}

fn pod_spec(cluster: &Cluster, pod: &Pod) -> Value {
    let scheduler = if pod.foreign { "default-scheduler" } else { "volcano" };
    let requests = Amounts([pod.request.0[CPU], pod.request.0[MEMORY], pod.request.0[GPU], 0]);
    let mut spec = json!({
        "schedulerName": scheduler,
        "priorityClassName": pod.class,
        "priority": cluster.class_value(&pod.class),
        "containers": [
            {"name": "main", "image": "x", "resources": {"requests": amounts(&requests)}},
        ],
    });
    if !pod.node_selector.is_empty() {
        spec["nodeSelector"] = labels(&pod.node_selector);
    }
    if let Some(value) = &pod.tolerates {
        spec["tolerations"] = json!([{"key": "own", "operator": "Equal", "value": value}]);
    }
    if !pod.affinity.is_empty() {
        spec["affinity"]["podAffinity"] = terms(&pod.affinity);
    }
    if !pod.anti_affinity.is_empty() {
        spec["affinity"]["podAntiAffinity"] = terms(&pod.anti_affinity);
    }
    if let Some(spread) = &pod.spread {
        spec["topologySpreadConstraints"] = json!([{
            "maxSkew": spread.max_skew, "topologyKey": spread.key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {&*spread.label.0: spread.label.1}},
        }]);
    }
    if pod.never_preempts {
        spec["preemptionPolicy"] = json!("Never");
    }
    if pod.gated {
        spec["schedulingGates"] = json!([{"name": "wait"}]);
    }
    if let Some((node, _)) = &pod.runs {
        spec["nodeName"] = json!(node);
    }
    spec
}

fn pod(cluster: &Cluster, pod: &Pod) -> Value {
    let mut status = match &pod.runs {
        Some((_, since)) => json!({"phase": "Running", "startTime": time(*since)}),
        None => json!({"phase": "Pending"}),
    };
    if let Some((node, true)) = &pod.nominated {
        status["nominatedNodeName"] = json!(node);
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": pod.name, "namespace": pod.namespace, "uid": format!("u-{}", pod.name),
            "creationTimestamp": time(pod.created), "labels": labels(&pod.labels),
            "annotations": pod_annotations(pod),
        },
        "spec": pod_spec(cluster, pod),
        "status": status,
    })
}

fn budget(budget: &Budget) -> Value {
    let (key, count) = match budget.limit {
        Disruptions::MinAvailable(count) => ("minAvailable", count),
        Disruptions::MaxUnavailable(count) => ("maxUnavailable", count),
    };
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": budget.name, "namespace": budget.namespace},
        "spec": {key: count, "selector": {"matchLabels": {"app": budget.app}}},
    })
}
