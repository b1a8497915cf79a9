//! Which of several domains is better. Where a gang may go at all does not depend on this plugin:
//! limits of tiers hold with and without it (see `search.rs`). Pods without a limit are kept
//! together in domains that are in use, so that whole domains stay free for gangs with limits.

use crate::base::ids::{DomainId, ResourceId, ShapeId};
use crate::base::resources::{CPU, EPHEMERAL, MEMORY, PODS};
use crate::model::Cluster;
use crate::model::topology::domains::ROOT;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::settings::args::Args;
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "network-topology-aware",
    summary: "prefers, among domains of one tier that hold equally many of a gang's pods, the one \
              they fill most; keeps pods without networkTopology in domains that are in use",
    arguments: &[
        Argument {
            name: "weight",
            default: "1",
            meaning: "weight of the score for pods without networkTopology",
        },
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
        Argument {
            name: "hypernode.binpack.normal-pod.enable",
            default: "true",
            meaning: "score nodes for pods without networkTopology by how full the domains around \
                      them are",
        },
        Argument {
            name: "hypernode.binpack.normal-pod.fading",
            default: "0.8",
            meaning: "how much less each higher tier counts in that score, from 0 (not at all) to \
                      1 (as much)",
        },
        Argument {
            name: MOST_DOMAINS,
            default: "",
            meaning: "how many domains evicting actions try for a gang, if that is less than their \
                      own argument `maxDomains`; without it only that counts",
        },
    ],
    differs: "A gang's networkTopology is obeyed even without this plugin. Where no resources are \
              listed, every extended resource counts with weight 1. The score for pods without \
              networkTopology is at most 100 times the weight, however many tiers there are.",
    build: |args, _| Box::new(NetworkTopologyAware::new(args)),
};

const MOST_DOMAINS: &str = "hypernode.gradient.evict.max-hypernodes";

struct NetworkTopologyAware {
    /// How many domains evicting actions may try; 0 if that is not said.
    most_domains: usize,
    cpu: i64,
    memory: i64,
    named: Vec<(String, i64)>,
    /// The weight of the score for pods without networkTopology; `None` turns that score off.
    weight: i64,
    /// In millionths.
    fading: i64,
}

const MILLION: i64 = 1_000_000;

impl NetworkTopologyAware {
    fn new(args: &mut Args) -> NetworkTopologyAware {
        let mut named = args.prefixed("hypernode.binpack.resources.");
        for name in args.words("hypernode.binpack.resources") {
            if !named.iter().any(|(known, _)| *known == name) {
                named.push((name, 1));
            }
        }
        let weight = args.weight("weight", 1);
        let scores = args.bool("hypernode.binpack.normal-pod.enable", true);
        let key = "hypernode.binpack.normal-pod.fading";
        let mut fading = args.millionths(key, 4 * MILLION / 5);
        if !(0..=MILLION).contains(&fading) {
            let help = "write a number from 0 to 1, for example 0.8".to_owned();
            args.problem(key, "higher tiers can't count more than lower ones".to_owned(), help);
            fading = MILLION;
        }
        let most_domains = args.at_least(1, MOST_DOMAINS, 0) as usize;
        NetworkTopologyAware {
            most_domains,
            weight: if scores { weight } else { 0 },
            fading,
            cpu: args.weight("hypernode.binpack.cpu", 1),
            memory: args.weight("hypernode.binpack.memory", 1),
            named,
        }
    }

    /// How much a domain of this tier counts.
    fn faded(&self, tier: u32) -> i64 {
        (1..tier.min(64)).fold(MILLION, |counts, _| counts * self.fading / MILLION)
    }
}

#[answers]
impl Plugin for NetworkTopologyAware {
    fn domain_score(&self, cluster: &Cluster, shape: ShapeId, domain: DomainId) -> Option<i64> {
        const WHOLE: i64 = 1 << 20;
        let full = 100_000 * Some(self.weight).filter(|&weight| weight > 0)?;
        if domain == ROOT {
            return Some(full);
        }
        let domains = &cluster.domains;
        let (mut points, mut weights) = (0, 0);
        for (resource, want) in cluster.shapes[shape].request.iter() {
            let weight = self.domain_weight(cluster, resource).unwrap_or(0);
            let filled = if weight > 0 { domains.fullness(domain, resource, want) } else { 0 };
            if filled > WHOLE {
                return Some(0);
            }
            points += weight * filled;
            weights += weight;
        }
        let sum: i64 = domains.levels().iter().map(|&tier| self.faded(tier)).sum();
        let most = (full * self.faded(domains[domain].tier)).checked_div(sum).unwrap_or(0);
        Some((points.checked_div(weights).unwrap_or(0) * most) >> 20)
    }

    fn most_domains_to_clear(&self) -> Option<(&'static str, usize)> {
        Some((MOST_DOMAINS, self.most_domains)).filter(|&(_, most)| most > 0)
    }

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
