//! What a pod requests, by the arithmetic of Kubernetes.

use crate::core::{Container, PodSpec, Resources};
use crate::{Quantity, ResourceList};

/// What the pod requests at its most demanding moment: while one of its init containers runs, or
/// after them. The pod itself, which counts towards a node's "pods", is not included.
pub fn pod_requests(spec: &PodSpec) -> ResourceList {
    let mut running = ResourceList::new();
    for container in &spec.containers {
        add(&mut running, &with_limits(&container.resources));
    }
    // Init containers run one after the other, each together with the sidecars that were started
    // before it.
    let mut starting = ResourceList::new();
    let mut sidecars = ResourceList::new();
    for container in &spec.init_containers {
        let own = with_limits(&container.resources);
        if is_sidecar(container) {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise(&mut starting, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, &own);
            raise(&mut starting, &moment);
        }
    }
    let mut requests = running;
    raise(&mut requests, &starting);
    if let Some(pod_level) = &spec.resources {
        override_with(&mut requests, pod_level);
    }
    add(&mut requests, &spec.overhead);
    requests
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// What one container requests.
pub fn container_requests(container: &Container) -> ResourceList {
    with_limits(&container.resources)
}

/// The requests, with the limit for a resource that has only a limit.
fn with_limits(resources: &Resources) -> ResourceList {
    let mut requests = resources.requests.clone();
    for (name, limit) in &resources.limits {
        requests.entry(name.clone()).or_insert(*limit);
    }
    requests
}

/// A limit of the whole pod is its request only where no container requests anything; for huge
/// pages requests always equal limits.
fn override_with(requests: &mut ResourceList, pod_level: &Resources) {
    for (name, limit) in &pod_level.limits {
        if name.starts_with("hugepages-")
            || (may_be_pod_level(name) && !requests.contains_key(name))
        {
            requests.insert(name.clone(), *limit);
        }
    }
    for (name, request) in &pod_level.requests {
        if may_be_pod_level(name) {
            requests.insert(name.clone(), *request);
        }
    }
}

fn may_be_pod_level(name: &str) -> bool {
    name == "cpu" || name == "memory" || name.starts_with("hugepages-")
}

fn add(sum: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let total = sum.entry(name.clone()).or_insert(Quantity::ZERO);
        *total = total.plus(*amount);
    }
}

/// Raises each amount to at least the amount in the other list.
fn raise(most: &mut ResourceList, other: &ResourceList) {
    for (name, amount) in other {
        let highest = most.entry(name.clone()).or_insert(*amount);
        *highest = (*highest).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> ResourceList {
        text.split_whitespace()
            .map(|pair| pair.split_once('=').expect("name=amount"))
            .map(|(name, amount)| (name.to_owned(), amount.parse().expect("a quantity")))
            .collect()
    }

    fn container(requests: &str) -> Container {
        Container {
            resources: Resources { requests: list(requests), limits: ResourceList::new() },
            ..Default::default()
        }
    }

    fn sidecar(requests: &str) -> Container {
        Container { restart_policy: Some("Always".to_owned()), ..container(requests) }
    }

    fn pod(containers: &[Container], init_containers: &[Container]) -> PodSpec {
        PodSpec {
            containers: containers.to_vec(),
            init_containers: init_containers.to_vec(),
            ..PodSpec::default()
        }
    }

    #[test]
    fn containers_add_up() {
        let spec = pod(&[container("cpu=500m memory=1Gi"), container("cpu=1 gpu=2")], &[]);
        assert_eq!(pod_requests(&spec), list("cpu=1500m memory=1Gi gpu=2"));
        assert_eq!(pod_requests(&PodSpec::default()), ResourceList::new());
    }

    #[test]
    fn only_the_largest_init_container_counts_for_each_resource() {
        let spec = pod(
            &[container("cpu=2 memory=1Gi")],
            &[container("cpu=1 memory=4Gi"), container("cpu=3")],
        );
        assert_eq!(pod_requests(&spec), list("cpu=3 memory=4Gi"));
    }

    #[test]
    fn sidecars_run_beside_the_containers_and_later_init_containers() {
        let spec = pod(&[container("cpu=1")], &[sidecar("cpu=2")]);
        assert_eq!(pod_requests(&spec), list("cpu=3"));
        // The init container after the sidecar needs 2 + 5; the one before it only 6.
        let spec =
            pod(&[container("cpu=1")], &[container("cpu=6"), sidecar("cpu=2"), container("cpu=5")]);
        assert_eq!(pod_requests(&spec), list("cpu=7"));
        let spec =
            pod(&[container("cpu=1")], &[container("cpu=5"), sidecar("cpu=2"), sidecar("cpu=3")]);
        assert_eq!(pod_requests(&spec), list("cpu=6"));
    }

    #[test]
    fn a_limit_without_a_request_is_the_request() {
        let mut only_limit = container("cpu=1");
        only_limit.resources.limits = list("cpu=4 nvidia.com/gpu=8");
        assert_eq!(pod_requests(&pod(&[only_limit], &[])), list("cpu=1 nvidia.com/gpu=8"));
    }

    #[test]
    fn overhead_comes_on_top_of_everything() {
        let mut spec = pod(&[container("cpu=1")], &[container("cpu=3")]);
        spec.overhead = list("cpu=250m memory=120Mi");
        assert_eq!(pod_requests(&spec), list("cpu=3250m memory=120Mi"));
    }

    #[test]
    fn pod_level_requests_replace_those_of_containers() {
        let mut spec = pod(&[container("cpu=4 gpu=1"), container("memory=1Gi")], &[]);
        spec.overhead = list("cpu=1");
        spec.resources =
            Some(Resources { requests: list("cpu=2 gpu=9"), limits: list("memory=8Gi cpu=8") });
        assert_eq!(pod_requests(&spec), list("cpu=3 gpu=1 memory=1Gi"));
    }

    #[test]
    fn a_pod_level_limit_is_the_request_if_no_container_requests_any() {
        let mut spec = pod(&[container("cpu=1")], &[]);
        spec.resources = Some(Resources {
            requests: list(""),
            limits: list("memory=8Gi hugepages-2Mi=4Mi gpu=1"),
        });
        assert_eq!(pod_requests(&spec), list("cpu=1 memory=8Gi hugepages-2Mi=4Mi"));
    }
}
