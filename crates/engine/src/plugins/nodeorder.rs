//! Kubernetes' node scores, each with a weight.

use crate::base::ids::{NodeId, ShapeId};
use crate::base::resources::{CPU, MEMORY};
use crate::model::Cluster;
use crate::model::nodes::fraction;
use crate::policy::plugin::{Entry, Plugin, Scope, answers};
use crate::settings::args::Args;
use crate::settings::argument::Argument;

pub static ENTRY: Entry = Entry {
    name: "nodeorder",
    summary: "Kubernetes' node scores, each with a weight",
    arguments: &[
        Argument {
            name: "leastrequested.weight",
            default: "1",
            meaning: "prefer emptier nodes (cpu, memory)",
        },
        Argument {
            name: "mostrequested.weight",
            default: "0",
            meaning: "prefer fuller nodes (cpu, memory)",
        },
        Argument { name: "nodeaffinity.weight", default: "2", meaning: "preferred node affinity" },
        Argument {
            name: "podaffinity.weight",
            default: "2",
            meaning: "preferred pod affinity and anti-affinity",
        },
        Argument {
            name: "balancedresource.weight",
            default: "1",
            meaning: "use cpu and memory evenly",
        },
        Argument {
            name: "tainttoleration.weight",
            default: "3",
            meaning: "fewer PreferNoSchedule taints",
        },
        Argument {
            name: "imagelocality.weight",
            default: "1",
            meaning: "nodes that have the images",
        },
        Argument {
            name: "podtopologyspread.weight",
            default: "2",
            meaning: "ScheduleAnyway spread constraints",
        },
    ],
    differs: "Node affinity and taints are scored by the pod's own preferences and not relative \
              to the best node, so that a score does not change when another node does. Zero \
              requests count as zero.",
    build: |args, _| Box::new(NodeOrder::new(args)),
};

struct NodeOrder {
    least: i64,
    most: i64,
    node_affinity: i64,
    pod_affinity: i64,
    balanced: i64,
    taints: i64,
    images: i64,
    spread: i64,
}

/// All points, in thousandths.
const FULL: i64 = 100_000;
/// Images below the first size don't matter, above the second nothing is added (Kubernetes'
/// numbers).
const SMALL_IMAGE: i64 = 23 << 20;
const LARGE_IMAGE: i64 = 1000 << 20;

impl NodeOrder {
    fn new(args: &mut Args) -> NodeOrder {
        NodeOrder {
            least: args.weight("leastrequested.weight", 1),
            most: args.weight("mostrequested.weight", 0),
            node_affinity: args.weight("nodeaffinity.weight", 2),
            pod_affinity: args.weight("podaffinity.weight", 2),
            balanced: args.weight("balancedresource.weight", 1),
            taints: args.weight("tainttoleration.weight", 3),
            images: args.weight("imagelocality.weight", 1),
            spread: args.weight("podtopologyspread.weight", 2),
        }
    }

