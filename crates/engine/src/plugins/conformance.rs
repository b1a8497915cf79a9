//! Pods that keep the cluster alive are never evicted.

use crate::base::ids::PodId;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, answers};

pub static ENTRY: Entry = Entry {
    name: "conformance",
    summary: "never evicts pods of kube-system or of the system-critical priority classes",
    arguments: &[],
    differs: "",
    build: |_, _| Box::new(Conformance),
};

struct Conformance;

#[answers]
impl Plugin for Conformance {
    fn protects(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        if cluster.space_name(cluster.pods.space[pod]) == "kube-system" {
            return Some("kube-system");
        }
        let class =
            cluster.pods.fact[pod].priority_class.map(|class| cluster.names.text(class).as_ref());
        match class {
            Some("system-cluster-critical") => Some("system-cluster-critical"),
            Some("system-node-critical") => Some("system-node-critical"),
            _ => None,
        }
    }
}
