//! Places a gang in one domain while pods are evicted there: each call places only the pods that
//! still wait. When evictions are undone, the pods of the gang that are displaced are placed
//! elsewhere in the domain.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::base::ids::{DomainId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million::share;
use crate::base::room::Room;
use crate::eviction::fit::{StillFits, Target};
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::shapes::{one_shape, size_of};
use crate::model::topology::places::{PlacedPods, domain_of};
use crate::model::txn::Txn;
use crate::nomination::still_fit::nominations_still_fit;
use crate::placement::rankings::Rankings;
use crate::placement::request::{Kind, NodeQuery, PlacementRequest, Vicinity};
use crate::placement::search::place_gang;
use crate::policy::answers::Policy;

pub struct DomainFit<'s> {
    policy: &'s Policy,
    placement: PlacementRequest<'s>,
    domain: DomainId,
    /// The pods to place, by shape, the largest shape first. The next pod of a shape is the last.
    waiting: Vec<(ShapeId, Vec<PodId>)>,
    /// Whether the gang has its minimum already.
    has_minimum: bool,
    /// One pod of each shape.
    samples: Vec<PodId>,
    /// Whether pods are placed one by one, near `others` if the gang has topology rules. Otherwise
    /// all are placed together, since the node of one pod matters to the others.
    one_by_one: bool,
    others: Option<PlacedPods>,
    /// How often `fit_more` was called. Placing all pods together waits for call number `pause`,
    /// since it is expensive; after each failure the pause grows.
    calls: usize,
    pause: usize,
    /// How many pods may still be placed again only because another order might fit better.
    patience: usize,
    /// How often placement was tried.
    pub tries: u32,
}

