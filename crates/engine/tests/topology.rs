//! The search for a domain against trying every domain: each on a cluster of its own that has nothing but its nodes.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::{Engine, Event};
use proptest::prelude::*;
use support::objects;

const NOW: Time = Time(1_767_571_200_000);
const CONFIG: &str = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]";
const PROPOSING: &str =
    "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: propose}]}]";

/// Leaves of nodes with so many cpus, of which some are in use, and how many leaves are under each spine.
#[derive(Clone, Debug)]
struct Network {
    leaves: Vec<Vec<(i64, i64)>>,
    per_spine: usize,
}

#[derive(Clone, Debug)]
struct Work {
    pods: usize,
    minimum: usize,
    cpu: i64,
    tier: u32,
}

fn network() -> impl Strategy<Value = Network> {
    let node = (1..5i64).prop_flat_map(|cpus| (Just(cpus), 0..=cpus));
    let leaf = prop::collection::vec(node, 1..4);
    (prop::collection::vec(leaf, 1..6), 1..4usize)
        .prop_map(|(leaves, per_spine)| Network { leaves, per_spine })
}

fn work() -> impl Strategy<Value = Work> {
    (1..9usize, 1..3i64, 1..4u32)
        .prop_flat_map(|(pods, cpu, tier)| (Just(pods), 1..=pods, Just(cpu), Just(tier)))
        .prop_map(|(pods, minimum, cpu, tier)| Work { pods, minimum, cpu, tier })
}

impl Network {
    fn nodes(&self) -> impl Iterator<Item = (String, i64, i64, usize)> + '_ {
        self.leaves.iter().enumerate().flat_map(|(leaf, nodes)| {
            nodes
                .iter()
                .enumerate()
                .map(move |(index, &(cpus, used))| (format!("n{leaf}-{index}"), cpus, used, leaf))
        })
    }

    /// Every domain: its name, tier and leaves.
    fn domains(&self) -> Vec<(String, u32, BTreeSet<usize>)> {
        let leaf = |leaf: usize| (format!("leaf{leaf}"), 1, BTreeSet::from([leaf]));
        let mut domains: Vec<_> = (0..self.leaves.len()).map(leaf).collect();
        let all: Vec<usize> = (0..self.leaves.len()).collect();
        for (spine, leaves) in all.chunks(self.per_spine).enumerate() {
            domains.push((format!("spine{spine}"), 2, leaves.iter().copied().collect()));
        }
        domains.push(("<cluster-top-hypernode>".into(), 3, all.into_iter().collect()));
        domains
    }

    fn manifests(&self, leaves: &BTreeSet<usize>, tree: bool) -> String {
        let mut text = String::new();
        for (name, cpus, used, _) in self.nodes().filter(|(.., leaf)| leaves.contains(leaf)) {
            writeln!(text, "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{allocatable: {{cpu: {cpus}, pods: 50}}}}\n---").expect("a string");
            if used > 0 {
                writeln!(text, "apiVersion: v1\nkind: Pod\nmetadata: {{name: used-{name}, namespace: default, uid: used-{name}}}\nspec: {{nodeName: {name}, containers: [{{name: m, image: i, resources: {{requests: {{cpu: {used}}}}}}}]}}\nstatus: {{phase: Running}}\n---").expect("a string");
            }
        }
        if tree {
            let member = |kind: &str, name: &str| {
                format!("{{type: {kind}, selector: {{exactMatch: {{name: {name}}}}}}}")
            };
            for (name, tier, held) in self.domains().into_iter().filter(|(_, tier, _)| *tier < 3) {
                let members: Vec<String> = match tier {
                    1 => self
                        .nodes()
                        .filter(|(.., leaf)| held.contains(leaf))
                        .map(|(node, ..)| member("Node", &node))
                        .collect(),
                    _ => held.iter().map(|leaf| member("HyperNode", &format!("leaf{leaf}"))).collect(),
                };
                writeln!(text, "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec: {{tier: {tier}, members: [{}]}}\n---", members.join(", ")).expect("a string");
            }
        }
        text
    }
}

