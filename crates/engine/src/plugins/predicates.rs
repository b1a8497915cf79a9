//! Kubernetes' filters: whether a node accepts a pod, apart from room.

use crate::base::ids::{NodeId, ShapeId, TermId};
use crate::base::room::Room;
use crate::decision::node_reason::Why;
use crate::model::Cluster;
use crate::model::shapes::Shape;
use crate::model::terms::Spread;
use crate::policy::plugin::{Entry, Plugin, Scope, answers};
use crate::settings::args::Args;
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "predicates",
    summary: "Kubernetes' filters: taints, selectors, affinity, spread, ports, volumes",
    arguments: &[
        Argument {
            name: "predicate.NodeAffinityEnable",
            default: "true",
            meaning: "node selector and affinity",
        },
        Argument { name: "predicate.NodePortsEnable", default: "true", meaning: "host ports" },
        Argument { name: "predicate.TaintTolerationEnable", default: "true", meaning: "taints" },
        Argument {
            name: "predicate.PodAffinityEnable",
            default: "true",
            meaning: "affinity between pods",
        },
        Argument {
            name: "predicate.PodTopologySpreadEnable",
            default: "true",
            meaning: "spread constraints",
        },
        Argument {
            name: "predicate.VolumeBindingEnable",
            default: "true",
            meaning: "where volumes can be used",
        },
        Argument {
            name: "predicate.NodeVolumeLimitsEnable",
            default: "true",
            meaning: "accepted, no effect",
        },
        Argument {
            name: "predicate.VolumeZoneEnable",
            default: "true",
            meaning: "accepted, no effect",
        },
        Argument {
            name: "predicate.DynamicResourceAllocationEnable",
            default: "true",
            meaning: "accepted: pods with resource claims are refused with that reason",
        },
        Argument { name: "predicate.CacheEnable", default: "true", meaning: "accepted, always on" },
    ],
    differs: "Answers are cached per shape of pod and computed again only for nodes that changed. \
              Nodes that are not ready take no pods, with or without this plugin.",
    build: |args, _| Box::new(Predicates::new(args)),
};

struct Predicates {
    node_affinity: bool,
    ports: bool,
    taints: bool,
    pod_affinity: bool,
    spread: bool,
    volumes: bool,
}

/// The taint of a cordoned node, which pods may tolerate.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

impl Predicates {
    fn new(args: &mut Args) -> Predicates {
        Predicates {
            node_affinity: args.bool("predicate.NodeAffinityEnable", true),
            ports: args.bool("predicate.NodePortsEnable", true),
            taints: args.bool("predicate.TaintTolerationEnable", true),
            pod_affinity: args.bool("predicate.PodAffinityEnable", true),
            spread: args.bool("predicate.PodTopologySpreadEnable", true),
            volumes: args.bool("predicate.VolumeBindingEnable", true),
        }
    }

    fn facts(&self, cluster: &Cluster, shape: &Shape, node: NodeId) -> Why {
        let fact = &cluster.nodes.fact[node];
        let tolerated = |taint: &muster_api::core::Taint| {
            shape.spec.tolerations.iter().any(|t| t.tolerates(taint))
        };
        if fact.cordoned {
            let taint = muster_api::core::Taint {
                key: UNSCHEDULABLE.into(),
                value: String::new(),
                effect: "NoSchedule".into(),
            };
            if !tolerated(&taint) {
                return Why::Cordoned;
            }
        }
        if self.taints {
            let refuses = |taint: &&muster_api::core::Taint| {
                taint.effect != "PreferNoSchedule" && !tolerated(taint)
            };
            match fact.taints.iter().find(refuses) {
                Some(taint) if taint.key == UNSCHEDULABLE => return Why::Cordoned,
                Some(_) => return Why::Tainted,
                None => {}
            }
        }
        if self.node_affinity && !attracted(cluster, shape, node) {
            return Why::Affinity;
        }
        if self.volumes {
            for preemptor in &shape.claims {
                match cluster.claims.get(preemptor) {
                    None => return Why::ClaimMissing,
                    // Not bound yet: the volume is created where the pod is placed.
                    Some(None) => {}
                    Some(Some(volume)) => match cluster.volumes.get(volume) {
                        Some(Some(selector))
                            if !selector.matches(&fact.labels, &cluster.nodes.name[node]) =>
                        {
                            return Why::Volume;
                        }
                        _ => {}
                    },
                }
            }
        }
        Why::Fits
    }

