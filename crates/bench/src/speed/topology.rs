//! Gangs with a network topology, compared with the same gangs without.

use std::collections::BTreeMap;

use muster_api::core::LabelSelector;
use muster_api::{
    ExactMatch, HyperNode, HyperNodeSpec, Member, MemberKind, MemberSelector, NetworkTopologyMode,
    NetworkTopologySpec, SubGroupPolicy,
};
use muster_engine::{Engine, Event};

use super::{Add, NOW, cycle_nanos, gang_of, node, timed};

const PART: &str = "volcano.sh/partition-id";

/// What a gang requires of the network.
#[derive(Copy, Clone, Default)]
pub struct Asks {
    /// The highest tier, hard.
    pub tier: Option<i32>,
    /// Pods in each subgroup, and its highest tier.
    pub groups: Option<(usize, i32)>,
}

impl Asks {
    pub fn tier_limit(&self) -> Option<NetworkTopologySpec> {
        self.tier.map(hard)
    }

    pub fn policies(&self) -> Vec<SubGroupPolicy> {
        let policy = |(size, tier): (usize, i32)| SubGroupPolicy {
            name: "part".into(),
            sub_group_size: size as i32,
            network_topology: Some(hard(tier)),
            match_label_keys: vec![PART.into()],
            ..SubGroupPolicy::default()
        };
        self.groups.map(policy).into_iter().collect()
    }

    /// The labels of a pod.
    pub fn labels(&self, index: usize) -> BTreeMap<String, String> {
        let label = |(size, _): (usize, i32)| (PART.to_owned(), (index / size).to_string());
        self.groups.map(label).into_iter().collect()
    }
}

fn hard(tier: i32) -> NetworkTopologySpec {
    NetworkTopologySpec {
        mode: NetworkTopologyMode::Hard,
        highest_tier_allowed: Some(tier),
        highest_tier_name: None,
    }
}

pub fn run(rounds: u32, add: &mut Add) {
    let free =
        |pods: usize| move |engine: &mut Engine| gang_of(engine, "free", pods, Asks::default());
    let asking =
        |pods: usize, asks: Asks| move |engine: &mut Engine| gang_of(engine, "near", pods, asks);
    let tier = |tier| Asks { tier: Some(tier), groups: None };
    let split = |size, low, high| Asks { tier: Some(high), groups: Some((size, low)) };
    let fabric = |nodes| networked(nodes, 32, 16);

    let cases = [
        ("allocate, 512-pod gang, hard tier 2: time relative to no topology", 512, tier(2)),
        ("allocate, 3,000-pod gang, hard tier 3: time relative to no topology", 3_000, tier(3)),
        (
            "allocate, 100 subgroups of 8, hard tier 1 in tier 3: time relative to no topology",
            800,
            split(8, 1, 3),
        ),
    ];
    for (name, pods, asks) in cases {
        let [near, far] =
            alternately(rounds, &|| fabric(5_000), pods, [&asking(pods, asks), &free(pods)]);
        add(name, near / far, "times", Some(near));
    }
    let asks = tier(2);
    let mut sides = [f64::MAX; 2];
    for _ in 0..rounds {
        for (side, nodes) in [5_000, 20_000].into_iter().enumerate() {
            let mut engine = fabric(nodes);
            gang_of(&mut engine, "near", 512, asks);
            sides[side] = sides[side].min(cycle_nanos(&mut engine, 512));
        }
    }
    add(
        "allocate, 512-pod gang, hard tier 2: 20,000 nodes relative to 5,000",
        sides[1] / sides[0],
        "times",
        Some(sides[1]),
    );

    let small = || networked(1_000, 20, 10);
    let [split_time, _] = alternately(
        rounds,
        &small,
        1_000,
        [&asking(1_000, Asks { tier: None, groups: Some((10, 1)) }), &free(1_000)],
    );
    add(
        "allocate, 100 subgroups of 10, hard tier 1, 1,000 nodes",
        split_time / 1e6,
        "ms",
        Some(split_time),
    );
    let wide = || networked(5_000, 50, 20);
    let [showcase, _] = alternately(rounds, &wide, 1_000, [&asking(1_000, tier(2)), &free(1_000)]);
    add("allocate, 1,000-pod gang, hard tier 2, 5,000 nodes", showcase / 1e6, "ms", Some(showcase));

    let mut built = f64::MAX;
    for _ in 0..rounds.min(3) {
        let mut engine = super::plain();
        let events = labelled(5_000, 32);
        built = built.min(timed(|| {
            events.into_iter().for_each(|event| engine.apply(event));
            engine.cycle(NOW)
        }));
        assert_eq!(
            engine.cluster().domains.len(),
            1 + 5_000_usize.div_ceil(32),
            "all of them are in the tree"
        );
    }
    add("build a tree of HyperNodes by label, 5,000 nodes", built / 1e9, "s", Some(built));
}

