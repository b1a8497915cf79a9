//! Room for one pod by asking others to leave: on which node that costs least, and who has to go
//! there. Every node that may do is tried in a transaction: pods leave in order until the claimant
//! fits, then those that weren't needed are given back, the most valuable first. So nobody goes in
//! vain, whatever made the claimant not fit.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::ops::Range;

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::purpose::Purpose;
use crate::base::room::Room;
use crate::decision::reason::Reason;
use crate::eviction::trace::{Bill, Obstacle, Outcome, Record};
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::model::gangs::missing::not_promised;
use crate::model::pods::PodState;
use crate::model::txn::{Mark, Move, Txn};
use crate::placement::fit::{has_room, shortcoming};
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::policy::plugin::Shield;
use crate::policy::preemptor::Claim;

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

impl Refusal {
    pub fn keep(&mut self, Shield { rule, until }: Shield) {
        *self.kept.entry(rule).or_default() += 1;
        self.until = [self.until, until].into_iter().flatten().min();
    }

    pub fn reason(self, purpose: Purpose) -> Reason {
        let kept = self.kept.into_iter().map(|(rule, pods)| (rule.to_owned(), pods)).collect();
        Reason::NothingToTake { purpose, nodes: self.nodes, kept }
    }
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

/// A node that does.
struct Way {
    cost: Cost,
    moves: Vec<Move>,
    /// How many were to leave before it turned out that they need not.
    reprieved: u32,
}

/// What comes to light while nodes are tried, and why nobody can make room.
struct Findings<'f, 't> {
    refusal: Refusal,
    record: &'f mut Record<'t>,
}

impl Findings<'_, '_> {
    fn keep(&mut self, node: NodeId, pod: PodId, shield: Shield) {
        self.refusal.keep(shield);
        if let Some(trace) = &mut self.record.trace {
            trace.keep(node, pod, shield.rule);
        }
    }

