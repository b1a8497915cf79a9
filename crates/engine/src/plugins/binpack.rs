//! Prefers nodes that are fuller with the pod on them, so that others stay whole.

use std::cell::RefCell;

use super::{Argument, Entry};
use crate::config::Args;
use crate::ids::{NodeId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::nodes::fraction;
use crate::policy::{Plugin, Question, Reach};
use crate::resources::PODS;

pub static ENTRY: Entry = Entry {
    name: "binpack",
    summary: "prefers nodes that are fuller with the pod on them",
    arguments: &[
        Argument { name: "binpack.weight", default: "1", meaning: "weight of the score, 0 turns it off" },
        Argument { name: "binpack.cpu", default: "1", meaning: "weight of cpu" },
        Argument { name: "binpack.memory", default: "1", meaning: "weight of memory" },
        Argument { name: "binpack.resources", default: "", meaning: "other resources that count, as a list" },
        Argument { name: "binpack.resources.<name>", default: "1", meaning: "weight of such a resource" },
    ],
    differs: "The built-in configuration lists nvidia.com/gpu, so that GPUs are packed by default.",
    answers: &[Question::Score],
    build: |args, _| Box::new(Binpack::new(args)),
};

struct Binpack {
    weight: i64,
    named: Vec<(String, i64)>,
    /// The weights by resource, for as many dimensions as there were.
    weights: RefCell<Vec<i64>>,
}

impl Binpack {
    fn new(args: &mut Args) -> Binpack {
        let weight = args.weight("binpack.weight", 1);
        let mut named = args.prefixed("binpack.resources.");
        for name in args.words("binpack.resources") {
            if !named.iter().any(|(known, _)| *known == name) {
                named.push((name, 1));
            }
        }
        named.push(("cpu".into(), args.weight("binpack.cpu", 1)));
        named.push(("memory".into(), args.weight("binpack.memory", 1)));
        Binpack { weight, named, weights: RefCell::default() }
    }

    fn weigh(&self, cluster: &Cluster, resource: ResourceId) -> i64 {
        let mut weights = self.weights.borrow_mut();
        while weights.len() < cluster.dimensions.len() {
            let id = ResourceId::from(weights.len());
            let name = cluster.dimensions.name(id);
            let known = self.named.iter().find(|(known, _)| known == name).map(|&(_, weight)| weight);
            weights.push(if id == PODS { 0 } else { known.unwrap_or(0) });
        }
        weights[usize::from(resource)]
    }
}

impl Plugin for Binpack {
    fn score(&self, reach: Reach, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], scores: &mut [i64]) {
        if reach != Reach::Node || self.weight == 0 {
            return;
        }
        let request = &cluster.shapes[shape].request;
        let sum: i64 = request.iter().map(|(resource, _)| self.weigh(cluster, resource)).sum();
        if sum == 0 {
            return;
        }
        for (resource, want) in request.iter() {
            let weight = self.weigh(cluster, resource);
            if weight == 0 {
                continue;
            }
            let factor = 100_000 * self.weight * weight / sum;
            let (allocatable, idle) = (&cluster.nodes.allocatable[resource], &cluster.nodes.idle[resource]);
            let reciprocal = &cluster.nodes.reciprocal[resource];
            for (&node, score) in nodes.iter().zip(scores.iter_mut()) {
                let used = allocatable[node] - idle[node] + want;
                *score += (fraction(used, reciprocal[node]) * factor) >> 20;
            }
        }
    }
}
