//! Annotation and label keys, and names that have a meaning to the scheduler.

/// Which PodGroup a pod belongs to; the first that is present wins. Volcano reads the annotation of
/// the first key only, but older frameworks set the second, some of them as a label.
pub const GROUP_NAME: [&str; 2] =
    ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
/// The queue of a pod without a PodGroup; on a Namespace, the queue of its pods and PodGroups that
/// name no queue.
pub const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// The role of a pod in its gang (label or annotation).
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Orders the pods of one gang, instead of the pod's priority.
pub const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// The index of a pod in its role.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// How close the pods of a gang without a PodGroup must be: hard or soft, and the highest tier.
pub const TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
pub const TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// "false" protects a pod or a gang from eviction (label or annotation).
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// The zone of a node that is lent to batch work at certain times (label of a Node); "*" on a pod
/// or PodGroup says that it accepts to be evicted from such nodes (annotation). Plugin `tdm`.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// How many of a gang's pods must stay, or may be missing (number or percent, annotations on a
/// PodGroup, plugin `tdm`).
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// How long a pod is expected to run, for example "90m" (pod or PodGroup).
pub const RUNNING_ESTIMATE: &str = "volcano.sh/running-estimate";
/// How long a pod is safe from eviction after it was placed (label or annotation, pod or PodGroup,
/// plugin `cdp`).
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// How long a gang of this queue is safe from preemption within the queue, and from reclaim by
/// other queues, after it started (annotations on a Queue, plugin `minruntime`).
pub const PREEMPT_MIN_RUNTIME: &str = "volcano.sh/preempt-min-runtime";
pub const RECLAIM_MIN_RUNTIME: &str = "volcano.sh/reclaim-min-runtime";
/// When a gang last saved its work, and when it is expected to be done (RFC 3339, PodGroup or a pod
/// without one). Tells how much work an eviction would lose.
pub const LAST_CHECKPOINT_TIME: &str = "volcano.sh/last-checkpoint-time";
pub const EXPECTED_END_TIME: &str = "volcano.sh/expected-end-time";
/// Since when a gang has been broken (RFC 3339, on a PodGroup). We write the first; the second is
/// only read.
pub const STALE_SINCE: &str = "volcano.sh/stale-since";
pub const KAI_STALE_SINCE: &str = "kai.scheduler/stale-podgroup-timestamp";
/// Room that is reserved for pods of a gang that will be recreated (on a PodGroup, JSON; ours).
pub const RESERVATIONS: &str = "volcano.sh/reservations";
/// How long a gang may stay broken; negative means for ever (PodGroup, action `stalegangeviction`).
pub const STALENESS_GRACE_PERIOD: &str = "volcano.sh/staleness-grace-period";
/// How long the embedded cluster lets a pod run before it succeeds.
pub const SIMULATED_DURATION: &str = "muster.sh/simulated-duration";
/// How long an evicted pod takes to terminate in the embedded cluster: a duration, or "grace" for
/// its own terminationGracePeriodSeconds.
pub const SIMULATED_TERMINATION: &str = "muster.sh/simulated-termination";
/// How long a finalizer keeps the object of a pod in the embedded cluster after the pod has
/// terminated.
pub const SIMULATED_FINALIZER: &str = "muster.sh/simulated-finalizer";
/// How many times the embedded cluster refuses to evict a pod.
pub const SIMULATED_EVICTION_REFUSALS: &str = "muster.sh/simulated-eviction-refusals";
/// When and with which exit code the embedded cluster lets a pod end, for example "3 exits 137 after
/// 5m, once".
pub const SIMULATED_EXIT: &str = "muster.sh/simulated-exit";
/// How long a gang may wait before it goes first (plugin `sla`).
pub const SLA_WAITING_TIME: [&str; 2] = ["volcano.sh/sla-waiting-time", "sla-waiting-time"];
/// The node that a waiting pod is nominated to, written by an earlier run.
pub const PIPELINED_STATUS: &str = "volcano.sh/pipelined-status";
pub const PIPELINED_NODE: &str = "volcano.sh/pipelined-node";
/// Whether pods were evicted for that nomination.
pub const EVICTION_OCCURRED: &str = "volcano.sh/eviction-occurred";
/// The node group of a node (label, plugin `nodegroup`).
pub const NODEGROUP_NAME: &str = "volcano.sh/nodegroup-name";
/// Limits of a queue per node group (annotation on a Queue, JSON).
pub const NODEGROUP_LIMITS: &str = "volcano.sh/nodegroup-resource-limits";
/// A queue's path and weights for hierarchical drf (annotations on a Queue).
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";