impl Work {
    fn manifests(&self, tree: bool) -> String {
        let tier = self.tier;
        let close = if tree {
            format!(", networkTopology: {{mode: hard, highestTierAllowed: {tier}}}")
        } else {
            String::new()
        };
        let minimum = self.minimum;
        let mut text = format!(
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: g, namespace: default}}\nspec: {{minMember: {minimum}{close}}}\n---\n"
        );
        for index in 0..self.pods {
            writeln!(text, "apiVersion: v1\nkind: Pod\nmetadata: {{name: g-{index}, namespace: default, uid: g-{index}, annotations: {{scheduling.k8s.io/group-name: g}}}}\nspec: {{schedulerName: volcano, containers: [{{name: m, image: i, resources: {{requests: {{cpu: {}}}}}}}]}}\nstatus: {{phase: Pending}}\n---", self.cpu).expect("a string");
        }
        text
    }
}

fn decided(text: &str) -> Vec<String> {
    decided_by(CONFIG, text)
}

/// The nodes that the pods of the gang go to, in the order of the decisions.
fn decided_by(config: &str, text: &str) -> Vec<String> {
    let config = Config::parse("test", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    objects(text).into_iter().for_each(|object| engine.apply(Event::from(object)));
    let plan = engine.cycle(NOW);
    engine.cluster().audit().expect("sums that hold");
    let cluster = engine.cluster();
    plan.binds.iter().map(|bind| cluster.nodes.name[bind.node].to_string()).collect()
}

/// The domain that is best when every one is tried: the lowest tier that takes the minimum, then who takes most, then who
/// is fullest, then the name.
fn exhaustive(network: &Network, work: &Work) -> Option<(usize, BTreeSet<usize>)> {
    let mut found = Vec::new();
    for (name, tier, leaves) in network.domains().into_iter().filter(|(_, tier, _)| *tier <= work.tier) {
        let placed = decided(&(network.manifests(&leaves, false) + &work.manifests(false))).len();
        if placed < work.minimum {
            continue;
        }
        let sum = |of: fn(&(String, i64, i64, usize)) -> i64| -> i64 {
            network.nodes().filter(|(.., leaf)| leaves.contains(leaf)).map(|node| of(&node)).sum()
        };
        let (cpus, used) = (sum(|node| node.1), sum(|node| node.2) + placed as i64 * work.cpu);
        found.push((tier, placed, (used, cpus), name, leaves));
    }
    found
        .into_iter()
        .min_by(|a, b| {
            let fuller = (b.2.0 * a.2.1).cmp(&(a.2.0 * b.2.1));
            a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(fuller).then(a.3.cmp(&b.3))
        })
        .map(|(_, placed, _, _, leaves)| (placed, leaves))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_best_domain_is_found_without_trying_them_all(network in network(), work in work()) {
        let all = (0..network.leaves.len()).collect();
        let binds = decided(&(network.manifests(&all, true) + &work.manifests(true)));
        let leaf_of: BTreeMap<String, usize> = network.nodes().map(|(name, .., leaf)| (name, leaf)).collect();
        // What is placed above the minimum may go farther, as far as the limit allows.
        let chosen: BTreeSet<usize> = binds.iter().take(work.minimum).map(|node| leaf_of[node]).collect();
        match exhaustive(&network, &work) {
            None => prop_assert!(binds.is_empty(), "{binds:?}, but no domain holds the minimum"),
            Some((placed, leaves)) => {
                prop_assert!(chosen.is_subset(&leaves), "{binds:?} is not in {leaves:?}");
                prop_assert!(binds.len() >= placed, "{} pods are placed, {placed} could be", binds.len());
            }
        }
    }

    #[test]
    fn a_proposal_changes_where_a_gang_goes_and_not_whether(network in network(), work in work()) {
        let all = (0..network.leaves.len()).collect();
        let text = network.manifests(&all, true) + &work.manifests(true);
        let (plain, proposed) = (decided(&text), decided_by(PROPOSING, &text));
        prop_assert_eq!(plain.is_empty(), proposed.is_empty());
        let leaf_of: BTreeMap<String, usize> = network.nodes().map(|(name, .., leaf)| (name, leaf)).collect();
        let tier = |binds: &[String]| {
            let used: BTreeSet<usize> = binds.iter().take(work.minimum).map(|node| leaf_of[node]).collect();
            network.domains().into_iter().filter(|(.., held)| used.is_subset(held)).map(|(_, tier, _)| tier).min()
        };
        prop_assert_eq!(tier(&plain), tier(&proposed), "{:?} {:?}", plain, proposed);
    }
}
