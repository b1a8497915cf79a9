//! A cluster as its manifests say it: what the generator makes and the rules read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Add, AddAssign, Sub};

/// Seconds since the first cycle; what was before it is negative.
pub type Seconds = i64;
pub type Labels = BTreeMap<String, String>;

/// Resources by number, in the order of [`RESOURCES`].
pub const CPU: usize = 0;
pub const MEMORY: usize = 1;
pub const GPU: usize = 2;
pub const PODS: usize = 3;
pub const RESOURCES: [&str; 4] = ["cpu", "memory", "nvidia.com/gpu", "pods"];

/// Thousandths of a CPU, MiB of memory, GPUs, pods.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(pub [i64; 4]);

impl Amounts {
    /// The first resource of which `self` has more than `limit`.
    pub fn exceeds(&self, limit: &Amounts) -> Option<usize> {
        (0..RESOURCES.len()).find(|&at| self.0[at] > limit.0[at])
    }
}

impl Add for Amounts {
    type Output = Amounts;
    fn add(self, other: Amounts) -> Amounts {
        Amounts(std::array::from_fn(|at| self.0[at] + other.0[at]))
    }
}

impl Sub for Amounts {
    type Output = Amounts;
    fn sub(self, other: Amounts) -> Amounts {
        Amounts(std::array::from_fn(|at| self.0[at] - other.0[at]))
    }
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Amounts) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Amounts {
    fn sum<I: Iterator<Item = Amounts>>(amounts: I) -> Amounts {
        amounts.fold(Amounts::default(), Add::add)
    }
}

/// What a queue says of some resources; the others are not limited.
pub type Quota = [Option<i64>; 3];

#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub hypernodes: Vec<HyperNode>,
    pub queues: Vec<Queue>,
    pub classes: Vec<PriorityClass>,
    pub gangs: Vec<Gang>,
    pub pods: Vec<Pod>,
    pub budgets: Vec<Budget>,
}

#[derive(Clone, Debug, Default)]
pub struct Node {
    pub name: String,
    pub labels: Labels,
    /// The value of the NoSchedule taint `own`.
    pub taint: Option<String>,
    pub allocatable: Amounts,
}

#[derive(Clone, Debug)]
pub struct HyperNode {
    pub name: String,
    pub tier: u32,
    /// Names of nodes in tier 1, of HyperNodes above it.
    pub members: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    pub name: String,
    pub parent: Option<String>,
    pub weight: i64,
    pub capability: Quota,
    pub deserved: Quota,
    pub guarantee: Quota,
    pub reclaimable: Option<bool>,
    pub fifo: bool,
    pub preempt_min_runtime: Option<Seconds>,
    pub reclaim_min_runtime: Option<Seconds>,
}

#[derive(Clone, Debug)]
pub struct PriorityClass {
    pub name: String,
    pub value: i64,
}

/// A PodGroup.
#[derive(Clone, Debug, Default)]
pub struct Gang {
    pub namespace: String,
    pub name: String,
    pub queue: String,
    pub class: String,
    pub min_member: usize,
    pub roles: BTreeMap<String, usize>,
    pub topology: Option<Topology>,
    pub subgroups: Option<Subgroups>,
    pub preemptable: Option<bool>,
    pub created: Seconds,
    pub admitted: bool,
}

#[derive(Copy, Clone, Debug)]
pub struct Topology {
    pub hard: bool,
    pub highest_tier: u32,
}

/// Pods with the same label `part` are one subgroup.
#[derive(Clone, Debug)]
pub struct Subgroups {
    pub size: usize,
    pub minimum: usize,
    pub topology: Option<Topology>,
}

