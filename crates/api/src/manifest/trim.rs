//! Removes what scheduling doesn't read: most annotations, versions, owners, conditions that say
//! that all is well, images that no pod uses. Decisions stay the same, files get small, and they
//! contain no secrets.

use std::collections::BTreeSet;

use super::Object;
use crate::core::{Condition, Node, Pod};
use crate::keys;

pub fn trim(objects: &mut [Object]) {
    let wanted = wanted_images(objects);
    let cools_down = objects.iter().any(cools_down);
    for object in objects {
        match object {
            Object::Node(node) => trim_node(node, &wanted),
            Object::Pod(pod) => trim_pod(pod, cools_down),
            _ => {}
        }
        trim_meta(object);
    }
}

fn trim_meta(object: &mut Object) {
    // The API server accepted the object, so it is kept; without this mark a file with it would be
    // refused.
    let as_found = !object.problems().is_empty();
    let meta = object.meta_mut();
    meta.resource_version = None;
    meta.owner_references.clear();
    meta.annotations.retain(|key, _| keys::ANNOTATIONS.contains(&key.as_str()));
    if as_found {
        meta.annotations.insert(keys::AS_FOUND.to_owned(), "true".to_owned());
    }
}

fn trim_node(node: &mut Node, wanted: &BTreeSet<String>) {
    if !node.status.allocatable.is_empty() {
        node.status.capacity.clear();
    }
    for condition in &mut node.status.conditions {
        condition.reason.clear();
        condition.message.clear();
        condition.last_transition_time = None;
    }
    for image in &mut node.status.images {
        image.names.retain(|name| wanted.contains(repository(name)));
    }
    node.status.images.retain(|image| !image.names.is_empty());
}

/// Whether the time since which pods have been placed matters for the object.
fn cools_down(object: &Object) -> bool {
    object.meta().annotation_or_label(keys::COOLDOWN_TIME).is_some()
}

fn trim_pod(pod: &mut Pod, cools_down: bool) {
    for container in pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers) {
        container.ports.retain(|port| port.host_port > 0);
    }
    pod.spec.volumes.retain(|volume| volume.persistent_volume_claim.is_some());
    let placed = |condition: &Condition| cools_down && condition.kind == "PodScheduled";
    pod.status.conditions.retain(|condition| condition.status != "True" || placed(condition));
}

/// The repositories of all images that pods name.
fn wanted_images(objects: &[Object]) -> BTreeSet<String> {
    let pods = objects.iter().filter_map(|object| match object {
        Object::Pod(pod) => Some(&**pod),
        _ => None,
    });
    let containers =
        pods.flat_map(|pod| pod.spec.containers.iter().chain(&pod.spec.init_containers));
    containers.map(|container| repository(&container.image).to_owned()).collect()
}

/// `nginx` of `docker.io/library/nginx:1.29`: pods and nodes may name the same image in different
/// ways, but this part is in all of them.
fn repository(image: &str) -> &str {
    let last = image.split('@').next().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    last.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{Found, read, write};
    use super::*;

    #[test]
    fn only_what_scheduling_reads_is_kept() {
        let text = r#"
apiVersion: v1
kind: Node
metadata:
  {name: n1, resourceVersion: "7", uid: u, annotations: {csi.volume.kubernetes.io/nodeid: secret}, labels: {team: a}}
status:
  capacity: {cpu: 9}
  allocatable: {cpu: 8}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status}]
  images:
  - {names: ["docker.io/library/nginx:1.29", "docker.io/library/nginx@sha256:12"], sizeBytes: 5}
  - {names: ["docker.io/library/redis:8"], sizeBytes: 6}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{env: secret}", scheduling.k8s.io/group-name: g}
spec:
  containers: [{name: c, image: nginx, env: [{name: KEY, value: secret}], ports: [{containerPort: 80}]}]
  volumes: [{name: kube-api-access-x7q2p}, {name: v, persistentVolumeClaim: {claimName: data}}]
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", message: full}, {type: Ready, status: "True"}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: default, resourceVersion: "8", annotations: {volcano.sh/running-estimate: soon}}
"#;
        let mut objects = Vec::new();
        read("test", text.as_bytes(), &mut |found| match found {
            Found::Object { object, .. } => objects.push(object),
            other => panic!("{other:?}"),
        });
        trim(&mut objects);
        let mut text = Vec::new();
        write(&objects, &mut text).expect("writing to memory can't fail");
        let expected = r#"---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {team: a}, uid: u}
status:
  allocatable: {cpu: "8"}
  conditions: [{type: Ready, status: "True"}]
  images: [{names: ["docker.io/library/nginx:1.29", "docker.io/library/nginx@sha256:12"], sizeBytes: 5}]
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, annotations: {scheduling.k8s.io/group-name: g}}
spec: {containers: [{name: c, image: nginx}], volumes: [{persistentVolumeClaim: {claimName: data}}]}
status: {conditions: [{type: PodScheduled, message: full, status: "False"}], phase: Pending}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  name: g
  namespace: default
  annotations: {muster.sh/as-found: "true", volcano.sh/running-estimate: soon}
spec: {minMember: 0, queue: default}
"#;
        assert_eq!(String::from_utf8(text).expect("it is text"), expected);
    }

    #[test]
    fn the_time_of_placement_is_kept_for_pods_with_a_cooldown() {
        let condition = Condition {
            kind: "PodScheduled".into(),
            status: "True".into(),
            ..Condition::default()
        };
        let mut pod = Pod::default();
        pod.status.conditions.push(condition);
        let mut cooling = pod.clone();
        cooling.metadata.labels.insert(keys::COOLDOWN_TIME.into(), "10m".into());
        for (pod, left) in [(pod, 0), (cooling, 1)] {
            let mut objects = [Object::from(pod)];
            trim(&mut objects);
            let [Object::Pod(pod)] = &objects else { panic!("still a pod") };
            assert_eq!(pod.status.conditions.len(), left);
        }
    }
}