/// A node's shared GPUs: how much memory all cards have (MiB), and how many cards there are.
pub const GPU_MEMORY: &str = "volcano.sh/gpu-memory";
pub const GPU_NUMBER: &str = "volcano.sh/gpu-number";
/// The cards of a pod that shares GPUs ("0" or "0,3"), and when they were chosen (nanoseconds since
/// 1970).
pub const GPU_INDEX: &str = "volcano.sh/gpu-index";
pub const PREDICATE_TIME: &str = "volcano.sh/predicate-time";
/// Cards of a node that are broken, by number (annotation on a Node).
pub const GPU_UNHEALTHY: &str = "volcano.sh/gpu-unhealthy-ids";
/// Virtual GPUs: how many cards, and of each of them how much memory (MiB or percent) and how many
/// percent of the cores.
pub const VGPU_NUMBER: &str = "volcano.sh/vgpu-number";
pub const VGPU_MEMORY: &str = "volcano.sh/vgpu-memory";
pub const VGPU_MEMORY_PERCENTAGE: &str = "volcano.sh/vgpu-memory-percentage";
pub const VGPU_CORES: &str = "volcano.sh/vgpu-cores";
/// The cards that a node offers as virtual GPUs, written by the device plugin:
/// `GPU-1f6c,10,32768,NVIDIA-Tesla V100,true,hami-core:` for each card.
pub const VGPU_REGISTER: &str = "volcano.sh/node-vgpu-register";
/// The cards of a pod, `GPU-1f6c,NVIDIA,4096,30:` for each card, `;` between containers. The device
/// plugin removes cards from the second as it hands them out.
pub const VGPU_IDS: &str = "volcano.sh/vgpu-ids-new";
pub const VGPU_TO_ALLOCATE: &str = "volcano.sh/devices-to-allocate";
pub const VGPU_NODE: &str = "volcano.sh/vgpu-node";
/// When cards were chosen and the pod was bound (seconds since 1970), and how far the device plugin
/// has got.
pub const VGPU_TIME: &str = "volcano.sh/vgpu-time";
pub const BIND_TIME: &str = "volcano.sh/bind-time";
pub const BIND_PHASE: &str = "volcano.sh/bind-phase";
/// Which cards a pod with virtual GPUs wants or refuses, by type or id, as lists.
pub const USE_GPU_TYPE: &str = "nvidia.com/use-gputype";
pub const NOUSE_GPU_TYPE: &str = "nvidia.com/nouse-gputype";
pub const USE_GPU_ID: &str = "volcano.sh/vgpu-use-gpuuuid";
pub const NOUSE_GPU_ID: &str = "volcano.sh/vgpu-nouse-gpuuuid";

/// Says which cards a bound pod has: written with the bind, and not copied when the pod is
/// recreated.
pub const CARD_NOTES: [&str; 8] = [
    BIND_PHASE,
    BIND_TIME,
    GPU_INDEX,
    PREDICATE_TIME,
    VGPU_IDS,
    VGPU_NODE,
    VGPU_TIME,
    VGPU_TO_ALLOCATE,
];

/// Says that an object was read from a cluster as it is: its mistakes are reported, but the object
/// is not refused.
pub const AS_FOUND: &str = "muster.sh/as-found";

/// Every annotation that is read.
pub const ANNOTATIONS: [&str; 43] = [
    AS_FOUND,
    COOLDOWN_TIME,
    EXPECTED_END_TIME,
    GPU_INDEX,
    GPU_UNHEALTHY,
    GROUP_NAME[0],
    GROUP_NAME[1],
    HIERARCHY,
    HIERARCHY_WEIGHTS,
    JDB_MAX_UNAVAILABLE,
    JDB_MIN_AVAILABLE,
    KAI_STALE_SINCE,
    LAST_CHECKPOINT_TIME,
    NODEGROUP_LIMITS,
    NOUSE_GPU_ID,
    NOUSE_GPU_TYPE,
    PIPELINED_NODE,
    PIPELINED_STATUS,
    PREEMPTABLE,
    PREEMPT_MIN_RUNTIME,
    QUEUE_NAME,
    RECLAIM_MIN_RUNTIME,
    RESERVATIONS,
    REVOCABLE_ZONE,
    RUNNING_ESTIMATE,
    SIMULATED_DURATION,
    SIMULATED_EVICTION_REFUSALS,
    SIMULATED_EXIT,
    SIMULATED_FINALIZER,
    SIMULATED_TERMINATION,
    SLA_WAITING_TIME[0],
    SLA_WAITING_TIME[1],
    STALENESS_GRACE_PERIOD,
    STALE_SINCE,
    TASK_INDEX,
    TASK_PRIORITY,
    TASK_SPEC,
    TOPOLOGY_HIGHEST_TIER,
    TOPOLOGY_MODE,
    USE_GPU_ID,
    USE_GPU_TYPE,
    VGPU_IDS,
    VGPU_REGISTER,
];

/// Keys that are only read as labels, or that are written and never read.
pub const OTHER_KEYS: [&str; 2] = [EVICTION_OCCURRED, NODEGROUP_NAME];

/// The queue of pods and PodGroups that name none.
pub const DEFAULT_QUEUE: &str = "default";
/// The queue above all queues.
pub const ROOT_QUEUE: &str = "root";
/// Pods of these schedulers are ours unless the configuration says otherwise.
pub const SCHEDULER_NAMES: [&str; 2] = ["volcano", "muster"];