#[derive(Clone, Debug, Default)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    /// The name of its PodGroup; none for a gang of one.
    pub group: Option<String>,
    /// The queue of a gang of one.
    pub queue: Option<String>,
    /// It belongs to another scheduler.
    pub foreign: bool,
    pub labels: Labels,
    pub class: String,
    pub request: Amounts,
    pub node_selector: Labels,
    pub tolerates: Option<String>,
    pub anti_affinity: Vec<Term>,
    pub affinity: Vec<Term>,
    pub spread: Option<Spread>,
    pub preemptable: Option<bool>,
    pub never_preempts: bool,
    pub gated: bool,
    pub created: Seconds,
    /// Where it runs, and since when.
    pub runs: Option<(String, Seconds)>,
    /// A nomination by an earlier scheduler: the node, and whether pods were evicted there.
    pub nominated: Option<(String, bool)>,
}

/// Pods with this label, in the same domain of the key.
#[derive(Clone, Debug)]
pub struct Term {
    pub label: (String, String),
    pub key: String,
}

/// `DoNotSchedule`.
#[derive(Clone, Debug)]
pub struct Spread {
    pub max_skew: i64,
    pub key: String,
    pub label: (String, String),
}

/// A PodDisruptionBudget over the pods with a label `app`.
#[derive(Clone, Debug)]
pub struct Budget {
    pub namespace: String,
    pub name: String,
    pub app: String,
    pub limit: Disruptions,
}

#[derive(Copy, Clone, Debug)]
pub enum Disruptions {
    MinAvailable(usize),
    MaxUnavailable(usize),
}

impl Pod {
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The key of its gang: its PodGroup's, or its own.
    pub fn gang_key(&self) -> String {
        match &self.group {
            Some(group) => format!("{}/{group}", self.namespace),
            None => self.key(),
        }
    }

    pub fn has_label(&self, (key, value): &(String, String)) -> bool {
        self.labels.get(key) == Some(value)
    }
}

impl Gang {
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl Budget {
    pub fn covers(&self, pod: &Pod) -> bool {
        pod.namespace == self.namespace && pod.labels.get("app") == Some(&self.app)
    }
}

impl Cluster {
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    pub fn gang(&self, key: &str) -> Option<&Gang> {
        self.gangs.iter().find(|gang| gang.key() == key)
    }

    pub fn gang_of<'c>(&'c self, pod: &Pod) -> Option<&'c Gang> {
        pod.group.as_ref().and_then(|_| self.gang(&pod.gang_key()))
    }

    pub fn queue_of<'c>(&'c self, pod: &'c Pod) -> &'c str {
        match (self.gang_of(pod), &pod.queue) {
            (Some(gang), _) => &gang.queue,
            (None, Some(queue)) => queue,
            (None, None) => "default",
        }
    }

    /// The queue and those above it, itself first.
    pub fn lineage<'c>(&'c self, queue: &str) -> Vec<&'c Queue> {
        let mut up = Vec::new();
        let mut next = self.queue(queue);
        while let Some(queue) = next {
            up.push(queue);
            next = queue.parent.as_deref().and_then(|parent| self.queue(parent));
        }
        up
    }

    pub fn class_value(&self, class: &str) -> i64 {
        self.classes.iter().find(|known| known.name == class).map_or(0, |class| class.value)
    }

    /// The priority of a gang, by its key: its PodGroup's class, or the pod's own.
    pub fn priority(&self, gang: &str) -> i64 {
        match self.gang(gang) {
            Some(gang) => self.class_value(&gang.class),
            None => {
                let pod = self.pods.iter().find(|pod| pod.key() == gang);
                pod.map_or(0, |pod| self.class_value(&pod.class))
            }
        }
    }

    /// The nodes of a HyperNode, of all levels below it.
    pub fn nodes_below<'c>(&'c self, hypernode: &'c HyperNode) -> BTreeSet<&'c str> {
        let mut nodes = BTreeSet::new();
        for member in &hypernode.members {
            match self.hypernodes.iter().find(|other| other.name == *member) {
                Some(below) => nodes.extend(self.nodes_below(below)),
                None => drop(nodes.insert(member.as_str())),
            }
        }
        nodes
    }
}
