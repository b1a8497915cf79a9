//! Places for a gang in one domain, found as room appears there: whoever waits takes what is free,
//! nobody starts over. And the way back: those who left may stay after all if whom they displace
//! finds another place.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::base::ids::{DomainId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million::share;
use crate::base::room::Room;
use crate::eviction::fit::{StillFits, Target};
use crate::eviction::lower_nominations::nominations_still_fit;
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::shapes::{one_shape, size_of};
use crate::model::topology::places::{PlacedPods, domain_of};
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::placement::request::{Kind, NodeQuery, PlacementRequest, Vicinity};
use crate::placement::search::place_gang;
use crate::policy::answers::Policy;

pub struct DomainFit<'s> {
    policy: &'s Policy,
    placement: PlacementRequest<'s>,
    domain: DomainId,
    /// Who has no place yet, by shape, the largest shapes first; the next one last.
    waiting: Vec<(ShapeId, Vec<PodId>)>,
    /// The gang has its minimum without them.
    more: bool,
    /// One pod of each shape.
    samples: Vec<PodId>,
    /// Who is placed one by one needs to be near these, if it cares; else all are placed together,
    /// since it matters who goes where.
    one_by_one: bool,
    others: Option<PlacedPods>,
    /// All together are placed again only after so many calls, more and more.
    calls: usize,
    pause: usize,
    /// How many pods may still be placed again for no other reason than that others might fit
    /// better then.
    patience: usize,
    /// How often it was tried whether there is room.
    pub tries: u32,
}

