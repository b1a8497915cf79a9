//! Each eviction is for a gang that gets a node in this cycle and would not get it if the pod
//! stayed. Later decisions of a cycle can make that false: the gang loses its nomination, or finds
//! that another one has taken the room that was made for it. Then the pods stay after all, and
//! gangs that are nominated only because of that room wait again.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::decisions::Eviction;
use crate::eviction::review::recount;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::nomination::held::{nominated_gangs, nominations_of};
use crate::nomination::release::note_released;
use crate::order::session::Session;
use crate::placement::fit::has_room;
use crate::policy::answers::Policy;

/// Pods of one gang that stay together or leave together, and the gangs they leave for.
#[derive(Clone)]
struct Set {
    gang: GangId,
    pods: Vec<(PodId, NodeId)>,
    preemptors: BTreeSet<GangId>,
}

/// Takes evictions out of the plan that are of no use to the gang that they are for.
pub fn review(session: &mut Session) {
    let mut kept: BTreeSet<PodId> = BTreeSet::new();
    loop {
        let gains = gains(session);
        let useless = sets(session).into_iter().find(|set| {
            let is_kept = || set.pods.iter().any(|(pod, _)| kept.contains(pod));
            !gains.surely_need(session.cluster, set) && !is_kept() && !gains.need(session, set)
        });
        let Some(set) = useless else { break };
        if !undo(session, &set) {
            kept.extend(set.pods.iter().map(|&(pod, _)| pod));
        }
    }
}

/// The evictions for other gangs. A gang that breaks is one set, and so are the pods of a subgroup
/// that breaks, and pods that must move together.
fn sets(session: &mut Session) -> Vec<Set> {
    let (cluster, plan) = (&mut *session.cluster, &*session.plan);
    let mut of_gangs: BTreeMap<GangId, Vec<&Eviction>> = BTreeMap::new();
    for eviction in &plan.evictions {
        if let Some(gang) = cluster.pods.gang[eviction.pod] {
            of_gangs.entry(gang).or_default().push(eviction);
        }
    }
    // Giving back some pods of a gang that is evicted as stale would be of no use.
    of_gangs.retain(|_, evictions| evictions.iter().all(|one| one.preemptor.is_some()));
    let mut sets: BTreeMap<(GangId, Together), Set> = BTreeMap::new();
    for (gang, evictions) in of_gangs {
        let breaks = evictions.iter().any(|one| is_whole(one.cause))
            && was_complete(cluster, gang, &evictions);
        for one in evictions {
            let together = if breaks { Together::Gang } else { together(cluster, gang, one) };
            let empty = || Set { gang, pods: Vec::new(), preemptors: BTreeSet::new() };
            let set = sets.entry((gang, together)).or_insert_with(empty);
            set.pods.push((one.pod, one.node));
            set.preemptors.extend(one.preemptor);
        }
    }
    sets.into_values().collect()
}

/// What stays or leaves as one.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    Gang,
    Subgroup(u32),
    Pod(PodId),
}

/// Whether a gang had its minimum before these evictions, with the nominations that it held when the
/// cycle began: a gang that got the last of its nodes in this cycle has not run.
fn was_complete(cluster: &mut Cluster, gang: GangId, evictions: &[&Eviction]) -> bool {
    let held = |&pod: &PodId| {
        let nomination = cluster.nomination_ledger.get(&pod).filter(|one| one.published)?;
        Some((pod, nomination.node))
    };
    let held: Vec<(PodId, NodeId)> = cluster.gangs[gang].pods.iter().filter_map(held).collect();
    let mut txn = Txn::begin(cluster);
    evictions.iter().for_each(|one| txn.keep_running(one.pod, one.node));
    for (pod, node) in held {
        if !txn.pods.state[pod].occupies() {
            txn.keep_running(pod, node);
        }
    }
    txn.gangs[gang].ready(true)
}

fn is_whole(cause: Cause) -> bool {
    matches!(cause, Cause::Bundle { whole: true, .. })
}

