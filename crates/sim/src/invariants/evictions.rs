//! Pods leave only if no rule keeps them, if they are needed, and for a gang that then has all
//! that it lacks.

use std::collections::BTreeSet;

use muster_engine::ids::{GangId, PodId};
use muster_engine::model::pods::PodState;
use muster_engine::{Cause, Decisions, Engine, Eviction};

use super::facts::{self, enforces_minimum, has_minimum, is_ready};
use super::{gangs, quotas, vetoes};
use crate::violation::{Invariant, Violation};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let leaving: BTreeSet<PodId> = plan.evictions.iter().map(|eviction| eviction.pod).collect();
    if leaving.len() < plan.evictions.len() {
        return Invariant::PlanIsInModel.fails("a pod is evicted twice in one plan");
    }
    for (at, eviction) in plan.evictions.iter().enumerate() {
        if cluster.pods.state[eviction.pod] != PodState::Releasing(eviction.node) {
            let name = cluster.pods.name(eviction.pod);
            return Invariant::PlanIsInModel
                .fails(format!("{name} is evicted, but does not leave in the model"));
        }
        vetoes::check(engine, plan, at)?;
        if let Some(preemptor) = eviction.preemptor {
            preemptor_gets_what_it_lacks(engine, eviction, preemptor)?;
            preemptor_gains(engine, plan, eviction, preemptor)?;
            // Bundles and moves are looked at as such.
            if !matches!(eviction.cause, Cause::Bundle { .. } | Cause::Moved { .. }) {
                is_needed(engine, eviction, preemptor)?;
                leaves_its_gang_whole(engine, eviction)?;
            }
        }
        if matches!(eviction.cause, Cause::Stale { .. }) {
            stale_gang_leaves_whole(engine, eviction)?;
        }
    }
    Ok(())
}

/// A stale gang leaves as a whole, but for pods that the cluster just refused to evict. Of a gang
/// that runs without it, a subgroup leaves alone.
fn stale_gang_leaves_whole(engine: &Engine, eviction: &Eviction) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let name = cluster.pods.name(eviction.pod);
    let Some(gang) = cluster.pods.gang[eviction.pod].map(|gang| &cluster.gangs[gang]) else {
        return Invariant::StaleGang.fails(format!("{name} is evicted, but is of no gang of ours"));
    };
    let part = cluster.pods.subgroup[eviction.pod];
    let ready = |pod: PodId| is_ready(cluster, pod);
    let is_broken = match enforces_minimum(engine) {
        true => !has_minimum(cluster, gang, ready),
        false => !gang.pods.iter().any(|&pod| ready(pod)),
    };
    let stays = |&&pod: &&PodId| {
        matches!(cluster.pods.state[pod], PodState::Allocated(_) | PodState::Running(_))
            && (is_broken || cluster.pods.subgroup[pod] == part)
            && !cluster.eviction_refused.contains_key(&pod)
    };
    match gang.pods.iter().find(stays) {
        None => Ok(()),
        Some(&pod) => Invariant::StaleGang
            .fails(format!("{name} is evicted, but {} of its gang stays", cluster.pods.name(pod))),
    }
}

/// Pods leave only for a gang that is then bound or nominated with all that it lacks.
fn preemptor_gets_what_it_lacks(
    engine: &Engine,
    eviction: &Eviction,
    preemptor: GangId,
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[preemptor];
    let placed = |pod: &PodId| {
        matches!(cluster.pods.state[*pod], PodState::Nominated(_) | PodState::Allocated(_))
    };
    let missing = gangs::lacks_after_nominations(engine, preemptor);
    match missing == 0 && gang.pods.iter().any(placed) {
        true => Ok(()),
        false => Invariant::PreemptorComplete.fails(format!(
            "{} is evicted for {}, which still lacks {missing} pods",
            cluster.pods.name(eviction.pod),
            gang.key
        )),
    }
}

/// Pods leave only for a gang that gets a node in the same plan.
fn preemptor_gains(
    engine: &Engine,
    plan: &Decisions,
    eviction: &Eviction,
    preemptor: GangId,
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let mut places = plan.nominations.iter().chain(&plan.binds);
    match places.any(|place| cluster.pods.gang[place.pod] == Some(preemptor)) {
        true => Ok(()),
        false => Invariant::EvictionNeeded.fails(format!(
            "{} is evicted for {}, which gets no node",
            cluster.pods.name(eviction.pod),
            cluster.gangs[preemptor].key
        )),
    }
}

/// Pod by pod, no gang loses a pod of its minimum where the plugin `gang` says so; a gang of one
/// can be evicted.
fn leaves_its_gang_whole(engine: &Engine, eviction: &Eviction) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let plugin = facts::plugin(engine, "gang", |on| on.preemptable && on.reclaimable);
    let gang = cluster.pods.gang[eviction.pod].filter(|_| plugin.is_some());
    let Some(gang) = gang.map(|gang| &cluster.gangs[gang]) else { return Ok(()) };
    let alone = gang.pods.len() == 1 && gang.minimum <= 1;
    let ready = |of: &dyn Fn(PodId) -> bool| {
        gang.pods.iter().filter(|&&pod| of(pod) && is_ready(cluster, pod)).count() as u32
    };
    // It may lack pods of other roles, which does not matter here.
    let at = cluster.pods.role[eviction.pod];
    let role = &gang.roles[at as usize];
    let of_roles: u32 = gang.roles.iter().map(|role| role.minimum).sum();
    let has_role =
        gang.minimum < of_roles || ready(&|pod| cluster.pods.role[pod] == at) >= role.minimum;
    match alone || ready(&|_| true) >= gang.minimum && has_role {
        true => Ok(()),
        false => Invariant::GangStaysWhole.fails(format!(
            "{} is evicted, and {} is broken by it",
            cluster.pods.name(eviction.pod),
            gang.key
        )),
    }
}

/// A pod that leaves for others is in their way: with it the node would have too little. Where more
/// than room decides (rules between pods, ports, cards) this can't be told from the sums.
pub fn is_needed(engine: &Engine, eviction: &Eviction, preemptor: GangId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    if !quotas::could_have_it_as_well(engine, eviction.pod) || !only_room_decides(engine, preemptor)
    {
        return Ok(());
    }
    let mut request = cluster.shapes[cluster.pods.shape[eviction.pod]].request.iter();
    let has_room =
        request.all(|(id, amount)| cluster.nodes.future_idle(id, eviction.node) >= amount);
    match has_room {
        false => Ok(()),
        true => Invariant::EvictionNeeded.fails(format!(
            "{} leaves in vain: there is room for it as well",
            cluster.pods.name(eviction.pod)
        )),
    }
}

/// Whether nothing but room says where the pods of a gang can be.
pub fn only_room_decides(engine: &Engine, gang: GangId) -> bool {
    let cluster = engine.cluster();
    cluster.gangs[gang].pods.iter().all(|&pod| {
        let shape = cluster.pods.shape[pod];
        !cluster.depends_on_other_nodes(shape)
            && cluster.shapes[shape].ports.is_empty()
            && cluster.demand(shape).is_none()
    })
}
