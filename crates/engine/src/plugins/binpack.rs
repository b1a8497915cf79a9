//! Prefers nodes that the pod fills most, so that others stay empty.

use std::cell::{Ref, RefCell};

use crate::base::ids::{NodeId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::nodes::fraction;
use crate::policy::plugin::{Entry, Plugin, Scope, answers};
use crate::settings::args::Args;
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "binpack",
    summary: "prefers nodes that the pod fills most",
    arguments: &[
        Argument {
            name: "binpack.weight",
            default: "1",
            meaning: "weight of the score, 0 turns it off",
        },
        Argument { name: "binpack.cpu", default: "1", meaning: "weight of cpu" },
        Argument { name: "binpack.memory", default: "1", meaning: "weight of memory" },
        Argument {
            name: "binpack.resources",
            default: "",
            meaning: "other resources that count, as a list",
        },
        Argument {
            name: "binpack.resources.<name>",
            default: "1",
            meaning: "weight of such a resource",
        },
    ],
    differs: "Where no resources are listed, every extended resource counts with weight 1, so \
              that GPUs are packed by default. An explicit list is used as it is.",
    build: |args, _| Box::new(Binpack::new(args)),
};

struct Binpack {
    weight: i64,
    named: Vec<(String, i64)>,
    /// The weight of extended resources that aren't named.
    others: i64,
    /// The weights by resource, for the number of dimensions at that time.
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
        let others = i64::from(named.is_empty());
        named.push(("ephemeral-storage".into(), 0));
        named.push(("pods".into(), 0));
        named.push(("cpu".into(), args.weight("binpack.cpu", 1)));
        named.push(("memory".into(), args.weight("binpack.memory", 1)));
        Binpack { weight, named, others, weights: RefCell::default() }
    }

    fn weights(&self, cluster: &Cluster) -> Ref<'_, Vec<i64>> {
        if self.weights.borrow().len() < cluster.dimensions.len() {
            let mut weights = self.weights.borrow_mut();
            while weights.len() < cluster.dimensions.len() {
                let name = cluster.dimensions.name(ResourceId::from(weights.len()));
                let known = self.named.iter().find(|(known, _)| known == name);
                weights.push(known.map_or(self.others, |&(_, weight)| weight));
            }
        }
        self.weights.borrow()
    }
}

#[answers]
impl Plugin for Binpack {
    fn score(
        &self,
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        if reach != Scope::NodePods || self.weight == 0 {
            return;
        }
        let request = &cluster.shapes[shape].request;
        let weights = self.weights(cluster);
        let sum: i64 = request.iter().map(|(resource, _)| weights[usize::from(resource)]).sum();
        if sum == 0 {
            return;
        }
        // One division for all resources and nodes.
        let unit = ((100_000 * self.weight) << 12) / sum;
        for (resource, want) in request.iter() {
            let factor = (unit * weights[usize::from(resource)]) >> 12;
            if factor == 0 {
                continue;
            }
            let (allocatable, idle) =
                (&cluster.nodes.allocatable[resource], &cluster.nodes.idle[resource]);
            let reciprocal = &cluster.nodes.reciprocal[resource];
            for (&node, score) in nodes.iter().zip(scores.iter_mut()) {
                let used = allocatable[node] - idle[node] + want;
                *score += (fraction(used, reciprocal[node]) * factor) >> 20;
            }
        }
    }
}