    fn rules(
        &self,
        cluster: &Cluster,
        (shape, room): (&Shape, Room),
        node: NodeId,
        levels: &[Level],
    ) -> Why {
        let (terms, bonds) = (&cluster.terms, &shape.bonds);
        let count = |term: TermId| terms.count(term, terms.value(term, node));
        if self.pod_affinity {
            let labelled = |term: &TermId| terms.value(*term, node) != 0;
            if let Some(&term) =
                bonds.anti_affinity.iter().find(|&&t| labelled(&t) && count(t).present_in(room) > 0)
            {
                return Why::Apart(term);
            }
            let avoided = |term: &&TermId| {
                terms.get(**term).excludes && labelled(term) && count(**term).excluding_in(room) > 0
            };
            if let Some(&term) = bonds.matches.iter().find(avoided) {
                return Why::Avoided(term);
            }
            // The first pod of a set with affinity to itself has no pod to join.
            let first = bonds.affine_to_itself
                && bonds.affinity.iter().all(|&term| terms.get(term).total_in(room) == 0);
            let lonely =
                |term: &&TermId| !labelled(term) || !first && count(**term).present_in(room) == 0;
            if let Some(&term) = bonds.affinity.iter().find(lonely) {
                return Why::Together(term);
            }
        }
        if self.spread {
            for (spread, level) in bonds.spread.iter().filter(|spread| spread.hard).zip(levels) {
                let here = count(spread.term);
                let after =
                    i64::from(here.present - here.leaving) + i64::from(spread.counts_itself);
                if terms.value(spread.term, node) == 0 || after - level.lowest > spread.max_skew {
                    return Why::Spread(spread.term);
                }
            }
        }
        Why::Fits
    }

    /// The lowest count among the domains that the pod could use at all.
    fn level(&self, cluster: &Cluster, shape: &Shape, spread: &Spread) -> Level {
        let terms = &cluster.terms;
        let mut seen = vec![false; terms.values(spread.term) + 1];
        let mut lowest = i64::MAX;
        let mut domains = 0;
        for node in cluster.nodes.live() {
            let value = terms.value(spread.term, node);
            let fact = &cluster.nodes.fact[node];
            if value == 0 || seen[value as usize] {
                continue;
            }
            let refuses = |taint: &muster_api::core::Taint| {
                taint.effect != "PreferNoSchedule"
                    && !shape.spec.tolerations.iter().any(|t| t.tolerates(taint))
            };
            if spread.honours_affinity && !attracted(cluster, shape, node)
                || spread.honours_taints && (fact.cordoned || fact.taints.iter().any(refuses))
            {
                continue;
            }
            seen[value as usize] = true;
            domains += 1;
            let count = terms.count(spread.term, value);
            lowest = lowest.min(i64::from(count.present - count.leaving));
        }
        Level {
            lowest: if domains < spread.min_domains || lowest == i64::MAX { 0 } else { lowest },
        }
    }
}

struct Level {
    lowest: i64,
}

/// Whether node selector and required node affinity match the node.
fn attracted(cluster: &Cluster, shape: &Shape, node: NodeId) -> bool {
    let labels = &cluster.nodes.fact[node].labels;
    let selected =
        shape.spec.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    let affinity =
        shape.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    selected && required.is_none_or(|required| required.matches(labels, &cluster.nodes.name[node]))
}

#[answers]
impl Plugin for Predicates {
    fn filter(
        &self,
        reach: Scope,
        cluster: &Cluster,
        (shape, room): (ShapeId, Room),
        nodes: &[NodeId],
        why: &mut [Why],
    ) {
        let shape = &cluster.shapes[shape];
        let levels: Vec<Level> = match reach {
            Scope::NodePods if shape.ports.is_empty() || !self.ports => return,
            Scope::OtherNodes if shape.bonds.is_empty() && shape.bonds.matches.is_empty() => return,
            Scope::OtherNodes => {
                let hard = shape.bonds.spread.iter().filter(|spread| spread.hard);
                hard.map(|spread| self.level(cluster, shape, spread)).collect()
            }
            _ => Vec::new(),
        };
        let any = shape.takes_any_node();
        for (&node, why) in nodes.iter().zip(why).filter(|(_, why)| **why == Why::Fits) {
            *why = match reach {
                Scope::NodeFacts if any && !cluster.nodes.traits[node].refuses_some => Why::Fits,
                Scope::NodeFacts => self.facts(cluster, shape, node),
                Scope::NodePods
                    if shape
                        .ports
                        .iter()
                        .any(|port| cluster.nodes.port_taken(node, port, room)) =>
                {
                    Why::Port
                }
                Scope::NodePods => Why::Fits,
                Scope::OtherNodes => self.rules(cluster, (shape, room), node, &levels),
            };
        }
    }
}
