//! What holds where whole gangs are evicted: evicting surplus breaks no gang, a gang that breaks
//! leaves the preemptor's domain (in mode scenario the cluster), no subgroup keeps a part of its
//! pods, and no pod leaves that could have stayed. Moved pods count as being where they go.

use std::collections::{BTreeMap, BTreeSet};

use muster_engine::ids::{GangId, NodeId, PodId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::model::gangs::Gang;
use muster_engine::model::pods::PodState;
use muster_engine::{Cause, Decisions, Engine, Eviction};

use super::evictions::only_room_decides;
use super::facts::{
    common_domain, domain_and_above, has_minimum, is_by_scenario, is_ready, nodes_of,
};
use super::node_refusals::refusal;
use super::quotas;
use crate::violation::{Invariant, Violation};

/// The bundles of a plan: what leaves of one gang for another.
type Bundles<'p> = BTreeMap<(GangId, GangId), Vec<&'p Eviction>>;

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let mut bundles = Bundles::new();
    let in_bundle = |eviction: &&Eviction| matches!(eviction.cause, Cause::Bundle { .. });
    for eviction in plan.evictions.iter().filter(in_bundle) {
        let name = cluster.pods.name(eviction.pod);
        let (Some(victim), Some(preemptor)) = (cluster.pods.gang[eviction.pod], eviction.preemptor)
        else {
            return Invariant::Veto
                .fails(format!("{name} leaves in a bundle, of no gang or for none"));
        };
        bundles.entry((victim, preemptor)).or_default().push(eviction);
    }
    let victims: BTreeSet<GangId> = bundles.keys().map(|&(victim, _)| victim).collect();
    for &victim in &victims {
        no_gang_is_broken_in_part(engine, plan, victim, &bundles)?;
    }
    let broken: BTreeSet<GangId> = bundles
        .iter()
        .filter(|(_, gone)| gone.iter().any(breaks))
        .map(|(&(victim, _), _)| victim)
        .collect();
    for (&(victim, preemptor), gone) in &bundles {
        // What a broken gang could have spared is of no use to it.
        if !broken.contains(&victim) || gone.iter().any(breaks) {
            no_pod_could_have_stayed(engine, victim, preemptor, gone)?;
        }
    }
    Ok(())
}

fn breaks(eviction: &&Eviction) -> bool {
    matches!(eviction.cause, Cause::Bundle { whole: true, .. })
}

/// Whether a gang would have its minimum with these pods back.
pub(super) fn is_whole(cluster: &Cluster, gang: &Gang, back: &[PodId]) -> bool {
    has_minimum(cluster, gang, |pod| is_ready(cluster, pod) || back.contains(&pod))
}

/// A gang that had its minimum has it still, with no subgroup torn; or a preemptor broke it, and it
/// leaves that one's domain.
fn no_gang_is_broken_in_part(
    engine: &Engine,
    plan: &Decisions,
    victim: GangId,
    bundles: &Bundles,
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[victim];
    let gone = plan.evictions.iter().map(|eviction| eviction.pod);
    let gone: Vec<PodId> = gone.filter(|&pod| cluster.pods.gang[pod] == Some(victim)).collect();
    if !is_whole(cluster, gang, &gone) {
        return Ok(());
    }
    let moved = moved(plan, &gone);
    let torn = torn(cluster, gang, &gone, &moved);
    let mut preemptors =
        bundles.iter().filter(|((of, _), gone)| *of == victim && gone.iter().any(breaks));
    if preemptors.clone().next().is_some() {
        if is_whole(cluster, gang, &moved) && torn.is_none() {
            return Invariant::GangStaysWhole
                .fails(format!("{} is said to be broken, and is not", gang.key));
        }
        return preemptors.try_for_each(|(&(_, preemptor), gone)| {
            leaves_the_domain(engine, plan, (victim, preemptor), gone)
        });
    }
    if !is_whole(cluster, gang, &moved) {
        return Invariant::GangStaysWhole
            .fails(format!("{} is broken by what it was said to be able to spare", gang.key));
    }
    match torn {
        None => Ok(()),
        Some(torn) => Invariant::GangStaysWhole.fails(torn),
    }
}

/// A subgroup that had all its pods, and is left with some of them.
fn torn(cluster: &Cluster, gang: &Gang, gone: &[PodId], moved: &[PodId]) -> Option<String> {
    for (group, at) in gang.subgroups().iter().zip(0..) {
        let Some(rule) = group.rule.map(|rule| &gang.rules()[rule as usize]) else { continue };
        let count = |of: &dyn Fn(PodId) -> bool| {
            let pods = gang.pods.iter().filter(|&&pod| cluster.pods.subgroup[pod] == at && of(pod));
            pods.count() as u32
        };
        let has = count(&|pod| is_ready(cluster, pod) || moved.contains(&pod));
        let had = count(&|pod| is_ready(cluster, pod) || gone.contains(&pod));
        if has > 0 && has < rule.size && had >= rule.size {
            let (gang, size) = (&gang.key, rule.size);
            return Some(format!("{gang} {} is left with {has} of {size} pods", group.name));
        }
    }
    None
}

