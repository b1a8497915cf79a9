//! What holds of those who leave for another place: their gangs run on with them, there is room for
//! them, they leave for those who may ask them, and nobody moves who could have stayed. Who makes
//! room by moving loses nobody.

use std::collections::BTreeMap;

use muster_engine::ids::{GangId, PodId};
use muster_engine::{Cause, Decisions, Engine, Eviction, Room, Scope, Why};

use super::bundles::{is_whole, only_who_may_be_asked};
use super::{dimensions, leaves_for_a_reason};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), String> {
    let cluster = engine.cluster();
    let mut moved: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for eviction in &plan.evictions {
        let name = cluster.pods.name(eviction.pod);
        let Cause::Moved { .. } = eviction.cause else {
            if eviction.action == "consolidate" {
                return Err(format!("{name} is lost, where pods are only moved"));
            }
            continue;
        };
        let (Some(gang), Some(preemptor)) = (cluster.pods.gang[eviction.pod], eviction.preemptor)
        else {
            return Err(format!("{name} is moved, of no gang or for none"));
        };
        if eviction.action != "consolidate" {
            only_who_may_be_asked(cluster, eviction, gang, preemptor)?;
        }
        has_a_place(engine, eviction)?;
        // Who must be near others may have to go with them.
        if cluster.gangs[gang].topology_rules.is_none() {
            leaves_for_a_reason(engine, eviction, preemptor)?;
        }
        moved.entry(gang).or_default().push(eviction.pod);
    }
    for (&gang, moved) in &moved {
        let gone = plan.evictions.iter().map(|eviction| eviction.pod);
        let gone: Vec<PodId> = gone.filter(|&pod| cluster.pods.gang[pod] == Some(gang)).collect();
        let row = &cluster.gangs[gang];
        if is_whole(cluster, row, &gone) && !is_whole(cluster, row, moved) {
            return Err(format!(
                "{} of {} are moved, and it is broken all the same",
                moved.len(),
                row.key
            ));
        }
    }
    Ok(())
}

/// The node to which a pod moves is another one (or it moves to other cards), takes it, and will
/// have room for it.
fn has_a_place(engine: &Engine, eviction: &Eviction) -> Result<(), String> {
    let cluster = engine.cluster();
    let Cause::Moved { to } = eviction.cause else { return Ok(()) };
    let (name, shape) = (cluster.pods.name(eviction.pod), cluster.pods.shape[eviction.pod]);
    let mut why = [Why::Fits];
    engine.policy().filter(Scope::NodeFacts, cluster, (shape, Room::FutureIdle), &[to], &mut why);
    let over = |&resource: &_| {
        cluster.request_of(shape, resource) > 0 && cluster.nodes.future_idle(resource, to) < 0
    };
    match why[0] {
        _ if to == eviction.node && cluster.demand(shape).is_none() => {
            Err(format!("{name} is moved to where it is"))
        }
        Why::Fits if cluster.nodes.fact[to].lets_go() => match dimensions(cluster).find(over) {
            Some(_) => {
                Err(format!("{name} is moved to {}, which has no room", cluster.nodes.name[to]))
            }
            None => Ok(()),
        },
        _ => Err(format!("{name} is moved to {}, which refuses it", cluster.nodes.name[to])),
    }
}
