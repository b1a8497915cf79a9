//! Higher priority is served first, for gangs and for the pods of a gang.

use std::cmp::Ordering;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::policy::preemptor::Preemptor;

pub static ENTRY: Entry = Entry {
    name: "priority",
    summary: "higher priority first, for gangs and for pods within a gang; preempt evicts lower \
              priority only",
    arguments: &[],
    differs: "A gang without a priority class has the cluster's default, else its highest pod \
              priority.",
    build: |_, _| Box::new(Priority),
};

struct Priority;

#[answers]
impl Plugin for Priority {
    fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        cluster.gangs[b].priority.cmp(&cluster.gangs[a].priority)
    }

    fn outranks(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<bool> {
        let other = cluster.pods.gang[victim]?;
        match preemptor.purpose {
            Purpose::Within => Some(cluster.pods.order[preemptor.pod] > cluster.pods.order[victim]),
            Purpose::Preempt | Purpose::Consolidate => {
                Some(cluster.gangs[preemptor.gang].priority > cluster.gangs[other].priority)
            }
            // Between queues, what they deserve decides.
            Purpose::Reclaim => None,
        }
    }

    fn pod_urgency(&self, cluster: &Cluster, pod: PodId) -> i64 {
        i64::from(cluster.pods.order[pod])
    }
}
