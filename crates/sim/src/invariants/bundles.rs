//! What holds where whole gangs are taken: what breaks nobody breaks nobody, a gang that breaks
//! leaves the claimant's domain whole (in mode scenario the cluster), no subgroup is left by
//! halves, and nobody leaves who could have stayed. Who is moved is as good as there.

use std::collections::{BTreeMap, BTreeSet};

use muster_engine::Mode;
use muster_engine::ids::{GangId, NodeId, PodId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::model::gangs::{Gang, Role};
use muster_engine::model::pods::PodState;
use muster_engine::model::subgroups::Subgroup;
use muster_engine::{Cause, Decisions, Engine, Eviction, Room, Scope, Why, search};

/// The bundles of a plan: what leaves of one gang for another.
type Bundles<'p> = BTreeMap<(GangId, GangId), Vec<&'p Eviction>>;

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let mut bundles = Bundles::new();
    let in_bundle = |eviction: &&Eviction| matches!(eviction.cause, Cause::Bundle { .. });
    for eviction in plan.evictions.iter().filter(in_bundle) {
        let name = cluster.pods.name(eviction.pod);
        let (Some(victim), Some(preemptor)) = (cluster.pods.gang[eviction.pod], eviction.preemptor)
        else {
            return Err(format!("{name} leaves in a bundle, of no gang or for none"));
        };
        only_who_may_be_asked(cluster, eviction, victim, preemptor)?;
        bundles.entry((victim, preemptor)).or_default().push(eviction);
    }
    let victims: BTreeSet<GangId> = bundles.keys().map(|&(victim, _)| victim).collect();
    for &victim in &victims {
        nobody_is_broken_in_part(engine, plan, victim, &bundles)?;
    }
    let broken: BTreeSet<GangId> = bundles
        .iter()
        .filter(|(_, gone)| gone.iter().any(breaks))
        .map(|(&(victim, _), _)| victim)
        .collect();
    for (&(victim, preemptor), gone) in &bundles {
        // What a broken gang could have spared is of no use to it.
        if !broken.contains(&victim) || gone.iter().any(breaks) {
            nobody_could_have_stayed(engine, victim, preemptor, gone)?;
        }
    }
    Ok(())
}

fn breaks(eviction: &&Eviction) -> bool {
    matches!(eviction.cause, Cause::Bundle { whole: true, .. })
}

/// Preempt takes from gangs of the same queue with strictly lower priority, reclaim from other
/// queues.
pub(super) fn only_who_may_be_asked(
    cluster: &Cluster,
    eviction: &Eviction,
    victim: GangId,
    preemptor: GangId,
) -> Result<(), String> {
    let (own, other) = (&cluster.gangs[preemptor], &cluster.gangs[victim]);
    let may = match eviction.action.ends_with("preempt") {
        true => own.queue == other.queue && other.priority < own.priority,
        false => own.queue != other.queue,
    };
    match may {
        true => Ok(()),
        false => Err(format!(
            "{} takes {} of {}, of priority {} against {}",
            eviction.action, other.key, own.key, other.priority, own.priority
        )),
    }
}

/// Whether a gang would have its minimum, its roles' and its subgroups' with these pods back.
pub(super) fn is_whole(cluster: &Cluster, gang: &Gang, back: &[PodId]) -> bool {
    let count = |of: &dyn Fn(PodId) -> bool| back.iter().filter(|&&pod| of(pod)).count() as u32;
    let filled = |(role, at): (&Role, u32)| {
        role.counts.ready() + count(&|pod| cluster.pods.role[pod] == at) >= role.minimum
    };
    let ready = |(group, at): (&Subgroup, u32)| {
        group.counts.ready() + count(&|pod| cluster.pods.subgroup[pod] == at) >= gang.size_of(group)
    };
    let enough = |(rule, at): (u32, u32)| {
        let groups = gang.subgroups().iter().zip(0..).filter(|(group, _)| group.rule == Some(at));
        groups.filter(|&group| ready(group)).count() as u32 >= rule
    };
    gang.counts.ready() + back.len() as u32 >= gang.minimum
        && (!gang.enforces_roles() || gang.roles.iter().zip(0..).all(filled))
        && gang.rules().iter().map(|rule| rule.minimum).zip(0..).all(enough)
}

