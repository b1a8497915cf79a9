//! What holds of pods that leave for another node: their gangs run on with them, there is room for
//! them, and none moves that could have stayed. `consolidate` loses no pod.

use std::collections::BTreeMap;

use muster_engine::ids::{GangId, PodId};
use muster_engine::{Cause, Decisions, Engine, Eviction};

use super::bundles::is_whole;
use super::evictions::is_needed;
use super::facts::dimensions;
use super::node_refusals::refusal;
use crate::violation::{Invariant, Violation};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let mut moved: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for eviction in &plan.evictions {
        let name = cluster.pods.name(eviction.pod);
        let Cause::Moved { .. } = eviction.cause else {
            if eviction.action == "consolidate" {
                return Invariant::Move.fails(format!("{name} is lost, where pods are only moved"));
            }
            continue;
        };
        let (Some(gang), Some(preemptor)) = (cluster.pods.gang[eviction.pod], eviction.preemptor)
        else {
            return Invariant::Move.fails(format!("{name} is moved, of no gang or for none"));
        };
        has_room_where_it_goes(engine, eviction)?;
        // Pods that must be near others may have to go with them.
        if cluster.gangs[gang].topology_rules.is_none() {
            is_needed(engine, eviction, preemptor)?;
        }
        moved.entry(gang).or_default().push(eviction.pod);
    }
    for (&gang, moved) in &moved {
        let gone = plan.evictions.iter().map(|eviction| eviction.pod);
        let gone: Vec<PodId> = gone.filter(|&pod| cluster.pods.gang[pod] == Some(gang)).collect();
        let row = &cluster.gangs[gang];
        if is_whole(cluster, row, &gone) && !is_whole(cluster, row, moved) {
            let (pods, key) = (moved.len(), &row.key);
            return Invariant::Move
                .fails(format!("{pods} of {key} are moved, and it is broken all the same"));
        }
    }
    Ok(())
}

/// The node to which a pod moves is another one (or it moves to other cards), accepts it, and will
/// have room for it.
fn has_room_where_it_goes(engine: &Engine, eviction: &Eviction) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let Cause::Moved { to } = eviction.cause else { return Ok(()) };
    let (pod, shape) = (cluster.pods.name(eviction.pod), cluster.pods.shape[eviction.pod]);
    let node = &cluster.nodes.name[to];
    if to == eviction.node && cluster.demand(shape).is_none() {
        return Invariant::Move.fails(format!("{pod} is moved to where it is"));
    }
    if let Some(refusal) = refusal(engine, eviction.pod, to) {
        return Invariant::NodeAccepts.fails(format!("{pod} is moved to {node}, which {refusal}"));
    }
    let mut asked = dimensions(cluster).filter(|&id| cluster.request_of(shape, id) > 0);
    match asked.any(|resource| cluster.nodes.future_idle(resource, to) < 0) {
        false => Ok(()),
        true => Invariant::Move.fails(format!("{pod} is moved to {node}, which has no room")),
    }
}