    fn score_facts(&self, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], scores: &mut [i64]) {
        let spec = &cluster.shapes[shape].spec;
        let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let wishes = affinity.map(|affinity| affinity.preferred.as_slice()).unwrap_or_default();
        let wished: i64 = wishes.iter().map(|wish| i64::from(wish.weight)).sum();
        let images: Vec<&str> =
            spec.containers.iter().map(|container| container.image.as_str()).collect();
        for (&node, score) in nodes.iter().zip(scores) {
            let traits = cluster.nodes.traits[node];
            if wished == 0 && !traits.refuses_some && !traits.lists_images {
                *score += FULL * self.taints;
                continue;
            }
            let fact = &cluster.nodes.fact[node];
            if self.node_affinity > 0 && wished > 0 {
                let name = &cluster.nodes.name[node];
                let granted =
                    wishes.iter().filter(|wish| wish.preference.matches(&fact.labels, name));
                let granted: i64 = granted.map(|wish| i64::from(wish.weight)).sum();
                *score += FULL * self.node_affinity * granted / wished;
            }
            let disliked = fact.taints.iter().filter(|taint| {
                taint.effect == "PreferNoSchedule"
                    && !spec.tolerations.iter().any(|t| t.tolerates(taint))
            });
            *score += FULL * self.taints / (1 + disliked.count() as i64);
            if !fact.images.is_empty() {
                let present =
                    |image: &&&str| fact.images.iter().find(|(name, _)| same_image(name, image));
                let bytes: i64 =
                    images.iter().filter_map(|image| present(&image)).map(|(_, size)| *size).sum();
                let most = LARGE_IMAGE * images.len().max(1) as i64;
                let counted = (bytes.clamp(SMALL_IMAGE, most) - SMALL_IMAGE) >> 10;
                *score += FULL * self.images * counted / ((most - SMALL_IMAGE) >> 10);
            }
        }
    }

    fn score_room(&self, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], scores: &mut [i64]) {
        if self.least == 0 && self.most == 0 && self.balanced == 0 {
            return;
        }
        let want = [cluster.request_of(shape, CPU), cluster.request_of(shape, MEMORY)];
        let columns = [CPU, MEMORY].map(|resource| {
            let nodes = &cluster.nodes;
            (&nodes.allocatable[resource], &nodes.idle[resource], &nodes.reciprocal[resource])
        });
        const WHOLE: i64 = 1 << 20;
        for (&node, score) in nodes.iter().zip(scores) {
            let used = |at: usize| {
                let (allocatable, idle, reciprocal) = columns[at];
                fraction(allocatable[node] - idle[node] + want[at], reciprocal[node]).min(WHOLE)
            };
            let (cpu, memory) = (used(0), used(1));
            let fullness = cpu + memory;
            let points = self.least * (2 * WHOLE - fullness)
                + self.most * fullness
                + self.balanced * (2 * WHOLE - (cpu - memory).abs());
            *score += (points * FULL) >> 21;
        }
    }

    /// Scores that compare nodes with each other: from 0 for the worst to the maximum for the best.
    fn score_rules(&self, cluster: &Cluster, shape: ShapeId, nodes: &[NodeId], scores: &mut [i64]) {
        let bonds = &cluster.shapes[shape].bonds;
        let terms = &cluster.terms;
        if self.pod_affinity > 0 {
            let drawn = |node: NodeId| -> i64 {
                let own = bonds.preferred.iter().map(|&(term, weight)| {
                    weight * i64::from(terms.count(term, terms.value(term, node)).present)
                });
                let others = bonds
                    .matches
                    .iter()
                    .map(|&term| terms.count(term, terms.value(term, node)).drawn);
                own.chain(others).sum()
            };
            add_normalised(nodes, scores, self.pod_affinity, drawn);
        }
        let wishes: Vec<_> = bonds.spread.iter().filter(|spread| !spread.hard).collect();
        if self.spread > 0 && !wishes.is_empty() {
            let emptiness = |node: NodeId| -> i64 {
                -wishes
                    .iter()
                    .map(|spread| {
                        let count = terms.count(spread.term, terms.value(spread.term, node));
                        i64::from(count.present - count.leaving)
                    })
                    .sum::<i64>()
            };
            add_normalised(nodes, scores, self.spread, emptiness);
        }
    }
}

fn add_normalised(nodes: &[NodeId], scores: &mut [i64], weight: i64, raw: impl Fn(NodeId) -> i64) {
    let raw: Vec<i64> = nodes.iter().map(|&node| raw(node)).collect();
    let (Some(&least), Some(&most)) = (raw.iter().min(), raw.iter().max()) else { return };
    if least < most {
        for (score, raw) in scores.iter_mut().zip(raw) {
            *score += FULL * weight * (raw - least) / (most - least);
        }
    }
}

/// `nginx` on a pod is `docker.io/library/nginx:latest` on a node.
fn same_image(on_node: &str, wanted: &str) -> bool {
    let tagged = |name: &str| {
        name.contains('@') || name.rsplit('/').next().is_some_and(|last| last.contains(':'))
    };
    let full = if tagged(wanted) { wanted.to_owned() } else { format!("{wanted}:latest") };
    on_node == full
        || on_node.strip_suffix(full.as_str()).is_some_and(|registry| registry.ends_with('/'))
}

#[answers]
impl Plugin for NodeOrder {
    fn score(
        &self,
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        match reach {
            Scope::NodeFacts => self.score_facts(cluster, shape, nodes, scores),
            Scope::NodePods => self.score_room(cluster, shape, nodes, scores),
            Scope::OtherNodes => self.score_rules(cluster, shape, nodes, scores),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::same_image;

    #[test]
    fn image_names_match_with_and_without_registry_and_tag() {
        assert!(same_image("docker.io/library/nginx:latest", "nginx"));
        assert!(same_image("registry.local/app:1", "registry.local/app:1"));
        assert!(!same_image("registry.local/app:1", "registry.local/app:2"));
        assert!(!same_image("registry.local/myapp:1", "app:1"));
    }
}
