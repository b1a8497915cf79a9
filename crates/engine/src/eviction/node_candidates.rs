//! Nodes on which room could be made for one pod, and what that would cost.

use std::cmp::Reverse;
use std::ops::Range;

use crate::base::ids::{NodeId, PodId, ResourceId, ShapeId};
use crate::base::room::Room;
use crate::decision::choice::Line;
use crate::eviction::candidates::{Eligibility, group_eligibility};
use crate::eviction::order::{eviction_order, priority};
use crate::eviction::per_pod::SearchLog;
use crate::eviction::trace::Outcome;
use crate::model::Cluster;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::policy::preemptor::Preemptor;

/// A node on which room may be made.
pub struct Candidate {
    pub node: NodeId,
    /// The candidates for eviction, in order.
    pub victims: Vec<PodId>,
    /// The cost of the first of them that free enough by amounts alone.
    pub estimate: Cost,
}

/// What it costs to make room on a node; the smallest is the best.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Victims beyond what PodDisruptionBudgets allow.
    pub broken: usize,
    /// The cost according to a plugin, if one has an opinion.
    pub price: Option<i64>,
    pub highest: i32,
    pub sum: i64,
    pub pods: usize,
    /// Among equal nodes, the one whose longest-running victim has run for the shortest time.
    pub oldest: Reverse<i64>,
    pub rank: u32,
}

impl Cost {
    /// The first line of the table in which this differs from a higher cost, and the two figures.
    pub fn against(&self, other: &Cost) -> (Line, (i64, i64)) {
        let count = |count: usize| count as i64;
        // `sum` adds 2³¹ to each priority.
        let sum = |cost: &Cost| cost.sum - (count(cost.pods) << 31);
        let figures = [
            (Line::Budgets, (count(self.broken), count(other.broken))),
            (Line::Plugin, (self.price.unwrap_or(0), other.price.unwrap_or(0))),
            (Line::Priority, (i64::from(self.highest), i64::from(other.highest))),
        ];
        let later = [
            (Line::Pods, (count(self.pods), count(other.pods))),
            (Line::TimeRun, (self.oldest.0, other.oldest.0)),
        ];
        let differs = |(_, (ours, theirs)): &(Line, (i64, i64))| ours != theirs;
        figures
            .into_iter()
            .find(differs)
            .or_else(|| {
                (self.sum != other.sum).then(|| (Line::SumOfPriorities, (sum(self), sum(other))))
            })
            .or_else(|| later.into_iter().find(differs))
            .unwrap_or((Line::Place, (0, 0)))
    }
}

/// The nodes where evictions for the preemptor would free enough, the lowest estimated cost first.
pub fn candidates(
    cluster: &Cluster,
    policy: &Policy,
    rankings: &mut Rankings,
    preemptor: &Preemptor,
    ranks: &[Range<u32>],
    log: &mut SearchLog,
) -> Vec<Candidate> {
    let shape = cluster.pods.shape[preemptor.pod];
    let ranking = rankings.of(cluster, policy, shape, Room::FutureIdle);
    let mut found = Vec::new();
    for rank in ranks.iter().cloned().flatten() {
        let node = cluster.nodes.by_rank[rank as usize];
        if !ranking.is_open(node) {
            log.conclude(node, || Outcome::Closed);
            continue;
        }
        let mut victims = eligible(cluster, policy, preemptor, node, log);
        if victims.is_empty() {
            log.conclude(node, || Outcome::NoCandidates);
            continue;
        }
        victims.sort_by(|&a, &b| eviction_order(cluster, policy, preemptor, a, b));
        let broken = cluster.budgets.broken_by(cluster, &victims);
        if !broken.is_empty() {
            victims.sort_by_key(|pod| broken.contains(pod));
        }
        match enough(cluster, shape, node, &victims) {
            Ok(needed) => {
                let estimate = cost(cluster, policy, preemptor, node, &victims[..needed]);
                found.push(Candidate { node, victims, estimate });
            }
            Err(lacks) => {
                log.refusal.evictable |= !victims.is_empty();
                log.conclude(node, || Outcome::TooLittle { victims, lacks });
            }
        }
    }
    found.sort_by(|a, b| a.estimate.cmp(&b.estimate));
    found.iter().for_each(|candidate| log.conclude(candidate.node, || Outcome::NotTried));
    found
}

/// The pods on a node that may be evicted for the preemptor, apart from rules that count earlier
/// evictions.
fn eligible(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    node: NodeId,
    log: &mut SearchLog,
) -> Vec<PodId> {
    let mut evictable = Vec::new();
    for &pod in &cluster.nodes.pods_on[node] {
        match group_eligibility(cluster, policy, preemptor, pod) {
            Eligibility::OutOfScope => {}
            Eligibility::Vetoed(veto) => log.record_veto(node, pod, veto),
            Eligibility::Evictable => evictable.push(pod),
        }
    }
    evictable
}

/// How many of these pods must be evicted, in order, until the node has enough of everything by
/// amounts alone; or what it lacks even without all of them.
pub fn enough(
    cluster: &Cluster,
    shape: ShapeId,
    node: NodeId,
    victims: &[PodId],
) -> Result<usize, Vec<(ResourceId, i64)>> {
    let mut lacks: Vec<(ResourceId, i64)> = cluster.shapes[shape]
        .request
        .iter()
        .map(|(resource, want)| (resource, want - cluster.nodes.future_idle(resource, node)))
        .filter(|&(_, lack)| lack > 0)
        .collect();
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

pub fn cost(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    node: NodeId,
    victims: &[PodId],
) -> Cost {
    let started = |&pod: &PodId| cluster.pods.fact[pod].started.map_or(i64::MAX, |time| time.0);
    Cost {
        broken: cluster.budgets.broken_by(cluster, victims).len(),
        price: policy.eviction_cost(cluster, preemptor, node, victims),
        highest: victims.iter().map(|&pod| priority(cluster, pod)).max().unwrap_or(i32::MIN),
        sum: victims.iter().map(|&pod| i64::from(priority(cluster, pod)) + (1 << 31)).sum(),
        pods: victims.len(),
        oldest: Reverse(victims.iter().map(started).min().unwrap_or(i64::MAX)),
        rank: cluster.nodes.rank[node],
    }
}
