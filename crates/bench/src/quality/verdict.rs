//! The engine's choice on a small cluster, compared with the optimum.

use muster_api::keys::SCHEDULER_NAMES;
use muster_api::manifest::{Found, read};
use muster_engine::config::Config;
use muster_engine::{Cause, Engine};

use super::manifests::{PREEMPTOR, START, config, pod_name, text};
use super::optimum::{Solution, cost, optimum};
use super::small::{Domain, Pods, Purpose, Small, add, members};
use muster_sim::World;

/// What the engine decided.
#[derive(Clone, Debug)]
pub struct Decision {
    pub gone: Pods,
    /// Those of them that are evicted with their whole gang.
    pub whole: Pods,
    /// The node of each pod of the preemptor that was nominated or bound, by the number of the pod.
    pub places: Vec<(usize, usize)>,
}

/// How the engine's choice compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Room can't be made, and none was found.
    Nothing,
    /// Room can be made, but none was found.
    Missed,
    /// The decision violates a rule, or the preemptor still does not fit.
    Wrong(&'static str),
    BreaksForNothing,
    FartherThanNeeded,
    /// A gang of higher priority than necessary loses pods.
    TooHigh,
    /// The loss above the optimum, in parts per million of the optimum.
    Gap(i64),
}

#[derive(Clone, Debug)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Pods and whole bundles that were evicted needlessly, everything else unchanged.
    pub needless: Vec<Pods>,
    /// What the engine chose, if anything.
    pub chosen: Option<Solution>,
    pub best: Option<Solution>,
}

pub fn judge(small: &Small) -> Verdict {
    compare(small, decide(small))
}

/// One cycle of the engine.
fn decide(small: &Small) -> Option<Decision> {
    let mut world = World::at(START);
    read("small cluster", text(small).as_bytes(), &mut |found| match found {
        Found::Object { object, problems, .. } if problems.is_empty() => world.insert(object),
        Found::Object { problems, .. } => panic!("a manifest of ours has problems: {problems:?}"),
        Found::Error(error) => panic!("a manifest of ours is wrong: {error}"),
        Found::Skipped { kind, .. } => panic!("our own {kind} is unknown"),
    });
    let config =
        Config::parse("small cluster", &config(small.purpose)).expect("a right configuration");
    let names = SCHEDULER_NAMES.iter().map(ToString::to_string).collect();
    let mut engine = Engine::new(config, names);
    world.list().into_iter().for_each(|event| engine.apply(event));
    engine.cycle(START);
    let (cluster, plan) = (engine.cluster(), engine.decisions());
    let name = |pod| cluster.pods.name(pod).trim_start_matches("default/").to_owned();
    let number = |pod: &str| (0..small.pods.len()).find(|&at| pod_name(small, at) == pod);
    let mut decision = Decision { gone: 0, whole: 0, places: Vec::new() };
    for eviction in &plan.evictions {
        let pod = number(&name(eviction.pod)).expect("a victim is a running pod");
        decision.gone |= 1 << pod;
        if matches!(eviction.cause, Cause::Bundle { whole: true, .. }) {
            decision.whole |= 1 << pod;
        }
    }
    for bind in plan.nominations.iter().chain(&plan.binds) {
        let pod = name(bind.pod);
        let own = pod.strip_prefix(PREEMPTOR).expect("only the preemptor waits");
        let node = cluster.nodes.name[bind.node][1..].parse().expect("nodes are numbered");
        decision.places.push((own[1..].parse().expect("pods are numbered"), node));
    }
    (decision.gone != 0 || !decision.places.is_empty()).then_some(decision)
}

fn compare(small: &Small, decision: Option<Decision>) -> Verdict {
    let best = optimum(small);
    let Some(decision) = decision else {
        let outcome = if best.is_some() { Outcome::Missed } else { Outcome::Nothing };
        return Verdict { outcome, needless: Vec::new(), chosen: None, best };
    };
    let domain = match domain_of(small, &decision) {
        Ok(domain) => domain,
        Err(what) => {
            return Verdict {
                outcome: Outcome::Wrong(what),
                needless: Vec::new(),
                chosen: None,
                best,
            };
        }
    };
    let needless = needless(small, &domain, &decision);
    let chosen =
        Solution { cost: cost(small, &domain, decision.gone), gone: decision.gone, domain };
    let outcome = match (&best, broken_rule(small, &decision)) {
        (_, Some(rule)) => Outcome::Wrong(rule),
        (None, None) => Outcome::Wrong("nothing should do"),
        (Some(best), None) => gap(&chosen, best),
    };
    Verdict { outcome, needless, chosen: Some(chosen), best }
}

fn gap(chosen: &Solution, best: &Solution) -> Outcome {
    let (ours, least) = (chosen.cost, best.cost);
    match ours {
        _ if ours < least => Outcome::Wrong("better than the optimum"),
        _ if ours.breaks != least.breaks => Outcome::BreaksForNothing,
        _ if ours.tier != least.tier => Outcome::FartherThanNeeded,
        _ if ours.priority != least.priority => Outcome::TooHigh,
        _ => Outcome::Gap((ours.lost - least.lost) * 1_000_000 / least.lost.max(1)),
    }
}

/// The smallest domain that contains the nodes of the preemptor, if all its required pods fit
/// there.
fn domain_of(small: &Small, decision: &Decision) -> Result<Domain, &'static str> {
    let mut free = small.free_without(decision.gone);
    for &(pod, node) in &decision.places {
        add(&mut free[node], small.preemptor.pods[pod].1, -1);
    }
    if decision.places.len() < small.preemptor.minimum {
        return Err("the preemptor gets less than its minimum");
    }
    if decision.places.iter().any(|&(_, node)| free[node].iter().any(|&left| left < 0)) {
        return Err("a node gets more than it has");
    }
    let within =
        |domain: &Domain| decision.places.iter().all(|(_, node)| domain.nodes.contains(node));
    small.domains().into_iter().find(within).ok_or("the preemptor is spread too far")
}

fn broken_rule(small: &Small, decision: &Decision) -> Option<&'static str> {
    let strangers = members(decision.gone).any(|pod| !small.in_scope(small.pods[pod].gang));
    let reclaims = small.purpose == Purpose::Reclaim;
    match () {
        () if strangers => Some("a pod is evicted that is out of scope"),
        () if !small.quotas_allow(decision.gone) => Some("a queue gives more than quotas allow"),
        () if reclaims && !small.may_allocate() => Some("the preemptor's queue gets too much"),
        () => None,
    }
}

/// The needless evictions: a single pod of a gang that goes on, or a bundle that breaks a gang.
fn needless(small: &Small, domain: &Domain, decision: &Decision) -> Vec<Pods> {
    let broken = |gang: usize| decision.whole & small.pods_of(gang) != 0;
    let single =
        members(decision.gone).filter(|&pod| !broken(small.pods[pod].gang)).map(|pod| 1 << pod);
    let bundles = (0..small.gangs.len()).filter(|&gang| broken(gang));
    let bundles = bundles.map(|gang| decision.whole & small.pods_of(gang));
    let spare = |stay: &Pods| small.holds(domain, decision.gone & !stay);
    single.chain(bundles).filter(spare).collect()
}