    fn conclude(&mut self, node: NodeId, outcome: impl FnOnce() -> Outcome) {
        if let Some(trace) = &mut self.record.trace {
            trace.conclude(node, outcome());
        }
    }
}

/// Finds the cheapest place for the claimant's pod among nodes of these ranks, and makes it in the
/// transaction: pods leave, weaker promises are taken back, and the pod is promised the place. At
/// most so many nodes are tried.
pub fn make_room(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    claim: &Claim,
    ranks: &[Range<u32>],
    most: usize,
    record: &mut Record,
) -> Result<(), Refusal> {
    let mut findings = Findings { refusal: Refusal::default(), record };
    let candidates = candidates(txn, policy, rankings, claim, ranks, &mut findings);
    let mut best: Option<Way> = None;
    let mut solved = 0;
    for candidate in candidates.iter().take(most.saturating_mul(PATIENCE)) {
        let mark = txn.mark();
        findings.record.work.simulations += 1;
        match attempt(txn, policy, claim, candidate, &mut findings) {
            Some((gone, reprieved)) => {
                let cost = cost(txn, policy, claim, candidate.node, &gone);
                findings.conclude(candidate.node, || worked(txn, mark, &gone, &cost));
                if best.as_ref().is_none_or(|known| cost < known.cost) {
                    best = Some(Way { cost, moves: txn.since(mark), reprieved });
                }
                solved += 1;
            }
            None => {
                findings.refusal.nodes += 1;
                findings
                    .conclude(candidate.node, || failed(txn, policy, claim, mark, candidate.node));
            }
        }
        txn.rewind(mark);
        if solved == most {
            break;
        }
    }
    let Way { cost, moves, reprieved } = best.ok_or(findings.refusal)?;
    let work = &mut findings.record.work;
    work.selected += cost.pods as u32 + reprieved;
    work.reprieved += reprieved;
    txn.replay(&moves);
    Ok(())
}

/// The nodes on which pods could leave for the claim and would free enough, the most promising
/// first.
fn candidates(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    claim: &Claim,
    ranks: &[Range<u32>],
    findings: &mut Findings,
) -> Vec<Candidate> {
    let shape = cluster.pods.shape[claim.pod];
    let ranking = rankings.of(cluster, policy, shape, Room::Later);
    let mut found = Vec::new();
    for rank in ranks.iter().cloned().flatten() {
        let node = cluster.nodes.by_rank[rank as usize];
        if !ranking.is_open(node) {
            findings.conclude(node, || Outcome::Closed);
            continue;
        }
        let mut victims = eligible(cluster, policy, claim, node, findings);
        if victims.is_empty() && weaker(cluster, claim, &[node]).is_empty() {
            findings.conclude(node, || Outcome::Nobody);
            continue;
        }
        victims.sort_by(|&a, &b| victim_order(cluster, policy, claim, a, b));
        let broken = policy.breaks(cluster, claim, &victims);
        if !broken.is_empty() {
            victims.sort_by_key(|pod| broken.contains(pod));
        }
        match enough(cluster, claim, shape, node, &victims) {
            Ok(needed) => {
                let guess = cost(cluster, policy, claim, node, &victims[..needed]);
                found.push(Candidate { node, victims, guess });
            }
            Err(lacks) => findings.conclude(node, || Outcome::TooLittle { victims, lacks }),
        }
    }
    found.sort_by(|a, b| a.guess.cmp(&b.guess));
    found.iter().for_each(|candidate| findings.conclude(candidate.node, || Outcome::NotTried));
    found
}

/// The pods on a node that the claimant may have, but for what counts others that have gone.
fn eligible(
    cluster: &Cluster,
    policy: &Policy,
    claim: &Claim,
    node: NodeId,
    findings: &mut Findings,
) -> Vec<PodId> {
    let mut free = Vec::new();
    for &pod in &cluster.nodes.seats[node] {
        match consider(cluster, policy, claim, pod) {
            Verdict::NoConcern => {}
            Verdict::Kept(shield) => findings.keep(node, pod, shield),
            Verdict::Free => free.push(pod),
        }
    }
    free
}

/// Whether a pod may be asked to leave for a claim, but for rules that count others that have gone.
pub enum Verdict {
    /// The claimant has no right to its place at all.
    NoConcern,
    Kept(Shield),
    Free,
}

pub fn consider(cluster: &Cluster, policy: &Policy, claim: &Claim, pod: PodId) -> Verdict {
    match cluster.pods.gang[pod] {
        Some(gang) if concerns(cluster, claim, gang) => consider_one(cluster, policy, claim, pod),
        _ => Verdict::NoConcern,
    }
}

/// Whether pods of a gang may be asked to leave for a claim at all.
pub fn concerns(cluster: &Cluster, claim: &Claim, gang: GangId) -> bool {
    let (own, other) = (&cluster.gangs[claim.gang], &cluster.gangs[gang]);
    let weaker = !claim.by_gang() || other.priority < own.priority;
    let movable = other.origin == Origin::Group;
    let in_scope = match claim.purpose {
        Purpose::Preempt => gang != claim.gang && other.queue == own.queue && weaker,
        Purpose::Within => gang == claim.gang,
        Purpose::Reclaim => other.queue != own.queue && cluster.queues[other.queue].reclaimable,
        Purpose::Consolidate => gang != claim.gang && movable,
    };
    // Nobody breaks a gang that is being bound.
    let binding = claim.by_gang() && other.counts.allocated > 0;
    // Who wants more than its minimum takes from those who have more than theirs.
    in_scope
        && (other.ready(true) || !wants_more(cluster, claim))
        && (claim.purpose == Purpose::Within || !binding && !just_claimed(cluster, gang))
}

/// Whether a gang that takes by gangs has its minimum already: then it breaks nobody.
fn wants_more(cluster: &Cluster, claim: &Claim) -> bool {
    claim.by_gang() && not_promised(&cluster.gangs[claim.gang], true).total == 0
}

/// The same for one of its pods.
pub fn consider_one(cluster: &Cluster, policy: &Policy, claim: &Claim, pod: PodId) -> Verdict {
    let modest = cluster.shapes[cluster.pods.shape[claim.pod]].best_effort;
    let runs = matches!(cluster.pods.state[pod], PodState::Running(_));
    let anyone = matches!(claim.purpose, Purpose::Reclaim | Purpose::Consolidate);
    let outranked = anyone || policy.outranks(cluster, claim, pod);
    if !runs || !outranked || modest && !cluster.shapes[cluster.pods.shape[pod]].best_effort {
        return Verdict::NoConcern;
    }
    let refused = cluster.spared.get(&pod).copied().filter(|until| *until > claim.now);
    let spared =
        refused.map(|until| Shield { rule: "an eviction that was refused", until: Some(until) });
    let always = || policy.protects(cluster, pod).map(|rule| Shield { rule, until: None });
    let shield = spared.or_else(always).or_else(|| moves(cluster, claim, pod));
    let shield = shield.or_else(|| policy.shields(cluster, claim, pod));
    shield.map_or(Verdict::Free, Verdict::Kept)
}

/// A gang of which some leave for places that are kept for them would lose those in vain if others
/// were lost.
fn moves(cluster: &Cluster, claim: &Claim, pod: PodId) -> Option<Shield> {
    let gang = cluster.pods.gang[pod].filter(|_| claim.purpose != Purpose::Consolidate)?;
    let until = cluster.gangs[gang].reserved().iter().map(|place| place.until).min()?;
    Some(Shield { rule: "its gang's move to other nodes", until: Some(until) })
}

/// Whether others were asked to leave for a gang in this cycle: whoever takes from it now would let
/// them go for nobody.
fn just_claimed(cluster: &Cluster, gang: GangId) -> bool {
    let just_now = |pod: &PodId| {
        let promise = cluster.promised.get(pod).filter(|promise| promise.evicted && !promise.told);
        promise.is_some_and(|promise| cluster.pods.state[*pod] == PodState::Nominated(promise.node))
    };
    !cluster.promised.is_empty() && cluster.gangs[gang].pods.iter().any(just_now)
}

/// Gangs that hold promises on nodes which the claimant may take back: of its queue, with lower
/// priority. Not if others were asked to leave for them just now: they would go for nobody. Not for
/// more than a minimum.
pub fn weaker(cluster: &Cluster, claim: &Claim, nodes: &[NodeId]) -> Vec<GangId> {
    let own = &cluster.gangs[claim.gang];
    if cluster.nominations == 0 || wants_more(cluster, claim) {
        return Vec::new();
    }
    let promised = |pod: &&PodId| matches!(cluster.pods.state[**pod], PodState::Nominated(_));
    let pods = nodes.iter().flat_map(|&node| &cluster.nodes.seats[node]).filter(promised);
    let mut gangs: Vec<GangId> = pods.filter_map(|&pod| cluster.pods.gang[pod]).collect();
    gangs.sort_unstable();
    gangs.dedup();
    gangs.retain(|&gang| {
        let other = &cluster.gangs[gang];
        gang != claim.gang
            && other.queue == own.queue
            && other.priority < own.priority
            && !just_claimed(cluster, gang)
    });
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
    queues.then_with(|| worth_order(cluster, a, b))
}

/// Who matters less: lower priority, then who started last.
fn worth_order(cluster: &Cluster, a: PodId, b: PodId) -> Ordering {
    let worth = |pod: PodId| {
        let fact = &cluster.pods.fact[pod];
        (priority(cluster, pod), cluster.pods.order[pod], Reverse(fact.started), Reverse(&fact.key))
    };
    worth(a).cmp(&worth(b))
}

fn named(cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
    cluster.queues[a].name.cmp(&cluster.queues[b].name)
}

fn priority(cluster: &Cluster, pod: PodId) -> i32 {
    cluster.pods.gang[pod]
        .map_or(cluster.pods.fact[pod].priority, |gang| cluster.gangs[gang].priority)
}

/// How many of the pods must leave, in order, until the node has enough of everything, as numbers
/// go; or what it lacks even without them.
fn enough(
    cluster: &Cluster,
    claim: &Claim,
    shape: ShapeId,
    node: NodeId,
    victims: &[PodId],
) -> Result<usize, Vec<(ResourceId, i64)>> {
    let promised = |resource: ResourceId| -> i64 {
        let pods =
            weaker(cluster, claim, &[node]).into_iter().flat_map(|gang| &cluster.gangs[gang].pods);
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
            return Ok(count);
        }
        for (resource, lack) in &mut lacks {
            *lack -= cluster.request_of(cluster.pods.shape[pod], *resource);
        }
        lacks.retain(|&(_, lack)| lack > 0);
    }
    if lacks.is_empty() { Ok(victims.len()) } else { Err(lacks) }
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

/// The node does, with these gone.
fn worked(txn: &Txn, mark: Mark, gone: &[PodId], cost: &Cost) -> Outcome {
    let lost = |step: &Move| {
        matches!(step.from, PodState::Nominated(_)) && txn.pods.state[step.pod] == PodState::Pending
    };
    let taken_back =
        txn.since(mark).iter().filter(|step| lost(step)).map(|step| step.pod).collect();
    let bill = Bill {
        broken: cost.broken,
        price: cost.price,
        highest_priority: Some(cost.highest).filter(|_| cost.pods > 0),
        // The cost adds to each, so that one more pod is dearer even if its priority is below zero.
        sum_of_priorities: cost.sum - ((cost.pods as i64) << 31),
        pods: cost.pods,
    };
    Outcome::Works { gone: gone.to_vec(), taken_back, bill }
}

/// The node doesn't do, with all gone who could be taken.
fn failed(txn: &Txn, policy: &Policy, claim: &Claim, mark: Mark, node: NodeId) -> Outcome {
    let shape = txn.pods.shape[claim.pod];
    let left = |step: &Move| {
        matches!(step.from, PodState::Running(_))
            && txn.pods.state[step.pod] == PodState::Releasing(node)
    };
    let mut gone: Vec<PodId> = Vec::new();
    for step in txn.since(mark) {
        // Who was given back and taken again is there twice.
        if left(&step) && !gone.contains(&step.pod) {
            gone.push(step.pod);
        }
    }
    let limit = policy.may_take(txn, claim.gang, shape, Room::Later).err().map(Obstacle::Limit);
    let lack = || shortcoming(txn, policy, shape, node, Room::Later).map(Obstacle::Node);
    Outcome::Fails { gone, obstacle: limit.or_else(lack).unwrap_or(Obstacle::Company) }
}

/// Makes room on one node, with as few gone as possible, and says how many were given back. Leaves
/// its moves in the transaction either way.
fn attempt(
    txn: &mut Txn,
    policy: &Policy,
    claim: &Claim,
    candidate: &Candidate,
    findings: &mut Findings,
) -> Option<(Vec<PodId>, u32)> {
    let node = candidate.node;
    let shape = txn.pods.shape[claim.pod];
    let fits = |txn: &Txn| {
        policy.may_take(txn, claim.gang, shape, Room::Later).is_ok()
            && has_room(txn, policy, shape, node, Room::Later)
    };
    let promises = take_back(txn, claim, &[node]);
    let mut gone: Vec<(PodId, PodState)> = Vec::new();
    let mut done = fits(txn);
    for &pod in &candidate.victims {
        if done {
            break;
        }
        if let Some(shield) = policy.restrains(txn, claim, pod) {
            findings.keep(node, pod, shield);
            continue;
        }
        gone.push((pod, txn.pods.state[pod]));
        txn.evict(pod);
        done = fits(txn);
    }
    if !done {
        return None;
    }
    let asked = gone.len();
    for at in (0..asked).rev() {
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
    let reprieved = (asked - gone.len()) as u32;
    Some((gone.into_iter().map(|(pod, _)| pod).collect(), reprieved))
}

/// Who is asked to leave, from which node and for which gang.
pub type Leaver = (PodId, NodeId, GangId);

/// Lets those stay after all who are not needed, the most valuable first: the room that a pod left
/// may be there without him, since others went for the next claimant. Each set stays or goes
/// together. Says how many stay.
pub fn reprieve(txn: &mut Txn, policy: &Policy, gone: Vec<Vec<Leaver>>) -> u32 {
    let mut reprieved = 0;
    let dearest =
        |set: &[Leaver]| set.iter().map(|&(pod, ..)| pod).max_by(|&a, &b| worth_order(txn, a, b));
    let mut gone: Vec<(PodId, Vec<Leaver>)> =
        gone.into_iter().filter_map(|set| Some((dearest(&set)?, set))).collect();
    gone.sort_by(|a, b| worth_order(txn, b.0, a.0));
    for (_, set) in gone {
        if !could_stay(txn, &set) {
            continue;
        }
        let mark = txn.mark();
        for &(pod, node, _) in &set {
            txn.spare(pod, PodState::Running(node));
        }
        let mut places: Vec<(NodeId, GangId)> =
            set.iter().map(|&(_, node, gang)| (node, gang)).collect();
        places.sort_unstable();
        places.dedup();
        if places.iter().all(|&(node, gang)| all_stand(txn, policy, gang, node)) {
            reprieved += set.len() as u32;
        } else {
            txn.rewind(mark);
        }
    }
    reprieved
}

/// Whether there is room for all of them beside what is promised, as numbers go.
fn could_stay(cluster: &Cluster, set: &[Leaver]) -> bool {
    let mut wanted: BTreeMap<(NodeId, ResourceId), i64> = BTreeMap::new();
    for &(pod, node, _) in set {
        for (resource, amount) in cluster.shapes[cluster.pods.shape[pod]].request.iter() {
            *wanted.entry((node, resource)).or_default() += amount;
        }
    }
    wanted
        .iter()
        .all(|(&(node, resource), &amount)| cluster.nodes.future_idle(resource, node) >= amount)
}

/// Whether everyone who was promised a place on the node still has one, and all of the gang if its
/// pods look at other nodes too; of its other pods one of each shape, since what its queue may take
/// is no matter of nodes.
pub fn all_stand(txn: &mut Txn, policy: &Policy, gang: GangId, node: NodeId) -> bool {
    let promised = |pod: &PodId| matches!(txn.pods.state[*pod], PodState::Nominated(_));
    let own = &txn.gangs[gang].pods;
    let far = own.iter().any(|&pod| txn.far_reaching(txn.pods.shape[pod]));
    let away = |pod: &&PodId| promised(pod) && txn.pods.state[**pod].node() != Some(node);
    let mut elsewhere: Vec<PodId> = own.iter().filter(away).copied().collect();
    if !far {
        elsewhere.sort_by_key(|&pod| txn.pods.shape[pod]);
        elsewhere.dedup_by_key(|pod| txn.pods.shape[*pod]);
    }
    let here = txn.nodes.seats[node].iter().copied().filter(|pod| promised(pod));
    let pods: Vec<PodId> = here.chain(elsewhere).collect();
    pods.into_iter().all(|pod| {
        let (Some(at), Some(of)) = (txn.pods.state[pod].node(), txn.pods.gang[pod]) else {
            return false;
        };
        let (shape, mark) = (txn.pods.shape[pod], txn.mark());
        txn.release(pod);
        let stands = policy.may_take(txn, of, shape, Room::Later).is_ok()
            && has_room(txn, policy, shape, at, Room::Later);
        txn.rewind(mark);
        stands
    })
}

/// Takes back the promises of weaker gangs with a place on one of the nodes, all of each gang.
pub fn take_back(txn: &mut Txn, claim: &Claim, nodes: &[NodeId]) -> Vec<Vec<(PodId, NodeId)>> {
    let mut taken = Vec::new();
    for gang in weaker(txn, claim, nodes) {
        let promised = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Nominated(node) => Some((pod, node)),
            _ => None,
        };
        let places: Vec<(PodId, NodeId)> =
            txn.gangs[gang].pods.iter().filter_map(promised).collect();
        places.iter().for_each(|&(pod, _)| txn.release(pod));
        taken.push(places);
    }
    taken
}

/// Gives promises again that the claimant left room for: all of a gang's or none.
pub fn give_again(txn: &mut Txn, policy: &Policy, promises: &[Vec<(PodId, NodeId)>]) {
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
fn stands_alone(
    txn: &mut Txn,
    policy: &Policy,
    claim: &Claim,
    shape: ShapeId,
    node: NodeId,
) -> bool {
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