impl<'s> DomainFit<'s> {
    /// Nobody has a place yet of those who are required.
    pub fn new(
        txn: &Txn,
        policy: &'s Policy,
        placement: PlacementRequest<'s>,
        required: &[PodId],
        domain: DomainId,
    ) -> DomainFit<'s> {
        let gang = &txn.gangs[placement.gang];
        let plain = |&pod: &PodId| txn.asks_for_amounts_only(txn.pods.shape[pod]);
        let same = one_shape(txn, placement.pods).is_some();
        let all = required.len() == placement.pods.len();
        let one_by_one = gang.rules().is_empty() && (same || all) && required.iter().all(plain);
        let more = missing_after_nominations(gang, true).total == 0;
        let near = gang.topology_rules.is_some();
        let others = near.then(|| PlacedPods::of(txn, &gang.pods));
        let mut waiting: Vec<(ShapeId, Vec<PodId>)> = Vec::new();
        for &pod in required {
            let shape = txn.pods.shape[pod];
            match waiting.iter_mut().find(|(of, _)| *of == shape) {
                Some((_, pods)) => pods.push(pod),
                None => waiting.push((shape, vec![pod])),
            }
        }
        let size = |&(shape, _): &(ShapeId, Vec<PodId>)| Reverse(size_of(txn, shape));
        waiting.sort_by_key(size);
        waiting.iter_mut().for_each(|(_, pods)| pods.reverse());
        let samples = waiting.iter().map(|(_, pods)| pods[0]).collect();
        let patience = 256 + required.len();
        let (calls, pause, tries) = (0, 1, 0);
        DomainFit {
            policy,
            placement,
            domain,
            waiting,
            more,
            samples,
            one_by_one,
            others,
            calls,
            pause,
            patience,
            tries,
        }
    }

    /// Gives places to all where least is left over, whatever else is good about a node: the best
    /// places for some may be the only ones for others.
    fn fit_tightly(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let (policy, gang) = (self.policy, self.placement.gang);
        let ranks = txn.domains.ranks(self.domain);
        let nodes = txn.nodes.by_rank[ranks.start as usize..ranks.end as usize].to_vec();
        for (shape, pods) in &mut self.waiting {
            let request: Vec<(ResourceId, i64)> = txn.shapes[*shape].request.iter().collect();
            while let Some(&pod) = pods.last() {
                let left_over = |node: NodeId| -> i64 {
                    let left = |&(id, want): &(ResourceId, i64)| {
                        share(txn.nodes.future_idle(id, node) - want, txn.total.get(id))
                    };
                    request.iter().map(left).sum()
                };
                let ranking = rankings.of(txn, policy, *shape, Room::FutureIdle);
                let fits = |node: &NodeId| ranking.admits(txn, policy, *shape, *node);
                let best = nodes.iter().copied().filter(fits).min_by_key(|&node| left_over(node));
                let allowed = policy.may_allocate(txn, gang, *shape, Room::FutureIdle).is_ok();
                let Some(node) = best.filter(|_| allowed) else { return false };
                txn.nominate(pod, node);
                pods.pop();
            }
        }
        true
    }

    /// Everyone waits again.
    fn stand_up(&mut self, txn: &mut Txn) {
        let is_placed_here = |pod: &PodId| self.is_placed_here(txn, *pod);
        let placed: Vec<PodId> =
            self.placement.pods.iter().copied().filter(is_placed_here).collect();
        for pod in placed.into_iter().rev() {
            txn.release(pod);
            self.wait(txn.pods.shape[pod], pod);
        }
    }

    fn wait(&mut self, shape: ShapeId, pod: PodId) {
        self.waiting.iter_mut().filter(|(of, _)| *of == shape).for_each(|(_, pods)| pods.push(pod));
    }

    fn fit_each(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let (policy, gang, within) = (self.policy, self.placement.gang, self.domain);
        let mut near = self.others.as_ref().map(|others| {
            let of = others
                .common_domain
                .filter(|&common_domain| txn.domains.holds(within, common_domain))
                .unwrap_or(within);
            Vicinity { of, within, others: &others.domains }
        });
        for (shape, pods) in &mut self.waiting {
            let kind = Kind::of(txn, policy, *shape);
            while let Some(&pod) = pods.last() {
                let ask = NodeQuery {
                    cluster: txn,
                    policy,
                    shape: *shape,
                    room: Room::FutureIdle,
                    avoid: &[],
                    kind,
                };
                let found = match (policy.may_allocate(txn, gang, *shape, Room::FutureIdle), near) {
                    (Err(_), _) => None,
                    (Ok(()), Some(near)) => rankings.nearest(&ask, near, pods.len() as u32),
                    (Ok(()), None) => rankings.best(&ask),
                };
                let Some(node) = found else { break };
                near = near.map(|near| Vicinity { of: txn.domains.home(node), ..near });
                txn.nominate(pod, node);
                pods.pop();
            }
        }
        self.waiting.iter().all(|(_, pods)| pods.is_empty())
    }

    /// Places all that wait, or nobody.
    fn fit_together(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let mark = txn.mark();
        let gang = self.placement.gang;
        let missing = match self.more {
            true => self.placement.missing.clone(),
            false => missing_after_nominations(&txn.gangs[gang], true),
        };
        let waits = |pod: &PodId| txn.pods.state[*pod] == PodState::Pending;
        let pods: Vec<PodId> = self.placement.pods.iter().copied().filter(waits).collect();
        let placement = PlacementRequest { pods: &pods, missing: &missing, ..self.placement };
        let placed = place_gang(txn, self.policy, rankings, &placement).is_ok()
            && domain_of(txn, gang).is_none_or(|at| txn.domains.holds(self.domain, at));
        if !placed {
            txn.rewind(mark);
            // The sums are there and the places are not.
            self.pause = self.calls + self.calls.div_ceil(4);
        }
        placed
    }

    /// Whether the pod's room is used by the gang and none of those who use it has another place,
    /// so that nothing need be tried.
    fn is_needed(&self, txn: &Txn, rankings: &mut Rankings, pod: PodId, node: NodeId) -> bool {
        let back = &txn.shapes[txn.pods.shape[pod]].request;
        let fits =
            back.iter().all(|(resource, amount)| txn.nodes.future_idle(resource, node) >= amount);
        let ranks = txn.domains.ranks(self.domain);
        let mut movable = |&sample: &PodId| {
            let shape = txn.pods.shape[sample];
            let placed = txn.nodes.pods_on[node]
                .iter()
                .any(|&pod| self.is_placed_here(txn, pod) && txn.pods.shape[pod] == shape);
            placed
                && rankings
                    .of(txn, self.policy, shape, Room::FutureIdle)
                    .best_of(txn, ranks.clone())
                    .is_some()
        };
        !fits && self.sits_on(txn, node).next().is_some() && !self.samples.iter().any(&mut movable)
    }

    fn is_placed_here(&self, cluster: &Cluster, pod: PodId) -> bool {
        cluster.pods.gang[pod] == Some(self.placement.gang)
            && matches!(cluster.pods.state[pod], PodState::Nominated(_))
    }

    /// Those of the gang that have been promised a place on the node.
    fn sits_on(&self, cluster: &Cluster, node: NodeId) -> impl Iterator<Item = PodId> {
        cluster.nodes.pods_on[node].iter().copied().filter(|&pod| self.is_placed_here(cluster, pod))
    }

    /// Places those again whose room is gone now that these pods are back.
    fn displace(&mut self, txn: &mut Txn, rankings: &mut Rankings, back: &[PodId]) -> bool {
        let ranks = txn.domains.ranks(self.domain);
        for &pod in back {
            let Some(node) = txn.pods.state[pod].node() else { continue };
            let request = &txn.shapes[txn.pods.shape[pod]].request.clone();
            while request.iter().any(|(resource, _)| txn.nodes.future_idle(resource, node) < 0) {
                let mut sitting: Vec<PodId> = self.sits_on(txn, node).collect();
                sitting.sort_by_cached_key(|&pod| {
                    let ranking =
                        rankings.of(txn, self.policy, txn.pods.shape[pod], Room::FutureIdle);
                    (
                        ranking.best_of(txn, ranks.clone()).is_none(),
                        Reverse(txn.pods.name(pod).clone()),
                    )
                });
                // Else the node had too little of it anyway.
                let Some(&first) = sitting.first() else { break };
                txn.release(first);
                self.wait(txn.pods.shape[first], first);
            }
        }
        self.fit_each(txn, rankings) || self.samples.len() > 1 && self.fit_otherwise(txn, rankings)
    }

    /// Small pods may have taken the room of large ones: everyone is placed again, as long as
    /// patience lasts.
    fn fit_otherwise(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        let left = self.patience.checked_sub(self.placement.pods.len());
        let Some(left) = left else { return false };
        self.patience = left;
        self.stand_up(txn);
        self.fit_each(txn, rankings)
    }

    /// Whether the queue may have the gang there with all who stay.
    fn is_allowed(&self, txn: &mut Txn) -> bool {
        self.samples.iter().all(|&pod| {
            let PodState::Nominated(node) = txn.pods.state[pod] else { return true };
            txn.release(pod);
            let allowed = self
                .policy
                .may_allocate(txn, self.placement.gang, txn.pods.shape[pod], Room::FutureIdle)
                .is_ok();
            txn.nominate(pod, node);
            allowed
        })
    }

    /// The same where it matters who goes where.
    fn displace_all(&mut self, txn: &mut Txn, rankings: &mut Rankings, back: &[PodId]) -> bool {
        let gang = self.placement.gang;
        let nodes: BTreeSet<NodeId> =
            back.iter().filter_map(|&pod| txn.pods.state[pod].node()).collect();
        if nodes.iter().all(|&node| nominations_still_fit(txn, self.policy, gang, node)) {
            return true;
        }
        // A subgroup of which some stood up would not be missed if the others make up the minimum.
        let displaced = nodes.iter().flat_map(|&node| self.sits_on(txn, node));
        let groups: BTreeSet<u32> = displaced.map(|pod| txn.pods.subgroup[pod]).collect();
        let stands_up = |pod: &PodId| {
            self.is_placed_here(txn, *pod) && groups.contains(&txn.pods.subgroup[*pod])
        };
        let displaced: Vec<PodId> =
            txn.gangs[gang].pods.iter().copied().filter(stands_up).collect();
        displaced.into_iter().for_each(|pod| txn.release(pod));
        self.fit_together(txn, rankings)
            && nodes.iter().all(|&node| nominations_still_fit(txn, self.policy, gang, node))
    }
}

