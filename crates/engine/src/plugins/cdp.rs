//! Cooldown: a pod that has just been placed is safe from eviction for a while.

use muster_api::Time;

use crate::base::ids::PodId;
use crate::model::Cluster;
use crate::policy::plugin::{Entry, Plugin, Veto, answers};
use crate::policy::preemptor::Preemptor;

pub static ENTRY: Entry = Entry {
    name: "cdp",
    summary: "does not evict pods before their volcano.sh/cooldown-time (label or annotation, \
              also of the PodGroup) is over",
    arguments: &[],
    differs: "The time can also be written on the PodGroup; a pod's own takes precedence. It \
              counts from when the pod was scheduled, else from its start, else from its \
              creation. A gang that waits only for this is tried again when the time is over.",
    build: |_, _| Box::new(Cooldown),
};

struct Cooldown;

/// When the pod's cooldown is over, if it has one.
fn end(cluster: &Cluster, pod: PodId) -> Option<Time> {
    let fact = &cluster.pods.fact[pod];
    let of_gang = || cluster.gangs[cluster.pods.gang[pod]?].rare.as_ref()?.cooldown;
    let since = fact.scheduled.or(fact.started).unwrap_or(fact.created);
    fact.cooldown().or_else(of_gang).map(|cooldown| since.plus_ms(cooldown))
}

#[answers]
impl Plugin for Cooldown {
    fn vetoes(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<Veto> {
        let end = end(cluster, victim).filter(|&end| end > preemptor.now)?;
        Some(Veto { rule: "cooldown", until: Some(end) })
    }
}
