//! Checks that many tests need: of pods, PodGroups, logs and the rules of a proxy.

use std::time::Duration;

use muster_api::core::Pod;
use muster_api::keys::{EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS};
use serde_json::{Value, json};

use crate::Result;
use crate::cluster::{Cluster, podgroups, pods, wait};
use crate::controlplane::ControlPlane;
use crate::proxy::Rule;
use crate::workload::Gang;

/// Nothing takes this long on any machine; tests that succeed don't wait for it.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub fn bound(pods: &[Pod]) -> usize {
    pods.iter().filter(|pod| pod.spec.node_name.is_some()).count()
}

/// All of `count` pods are bound.
pub fn all_bound(count: usize) -> impl Fn(&[Pod]) -> bool {
    move |pods| pods.len() == count && bound(pods) == count
}

/// It is nominated to no node: it never was, or its bind has ended that. A bind can't remove the
/// keys, and `nominatedNodeName` stays on a bound pod, as with Kubernetes' own scheduler.
pub fn is_silent(pod: &Pod) -> bool {
    let keys = [PIPELINED_STATUS, PIPELINED_NODE, EVICTION_OCCURRED];
    let says = keys.map(|key| pod.metadata.annotations.get(key).map(String::as_str));
    match pod.spec.node_name {
        None => says == [None; 3] && pod.status.nominated_node_name.is_none(),
        Some(_) => says == [None; 3] || says == [Some("false"), Some(""), Some("false")],
    }
}

/// Waits for something in the status of a PodGroup.
pub async fn group(
    cluster: &Cluster,
    name: &str,
    wanted: impl Fn(&Value) -> bool,
) -> Result<Value> {
    let path = format!("{}/{name}", podgroups("default"));
    wait(PATIENCE, async || {
        let group: Value = cluster.get(&path).await.map_err(|error| error.to_string())?;
        if wanted(&group["status"]) {
            Ok(group)
        } else {
            Err(format!("{name}: {}", group["status"]))
        }
    })
    .await
}

/// Waits until a gang is scheduled and so many of its pods run.
pub async fn runs(cluster: &Cluster, gang: &str, pods: usize) -> Result<()> {
    group(cluster, gang, |status| is_scheduled(status) && status["running"] == pods).await.map(drop)
}

pub fn is_unschedulable(status: &Value) -> bool {
    status["conditions"][0]["type"] == "Unschedulable"
}

pub fn is_scheduled(status: &Value) -> bool {
    status["conditions"][0]["type"] == "Scheduled" && status["phase"] == "Running"
}

/// Removes a gang's pods at once, as a kubelet would after a while, and its PodGroup.
pub async fn remove(cluster: &Cluster, gang: &Gang) -> Result<()> {
    for index in 0..gang.pods {
        remove_pod(cluster, &format!("{}-{index}", gang.name)).await?;
    }
    Ok(cluster.delete(&format!("{}/{}", podgroups("default"), gang.group)).await?)
}

pub async fn remove_pod(cluster: &Cluster, name: &str) -> Result<()> {
    Ok(cluster.delete(&format!("{}/{name}?gracePeriodSeconds=0", pods("default"))).await?)
}

/// Releases a pod that was held.
pub async fn release(cluster: &Cluster, name: &str) -> Result<()> {
    let nothing = json!({ "metadata": { "finalizers": null } });
    cluster.patch(&format!("{}/{name}", pods("default")), &nothing).await?;
    Ok(())
}

/// Waits until a rule has hit this many requests.
pub async fn struck(rule: &Rule, count: usize) -> Result<()> {
    wait(PATIENCE, async || {
        if rule.count() >= count {
            Ok(())
        } else {
            Err(format!("{} of {count} requests", rule.count()))
        }
    })
    .await
}

/// The log of a server so far.
pub fn log_of(plane: &ControlPlane, name: &str) -> Result<String> {
    Ok(std::fs::read_to_string(plane.folder().join(format!("{name}.log")))?)
}
