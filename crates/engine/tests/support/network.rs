//! Small random networks and gangs for them, as manifests, and what is true of places that obey the
//! gang's wishes.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;

/// Leaves of nodes with so many cpus, of which some are in use, and how many leaves are under each
/// spine.
#[derive(Clone, Debug)]
pub struct Network {
    pub leaves: Vec<Vec<(i64, i64)>>,
    pub per_spine: usize,
}

#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub cpus: i64,
    pub used: i64,
    pub leaf: usize,
}

#[derive(Clone, Debug)]
pub struct Domain {
    pub name: String,
    pub tier: u32,
    pub leaves: BTreeSet<usize>,
}

/// The tier of the cluster above leaves and spines.
pub const TOP: u32 = 3;

#[derive(Clone, Debug)]
pub struct Work {
    pub pods: Vec<Pod>,
    pub minimum: usize,
    pub close: Option<Close>,
    pub groups: Option<Groups>,
}

#[derive(Clone, Debug)]
pub struct Pod {
    pub cpu: i64,
    /// The subgroup that it is of.
    pub part: Option<usize>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Close {
    Hard(u32),
    Soft,
}

#[derive(Clone, Debug)]
pub struct Groups {
    pub size: usize,
    pub minimum: usize,
    pub close: Option<Close>,
}

pub fn network(leaves: usize, nodes: usize) -> impl Strategy<Value = Network> {
    let node = (1..5i64).prop_flat_map(|cpus| (Just(cpus), prop_oneof![Just(0), 0..=cpus]));
    let leaf = prop::collection::vec(node, 1..=nodes);
    (prop::collection::vec(leaf, 1..=leaves), 1..4usize)
        .prop_map(|(leaves, per_spine)| Network { leaves, per_spine })
}

/// Gangs of so many pods that ask for at most so many different amounts.
pub fn work(pods: usize, shapes: usize) -> impl Strategy<Value = Work> {
    let amounts = prop::collection::vec(1..4i64, shapes);
    (amounts, prop::collection::vec(0..shapes, 1..=pods), 1..=TOP)
        .prop_flat_map(|(amounts, pods, tier)| {
            let pods: Vec<Pod> =
                pods.into_iter().map(|shape| Pod { cpu: amounts[shape], part: None }).collect();
            let minimum = prop_oneof![1..=pods.len(), Just(pods.len())];
            (Just(pods), minimum, Just(tier))
        })
        .prop_map(|(pods, minimum, tier)| Work {
            pods,
            minimum,
            close: Some(Close::Hard(tier)),
            groups: None,
        })
}

/// The same with subgroups, and every mode of closeness at both levels.
pub fn grouped(pods: usize, shapes: usize) -> impl Strategy<Value = Work> {
    let close = || {
        prop_oneof![
            1 => Just(None),
            1 => Just(Some(Close::Soft)),
            4 => (1..=TOP).prop_map(|tier| Some(Close::Hard(tier))),
        ]
    };
    let part = prop_oneof![1 => Just(None), 5 => (0..pods / 2).prop_map(Some)];
    let groups = (1..4usize, 0..=2usize, close()).prop_map(|(size, minimum, close)| Groups {
        size,
        minimum,
        close,
    });
    (work(pods, shapes), prop::collection::vec(part, pods), close(), groups).prop_map(
        |(mut work, parts, close, groups)| {
            work.pods.iter_mut().zip(parts).for_each(|(pod, part)| pod.part = part);
            Work { close, groups: Some(groups), ..work }
        },
    )
}

impl Network {
    pub fn nodes(&self) -> Vec<Node> {
        let of_leaf = |(leaf, nodes): (usize, &Vec<(i64, i64)>)| {
            let node = move |(at, &(cpus, used)): (usize, &(i64, i64))| Node {
                name: format!("n{leaf}-{at}"),
                cpus,
                used,
                leaf,
            };
            nodes.iter().enumerate().map(node).collect::<Vec<_>>()
        };
        self.leaves.iter().enumerate().flat_map(of_leaf).collect()
    }

    pub fn domains(&self) -> Vec<Domain> {
        let all: Vec<usize> = (0..self.leaves.len()).collect();
        let domain = |name, tier, leaves: &[usize]| Domain {
            name,
            tier,
            leaves: leaves.iter().copied().collect(),
        };
        let mut domains: Vec<Domain> =
            all.iter().map(|&leaf| domain(format!("leaf{leaf}"), 1, &[leaf])).collect();
        let spines = all.chunks(self.per_spine).enumerate();
        domains.extend(spines.map(|(spine, leaves)| domain(format!("spine{spine}"), 2, leaves)));
        domains.push(domain("<cluster-top-hypernode>".into(), TOP, &all));
        domains
    }

    /// The tier of the smallest domain around these leaves.
    pub fn tier_around(&self, leaves: &BTreeSet<usize>) -> u32 {
        let around = |domain: &Domain| domain.leaves.is_superset(leaves);
        self.domains()
            .into_iter()
            .filter(around)
            .map(|domain| domain.tier)
            .min()
            .expect("the cluster")
    }

    /// The nodes of some leaves without their network.
    pub fn bare(&self, leaves: &BTreeSet<usize>) -> String {
        let mut text = String::new();
        for Node { name, cpus, used, .. } in
            self.nodes().iter().filter(|node| leaves.contains(&node.leaf))
        {
            writeln!(text, "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{allocatable: {{cpu: {cpus}, pods: 50}}}}\n---").expect("a string");
            if *used > 0 {
                writeln!(text, "apiVersion: v1\nkind: Pod\nmetadata: {{name: used-{name}, namespace: default, uid: used-{name}}}\nspec: {{nodeName: {name}, containers: [{{name: m, image: i, resources: {{requests: {{cpu: {used}}}}}}}]}}\nstatus: {{phase: Running}}\n---").expect("a string");
            }
        }
        text
    }