/// Both sides in turn, each on a cluster of its own; the best time of each.
fn alternately(
    rounds: u32,
    cluster: &dyn Fn() -> Engine,
    pods: usize,
    sides: [&dyn Fn(&mut Engine); 2],
) -> [f64; 2] {
    let mut best = [f64::MAX; 2];
    for _ in 0..rounds {
        for (best, fill) in best.iter_mut().zip(sides) {
            let mut engine = cluster();
            fill(&mut engine);
            *best = best.min(cycle_nanos(&mut engine, pods));
        }
    }
    best
}

fn networked(nodes: usize, per_leaf: usize, per_spine: usize) -> Engine {
    let mut engine = super::plain();
    network(&mut engine, nodes, per_leaf, per_spine);
    engine.cycle(NOW);
    engine
}

/// Nodes in leaves, leaves in spines, spines in one core.
pub fn network(engine: &mut Engine, nodes: usize, per_leaf: usize, per_spine: usize) {
    for index in 0..nodes {
        engine.apply(Event::from(node(&format!("n{index:05}"))));
    }
    let exactly = |kind, name: String| {
        let selector =
            MemberSelector { exact_match: Some(ExactMatch { name }), ..MemberSelector::default() };
        Member { kind, selector }
    };
    let mut below: Vec<String> = (0..nodes).map(|index| format!("n{index:05}")).collect();
    for (tier, (letter, size)) in
        [("leaf", per_leaf), ("spine", per_spine), ("core", usize::MAX)].into_iter().enumerate()
    {
        let kind = if tier == 0 { MemberKind::Node } else { MemberKind::HyperNode };
        let mut names = Vec::new();
        for (index, members) in below.chunks(size.min(below.len())).enumerate() {
            let name = format!("{letter}{index:04}");
            let members = members.iter().map(|name| exactly(kind, name.clone())).collect();
            engine.apply(domain(&name, tier as i32 + 1, members));
            names.push(name);
        }
        below = names;
    }
}

fn labelled(nodes: usize, per_leaf: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for index in 0..nodes {
        let mut node = node(&format!("n{index:05}"));
        node.metadata.labels.insert("rack".into(), format!("r{}", index / per_leaf));
        events.push(Event::from(node));
    }
    for leaf in 0..nodes.div_ceil(per_leaf) {
        let match_labels = BTreeMap::from([("rack".to_owned(), format!("r{leaf}"))]);
        let label_match = Some(LabelSelector { match_labels, ..LabelSelector::default() });
        let selector = MemberSelector { label_match, ..MemberSelector::default() };
        events.push(domain(
            &format!("leaf{leaf:04}"),
            1,
            vec![Member { kind: MemberKind::Node, selector }],
        ));
    }
    events
}

fn domain(name: &str, tier: i32, members: Vec<Member>) -> Event {
    let spec = HyperNodeSpec { tier, members, ..HyperNodeSpec::default() };
    Event::from(HyperNode::new(name, spec))
}