fn together(cluster: &Cluster, gang: GangId, eviction: &Eviction) -> Together {
    let (row, place) = (&cluster.gangs[gang], cluster.pods.subgroup[eviction.pod]);
    if matches!(eviction.cause, Cause::Moved { .. }) {
        let near = row.topology_rules.is_some() || !row.rules().is_empty();
        return if near { Together::Gang } else { Together::Pod(eviction.pod) };
    }
    let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
    match group.is_some_and(|group| group.counts.ready() < row.size_of(group)) {
        true => Together::Subgroup(place),
        false => Together::Pod(eviction.pod),
    }
}

/// What gangs get in this cycle for which pods leave.
struct Gains {
    /// By gang and node, the pods that get it.
    nodes: BTreeMap<(GangId, NodeId), Vec<PodId>>,
    /// By gang, the pods that move for it, and where to.
    moves: BTreeMap<GangId, Vec<(PodId, NodeId)>>,
}

fn gains(session: &Session) -> Gains {
    let (cluster, plan) = (&*session.cluster, &*session.plan);
    let mut gains = Gains { nodes: BTreeMap::new(), moves: BTreeMap::new() };
    let gangs: BTreeSet<GangId> = plan.evictions.iter().filter_map(|one| one.preemptor).collect();
    let is_new = |pod: PodId, node: NodeId| {
        let known = cluster.nomination_ledger.get(&pod);
        known.is_none_or(|nomination| nomination.node != node || !nomination.published)
    };
    for &gang in &gangs {
        for (pod, node) in nominations_of(cluster, gang) {
            if is_new(pod, node) {
                gains.nodes.entry((gang, node)).or_default().push(pod);
            }
        }
    }
    for bind in plan.binds.iter().skip(session.bound_first.unwrap_or(0)) {
        if let Some(gang) = cluster.pods.gang[bind.pod].filter(|gang| gangs.contains(gang)) {
            gains.nodes.entry((gang, bind.node)).or_default().push(bind.pod);
        }
    }
    for eviction in &plan.evictions {
        if let (Cause::Moved { to }, Some(gang)) = (eviction.cause, eviction.preemptor) {
            gains.moves.entry(gang).or_default().push((eviction.pod, to));
        }
    }
    gains
}

impl Gains {
    /// Whether a node that a pod of the set leaves has too little for it beside the pods that get
    /// the node: true of most evictions, and quickly asked.
    fn surely_need(&self, cluster: &Cluster, set: &Set) -> bool {
        let wants = |pod: PodId, resource| cluster.request_of(cluster.pods.shape[pod], resource);
        set.pods.iter().any(|&(pod, node)| {
            let of_gang = |&gang: &GangId| self.nodes.get(&(gang, node));
            let gained: Vec<PodId> =
                set.preemptors.iter().filter_map(of_gang).flatten().copied().collect();
            cluster.shapes[cluster.pods.shape[pod]].request.iter().any(|(resource, amount)| {
                cluster.nodes.future_idle(resource, node) < amount
                    && gained.iter().any(|&gained| wants(gained, resource) > 0)
            })
        })
    }

    /// Whether one of the gangs that these pods leave for would lose something if they stayed.
    fn need(&self, session: &mut Session, set: &Set) -> bool {
        let of_gang =
            |&gang: &GangId| self.nodes.range((gang, NodeId(0))..=(gang, NodeId(u32::MAX)));
        let places = set.preemptors.iter().flat_map(of_gang);
        let gained: Vec<(PodId, NodeId)> = places
            .flat_map(|(&(_, node), pods)| pods.iter().map(move |&pod| (pod, node)))
            .collect();
        let moves = set.preemptors.iter().filter_map(|gang| self.moves.get(gang)).flatten();
        let others = |pod: PodId| set.pods.iter().all(|&(own, _)| own != pod);
        let moves: Vec<(PodId, NodeId)> = moves.copied().filter(|&(pod, _)| others(pod)).collect();
        let policy = session.policy;
        let mut txn = Txn::begin(session.cluster);
        stay(&mut txn, set);
        // What rules between pods say of a pod that moves was asked when it was moved.
        let depends = |txn: &Txn, pod: PodId| txn.depends_on_other_nodes(txn.pods.shape[pod]);
        gained.iter().chain(&moves).any(|&(pod, node)| is_short(&txn, pod, node))
            || moves.iter().any(|&(pod, _)| depends(&txn, pod))
            || gained.iter().any(|&(pod, node)| !fits_again(&mut txn, policy, pod, node))
    }
}

