//! Whole manifests before and after.

use super::*;
use crate::manifest::{Found, read, trim, write};

fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    read("test", text.as_bytes(), &mut |found| match found {
        Found::Object { object, .. } => objects.push(object),
        other => panic!("{other:?}"),
    });
    objects
}

fn anonymous(text: &str) -> String {
    let mut objects = objects(text);
    trim(&mut objects);
    anonymise(&mut objects);
    let mut text = Vec::new();
    write(&objects, &mut text).expect("writing to memory can't fail");
    String::from_utf8(text).expect("it is text")
}

const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: gpu-b, uid: 1-2, labels: {kubernetes.io/hostname: gpu-b, acme.com/rack: r7, generation: "5", ssd: "true"}}
spec: {taints: [{key: acme.com/rack, value: r7, effect: NoSchedule}]}
status: {allocatable: {cpu: "8", nvidia.com/gpu: "8"}, images: [{names: ["reg.acme.com:5000/llm/train:v7"], sizeBytes: 9}]}
---
{apiVersion: v1, kind: Node, metadata: {name: gpu-a, labels: {kubernetes.io/hostname: gpu-a, kubernetes.io/arch: arm64}}}
---
apiVersion: v1
kind: Pod
metadata:
  {name: ring-0, namespace: research, labels: {app: ring, volcano.sh/task-index: "3"}, annotations: {scheduling.k8s.io/group-name: ring}}
spec:
  schedulerName: volcano
  nodeName: gpu-b
  nodeSelector: {kubernetes.io/hostname: gpu-b, acme.com/rack: r7}
  tolerations: [{key: acme.com/rack, value: r7}, {operator: Exists}]
  containers: [{name: main, image: "llm/train:v7"}]
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        preference:
          matchExpressions: [{key: generation, operator: Gt, values: ["4"]}, {key: acme.com/rack, operator: In, values: [r7]}]
          matchFields: [{key: metadata.name, operator: In, values: [gpu-a]}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: ring, namespace: research}
spec: {minMember: 1, minTaskMember: {worker: 1}, queue: gold}
status: {phase: Running, conditions: [{type: Scheduled, status: "True", reason: Ready, message: ring-0 is on gpu-b}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: gold, annotations: {volcano.sh/hierarchy: root/gold, volcano.sh/hierarchy-weights: 1/2, volcano.sh/nodegroup-resource-limits: '{"blue": {"cpu": "4"}}'}}
spec: {parent: root, affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [blue]}}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: rack}
spec: {tier: 1, members: [{type: Node, selector: {regexMatch: {pattern: "^gpu-"}}}, {type: Node, selector: {regexMatch: {pattern: "^cpu-"}}}]}
"#;

#[test]
fn equal_names_stay_equal_and_names_with_a_meaning_are_kept() {
    let expected = r#"---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: domain-1}
spec:
  members:
  - {type: Node, selector: {exactMatch: {name: node-1}}}
  - {type: Node, selector: {exactMatch: {name: node-2}}}
  - {type: Node, selector: {exactMatch: {name: node-3}}}
  tier: 1
---
apiVersion: v1
kind: Node
metadata: {name: node-1, labels: {kubernetes.io/arch: arm64, kubernetes.io/hostname: node-1}}
---
apiVersion: v1
kind: Node
metadata: {name: node-2, labels: {key-1: value-2, key-3: "5", key-4: "true", kubernetes.io/hostname: node-2}}
spec: {taints: [{effect: NoSchedule, key: key-1, value: value-2}]}
status:
  allocatable: {cpu: "8", nvidia.com/gpu: "8"}
  images: [{names: ["image-2/image-1/image-3:image-4"], sizeBytes: 9}]
---
apiVersion: v1
kind: Pod
metadata:
  name: work-2
  namespace: namespace-1
  annotations: {scheduling.k8s.io/group-name: work-1}
  labels: {key-2: value-3, volcano.sh/task-index: "3"}
spec:
  affinity:
    nodeAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - preference:
          matchExpressions:
          - {key: key-3, operator: Gt, values: ["4"]}
          - {key: key-1, operator: In, values: [value-2]}
          matchFields: [{key: metadata.name, operator: In, values: [node-1]}]
        weight: 1
  containers: [{name: container-1, image: "image-1/image-3:image-4"}]
  nodeName: node-2
  nodeSelector: {key-1: value-2, kubernetes.io/hostname: node-2}
  schedulerName: volcano
  tolerations: [{key: key-1, value: value-2}, {operator: Exists}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: work-1, namespace: namespace-1}
spec: {minMember: 1, minTaskMember: {role-1: 1}, queue: queue-1}
status: {conditions: [{type: Scheduled, reason: Ready, status: "True"}], phase: Running}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: queue-1
  annotations:
    volcano.sh/hierarchy: root/queue-1
    volcano.sh/hierarchy-weights: "1/2"
    volcano.sh/nodegroup-resource-limits: "{\"value-1\":{\"cpu\":\"4\"}}"
spec:
  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [value-1]}}
  dequeueStrategy: traverse
  parent: root
  priority: 0
  weight: 1
"#;
    let found = anonymous(CLUSTER);
    assert_eq!(found, expected, "{found}");
}

