//! Room for one pod by asking others to leave: on which node that costs least, and who has to go there. Every node that may
//! do is tried in a transaction: pods leave in order until the claimant fits, then those that weren't needed are given back,
//! the most valuable first. So nobody goes in vain, whatever made the claimant not fit.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use muster_api::Time;

use crate::ids::{GangId, NodeId, PodId, QueueId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::placement::Rankings;
use crate::policy::{Claim, Policy, Purpose, Room, Shield};
use crate::ranking::has_room;
use crate::txn::{Move, Txn};

/// How many nodes without a solution are tried for each that may have one.
const PATIENCE: usize = 8;

/// Why nobody could make room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Nodes on which pods could be asked to leave, and would not help.
    pub nodes: u32,
    /// Pods that a rule keeps, by rule.
    pub kept: BTreeMap<&'static str, u32>,
    /// When the first of these rules ends that time alone ends.
    pub until: Option<Time>,
}

/// What it costs to make room on a node; the smallest is the best.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// How many leave against a rule that should hold where it can.
    broken: usize,
    /// As a plugin prices it, if one does.
    price: Option<i64>,
    highest: i32,
    sum: i64,
    pods: usize,
    /// Of equal ones, the place where the pods that run longest have run for the shortest time.
    oldest: Reverse<i64>,
    rank: u32,
}

/// A node that may do.
struct Candidate {
    node: NodeId,
    /// Who may be asked to leave, in order.
    victims: Vec<PodId>,
    /// What the first of them that free enough, as numbers go, would cost.
    guess: Cost,
}

/// Finds the cheapest place for the claimant's pod among nodes of these ranks, and makes it in the transaction: pods leave,
/// weaker promises are taken back, and the pod is promised the place. At most so many nodes are tried.
pub fn make_room(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    claim: &Claim,
    ranks: &[Range<u32>],
    most: usize,
) -> Result<(), Refusal> {
    let mut refusal = Refusal::default();
    let candidates = candidates(txn, policy, rankings, claim, ranks, &mut refusal);
    let mut best: Option<(Cost, Vec<Move>)> = None;
    let mut solved = 0;
    for candidate in candidates.iter().take(most.saturating_mul(PATIENCE)) {
        let mark = txn.mark();
        match attempt(txn, policy, claim, candidate, &mut refusal.kept) {
            Some(gone) => {
                let cost = cost(txn, policy, claim, candidate.node, &gone);
                if best.as_ref().is_none_or(|(known, _)| cost < *known) {
                    best = Some((cost, txn.since(mark)));
                }
                solved += 1;
            }
            None => refusal.nodes += 1,
        }
        txn.rewind(mark);
        if solved == most {
            break;
        }
    }
    let (_, moves) = best.ok_or(refusal)?;
    txn.replay(&moves);
    Ok(())
}

/// The nodes on which pods could leave for the claim and would free enough, the most promising first.
fn candidates(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    claim: &Claim,
    ranks: &[Range<u32>],
    refusal: &mut Refusal,
) -> Vec<Candidate> {
    let shape = cluster.pods.shape[claim.pod];
    let ranking = rankings.of(cluster, policy, shape, Room::Later);
    let mut found = Vec::new();
    for rank in ranks.iter().cloned().flatten() {
        let node = cluster.nodes.by_rank[rank as usize];
        if !ranking.is_open(node) {
            continue;
        }
        let mut victims = eligible(cluster, policy, claim, node, refusal);
        if victims.is_empty() && weaker(cluster, claim, node).is_empty() {
            continue;
        }
        victims.sort_by(|&a, &b| victim_order(cluster, policy, claim, a, b));
        let broken = policy.breaks(cluster, claim, &victims);
        if !broken.is_empty() {
            victims.sort_by_key(|pod| broken.contains(pod));
        }
        if let Some(needed) = enough(cluster, claim, shape, node, &victims) {
            let guess = cost(cluster, policy, claim, node, &victims[..needed]);
            found.push(Candidate { node, victims, guess });
        }
    }
    found.sort_by(|a, b| a.guess.cmp(&b.guess));
    found
}

