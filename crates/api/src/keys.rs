//! Annotation and label keys, and names that have a meaning to the scheduler.

/// Which PodGroup a pod belongs to; the first that is present wins. Volcano reads the annotation of the
/// first key only, but older frameworks set the second, some of them as a label.
pub const GROUP_NAME: [&str; 2] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
/// The queue of a pod without a PodGroup; on a Namespace, the queue of its pods and PodGroups that name none.
pub const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// The role of a pod in its gang (label or annotation).
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Orders the pods of one gang, instead of the pod's priority.
pub const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// The place of a pod in its role.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// How close a pod without a PodGroup must be to the pods of its gang: hard or soft, and the highest tier.
pub const TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
pub const TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// "false" protects a pod or a gang from eviction (label or annotation).
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// How long a pod is expected to run, for example "90m" (pod or PodGroup).
pub const RUNNING_ESTIMATE: &str = "volcano.sh/running-estimate";
/// How long the embedded cluster lets a pod run before it succeeds.
pub const SIMULATED_DURATION: &str = "muster.sh/simulated-duration";
/// How long a gang may wait before it goes first (plugin `sla`).
pub const SLA_WAITING_TIME: [&str; 2] = ["volcano.sh/sla-waiting-time", "sla-waiting-time"];
/// Room that was promised to a waiting pod, written by an earlier run.
pub const PIPELINED_STATUS: &str = "volcano.sh/pipelined-status";
pub const PIPELINED_NODE: &str = "volcano.sh/pipelined-node";
/// The node group of a node (label, plugin `nodegroup`).
pub const NODEGROUP_NAME: &str = "volcano.sh/nodegroup-name";
/// Caps of a queue per node group (annotation on a Queue, JSON).
pub const NODEGROUP_LIMITS: &str = "volcano.sh/nodegroup-resource-limits";
/// A queue's path and weights for hierarchical drf (annotations on a Queue).
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";

/// Says that an object was read from a cluster as it is there: what is wrong with it is told, not refused.
pub const AS_FOUND: &str = "muster.sh/as-found";

/// Every annotation that is read.
pub const ANNOTATIONS: [&str; 19] = [
    AS_FOUND,
    GROUP_NAME[0],
    GROUP_NAME[1],
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    NODEGROUP_LIMITS,
    PIPELINED_NODE,
    PIPELINED_STATUS,
    PREEMPTABLE,
    QUEUE_NAME,
    RUNNING_ESTIMATE,
    SIMULATED_DURATION,
    SLA_WAITING_TIME[0],
    SLA_WAITING_TIME[1],
    TASK_INDEX,
    TASK_PRIORITY,
    TASK_SPEC,
    TOPOLOGY_HIGHEST_TIER,
    TOPOLOGY_MODE,
];

/// The queue of work that names none.
pub const DEFAULT_QUEUE: &str = "default";
/// The queue above all queues.
pub const ROOT_QUEUE: &str = "root";
/// Pods of these schedulers are ours unless configured otherwise.
pub const SCHEDULER_NAMES: [&str; 2] = ["volcano", "muster"];