/// A gang that was whole is whole still, with no subgroup by halves; or somebody broke it, and has
/// it leave his domain.
fn nobody_is_broken_in_part(
    engine: &Engine,
    plan: &Decisions,
    victim: GangId,
    bundles: &Bundles,
) -> Result<(), String> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[victim];
    let gone = plan.evictions.iter().map(|eviction| eviction.pod);
    let gone: Vec<PodId> = gone.filter(|&pod| cluster.pods.gang[pod] == Some(victim)).collect();
    if !is_whole(cluster, gang, &gone) {
        return Ok(());
    }
    let moved = moved(plan, &gone);
    let torn = torn(cluster, gang, &gone, &moved);
    let mut takers =
        bundles.iter().filter(|((of, _), gone)| *of == victim && gone.iter().any(breaks));
    if takers.clone().next().is_some() {
        if is_whole(cluster, gang, &moved) && torn.is_none() {
            return Err(format!("{} is said to be broken, and is not", gang.key));
        }
        return takers.try_for_each(|(&(_, preemptor), gone)| {
            leaves_the_domain(engine, plan, (victim, preemptor), gone)
        });
    }
    if !is_whole(cluster, gang, &moved) {
        return Err(format!("{} is broken by what it was said to be able to spare", gang.key));
    }
    torn.map_or(Ok(()), Err)
}

/// A subgroup that had all its pods, and is left with some of them.
fn torn(cluster: &Cluster, gang: &Gang, gone: &[PodId], moved: &[PodId]) -> Option<String> {
    let groups = gang.subgroups().iter().zip(0..).filter(|(group, _)| group.rule.is_some());
    for (group, at) in groups {
        let count = |pods: &[PodId]| {
            pods.iter().filter(|&&pod| cluster.pods.subgroup[pod] == at).count() as u32
        };
        let (left, moved) = (count(gone), count(moved));
        let (size, has) = (gang.size_of(group), group.counts.ready() + moved);
        if has > 0 && has < size && has + left - moved >= size {
            return Some(format!("{} {} is left with {has} of {size} pods", gang.key, group.name));
        }
    }
    None
}

/// Of these pods, those that have another place.
pub(super) fn moved(plan: &Decisions, pods: &[PodId]) -> Vec<PodId> {
    let moves =
        plan.evictions.iter().filter(|eviction| matches!(eviction.cause, Cause::Moved { .. }));
    moves.map(|eviction| eviction.pod).filter(|pod| pods.contains(pod)).collect()
}

pub(super) fn by_scenario(engine: &Engine, action: &str) -> bool {
    let settings = engine.config().eviction_settings(action);
    settings.is_some_and(|settings| settings.mode == Mode::Scenario)
}

/// Nobody of a gang stays on the nodes of the claimant's domain that would take the claimant; in
/// mode scenario, anywhere.
fn leaves_the_domain(
    engine: &Engine,
    plan: &Decisions,
    (victim, preemptor): (GangId, GangId),
    gone: &[&Eviction],
) -> Result<(), String> {
    let cluster = engine.cluster();
    let own = &cluster.gangs[preemptor];
    let everywhere = gone.iter().any(|eviction| by_scenario(engine, eviction.action));
    let hard = own.tier_limit().is_some_and(|tier_limit| tier_limit.hard);
    let domain = search::around(cluster, &own.pods).filter(|_| hard).unwrap_or(ROOT);
    let ranks = cluster.domains.ranks(domain);
    // Who had been promised a place before wants none.
    let placed = plan.nominations.iter().map(|bind| bind.pod).filter(|pod| own.pods.contains(pod));
    let shapes: BTreeSet<_> = placed.map(|pod| cluster.pods.shape[pod]).collect();
    let takes = |node: NodeId| {
        let ready = cluster.nodes.fact[node].live && cluster.nodes.fact[node].lets_go();
        ready
            && shapes.iter().any(|&shape| {
                let mut why = [Why::Fits];
                engine.policy().filter(
                    Scope::NodeFacts,
                    cluster,
                    (shape, Room::FutureIdle),
                    &[node],
                    &mut why,
                );
                why[0] == Why::Fits
            })
    };
    for &pod in &cluster.gangs[victim].pods {
        let PodState::Running(node) = cluster.pods.state[pod] else { continue };
        if everywhere || ranks.contains(&cluster.nodes.rank[node]) && takes(node) {
            let (pod, own) = (cluster.pods.name(pod), &own.key);
            return Err(format!("{pod} stays, but its gang is broken for {own} where it is"));
        }
    }
    Ok(())
}