/// Whether a node has too little of something that a pod requests.
fn is_short(cluster: &Cluster, pod: PodId, node: NodeId) -> bool {
    let mut request = cluster.shapes[cluster.pods.shape[pod]].request.iter();
    request.any(|(resource, _)| cluster.nodes.future_idle(resource, node) < 0)
}

/// Lets the pods of a set run on.
fn stay(txn: &mut Txn, set: &Set) {
    let pods: Vec<PodId> = set.pods.iter().map(|&(pod, _)| pod).collect();
    txn.end_reservations_for(set.gang, &pods);
    set.pods.iter().for_each(|&(pod, node)| txn.keep_running(pod, node));
}

/// Whether a pod that has got a node would get it again as things are.
fn fits_again(txn: &mut Txn, policy: &Policy, pod: PodId, node: NodeId) -> bool {
    let (Some(gang), shape) = (txn.pods.gang[pod], txn.pods.shape[pod]) else { return false };
    let mark = txn.mark();
    txn.release(pod);
    let fits = policy.may_allocate(txn, gang, shape, Room::FutureIdle).is_ok()
        && has_room(txn, policy, shape, node, Room::FutureIdle);
    txn.rewind(mark);
    fits
}

/// Lets the pods of a set run on, with those that were to move to their nodes, and withdraws the
/// nominations that do not fit beside them, those of the gangs that are served last first. Returns
/// false, and changes nothing, if even that does not make room for them.
fn undo(session: &mut Session, set: &Set) -> bool {
    let (gangs, policy) = (nominated_gangs(session), session.policy);
    let stays = with_those_that_move_there(session, set);
    let mut txn = Txn::begin(session.cluster);
    stays.iter().for_each(|set| stay(&mut txn, set));
    for gang in gangs.into_iter().rev() {
        let nominated = nominations_of(&txn, gang);
        let fits = nominated.iter().all(|&(pod, node)| fits_again(&mut txn, policy, pod, node));
        if !fits {
            nominated.into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let pods = || stays.iter().flat_map(|set| set.pods.iter().copied());
    if pods().any(|(pod, node)| is_short(&txn, pod, node)) {
        return false;
    }
    let moves = txn.commit();
    let released: Vec<_> = moves.into_iter().filter(|step| step.to == PodState::Pending).collect();
    note_released(session.cluster, &released);
    session.cluster.freed += 1;
    let running: BTreeSet<PodId> = pods().map(|(pod, _)| pod).collect();
    session.plan.search_counters.reprieved += running.len() as u32;
    session.plan.evictions.retain(|eviction| !running.contains(&eviction.pod));
    recount(session);
    session.plan.wake_at(session.now);
    true
}

/// This set, and those with pods that were to move to a node where too little is left then.
fn with_those_that_move_there(session: &mut Session, set: &Set) -> Vec<Set> {
    let targets: BTreeMap<PodId, NodeId> = session
        .plan
        .evictions
        .iter()
        .filter_map(|one| match one.cause {
            Cause::Moved { to } => Some((one.pod, to)),
            _ => None,
        })
        .collect();
    let mut others = sets(session);
    let mut stays = vec![set.clone()];
    others.retain(|other| other.pods != set.pods);
    loop {
        let mut txn = Txn::begin(session.cluster);
        stays.iter().for_each(|set| stay(&mut txn, set));
        let full: BTreeSet<NodeId> = stays
            .iter()
            .flat_map(|set| set.pods.iter())
            .filter(|&&(pod, node)| is_short(&txn, pod, node))
            .map(|&(_, node)| node)
            .collect();
        drop(txn);
        let goes_there = |(pod, _): &(PodId, NodeId)| {
            targets.get(pod).is_some_and(|target| full.contains(target))
        };
        let Some(at) = others.iter().position(|other| other.pods.iter().any(goes_there)) else {
            return stays;
        };
        stays.push(others.remove(at));
    }
}