    /// A domain with its nodes and the HyperNodes below it, as if there were nothing else.
    pub fn alone(&self, domain: &Domain) -> String {
        let mut text = self.bare(&domain.leaves);
        let member = |kind: &str, name: &str| {
            format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}")
        };
        let below = |other: &Domain| {
            other.tier <= domain.tier.min(TOP - 1) && other.leaves.is_subset(&domain.leaves)
        };
        for Domain { name, tier, leaves } in self.domains().into_iter().filter(below) {
            let nodes = self.nodes();
            let nodes = nodes.iter().filter(|node| leaves.contains(&node.leaf));
            let members: Vec<String> = match tier {
                1 => nodes.map(|node| member("Node", &node.name)).collect(),
                _ => {
                    leaves.iter().map(|leaf| member("HyperNode", &format!("leaf{leaf}"))).collect()
                }
            };
            writeln!(text, "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec: {{tier: {tier}, members: [{}]}}\n---", members.join(", ")).expect("a string");
        }
        text
    }

    pub fn whole(&self) -> String {
        self.alone(self.domains().last().expect("the cluster"))
    }
}

impl Close {
    fn spec(close: Option<Close>) -> String {
        match close {
            Some(Close::Hard(tier)) => {
                format!(", networkTopology: {{mode: hard, highestTierAllowed: {tier}}}")
            }
            Some(Close::Soft) => ", networkTopology: {mode: soft}".into(),
            None => String::new(),
        }
    }

    /// The highest tier that domains for such pods may have, and whether only domains will do.
    pub fn limit(close: Option<Close>) -> u32 {
        match close {
            Some(Close::Hard(tier)) => tier,
            _ => TOP,
        }
    }
}

impl Work {
    pub fn manifests(&self) -> String {
        let groups = self.groups.as_ref().map_or(String::new(), |Groups { size, minimum, close }| {
            let close = Close::spec(*close);
            format!(
                ", subGroupPolicy: [{{name: part, matchLabelKeys: [part], subGroupSize: {size}, minSubGroups: {minimum}{close}}}]"
            )
        });
        let (minimum, close) = (self.minimum, Close::spec(self.close));
        let mut text = format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g, namespace: default}}\nspec: {{minMember: {minimum}{close}{groups}}}\n---\n"
        );
        for (index, Pod { cpu, part }) in self.pods.iter().enumerate() {
            let part = part.map_or(String::new(), |part| format!("part: \"{part}\""));
            writeln!(text, "apiVersion: v1\nkind: Pod\nmetadata: {{name: g-{index}, namespace: default, uid: g-{index}, labels: {{{part}}}, annotations: {{scheduling.k8s.io/group-name: g}}}}\nspec: {{schedulerName: volcano, containers: [{{name: m, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]}}\nstatus: {{phase: Pending}}\n---").expect("a string");
        }
        text
    }

    pub fn has_one_shape(&self) -> bool {
        self.pods.iter().all(|pod| pod.cpu == self.pods[0].cpu)
    }

    /// Whether a gang with these places (nodes, by pod) has started as it may: nothing over its
    /// nodes, its minimum, whole subgroups and enough of them, and everything as near as it
    /// must be.
    pub fn is_obeyed(&self, network: &Network, nodes: &[Node], places: &[Option<usize>]) -> bool {
        let mut free: Vec<i64> = nodes.iter().map(|node| node.cpus - node.used).collect();
        for (pod, &place) in self.pods.iter().zip(places) {
            if let Some(node) = place {
                free[node] -= pod.cpu;
            }
        }
        let near = |close: Option<Close>, of: &dyn Fn(&Pod) -> bool| {
            let places = self.pods.iter().zip(places).filter(|(pod, _)| of(pod));
            let leaves: BTreeSet<usize> =
                places.filter_map(|(_, place)| place.map(|node| nodes[node].leaf)).collect();
            leaves.is_empty() || network.tier_around(&leaves) <= Close::limit(close)
        };
        let parts: BTreeSet<usize> = self.pods.iter().filter_map(|pod| pod.part).collect();
        let placed = |part: usize| {
            let of_part =
                |(pod, place): &(&Pod, &Option<usize>)| pod.part == Some(part) && place.is_some();
            self.pods.iter().zip(places).filter(of_part).count()
        };
        let grouped = self.groups.as_ref().is_none_or(|groups| {
            let whole = |part: &usize| placed(*part) >= groups.size;
            parts.iter().all(|part| placed(*part) == 0 || whole(part))
                && parts.iter().filter(|part| whole(part)).count() >= groups.minimum
                && parts.iter().all(|&part| near(groups.close, &|pod| pod.part == Some(part)))
        });
        free.iter().all(|free| *free >= 0)
            && places.iter().flatten().count() >= self.minimum
            && grouped
            && near(self.close, &|_| true)
    }

    /// Whether any places at all would do: every way to put every pod somewhere or nowhere.
    pub fn is_possible(&self, network: &Network) -> bool {
        let nodes = network.nodes();
        let mut places = vec![None; self.pods.len()];
        loop {
            if self.is_obeyed(network, &nodes, &places) {
                return true;
            }
            let Some(next) = places.iter().position(|place| *place != Some(nodes.len() - 1)) else {
                return false;
            };
            places[..next].fill(None);
            places[next] = Some(places[next].map_or(0, |node| node + 1));
        }
    }
}