/// Not all of a gang that breaks could have stayed, nor one pod (or subgroup) of what a gang can
/// spare. Where more than room decides (rules between pods, ports, cards, a limit of the queue)
/// this can't be told from the sums.
fn nobody_could_have_stayed(
    engine: &Engine,
    victim: GangId,
    preemptor: GangId,
    gone: &[&Eviction],
) -> Result<(), String> {
    let cluster = engine.cluster();
    if !super::only_room_decides(engine, preemptor) {
        return Ok(());
    }
    let gang = &cluster.gangs[victim];
    let broken: Vec<&Eviction> = gone.iter().copied().filter(breaks).collect();
    // A subgroup stays or goes together.
    let company = |eviction: &Eviction| {
        let place = cluster.pods.subgroup[eviction.pod];
        let group = gang.subgroups().get(place as usize).filter(|group| group.rule.is_some())?;
        (group.counts.ready() < gang.size_of(group)).then_some(place)
    };
    let mut sets: Vec<Vec<&Eviction>> = Vec::new();
    if broken.is_empty() {
        let mut groups: BTreeMap<u32, Vec<&Eviction>> = BTreeMap::new();
        for &eviction in gone {
            match company(eviction) {
                Some(place) => groups.entry(place).or_default().push(eviction),
                None => sets.push(vec![eviction]),
            }
        }
        sets.extend(groups.into_values());
    } else {
        sets.push(broken);
    }
    for set in sets {
        if has_room_again(engine, &set) {
            let (pods, key) = (set.len(), &gang.key);
            let preemptor = &cluster.gangs[preemptor].key;
            return Err(format!(
                "{pods} of {key} leave for {preemptor} in vain: there is room for them as well"
            ));
        }
    }
    Ok(())
}

/// Whether all of them could stay where they are, with all that is promised.
fn has_room_again(engine: &Engine, gone: &[&Eviction]) -> bool {
    let cluster = engine.cluster();
    // A limit is asked for one pod at a time.
    if gone.len() > 1 && gone.iter().any(|eviction| is_limited(engine, eviction)) {
        return false;
    }
    let mut wanted: BTreeMap<(ResourceId, NodeId), i64> = BTreeMap::new();
    for eviction in gone {
        let shape = cluster.pods.shape[eviction.pod];
        let of = cluster.pods.gang[eviction.pod];
        if of.is_some_and(|gang| {
            engine.policy().may_allocate(cluster, gang, shape, Room::FutureIdle).is_err()
        }) {
            return false;
        }
        for (resource, amount) in cluster.shapes[shape].request.iter() {
            *wanted.entry((resource, eviction.node)).or_default() += amount;
        }
    }
    wanted
        .iter()
        .all(|(&(resource, node), &amount)| cluster.nodes.future_idle(resource, node) >= amount)
}

fn is_limited(engine: &Engine, eviction: &Eviction) -> bool {
    let cluster = engine.cluster();
    let by_weight =
        engine.policy().plugins.iter().any(|configured| configured.name == "proportion");
    let Some(gang) = cluster.pods.gang[eviction.pod] else { return false };
    let lineage = &cluster.queues[cluster.gangs[gang].queue].lineage;
    let mut request = cluster.shapes[cluster.pods.shape[eviction.pod]].request.iter();
    // What is guaranteed to one queue is a limit to the others.
    let guaranteed =
        |resource| cluster.queues.iter().any(|(_, queue)| queue.guarantee.get(resource).is_some());
    let capped = |resource| {
        lineage.iter().any(|&queue| cluster.queues[queue].capability.get(resource).is_some())
    };
    by_weight || request.any(|(resource, _)| capped(resource) || guaranteed(resource))
}
