//! Gangs are placed whole, near enough, and only if they may run.

use muster_api::QueueState;
use muster_engine::ids::{GangId, PodId};
use muster_engine::model::gangs::Origin;
use muster_engine::model::subgroups::TierLimit;
use muster_engine::{Decisions, Engine};

use super::facts::{
    common_domain, enforces_minimum, gangs_of, has_minimum, highest_tier, is_nominated, is_ready,
    lacks, nodes_of, queue_and_above,
};
use crate::violation::{Invariant, Violation};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    for gang in gangs_of(cluster, plan.binds.iter().map(|bind| bind.pod)) {
        bound_gang_has_its_minimum(engine, gang)?;
        bound_gang_may_run(engine, gang)?;
    }
    for gang in gangs_of(cluster, plan.nominations.iter().map(|bind| bind.pod)) {
        nominated_gang_gets_its_minimum(engine, gang)?;
    }
    let placed = plan.binds.iter().chain(&plan.nominations).map(|bind| bind.pod);
    gangs_of(cluster, placed).into_iter().try_for_each(|gang| is_near_enough(engine, plan, gang))
}

fn bound_gang_has_its_minimum(engine: &Engine, id: GangId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let (gang, whole) = (&cluster.gangs[id], enforces_minimum(engine));
    let ready = |pod: PodId| is_ready(cluster, pod);
    let missing = lacks(cluster, gang, whole, ready);
    if missing > 0 {
        return Invariant::GangMinimum
            .fails(format!("{} is bound, and lacks {missing} pods to its minimum", gang.key));
    }
    match !whole || has_minimum(cluster, gang, ready) {
        true => Ok(()),
        false => Invariant::GangMinimum
            .fails(format!("{} is bound without the subgroups that it needs", gang.key)),
    }
}

fn nominated_gang_gets_its_minimum(engine: &Engine, id: GangId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    let missing = lacks_after_nominations(engine, id);
    match missing {
        0 => Ok(()),
        _ => Invariant::GangMinimum
            .fails(format!("{} is nominated, and still lacks {missing} pods", gang.key)),
    }
}

/// How many pods a gang lacks to its minimum beside those that are nominated, and those for whose
/// successors room is reserved.
pub fn lacks_after_nominations(engine: &Engine, id: GangId) -> u32 {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    let has = |pod: PodId| is_ready(cluster, pod) || is_nominated(cluster, pod);
    let missing = lacks(cluster, gang, enforces_minimum(engine), has);
    missing.saturating_sub(gang.reserved().len() as u32)
}

/// What is placed of a gang with a hard limit is inside one domain that the limit allows, with all
/// that runs of it; the same for each subgroup, of which no part is placed either.
fn is_near_enough(engine: &Engine, plan: &Decisions, id: GangId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    within_limit(engine, &gang.key, gang.tier_limit(), &gang.pods)?;
    for (subgroup, place) in gang.subgroups().iter().zip(0..) {
        let Some(rule) = subgroup.rule.map(|rule| &gang.rules()[rule as usize]) else { continue };
        let of_group = |&pod: &PodId| cluster.pods.subgroup[pod] == place;
        let pods: Vec<PodId> = gang.pods.iter().copied().filter(of_group).collect();
        // The network may have changed around a subgroup of which nothing is placed now.
        if !plan.binds.iter().chain(&plan.nominations).any(|bind| pods.contains(&bind.pod)) {
            continue;
        }
        let name = format!("{} {}", gang.key, subgroup.name);
        within_limit(engine, &name, rule.tier_limit.as_ref(), &pods)?;
        let mut reserved = gang.reserved().to_vec();
        reserved.retain(|place| place.subgroup.as_ref() == Some(&subgroup.name));
        let has = |&&pod: &&PodId| is_ready(cluster, pod) || is_nominated(cluster, pod);
        let have = pods.iter().filter(has).count() + reserved.len();
        if enforces_minimum(engine) && have < rule.size as usize {
            return Invariant::GangMinimum
                .fails(format!("{name} is placed with {have} of {} pods", rule.size));
        }
    }
    Ok(())
}

fn within_limit(
    engine: &Engine,
    name: &str,
    limit: Option<&TierLimit>,
    pods: &[PodId],
) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let Some(limit) = limit.filter(|limit| limit.hard) else { return Ok(()) };
    let Some(highest) = highest_tier(cluster, limit) else {
        return Invariant::TopologyLimit.fails(format!("{name} needs a tier that does not exist"));
    };
    let Some(domain) = common_domain(cluster, &nodes_of(cluster, pods)) else { return Ok(()) };
    let domain = &cluster.domains[domain];
    match domain.tier > highest {
        false => Ok(()),
        true => Invariant::TopologyLimit.fails(format!(
            "{name} is spread over {} of tier {}, above {highest}",
            domain.name, domain.tier
        )),
    }
}

/// A gang that is bound has a PodGroup (or needs none), was admitted, and is in an open queue.
fn bound_gang_may_run(engine: &Engine, id: GangId) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let gang = &cluster.gangs[id];
    let queue = &cluster.queues[gang.queue];
    let mut line = queue_and_above(cluster, gang.queue).into_iter();
    let fault = match gang {
        _ if !gang.live => "is gone",
        _ if gang.origin == Origin::Missing => "has no PodGroup",
        _ if !gang.admitted() => "was not admitted",
        _ if !queue.exists => "is in a queue that does not exist",
        _ if queue.broken.is_some() => "is in a queue without a root",
        _ if line.any(|queue| cluster.queues[queue].state != QueueState::Open) => {
            "is in a queue that is not open"
        }
        _ => return Ok(()),
    };
    Invariant::MayRun.fails(format!("{} is bound, but it {fault}", gang.key))
}
