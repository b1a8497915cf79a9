//! Queues that are bound to groups of nodes.

use muster_api::keys::NODEGROUP_NAME;

use super::{Argument, Entry};
use crate::ids::{NodeId, ShapeId};
use crate::model::Cluster;
use crate::model::queues::NodeGroups;
use crate::policy::{Plugin, Question, Reach};
use crate::reason::Why;

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
    differs: "A queue without an affinity inherits its nearest ancestor's with or without enableHierarchy. The \
              annotation volcano.sh/nodegroup-resource-limits is not read.",
    answers: &[Question::Filter, Question::Score],
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
                let unwanted = rules.anti_required.contains(group);
                let open = rules.required.is_empty() && rules.preferred.is_empty();
                (wanted || open || rules.anti_preferred.contains(group)) && !unwanted
            }
        }
    }

    fn points(&self, rules: &NodeGroups, group: &String) -> i64 {
        if rules.required.contains(group) {
            return REQUIRED;
        }
        if let Some(place) = rules.preferred.iter().position(|preferred| preferred == group) {
            let count = rules.preferred.len();
            return if self.ordered { PREFERRED * (count - place) as i64 / count as i64 } else { PREFERRED };
        }
        if rules.anti_preferred.contains(group) { DISLIKED } else { 0 }
    }
}

fn rules(cluster: &Cluster, shape: ShapeId) -> Option<&NodeGroups> {
    cluster.queues[cluster.shapes[shape].queue?].node_groups.as_deref()
}

impl Plugin for NodeGroup {
    fn filter(&self, reach: Reach, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], why: &mut [Why]) {
        if reach != Reach::Facts {
            return;
        }
        let rules = rules(cluster, shape);
        for (&node, why) in nodes.iter().zip(why).filter(|(_, why)| **why == Why::Fits) {
            if !self.allows(rules, cluster.nodes.fact[node].labels.get(NODEGROUP_NAME)) {
                *why = Why::NodeGroup;
            }
        }
    }

    fn score(&self, reach: Reach, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], scores: &mut [i64]) {
        let (Reach::Facts, Some(rules)) = (reach, rules(cluster, shape)) else { return };
        for (&node, score) in nodes.iter().zip(scores) {
            if let Some(group) = cluster.nodes.fact[node].labels.get(NODEGROUP_NAME) {
                *score += self.points(rules, group);
            }
        }
    }
}