/// Of these pods, those that are moved.
pub(super) fn moved(plan: &Decisions, pods: &[PodId]) -> Vec<PodId> {
    let moves =
        plan.evictions.iter().filter(|eviction| matches!(eviction.cause, Cause::Moved { .. }));
    moves.map(|eviction| eviction.pod).filter(|pod| pods.contains(pod)).collect()
}

/// No pod of a broken gang stays on the nodes of the preemptor's domain that would accept the
/// preemptor; in mode scenario, anywhere.
fn leaves_the_domain(
    engine: &Engine,
    plan: &Decisions,
    (victim, preemptor): (GangId, GangId),
    gone: &[&Eviction],
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let own = &cluster.gangs[preemptor];
    let everywhere = gone.iter().any(|eviction| is_by_scenario(engine, eviction.action));
    let hard = own.tier_limit().is_some_and(|limit| limit.hard);
    let domain = common_domain(cluster, &nodes_of(cluster, &own.pods)).filter(|_| hard);
    let domain = domain.unwrap_or(ROOT);
    let inside =
        |node: NodeId| domain_and_above(cluster, cluster.domains.home(node)).contains(&domain);
    // A pod that had been nominated before needs no node.
    let placed = plan.nominations.iter().map(|bind| bind.pod).filter(|pod| own.pods.contains(pod));
    let placed: Vec<PodId> = placed.collect();
    let accepts = |node: NodeId| placed.iter().any(|&pod| refusal(engine, pod, node).is_none());
    for &pod in &cluster.gangs[victim].pods {
        let PodState::Running(node) = cluster.pods.state[pod] else { continue };
        if everywhere || inside(node) && accepts(node) {
            let (pod, own) = (cluster.pods.name(pod), &own.key);
            return Invariant::GangStaysWhole
                .fails(format!("{pod} stays, but its gang is broken for {own} where it is"));
        }
    }
    Ok(())
}

/// Not all pods of a gang that breaks could have stayed, nor one pod (or subgroup) of what a gang
/// can spare. Where more than room decides (rules between pods, ports, cards, a limit of the queue)
/// this can't be told from the sums.
fn no_pod_could_have_stayed(
    engine: &Engine,
    victim: GangId,
    preemptor: GangId,
    gone: &[&Eviction],
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    if !only_room_decides(engine, preemptor) {
        return Ok(());
    }
    for set in stay_or_leave_together(cluster, victim, gone) {
        if has_room_again(engine, &set) {
            let (pods, key) = (set.len(), &cluster.gangs[victim].key);
            let preemptor = &cluster.gangs[preemptor].key;
            return Invariant::EvictionNeeded.fails(format!(
                "{pods} of {key} leave for {preemptor} in vain: there is room for them as well"
            ));
        }
    }
    Ok(())
}

/// What breaks a gang stays or leaves as one. Of what it can spare a subgroup does, unless it has
/// more pods than its size.
fn stay_or_leave_together<'p>(
    cluster: &Cluster,
    victim: GangId,
    gone: &[&'p Eviction],
) -> Vec<Vec<&'p Eviction>> {
    let gang = &cluster.gangs[victim];
    let broken: Vec<&Eviction> = gone.iter().copied().filter(breaks).collect();
    if !broken.is_empty() {
        return vec![broken];
    }
    let size = |place: u32| {
        let group = gang.subgroups().get(place as usize)?;
        group.rule.map(|rule| gang.rules()[rule as usize].size)
    };
    let ready = |place: u32| {
        let of_group = |pod: &&PodId| cluster.pods.subgroup[**pod] == place;
        gang.pods.iter().filter(of_group).filter(|&&pod| is_ready(cluster, pod)).count() as u32
    };
    let mut sets: Vec<Vec<&Eviction>> = Vec::new();
    let mut groups: BTreeMap<u32, Vec<&Eviction>> = BTreeMap::new();
    for &eviction in gone {
        let place = cluster.pods.subgroup[eviction.pod];
        match size(place).is_some_and(|size| ready(place) < size) {
            true => groups.entry(place).or_default().push(eviction),
            false => sets.push(vec![eviction]),
        }
    }
    sets.extend(groups.into_values());
    sets
}

/// Whether all of them could stay where they are, with all that is nominated.
fn has_room_again(engine: &Engine, gone: &[&Eviction]) -> bool {
    let cluster = engine.cluster();
    // A limit is asked for one pod at a time.
    if gone.len() > 1 && gone.iter().any(|eviction| quotas::is_limited(engine, eviction.pod)) {
        return false;
    }
    let mut wanted: BTreeMap<(ResourceId, NodeId), i64> = BTreeMap::new();
    for eviction in gone {
        if !quotas::could_have_it_as_well(engine, eviction.pod) {
            return false;
        }
        for (resource, amount) in cluster.shapes[cluster.pods.shape[eviction.pod]].request.iter() {
            *wanted.entry((resource, eviction.node)).or_default() += amount;
        }
    }
    wanted
        .iter()
        .all(|(&(resource, node), &amount)| cluster.nodes.future_idle(resource, node) >= amount)
}
