//! Queues that are restricted to groups of nodes.

use muster_api::keys::NODEGROUP_NAME;

use crate::base::ids::{NodeId, QueueId, ShapeId};
use crate::base::resources::{Amounts, Sparse};
use crate::base::room::Room;
use crate::decision::node_reason::Why;
use crate::model::Cluster;
use crate::model::queues::{GroupLimits, NodeGroups};
use crate::policy::plugin::{Entry, Plugin, Scope, answers};
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "nodegroup",
    summary: "binds queues to groups of nodes (label volcano.sh/nodegroup-name)",
    arguments: &[
        Argument {
            name: "strict",
            default: "true",
            meaning: "false: pods of queues without an affinity may use nodes without a group",
        },
        Argument {
            name: "enablePreferredOrder",
            default: "false",
            meaning: "preferred groups count less from first to last",
        },
    ],
    differs: "A queue without an affinity inherits its nearest ancestor's with or without enableHierarchy.",
    build: |args, _| {
        Box::new(NodeGroup {
            strict: args.bool("strict", true),
            ordered: args.bool("enablePreferredOrder", false),
        })
    },
};

struct NodeGroup {
    strict: bool,
    ordered: bool,
}

const REQUIRED: i64 = 100_000;
const PREFERRED: i64 = 50_000;
const DISLIKED: i64 = -1_000;

impl NodeGroup {
    fn allows(&self, rules: Option<&NodeGroups>, group: Option<&String>) -> bool {
        match (rules, group) {
            (None, Some(_)) => false,
            (None, None) => !self.strict,
            (Some(_), None) => false,
            (Some(rules), Some(group)) => {
                let wanted = rules.required.contains(group) || rules.preferred.contains(group);
                wanted && !rules.anti_required.contains(group)
                    || rules.anti_preferred.contains(group)
            }
        }
    }

    fn points(&self, rules: &NodeGroups, group: &String) -> i64 {
        if rules.anti_preferred.contains(group) {
            return DISLIKED;
        }
        let required = if rules.required.contains(group) { REQUIRED } else { 0 };
        let count = rules.preferred.len() as i64;
        let place = rules.preferred.iter().position(|preferred| preferred == group);
        let preferred = place.map_or(0, |place| {
            if self.ordered { PREFERRED * (count - place as i64) / count } else { PREFERRED }
        });
        required + preferred
    }
}

/// The rules of the queue of the shape, or of the nearest queue above it that has some.
fn rules(cluster: &Cluster, shape: ShapeId) -> Option<&NodeGroups> {
    let lineage = &cluster.queues[cluster.shapes[shape].queue?].lineage;
    lineage.iter().find_map(|&queue| cluster.queues[queue].node_groups.as_deref())
}

/// What the queue's pods use on the nodes of a group.
fn used(cluster: &Cluster, queue: QueueId, group: &str) -> Amounts {
    let in_group = |node: NodeId| {
        cluster.nodes.fact[node].labels.get(NODEGROUP_NAME).is_some_and(|name| name == group)
    };
    let mut used = Amounts::default();
    for (_, gang) in cluster.gangs.iter().filter(|(_, gang)| gang.queue == queue) {
        for &pod in &gang.pods {
            if cluster.pods.state[pod].node().is_some_and(in_group) {
                used.add_all(&cluster.shapes[cluster.pods.shape[pod]].request, 1);
            }
        }
    }
    used
}

/// Marks the nodes of groups of which the queue has used its limit.
fn keep_limits(cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], why: &mut [Why]) {
    let Some(queue) = cluster.shapes[shape].queue else { return };
    let full = |group: &str, limits: &Sparse| {
        let used = used(cluster, queue, group);
        limits.iter().any(|(resource, limit)| {
            let want = cluster.request_of(shape, resource);
            want > 0 && used.get(resource) + want > limit
        })
    };
    let closed: Vec<&str> = match &cluster.queues[queue].group_limits {
        None => return,
        Some(GroupLimits::Unreadable) => return why.fill(Why::NodeGroup),
        Some(GroupLimits::PerGroup(limits)) => limits
            .iter()
            .filter(|(group, limits)| full(group, limits))
            .map(|(group, _)| group.as_str())
            .collect(),
    };
    for (&node, why) in nodes.iter().zip(why).filter(|(_, why)| **why == Why::Fits) {
        let group = cluster.nodes.fact[node].labels.get(NODEGROUP_NAME);
        if group.is_some_and(|group| closed.contains(&group.as_str())) {
            *why = Why::NodeGroup;
        }
    }
}

#[answers]
impl Plugin for NodeGroup {
    fn filter(
        &self,
        reach: Scope,
        cluster: &Cluster,
        (shape, _): (ShapeId, Room),
        nodes: &[NodeId],
        why: &mut [Why],
    ) {
        match reach {
            Scope::NodeFacts => {}
            Scope::NodePods => return,
            Scope::OtherNodes => return keep_limits(cluster, shape, nodes, why),
        }
        let rules = rules(cluster, shape);
        for (&node, why) in nodes.iter().zip(why).filter(|(_, why)| **why == Why::Fits) {
            if !self.allows(rules, cluster.nodes.fact[node].labels.get(NODEGROUP_NAME)) {
                *why = Why::NodeGroup;
            }
        }
    }

    fn score(
        &self,
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        let (Scope::NodeFacts, Some(rules)) = (reach, rules(cluster, shape)) else { return };
        for (&node, score) in nodes.iter().zip(scores) {
            if let Some(group) = cluster.nodes.fact[node].labels.get(NODEGROUP_NAME) {
                *score += self.points(rules, group);
            }
        }
    }
}
