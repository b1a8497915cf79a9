//! Whether a pod fits a node, and why not.

use crate::base::cards::Ask;
use crate::base::ids::{GangId, NodeId, ResourceId, ShapeId};
use crate::base::room::Room;
use crate::decision::node_reason::{Shown, Why};
use crate::model::Cluster;
use crate::model::devices::cards::Cards;
use crate::model::devices::demand::Demand;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::policy::plugin::Scope;

/// Whether a pod of the gang can have this place: its queue may take it and the node does.
pub fn fits(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    (gang, shape, node): (GangId, ShapeId, NodeId),
    room: Room,
) -> bool {
    policy.may_allocate(cluster, gang, shape, room).is_ok()
        && rankings.of(cluster, policy, shape, room).admits(cluster, policy, shape, node)
}

/// What a node has of a resource for a pod that is placed in this room.
pub fn free(cluster: &Cluster, resource: ResourceId, node: NodeId, room: Room) -> i64 {
    let (now, later) =
        (cluster.nodes.idle[resource][node], cluster.nodes.future_idle(resource, node));
    match room {
        Room::Idle => now.min(later),
        Room::FutureIdle => later,
        Room::Backfill => now,
    }
}

/// Whether nominated room may not be used (and there is any).
pub fn counts_nominations(cluster: &Cluster, room: Room) -> bool {
    room == Room::FutureIdle || room == Room::Idle && cluster.nominated_count > 0
}

/// Whether a node that is open to a shape has room for one pod of it, asked without a ranking.
pub fn has_room(
    cluster: &Cluster,
    policy: &Policy,
    shape: ShapeId,
    node: NodeId,
    room: Room,
) -> bool {
    why_not(cluster, policy, shape, node, room) == Why::Fits
}

/// Why it has none.
fn why_not(cluster: &Cluster, policy: &Policy, shape: ShapeId, node: NodeId, room: Room) -> Why {
    if let Some(lack) = lacks(cluster, shape, node, room) {
        return lack;
    }
    let mut why = [Why::Fits];
    if !cluster.shapes[shape].ports.is_empty() {
        policy.filter(Scope::NodePods, cluster, (shape, room), &[node], &mut why);
    }
    if why[0] == Why::Fits && cluster.depends_on_other_nodes(shape) {
        policy.filter(Scope::OtherNodes, cluster, (shape, room), &[node], &mut why);
    }
    why[0]
}

/// What a node that is open to a shape lacks for one pod of it, with the numbers.
pub fn shortcoming(
    cluster: &Cluster,
    policy: &Policy,
    shape: ShapeId,
    node: NodeId,
    room: Room,
) -> Option<Shown> {
    match why_not(cluster, policy, shape, node, room) {
        Why::Fits => None,
        why => Some(shown(cluster, shape, node, room, why)),
    }
}

/// What the node lacks: a resource, or a card for pods that share one.
#[inline]
pub fn lacks(cluster: &Cluster, shape: ShapeId, node: NodeId, room: Room) -> Option<Why> {
    let short = short_of(cluster, shape, node, room).map(Why::Short);
    let card = |demand: &Demand| (!cluster.devices.admit(demand, node, room)).then_some(Why::Card);
    short.or_else(|| cluster.demand(shape).and_then(card))
}

/// Why a node does not do, with its numbers.
pub fn shown(cluster: &Cluster, shape: ShapeId, node: NodeId, room: Room, why: Why) -> Shown {
    match why {
        Why::Short(resource) => Shown::Short {
            resource,
            want: cluster.request_of(shape, resource),
            best: free(cluster, resource, node, room),
        },
        Why::Card => shown_card(cluster, shape, node, room),
        Why::Tainted => {
            let tolerations = &cluster.shapes[shape].spec.tolerations;
            let taint = cluster.nodes.fact[node].taints.iter().find(|taint| {
                taint.effect != "PreferNoSchedule"
                    && !tolerations.iter().any(|t| t.tolerates(taint))
            });
            Shown::Tainted(taint.map(|taint| taint.key.clone()).unwrap_or_default())
        }
        Why::RevocableOnly | Why::ZoneClosed | Why::ZoneUnknown => {
            Shown::Zone(why, cluster.nodes.fact[node].zone().unwrap_or_default().to_owned())
        }
        Why::Together(term) | Why::Apart(term) | Why::Avoided(term) | Why::Spread(term) => {
            Shown::Rule(why, cluster.terms.key_name(term).to_owned())
        }
        _ => Shown::Plain(why),
    }
}

/// The container that finds too few cards on the node; the last one if each would alone.
fn shown_card(cluster: &Cluster, shape: ShapeId, node: NodeId, room: Room) -> Shown {
    let Some(demand) = cluster.demand(shape) else { return Shown::Plain(Why::Card) };
    let cards = cluster.devices.cards(node);
    let best = |ask: &Ask| cards.map_or(0, |cards| cards.fitting(demand, ask, room) as u32);
    let Some(&ask) = demand.asks.iter().find(|ask| best(ask) < ask.cards).or(demand.asks.last())
    else {
        return Shown::Plain(Why::Card);
    };
    let free = cards.into_iter().flat_map(Cards::iter).map(|card| card.free(demand, room)).max();
    let picky = demand.card_selector.is_some();
    Shown::Card { ask, picky, best: best(&ask), free: free.unwrap_or(0) }
}

/// The first resource that the node lacks, scarce ones first.
#[inline]
fn short_of(cluster: &Cluster, shape: ShapeId, node: NodeId, room: Room) -> Option<ResourceId> {
    let nominated = counts_nominations(cluster, room);
    let lacks = |resource: ResourceId, want: i64| {
        room != Room::FutureIdle && cluster.nodes.idle[resource][node] < want
            || nominated && cluster.nodes.future_idle(resource, node) < want
    };
    cluster.shapes[shape]
        .request
        .iter()
        .find(|&(resource, want)| lacks(resource, want))
        .map(|(resource, _)| resource)
}
