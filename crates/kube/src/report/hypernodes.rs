//! The status of HyperNodes: how many nodes they have, and whether they are in the tree.

use std::collections::HashMap;

use muster_api::{HyperNode, HyperNodeCondition, HyperNodeStatus, Time};
use muster_engine::explain;
use muster_engine::model::Cluster;
use muster_engine::model::domains::{Domains, Fault};
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use crate::clock::wall_clock;
use crate::writes::{Patch, Target, Write};

/// The type of our condition; all others belong to other writers.
const HEALTHY: &str = "Healthy";

#[derive(Default)]
pub struct HyperNodeReporter {
    known: HashMap<String, Known>,
}

/// What a HyperNode's object says.
struct Known {
    uid: String,
    version: Option<String>,
    /// `None` until a status has been written.
    status: Option<HyperNodeStatus>,
}

impl HyperNodeReporter {
    pub fn hear(&mut self, domain: &HyperNode) {
        let meta = domain.metadata.clone();
        let status = domain.status.clone();
        self.known
            .insert(meta.name, Known { uid: meta.uid, version: meta.resource_version, status });
    }

    pub fn forget(&mut self, name: &str) {
        self.known.remove(name);
    }

    /// Writes the statuses that have changed.
    pub fn tell(&mut self, cluster: &Cluster, writes: &UnboundedSender<Write>) {
        for hyper in cluster.hyper_nodes.iter() {
            let Some(known) =
                self.known.get_mut(&*hyper.name).filter(|known| *known.uid == *hyper.uid)
            else {
                continue;
            };
            let fault = cluster.domains.faults().get(&hyper.name);
            let old = known.status.clone().unwrap_or_default();
            let new = HyperNodeStatus {
                conditions: with_ours(&old.conditions, fault, wall_clock()),
                node_count: node_count(&cluster.domains, hyper),
            };
            if known.status.as_ref() == Some(&new) {
                continue;
            }
            let status = json!(new);
            known.status = Some(new);
            let target = Target::HyperNode(hyper.name.to_string());
            // The list of conditions is replaced as a whole, so the patch requires the version that
            // we know.
            let patch = Patch::new(target, &known.uid, status).at(known.version.clone());
            let _ = writes.send(Write::Patch(patch));
        }
    }
}

/// All live nodes below a domain; for a HyperNode outside the tree, the nodes that it selects.
fn node_count(domains: &Domains, hyper: &muster_engine::model::hypernodes::HyperNode) -> i64 {
    match domains.find(&hyper.name) {
        Some(domain) => i64::from(domains.node_count(domain)),
        None => hyper.nodes().count() as i64,
    }
}

/// The conditions, with ours updated in its place.
fn with_ours(
    old: &[HyperNodeCondition],
    fault: Option<&Fault>,
    now: Time,
) -> Vec<HyperNodeCondition> {
    let (status, reason, message) = match fault {
        None => ("True", "InTree", "it is part of the scheduler's network tree".to_owned()),
        Some(fault) => ("False", explain::fault_word(fault), explain::fault(fault)),
    };
    let mut conditions = old.to_vec();
    let place =
        conditions.iter().position(|condition| condition.kind == HEALTHY).unwrap_or_else(|| {
            conditions.push(HyperNodeCondition::default());
            conditions.len() - 1
        });
    let before = &conditions[place];
    let since = before.last_transition_time.filter(|_| before.status == status);
    conditions[place] = HyperNodeCondition {
        kind: HEALTHY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since.or(Some(now)),
        observed_generation: None,
    };
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: &str, status: &str, at: i64) -> HyperNodeCondition {
        let last_transition_time = Some(Time(at));
        HyperNodeCondition {
            kind: kind.into(),
            status: status.into(),
            last_transition_time,
            ..HyperNodeCondition::default()
        }
    }

    #[test]
    fn conditions_of_other_writers_are_kept() {
        let mut others = condition("Cabled", "False", 1);
        others.observed_generation = Some(7);
        let old = [others.clone(), condition(HEALTHY, "True", 2), condition("Cooled", "True", 3)];
        let fault = Fault::Above { parent: "spine".into() };
        let new = with_ours(&old, Some(&fault), Time(9));
        assert_eq!([&new[0], &new[2]], [&others, &old[2]]);
        assert_eq!((new[1].status.as_str(), new[1].reason.as_str()), ("False", "ParentNotInTree"));
        assert_eq!(new.len(), 3);
    }

    #[test]
    fn the_time_of_a_condition_changes_only_with_its_status() {
        let fault = |parent: &str| Fault::Above { parent: parent.into() };
        let first = with_ours(&[], Some(&fault("a")), Time(1));
        let second = with_ours(&first, Some(&fault("b")), Time(2));
        let third = with_ours(&second, None, Time(3));
        let times = [&first, &second, &third].map(|conditions| conditions[0].last_transition_time);
        assert_eq!(times, [Some(Time(1)), Some(Time(1)), Some(Time(3))]);
        assert_ne!(first, second);
        assert_eq!(with_ours(&third, None, Time(4)), third);
    }
}
