//! Nodes and cards take what they have room for, and only pods that they accept.

use muster_engine::ids::{NodeId, ResourceId};
use muster_engine::{ALL_CORES, Bind, Decisions, Engine, Room};

use super::facts::{dimensions, is_nominated};
use super::{node_refusals, pod_rules};
use crate::violation::{Invariant, Violation};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    for bind in plan.binds.iter().chain(&plan.nominations) {
        node_has_room(engine, bind)?;
        cards_have_room(engine, bind)?;
        node_accepts(engine, bind)?;
        pod_rules::check(engine, bind.pod, bind.node)?;
    }
    Ok(())
}

/// A bound pod has room now, a nominated one when those that leave are gone.
fn node_has_room(engine: &Engine, bind: &Bind) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let (shape, node) = (cluster.pods.shape[bind.pod], bind.node);
    let later = is_nominated(cluster, bind.pod);
    let left = |resource: ResourceId, node: NodeId| match later {
        true => cluster.nodes.future_idle(resource, node),
        false => cluster.nodes.idle[resource][node],
    };
    let mut asked = dimensions(cluster).filter(|&id| cluster.request_of(shape, id) > 0);
    match asked.find(|&resource| left(resource, node) < 0) {
        None => Ok(()),
        Some(resource) => Invariant::NodeRoom.fails(format!(
            "{} on {} puts it over its {}",
            cluster.pods.name(bind.pod),
            cluster.nodes.name[node],
            cluster.dimensions.name(resource)
        )),
    }
}

/// A pod that shares cards has all that it asks for, and no card has more than it can hold.
fn cards_have_room(engine: &Engine, bind: &Bind) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let Some(demand) = cluster.demand(cluster.pods.shape[bind.pod]) else { return Ok(()) };
    let (pod, node) = (cluster.pods.name(bind.pod), &cluster.nodes.name[bind.node]);
    let slots = cluster.devices.held(bind.pod).map(|held| &*held.slots).unwrap_or_default();
    let asked: usize = demand.asks.iter().map(|ask| ask.cards as usize).sum();
    let fails = |what: String| Invariant::CardRoom.fails(what);
    if slots.len() != asked {
        return fails(format!("{pod} has {} of {asked} cards of {node}", slots.len()));
    }
    let room = if is_nominated(cluster, bind.pod) { Room::FutureIdle } else { Room::Backfill };
    for slot in slots {
        let card = cluster.devices.cards(bind.node).and_then(|cards| cards.get(slot.card));
        let Some(card) = card else {
            return fails(format!("{pod} has a card that {node} does not have"));
        };
        let (fact, taken) = (&card.fact, card.taken(room));
        let over = taken.memory > fact.memory || taken.cores > ALL_CORES || taken.pods > fact.pods;
        let disturbed = slot.takes.cores >= ALL_CORES && taken.pods > 1;
        if over || disturbed || !fact.healthy {
            return fails(format!("{pod} gets card {} of {node}, which has {taken:?}", fact.id));
        }
    }
    Ok(())
}

fn node_accepts(engine: &Engine, bind: &Bind) -> Result<(), Violation> {
    let cluster = engine.cluster();
    match node_refusals::refusal(engine, bind.pod, bind.node) {
        None => Ok(()),
        Some(refusal) => {
            let (pod, node) = (cluster.pods.name(bind.pod), &cluster.nodes.name[bind.node]);
            Invariant::NodeAccepts.fails(format!("{pod} goes to {node}, which {refusal}"))
        }
    }
}