/// Every text that a user can choose contains `secret`.
const SECRETS: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: secret1, uid: secret, labels: {secret: secret, node-role.kubernetes.io/secret: "", kubernetes.io/hostname: secret2}, annotations: {secret: secret, volcano.sh/gpu-unhealthy-ids: secret, volcano.sh/node-vgpu-register: "secret,1,2,V100,true:secret:secret"}}
spec: {taints: [{key: secret, value: secret, effect: NoSchedule}]}
status: {conditions: [{type: example.com/secret, status: "False", reason: "secret!", message: secret}], images: [{names: ["secret.com/secret:secret", "secret@sha256:secret"], sizeBytes: 1}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: secret
  namespace: secret
  uid: secret
  labels: {secret: secret, volcano.sh/task-spec: secret, volcano.sh/task-index: secret}
  annotations:
    muster.sh/simulated-duration: secret
    muster.sh/simulated-eviction-refusals: secret
    muster.sh/simulated-exit: secret
    muster.sh/simulated-finalizer: secret
    muster.sh/simulated-termination: secret
    scheduling.k8s.io/group-name: secret
    scheduling.volcano.sh/queue-name: secret
    volcano.sh/gpu-index: secret
    volcano.sh/pipelined-node: secret
    volcano.sh/vgpu-ids-new: "secret,NVIDIA,1,2:secret;secret"
    volcano.sh/vgpu-use-gpuuuid: secret,secret2
    volcano.sh/preemptable: secret
    volcano.sh/task-priority: secret
spec:
  schedulerName: secret
  nodeName: secret
  priorityClassName: secret
  containers: [{name: secret, image: secret, ports: [{hostPort: 1, hostIP: secret}]}]
  initContainers: [{name: secret, image: "secret:secret"}]
  nodeSelector: {secret: secret}
  tolerations: [{key: secret, value: secret}]
  volumes: [{name: secret, persistentVolumeClaim: {claimName: secret}}]
  schedulingGates: [{name: secret}]
  resourceClaims: [{name: secret}]
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: secret, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [secret], labelSelector: {matchLabels: {secret: secret}}}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: secret, operator: Lt, values: [secret]}], matchFields: [{key: metadata.name, operator: In, values: [secret]}]}]
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: secret, namespaces: [secret], namespaceSelector: {matchLabels: {secret: secret}}, labelSelector: {matchExpressions: [{key: secret, operator: In, values: [secret]}]}, matchLabelKeys: [secret]}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: secret, mismatchLabelKeys: [secret]}}]
status: {nominatedNodeName: secret, conditions: [{type: PodScheduled, status: "False", message: secret}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: secret
  namespace: secret
  labels: {secret: secret}
  ownerReferences: [{name: secret, uid: secret, kind: Secret, apiVersion: v1}]
  annotations:
    volcano.sh/reservations: '[{"node":"secret","role":"secret","subgroup":"secret-0","requests":{"cpu":"1"},"until":"2026-11-15T08:30:00Z","pods":["secret"]}]'
    volcano.sh/stale-since: secret
    volcano.sh/staleness-grace-period: secret
spec:
  minTaskMember: {secret: 1}
  queue: secret
  priorityClassName: secret
  networkTopology: {highestTierName: secret}
  subGroupPolicy: [{name: secret, matchLabelKeys: [secret], labelSelector: {matchLabels: {secret: secret}}, networkTopology: {highestTierName: secret}}]
status: {conditions: [{type: Unschedulable, status: "True", transitionID: secret, reason: secret/secret, message: secret}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: secret, annotations: {volcano.sh/hierarchy: root/secret, volcano.sh/hierarchy-weights: secret, volcano.sh/nodegroup-resource-limits: "secret:"}}
spec: {parent: secret, type: secret, extendClusters: [{name: secret}], affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [secret]}, nodeGroupAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [secret]}}}
status: {reservation: {nodes: [secret]}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: secret}
spec: {tier: 1, tierName: secret, members: [{type: Node, selector: {exactMatch: {name: secret}}}, {type: Node, selector: {regexMatch: {pattern: secret}}}, {type: HyperNode, selector: {labelMatch: {matchLabels: {secret: secret}}}}]}
status: {conditions: [{type: Ready, status: "False", message: secret}]}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: secret}, value: 5}
---
{apiVersion: v1, kind: Namespace, metadata: {name: secret, labels: {kubernetes.io/metadata.name: secret}, annotations: {scheduling.volcano.sh/queue-name: secret}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: secret, namespace: secret}, spec: {hard: {cpu: 1, count/secrets: 2, secret.storageclass.storage.k8s.io/requests.storage: 1}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: secret, namespace: secret}, spec: {selector: {matchLabels: {secret: secret}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: secret}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: secret, operator: In, values: [secret]}]}]}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: secret, namespace: secret}, spec: {volumeName: secret}}
"#;

#[test]
fn no_text_that_a_user_chose_is_left() {
    let text = anonymous(SECRETS);
    for line in text.lines() {
        assert!(!line.to_lowercase().contains("secret"), "{line}");
    }
    assert_eq!(
        text.matches("---").count(),
        SECRETS.matches("\n---").count() + 1,
        "every object is there"
    );
}