/// The pods on a node that the claimant may have, but for what counts others that have gone.
fn eligible(
    cluster: &Cluster,
    policy: &Policy,
    claim: &Claim,
    node: NodeId,
    refusal: &mut Refusal,
) -> Vec<PodId> {
    let own = &cluster.gangs[claim.gang];
    let modest = cluster.shapes[cluster.pods.shape[claim.pod]].best_effort;
    let concerns = |pod: PodId| {
        let Some(gang) = cluster.pods.gang[pod] else { return false };
        let queue = &cluster.queues[cluster.gangs[gang].queue];
        let in_scope = match claim.purpose {
            Purpose::Preempt => gang != claim.gang && cluster.gangs[gang].queue == own.queue,
            Purpose::Within => gang == claim.gang,
            Purpose::Reclaim => cluster.gangs[gang].queue != own.queue && queue.reclaimable,
        };
        in_scope
            && matches!(cluster.pods.state[pod], PodState::Running(_))
            && (!modest || cluster.shapes[cluster.pods.shape[pod]].best_effort)
    };
    let mut keeps = |pod: PodId| {
        let refused = cluster.spared.get(&pod).copied().filter(|until| *until > claim.now);
        let spared = refused.map(|until| Shield { rule: "an eviction that was refused", until: Some(until) });
        let always = || policy.protects(cluster, pod).map(|rule| Shield { rule, until: None });
        let shield = spared.or_else(always).or_else(|| policy.shields(cluster, claim, pod));
        if let Some(Shield { rule, until }) = shield {
            *refusal.kept.entry(rule).or_default() += 1;
            refusal.until = [refusal.until, until].into_iter().flatten().min();
        }
        shield.is_some()
    };
    let outranked = |pod: PodId| claim.purpose == Purpose::Reclaim || policy.outranks(cluster, claim, pod);
    let pods = cluster.nodes.seats[node].iter().copied();
    pods.filter(|&pod| concerns(pod) && outranked(pod) && !keeps(pod)).collect()
}

/// Gangs that hold promises on a node which the claimant may take back: of its queue, with lower priority.
fn weaker(cluster: &Cluster, claim: &Claim, node: NodeId) -> Vec<GangId> {
    let own = &cluster.gangs[claim.gang];
    let promised = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Nominated(_));
    let pods = cluster.nodes.seats[node].iter().filter(|pod| promised(pod));
    let mut gangs: Vec<GangId> = pods.filter_map(|&pod| cluster.pods.gang[pod]).collect();
    gangs.retain(|&gang| {
        let other = &cluster.gangs[gang];
        gang != claim.gang && other.queue == own.queue && other.priority < own.priority
    });
    gangs.sort_unstable();
    gangs.dedup();
    gangs
}

/// Who leaves first: the queue that gives first, then lower priority, then who started last.
fn victim_order(cluster: &Cluster, policy: &Policy, claim: &Claim, a: PodId, b: PodId) -> Ordering {
    let queue = |pod: PodId| cluster.pods.gang[pod].map(|gang| cluster.gangs[gang].queue);
    let queues = match (queue(a), queue(b)) {
        (Some(a), Some(b)) if a != b => {
            policy.victim_order(cluster, claim, a, b).then_with(|| named(cluster, a, b))
        }
        _ => Ordering::Equal,
    };
    let worth = |pod: PodId| {
        let fact = &cluster.pods.fact[pod];
        (priority(cluster, pod), cluster.pods.order[pod], Reverse(fact.started), Reverse(&fact.key))
    };
    queues.then_with(|| worth(a).cmp(&worth(b)))
}

fn named(cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
    cluster.queues[a].name.cmp(&cluster.queues[b].name)
}

fn priority(cluster: &Cluster, pod: PodId) -> i32 {
    cluster.pods.gang[pod].map_or(cluster.pods.fact[pod].priority, |gang| cluster.gangs[gang].priority)
}

/// How many of the pods must leave, in order, until the node has enough of everything, as numbers go.
fn enough(
    cluster: &Cluster,
    claim: &Claim,
    shape: ShapeId,
    node: NodeId,
    victims: &[PodId],
) -> Option<usize> {
    let promised = |resource: ResourceId| -> i64 {
        let pods = weaker(cluster, claim, node).into_iter().flat_map(|gang| &cluster.gangs[gang].pods);
        let here = pods.filter(|&&pod| cluster.pods.state[pod] == PodState::Nominated(node));
        here.map(|&pod| cluster.request_of(cluster.pods.shape[pod], resource)).sum()
    };
    let mut lacks: Vec<(ResourceId, i64)> = cluster.shapes[shape]
        .request
        .iter()
        .map(|(resource, want)| (resource, want - cluster.nodes.future_idle(resource, node)))
        .filter(|&(_, lack)| lack > 0)
        .map(|(resource, lack)| (resource, lack - promised(resource)))
        .collect();
    lacks.retain(|&(_, lack)| lack > 0);
    for (count, &pod) in victims.iter().enumerate() {
        if lacks.is_empty() {
            return Some(count);
        }
        for (resource, lack) in &mut lacks {
            *lack -= cluster.request_of(cluster.pods.shape[pod], *resource);
        }
        lacks.retain(|&(_, lack)| lack > 0);
    }
    lacks.is_empty().then_some(victims.len())
}