impl<'s> DomainFit<'s> {
    /// None of the required pods is placed yet.
    pub fn new(
        txn: &Txn,
        policy: &'s Policy,
        placement: PlacementRequest<'s>,
        required: &[PodId],
        domain: DomainId,
    ) -> DomainFit<'s> {
        let gang = &txn.gangs[placement.gang];
        let plain = |&pod: &PodId| txn.asks_for_amounts_only(txn.pods.shape[pod]);
        let single_shape = one_shape(txn, placement.pods).is_some();
        let all = required.len() == placement.pods.len();
        let one_by_one =
            gang.rules().is_empty() && (single_shape || all) && required.iter().all(plain);
        let has_minimum = missing_after_nominations(gang, true).total == 0;
        let near = gang.topology_rules.is_some();
        let others = near.then(|| PlacedPods::of(txn, placement.gang, None));
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
            has_minimum,
            samples,
            one_by_one,
            others,
            calls,
            pause,
            patience,
            tries,
        }
    }

    /// Places each pod on the node where least is left over, whatever else speaks for another one:
    /// the best node for some pods may be the only one for others.
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

    /// Releases all pods that were placed here, so that they wait again.
    fn release_all(&mut self, txn: &mut Txn) {
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
                near = near.map(|near| Vicinity { of: txn.domains.smallest_around(node), ..near });
                txn.nominate(pod, node);
                pods.pop();
            }
        }
        self.waiting.iter().all(|(_, pods)| pods.is_empty())
    }

    /// Places all waiting pods or none.
    fn fit_together(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let mark = txn.mark();
        let gang = self.placement.gang;
        let missing = match self.has_minimum {
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
            // There is enough in sum, but not on single nodes: try less often.
            self.pause = self.calls + self.calls.div_ceil(4);
        }
        placed
    }

    /// Whether pods of the gang on the node need this pod's room and none of them fits elsewhere in
    /// the domain, so that there is no need to try.
    fn needs_room_of(&self, txn: &Txn, rankings: &mut Rankings, pod: PodId, node: NodeId) -> bool {
        let request = &txn.shapes[txn.pods.shape[pod]].request;
        let fits = request
            .iter()
            .all(|(resource, amount)| txn.nodes.future_idle(resource, node) >= amount);
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
        !fits
            && self.nominated_on(txn, node).next().is_some()
            && !self.samples.iter().any(&mut movable)
    }

    fn is_placed_here(&self, cluster: &Cluster, pod: PodId) -> bool {
        cluster.pods.gang[pod] == Some(self.placement.gang)
            && matches!(cluster.pods.state[pod], PodState::Nominated(_))
    }

    /// The pods of the gang that are nominated to the node.
    fn nominated_on(&self, cluster: &Cluster, node: NodeId) -> impl Iterator<Item = PodId> {
        cluster.nodes.pods_on[node].iter().copied().filter(|&pod| self.is_placed_here(cluster, pod))
    }

    /// Where these pods run again and room is short, places pods of the gang elsewhere.
    fn displace(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        running_again: &[PodId],
    ) -> bool {
        let ranks = txn.domains.ranks(self.domain);
        for &pod in running_again {
            let Some(node) = txn.pods.state[pod].node() else { continue };
            let request = &txn.shapes[txn.pods.shape[pod]].request.clone();
            while request.iter().any(|(resource, _)| txn.nodes.future_idle(resource, node) < 0) {
                let mut nominated: Vec<PodId> = self.nominated_on(txn, node).collect();
                nominated.sort_by_cached_key(|&pod| {
                    let ranking =
                        rankings.of(txn, self.policy, txn.pods.shape[pod], Room::FutureIdle);
                    (
                        ranking.best_of(txn, ranks.clone()).is_none(),
                        Reverse(txn.pods.name(pod).clone()),
                    )
                });
                // Otherwise the node lacked the resource before.
                let Some(&first) = nominated.first() else { break };
                txn.release(first);
                self.wait(txn.pods.shape[first], first);
            }
        }
        self.fit_each(txn, rankings) || self.samples.len() > 1 && self.fit_all_again(txn, rankings)
    }

    /// Small pods may have taken the room of large ones: places all pods again, as long as patience
    /// lasts.
    fn fit_all_again(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        let left = self.patience.checked_sub(self.placement.pods.len());
        let Some(left) = left else { return false };
        self.patience = left;
        self.release_all(txn);
        self.fit_each(txn, rankings)
    }

    /// Whether the queue may still have the gang now that victims run again.
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

    /// The same for a gang whose pods are placed together.
    fn displace_all(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        running_again: &[PodId],
    ) -> bool {
        let gang = self.placement.gang;
        let nodes: BTreeSet<NodeId> =
            running_again.iter().filter_map(|&pod| txn.pods.state[pod].node()).collect();
        if nodes.iter().all(|&node| nominations_still_fit(txn, self.policy, gang, node)) {
            return true;
        }
        // Whole subgroups are released: an incomplete one would not be completed again if the other
        // pods make up the minimum.
        let displaced = nodes.iter().flat_map(|&node| self.nominated_on(txn, node));
        let groups: BTreeSet<u32> = displaced.map(|pod| txn.pods.subgroup[pod]).collect();
        let is_displaced = |pod: &PodId| {
            self.is_placed_here(txn, *pod) && groups.contains(&txn.pods.subgroup[*pod])
        };
        let displaced: Vec<PodId> =
            txn.gangs[gang].pods.iter().copied().filter(is_displaced).collect();
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
            self.release_all(txn);
            if self.fit_each(txn, rankings) {
                return true;
            }
            self.release_all(txn);
            if self.samples.len() > 1 && self.fit_tightly(txn, rankings) {
                return true;
            }
            self.release_all(txn);
        }
        self.fit_together(txn, rankings)
    }
}

impl StillFits for DomainFit<'_> {
    fn surely_needs(&self, txn: &Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool {
        pods.iter().any(|&pod| {
            let node = txn.pods.state[pod].leaving();
            node.is_some_and(|node| self.needs_room_of(txn, rankings, pod, node))
        })
    }

    /// Places only the displaced pods again.
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