impl Target for DomainFit<'_> {
    fn fit_more(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        if self.one_by_one {
            return self.fit_each(txn, rankings);
        }
        self.calls += 1;
        self.calls >= self.pause && self.fit_together(txn, rankings)
    }

    fn fit_anew(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        if self.one_by_one {
            self.stand_up(txn);
            if self.fit_each(txn, rankings) {
                return true;
            }
            self.stand_up(txn);
            if self.samples.len() > 1 && self.fit_tightly(txn, rankings) {
                return true;
            }
            self.stand_up(txn);
        }
        self.fit_together(txn, rankings)
    }
}

impl StillFits for DomainFit<'_> {
    fn surely_needs(&self, txn: &Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool {
        pods.iter().any(|&pod| {
            let home = txn.pods.state[pod].leaving();
            home.is_some_and(|node| self.is_needed(txn, rankings, pod, node))
        })
    }

    /// Only the pods that are displaced are placed again.
    fn still_fits(&mut self, txn: &mut Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool {
        let fits = match self.one_by_one {
            true => self.displace(txn, rankings, pods) && self.is_allowed(txn),
            false => self.displace_all(txn, rankings, pods),
        };
        if !fits {
            self.waiting.iter_mut().for_each(|(_, pods)| pods.clear());
        }
        fits
    }
}
