//! Fake nodes, gangs and queues as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The finalizer of pods that are held.
const HOLD: &str = "muster.sh/e2e-hold";

/// Equal nodes that are ready from the start; kwok only pretends to run pods on them.
#[derive(Clone, Debug)]
pub struct Nodes {
    pub count: usize,
    /// Names are `prefix-0`, `prefix-1`, …
    pub prefix: String,
    pub labels: BTreeMap<String, String>,
    /// Amounts by resource.
    pub capacity: BTreeMap<String, String>,
}

impl Nodes {
    /// 64 CPUs, 256 GiB, 110 pods.
    pub fn new(count: usize) -> Nodes {
        let capacity = [("cpu", "64"), ("memory", "256Gi"), ("pods", "110")];
        Nodes {
            count,
            prefix: "node".to_owned(),
            labels: BTreeMap::new(),
            capacity: capacity.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into(),
        }
    }

    pub fn prefix(mut self, prefix: &str) -> Nodes {
        self.prefix = prefix.to_owned();
        self
    }

    pub fn capacity(mut self, resource: &str, amount: impl ToString) -> Nodes {
        self.capacity.insert(resource.to_owned(), amount.to_string());
        self
    }

    pub fn gpus(self, count: usize) -> Nodes {
        self.capacity("nvidia.com/gpu", count)
    }

    pub fn label(mut self, key: &str, value: &str) -> Nodes {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = Value> {
        (0..self.count).map(|index| {
            let name = format!("{}-{index}", self.prefix);
            let mut labels = self.labels.clone();
            labels.insert("kubernetes.io/hostname".to_owned(), name.clone());
            json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": { "name": name, "labels": labels },
                "status": {
                    "capacity": self.capacity,
                    "allocatable": self.capacity,
                    "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
                },
            })
        })
    }
}

/// A PodGroup and its equal pods. For roles or different sizes use several of them with one
/// `group`.
#[derive(Clone, Debug)]
pub struct Gang {
    pub namespace: String,
    /// Pods are `name-0`, `name-1`, …
    pub name: String,
    /// The PodGroup's name.
    pub group: String,
    pub pods: usize,
    pub scheduler: String,
    /// Of each pod.
    pub requests: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// Finalizers of each pod.
    pub finalizers: Vec<String>,
    /// Of the PodGroup.
    pub spec: Map<String, Value>,
    /// Further fields of each pod's spec.
    pub pod_spec: Map<String, Value>,
}

impl Gang {
    /// All pods or none, each with one CPU and 1 GiB, in namespace `default`, for the scheduler
    /// `volcano`.
    pub fn new(name: &str, pods: usize) -> Gang {
        let requests = [("cpu", "1"), ("memory", "1Gi")];
        Gang {
            namespace: "default".to_owned(),
            name: name.to_owned(),
            group: name.to_owned(),
            pods,
            scheduler: "volcano".to_owned(),
            requests: requests.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            finalizers: Vec::new(),
            spec: Map::from_iter([("minMember".to_owned(), pods.into())]),
            pod_spec: Map::new(),
        }
    }

    pub fn namespace(mut self, namespace: &str) -> Gang {
        self.namespace = namespace.to_owned();
        self
    }

    pub fn group(mut self, group: &str) -> Gang {
        self.group = group.to_owned();
        self
    }

    pub fn min(self, count: usize) -> Gang {
        self.spec("minMember", count.into())
    }

    pub fn queue(self, queue: &str) -> Gang {
        self.spec("queue", queue.into())
    }

    /// A field of the PodGroup's spec.
    pub fn spec(mut self, field: &str, value: Value) -> Gang {
        self.spec.insert(field.to_owned(), value);
        self
    }

    pub fn request(mut self, resource: &str, amount: impl ToString) -> Gang {
        self.requests.insert(resource.to_owned(), amount.to_string());
        self
    }

    pub fn gpus(self, count: usize) -> Gang {
        self.request("nvidia.com/gpu", count)
    }

    pub fn label(mut self, key: &str, value: &str) -> Gang {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    pub fn annotation(mut self, key: &str, value: &str) -> Gang {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Deleted pods are kept until [`crate::checks::release`] releases them.
    pub fn held(mut self) -> Gang {
        self.finalizers.push(HOLD.to_owned());
        self
    }

    /// With kwok, each pod succeeds this long after it started, for example `5s`.
    pub fn runs_for(self, duration: &str) -> Gang {
        self.annotation(muster_api::keys::SIMULATED_DURATION, duration)
    }

    pub fn scheduler(mut self, name: &str) -> Gang {
        self.scheduler = name.to_owned();
        self
    }

    pub fn pod_spec(mut self, field: &str, value: Value) -> Gang {
        self.pod_spec.insert(field.to_owned(), value);
        self
    }

    /// The PriorityClass of the PodGroup and of each pod.
    pub fn class(self, name: &str) -> Gang {
        self.spec("priorityClassName", json!(name)).pod_spec("priorityClassName", json!(name))
    }

    pub fn podgroup(&self) -> Value {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": { "name": self.group, "namespace": self.namespace },
            "spec": self.spec,
        })
    }

    pub fn pods(&self) -> impl Iterator<Item = Value> {
        (0..self.pods).map(|index| self.pod(index))
    }

    pub fn pod(&self, index: usize) -> Value {
        let mut annotations = self.annotations.clone();
        annotations.insert(muster_api::keys::GROUP_NAME[0].to_owned(), self.group.clone());
        let mut spec = json!({
            "schedulerName": self.scheduler,
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": "none",
                // Extended resources must have equal limits; equal limits are fine for all others
                // too.
                "resources": { "requests": self.requests, "limits": self.requests },
            }],
        });
        spec.as_object_mut().expect("an object").extend(self.pod_spec.clone());
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("{}-{index}", self.name),
                "namespace": self.namespace,
                "labels": self.labels,
                "annotations": annotations,
                "finalizers": self.finalizers,
            },
            "spec": spec,
        })
    }
}

pub fn queue(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": { "name": name },
        "spec": spec,
    })
}
