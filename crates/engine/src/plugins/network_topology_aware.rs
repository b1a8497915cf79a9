//! What makes one domain of the network better than another. Where a gang may go at all is not a matter of opinion: its
//! closeness holds with or without this plugin (see `search.rs`).

use super::{Argument, Entry};
use crate::config::Args;
use crate::ids::ResourceId;
use crate::model::Cluster;
use crate::policy::{Plugin, Question};
use crate::resources::{CPU, EPHEMERAL, MEMORY, PODS};

pub static ENTRY: Entry = Entry {
    name: "network-topology-aware",
    summary: "prefers, among domains of one tier that hold as many of a gang's pods, the one that is fuller with them",
    arguments: &[
        Argument { name: "weight", default: "1", meaning: "accepted; domains are compared by nothing else" },
        Argument {
            name: "hypernode.binpack.cpu",
            default: "1",
            meaning: "weight of cpu in how full a domain is",
        },
        Argument { name: "hypernode.binpack.memory", default: "1", meaning: "weight of memory" },
        Argument {
            name: "hypernode.binpack.resources",
            default: "",
            meaning: "other resources that count, as a list",
        },
        Argument {
            name: "hypernode.binpack.resources.<name>",
            default: "1",
            meaning: "weight of such a resource",
        },
    ],
    differs: "A gang's networkTopology is obeyed even without this plugin. Where no resources are listed, every extended \
              resource counts with weight 1.",
    answers: &[Question::Domains],
    build: |args, _| Box::new(NetworkTopologyAware::new(args)),
};

struct NetworkTopologyAware {
    cpu: i64,
    memory: i64,
    named: Vec<(String, i64)>,
}

impl NetworkTopologyAware {
    fn new(args: &mut Args) -> NetworkTopologyAware {
        let mut named = args.prefixed("hypernode.binpack.resources.");
        for name in args.words("hypernode.binpack.resources") {
            if !named.iter().any(|(known, _)| *known == name) {
                named.push((name, 1));
            }
        }
        NetworkTopologyAware {
            cpu: args.weight("hypernode.binpack.cpu", 1),
            memory: args.weight("hypernode.binpack.memory", 1),
            named,
        }
    }
}

impl Plugin for NetworkTopologyAware {
    fn domain_weight(&self, cluster: &Cluster, resource: ResourceId) -> Option<i64> {
        Some(match resource {
            CPU => self.cpu,
            MEMORY => self.memory,
            PODS | EPHEMERAL => 0,
            _ if self.named.is_empty() => 1,
            _ => {
                let name = cluster.dimensions.name(resource);
                self.named.iter().find(|(known, _)| known == name).map_or(0, |&(_, weight)| weight)
            }
        })
    }
}
