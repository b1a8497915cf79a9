//! The search for a domain against slower ways to find one: trying every domain, each on a cluster
//! of its own that has nothing else, and trying every place for every pod.

#[path = "support/network.rs"]
mod network;
mod support;

use std::cell::Cell;
use std::collections::BTreeSet;

use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::{Engine, Event};
use network::{Close, Domain, Network, TOP, Work, grouped, network, work};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestCaseResult, TestRunner};
use support::objects;

const NOW: Time = Time(1_767_571_200_000);
const CONFIG: &str = "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]";
const PROPOSING: &str =
    "actions: allocate\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: propose}]}]";

fn decided(text: &str) -> Vec<(usize, String)> {
    decided_by(CONFIG, text)
}

/// Which pod of the gang goes to which node, in the order of the decisions.
fn decided_by(config: &str, text: &str) -> Vec<(usize, String)> {
    let config = Config::parse("test", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    objects(text).into_iter().for_each(|object| engine.apply(Event::from(object)));
    let plan = engine.cycle(NOW);
    engine.cluster().audit().expect("sums that hold");
    let index = |name: &str| name.rsplit('-').next().and_then(|index| index.parse().ok());
    let named = plan.binds.iter().map(|bind| {
        let pod = index(&bind.pod).expect("pods have numbers");
        (pod, bind.node.to_string())
    });
    named.collect()
}

fn leaves_of(network: &Network, binds: &[(usize, String)]) -> BTreeSet<usize> {
    let nodes = network.nodes();
    let leaf = |name: &str| nodes.iter().find(|node| node.name == name).expect("a node").leaf;
    binds.iter().map(|(_, node)| leaf(node)).collect()
}

/// How full a domain is with so much more in it, as a fraction.
fn fullness(network: &Network, domain: &Domain, more: i64) -> (i64, i64) {
    let nodes = network.nodes().into_iter().filter(|node| domain.leaves.contains(&node.leaf));
    nodes.fold((more, 0), |(used, cpus), node| (used + node.used, cpus + node.cpus))
}

/// The best of the domains of one tier that take something: the one that takes most, then the
/// fullest, then the name.
fn best(found: Vec<(usize, (i64, i64), Domain)>) -> Option<(usize, Domain)> {
    let better = |a: &(usize, (i64, i64), Domain), b: &(usize, (i64, i64), Domain)| {
        let fuller = (b.1.0 * a.1.1).cmp(&(a.1.0 * b.1.1));
        b.0.cmp(&a.0).then(fuller).then(a.2.name.cmp(&b.2.name))
    };
    found.into_iter().min_by(better).map(|(placed, _, domain)| (placed, domain))
}

/// The domain that is best when every one is tried, each by this trial: it tells which pods get a
/// place.
fn exhaustive(
    network: &Network,
    work: &Work,
    trial: impl Fn(&Domain) -> Vec<usize>,
) -> Option<(usize, Domain)> {
    // A gang without a limit gets the cluster, not its nearest part.
    let lowest = if work.close.is_none() { TOP } else { 1 };
    (lowest..=Close::limit(work.close)).find_map(|tier| {
        let mut found = Vec::new();
        for domain in network.domains().into_iter().filter(|domain| domain.tier == tier) {
            let pods = trial(&domain);
            if !pods.is_empty() {
                let more = pods.iter().map(|&pod| work.pods[pod].cpu).sum();
                found.push((pods.len(), fullness(network, &domain, more), domain));
            }
        }
        best(found)
    })
}

fn indices(binds: Vec<(usize, String)>) -> Vec<usize> {
    binds.into_iter().map(|(pod, _)| pod).collect()
}

/// By the engine itself, where the gang may use nothing but the domain. Domains below it were tried
/// before.
fn in_its_place(network: &Network, work: &Work, domain: &Domain) -> Vec<usize> {
    let close = work.close.map(|_| Close::Hard(domain.tier));
    indices(decided(&(network.alone(domain) + &Work { close, ..work.clone() }.manifests())))
}

/// What has been placed is as it must be.
fn check_places(network: &Network, work: &Work, binds: &[(usize, String)]) -> TestCaseResult {
    let nodes = network.nodes();
    let mut places = vec![None; work.pods.len()];
    for (pod, name) in binds {
        places[*pod] = nodes.iter().position(|node| node.name == *name);
    }
    prop_assert!(
        binds.is_empty() || work.is_obeyed(network, &nodes, &places),
        "{binds:?} must not be"
    );
    Ok(())
}

/// The gang starts in the tier in which trying every domain starts it, and if it is placed all at
/// once then in the same domain. What is placed later may go farther, as far as the limit allows.
fn check_domain(network: &Network, work: &Work) -> TestCaseResult {
    let binds = decided(&(network.whole() + &work.manifests()));
    check_places(network, work, &binds)?;
    let found = exhaustive(network, work, |domain| in_its_place(network, work, domain));
    let Some((_, domain)) = found else {
        prop_assert!(binds.is_empty(), "{binds:?}, but no domain holds the minimum");
        return Ok(());
    };
    prop_assert!(binds.len() >= work.minimum, "nothing is placed, but {} would do", domain.name);
    let chosen = leaves_of(network, &binds[..work.minimum]);
    let tier = network.tier_around(&chosen);
    prop_assert!(tier <= domain.tier, "{binds:?} is of tier {tier}, but {} would do", domain.name);
    if work.minimum == work.pods.len() {
        prop_assert!(chosen.is_subset(&domain.leaves), "{binds:?} is not in {}", domain.name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_best_domain_is_found_without_trying_them_all(network in network(5, 3), work in work(8, 1)) {
        // The nodes of each domain without any network: the search has no part in it.
        let plain = Work { close: None, ..work.clone() };
        let trial = |domain: &Domain| indices(decided(&(network.bare(&domain.leaves) + &plain.manifests())));
        let binds = decided(&(network.whole() + &work.manifests()));
        check_places(&network, &work, &binds)?;
        match exhaustive(&network, &work, trial) {
            None => prop_assert!(binds.is_empty(), "{binds:?}, but no domain holds the minimum"),
            Some((placed, domain)) => {
                prop_assert!(binds.len() >= placed, "{} pods are placed, {placed} could be", binds.len());
                let chosen = leaves_of(&network, &binds[..work.minimum]);
                prop_assert!(chosen.is_subset(&domain.leaves), "{binds:?} is not in {}", domain.name);
            }
        }
    }

    #[test]
    fn gangs_of_several_shapes_start_where_trying_every_domain_starts_them(
        network in network(5, 3),
        work in work(8, 3),
    ) {
        check_domain(&network, &work)?;
    }

    #[test]
    fn gangs_with_subgroups_start_where_trying_every_domain_starts_them(
        network in network(5, 3),
        work in prop_oneof![grouped(8, 1), grouped(8, 2)],
    ) {
        check_domain(&network, &work)?;
    }

    #[test]
    fn a_proposal_changes_where_a_gang_goes_and_not_whether(
        network in network(5, 3),
        work in prop_oneof![work(8, 1), work(8, 3), grouped(8, 2)],
    ) {
        let text = network.whole() + &work.manifests();
        let (plain, proposed) = (decided(&text), decided_by(PROPOSING, &text));
        check_places(&network, &work, &proposed)?;
        prop_assert!(plain.is_empty() || !proposed.is_empty(), "{plain:?} without a proposal");
        if !plain.is_empty() && work.has_one_shape() && work.groups.is_none() {
            let tier = |binds: &[_]| network.tier_around(&leaves_of(&network, &binds[..work.minimum]));
            prop_assert_eq!(tier(&plain), tier(&proposed), "{:?} {:?}", plain, proposed);
        }
    }
}

/// Counts the gangs for which some places would do, and those of them that got none.
fn missed(work: impl Strategy<Value = Work>) -> (u32, u32) {
    let (possible, missed) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&(network(3, 2), work), |(network, work)| {
        let binds = decided(&(network.whole() + &work.manifests()));
        check_places(&network, &work, &binds)?;
        if work.is_possible(&network) {
            possible.set(possible.get() + 1);
            missed.set(missed.get() + u32::from(binds.is_empty()));
            let exact = work.has_one_shape() && work.groups.is_none();
            if binds.is_empty() && exact {
                return Err(TestCaseError::fail("it could be placed"));
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|failure| panic!("{failure}"));
    (possible.get(), missed.get())
}

#[test]
fn a_gang_of_equal_pods_is_placed_wherever_that_is_possible() {
    assert_eq!(missed(work(4, 1)).1, 0);
}

/// Which pods go together where is a knapsack; the search does not try every way. How often that
/// costs a gang its places is told with `--nocapture`.
#[test]
fn other_gangs_get_only_places_that_they_may_have() {
    for (name, (possible, missed)) in [
        ("several shapes", missed(work(4, 3))),
        ("subgroups of one shape", missed(grouped(4, 1))),
        ("subgroups of several shapes", missed(grouped(4, 2))),
    ] {
        println!("{name}: {missed} of {possible} gangs that could be placed are not");
    }
}