fn cost(cluster: &Cluster, policy: &Policy, claim: &Claim, node: NodeId, gone: &[PodId]) -> Cost {
    let started = |&pod: &PodId| cluster.pods.fact[pod].started.map_or(i64::MAX, |time| time.0);
    Cost {
        broken: policy.breaks(cluster, claim, gone).len(),
        price: policy.price(cluster, claim, node, gone),
        highest: gone.iter().map(|&pod| priority(cluster, pod)).max().unwrap_or(i32::MIN),
        sum: gone.iter().map(|&pod| i64::from(priority(cluster, pod)) + (1 << 31)).sum(),
        pods: gone.len(),
        oldest: Reverse(gone.iter().map(started).min().unwrap_or(i64::MAX)),
        rank: cluster.nodes.rank[node],
    }
}

/// Makes room on one node, with as few gone as possible. Leaves its moves in the transaction either way.
fn attempt(
    txn: &mut Txn,
    policy: &Policy,
    claim: &Claim,
    candidate: &Candidate,
    kept: &mut BTreeMap<&'static str, u32>,
) -> Option<Vec<PodId>> {
    let node = candidate.node;
    let shape = txn.pods.shape[claim.pod];
    let fits = |txn: &Txn| {
        policy.may_take(txn, claim.gang, shape, Room::Later).is_ok()
            && has_room(txn, policy, shape, node, Room::Later)
    };
    let promises = take_back(txn, claim, node);
    let mut gone: Vec<(PodId, PodState)> = Vec::new();
    let mut done = fits(txn);
    for &pod in &candidate.victims {
        if done {
            break;
        }
        if let Some(rule) = policy.restrains(txn, claim, pod) {
            *kept.entry(rule).or_default() += 1;
            continue;
        }
        gone.push((pod, txn.pods.state[pod]));
        txn.evict(pod);
        done = fits(txn);
    }
    if !done {
        return None;
    }
    for at in (0..gone.len()).rev() {
        let (pod, state) = gone[at];
        txn.spare(pod, state);
        if fits(txn) {
            gone.remove(at);
        } else {
            txn.evict(pod);
        }
    }
    if !stands_alone(txn, policy, claim, shape, node) {
        return None;
    }
    txn.nominate(claim.pod, node);
    give_again(txn, policy, &promises);
    Some(gone.into_iter().map(|(pod, _)| pod).collect())
}

/// Takes back the promises of weaker gangs with a place on the node, all of each gang.
fn take_back(txn: &mut Txn, claim: &Claim, node: NodeId) -> Vec<Vec<(PodId, NodeId)>> {
    let mut taken = Vec::new();
    for gang in weaker(txn, claim, node) {
        let promised = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        let places: Vec<(PodId, NodeId)> = txn.gangs[gang].pods.iter().filter_map(promised).collect();
        places.iter().for_each(|&(pod, _)| txn.release(pod));
        taken.push(places);
    }
    taken
}

/// Gives promises again that the claimant left room for: all of a gang's or none.
fn give_again(txn: &mut Txn, policy: &Policy, promises: &[Vec<(PodId, NodeId)>]) {
    for places in promises {
        let mark = txn.mark();
        for &(pod, node) in places {
            if !has_room(txn, policy, txn.pods.shape[pod], node, Room::Later) {
                txn.rewind(mark);
                break;
            }
            txn.nominate(pod, node);
        }
    }
}

/// Whether the claimant fits as well if those who were promised a place on the node never come.
fn stands_alone(txn: &mut Txn, policy: &Policy, claim: &Claim, shape: ShapeId, node: NodeId) -> bool {
    if !txn.far_reaching(shape) {
        return true;
    }
    let promised = |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Nominated(_));
    let others = |pod: &PodId| txn.pods.gang[*pod] != Some(claim.gang);
    let pods: Vec<PodId> =
        txn.nodes.seats[node].iter().copied().filter(|pod| promised(pod) && others(pod)).collect();
    let mark = txn.mark();
    pods.into_iter().for_each(|pod| txn.release(pod));
    let stands = has_room(txn, policy, shape, node, Room::Later);
    txn.rewind(mark);
    stands
}
