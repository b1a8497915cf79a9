//! Places for a gang in one domain, found as room appears there: whoever waits takes what is free,
//! nobody starts over. And the way back: those who left may stay after all if whom they displace
//! finds another place.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::base::ids::{DomainId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million::share;
use crate::base::room::Room;
use crate::eviction::lower_nominations::all_stand;
use crate::model::Cluster;
use crate::model::gangs::missing::not_promised;
use crate::model::pods::PodState;
use crate::model::shapes::{one_shape, size_of};
use crate::model::topology::places::{Others, domain_of};
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::placement::request::{Ask, Kind, Vicinity, Wish};
use crate::placement::search::seat;
use crate::policy::answers::Policy;

pub struct Seating<'s> {
    policy: &'s Policy,
    wish: Wish<'s>,
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
    others: Option<Others>,
    /// All together are placed again only after so many calls, more and more.
    calls: usize,
    pause: usize,
    /// How many pods may still be placed again for no other reason than that others might fit
    /// better then.
    patience: usize,
    /// How often it was tried whether there is room.
    pub tries: u32,
}

impl<'s> Seating<'s> {
    /// Nobody has a place yet of those who are required.
    pub fn new(
        txn: &Txn,
        policy: &'s Policy,
        wish: Wish<'s>,
        required: &[PodId],
        domain: DomainId,
    ) -> Seating<'s> {
        let gang = &txn.gangs[wish.gang];
        let plain = |&pod: &PodId| txn.asks_for_amounts_only(txn.pods.shape[pod]);
        let same = one_shape(txn, wish.pods).is_some();
        let all = required.len() == wish.pods.len();
        let one_by_one = gang.rules().is_empty() && (same || all) && required.iter().all(plain);
        let more = not_promised(gang, true).total == 0;
        let near = gang.choosy.is_some();
        let others = near.then(|| Others::of(txn, &gang.pods));
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
        Seating {
            policy,
            wish,
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

    /// Gives places to those who wait, as far as there is room. Whether all have one now.
    pub fn seat(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        if self.one_by_one {
            return self.seat_each(txn, rankings);
        }
        self.calls += 1;
        self.calls >= self.pause && self.seat_together(txn, rankings)
    }

    /// Gives places to all from the beginning, with nothing more to come.
    pub fn seat_anew(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        if self.one_by_one {
            self.stand_up(txn);
            if self.seat_each(txn, rankings) {
                return true;
            }
            self.stand_up(txn);
            if self.samples.len() > 1 && self.seat_tightly(txn, rankings) {
                return true;
            }
            self.stand_up(txn);
        }
        self.seat_together(txn, rankings)
    }

    /// Gives places to all where least is left over, whatever else is good about a node: the best
    /// places for some may be the only ones for others.
    fn seat_tightly(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let (policy, gang) = (self.policy, self.wish.gang);
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
                let ranking = rankings.of(txn, policy, *shape, Room::Later);
                let fits = |node: &NodeId| ranking.admits(txn, policy, *shape, *node);
                let best = nodes.iter().copied().filter(fits).min_by_key(|&node| left_over(node));
                let allowed = policy.may_take(txn, gang, *shape, Room::Later).is_ok();
                let Some(node) = best.filter(|_| allowed) else { return false };
                txn.nominate(pod, node);
                pods.pop();
            }
        }
        true
    }

    /// Everyone waits again.
    fn stand_up(&mut self, txn: &mut Txn) {
        let sits = |pod: &PodId| self.sits(txn, *pod);
        let seated: Vec<PodId> = self.wish.pods.iter().copied().filter(sits).collect();
        for pod in seated.into_iter().rev() {
            txn.release(pod);
            self.wait(txn.pods.shape[pod], pod);
        }
    }

    fn wait(&mut self, shape: ShapeId, pod: PodId) {
        self.waiting.iter_mut().filter(|(of, _)| *of == shape).for_each(|(_, pods)| pods.push(pod));
    }

    fn seat_each(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let (policy, gang, within) = (self.policy, self.wish.gang, self.domain);
        let mut near = self.others.as_ref().map(|others| {
            let of = others.pin.filter(|&pin| txn.domains.holds(within, pin)).unwrap_or(within);
            Vicinity { of, within, others: &others.homes }
        });
        for (shape, pods) in &mut self.waiting {
            let kind = Kind::of(txn, policy, *shape);
            while let Some(&pod) = pods.last() {
                let ask = Ask {
                    cluster: txn,
                    policy,
                    shape: *shape,
                    room: Room::Later,
                    avoid: &[],
                    kind,
                };
                let found = match (policy.may_take(txn, gang, *shape, Room::Later), near) {
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
    fn seat_together(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        self.tries += 1;
        let mark = txn.mark();
        let gang = self.wish.gang;
        let missing = match self.more {
            true => self.wish.missing.clone(),
            false => not_promised(&txn.gangs[gang], true),
        };
        let waits = |pod: &PodId| txn.pods.state[*pod] == PodState::Pending;
        let pods: Vec<PodId> = self.wish.pods.iter().copied().filter(waits).collect();
        let wish = Wish { pods: &pods, missing: &missing, ..self.wish };
        let placed = seat(txn, self.policy, rankings, &wish).is_ok()
            && domain_of(txn, gang).is_none_or(|at| txn.domains.holds(self.domain, at));
        if !placed {
            txn.rewind(mark);
            // The sums are there and the places are not.
            self.pause = self.calls + self.calls.div_ceil(4);
        }
        placed
    }

    /// Lets pods stay that were asked to leave, if everyone in the gang has a place all the same:
    /// only those whom they displace are placed again.
    pub fn spare(&mut self, txn: &mut Txn, rankings: &mut Rankings, pods: &[PodId]) -> bool {
        let leaving = |&pod: &PodId| match txn.pods.state[pod] {
            PodState::Releasing(node) => Some((pod, node)),
            _ => None,
        };
        let pods: Vec<(PodId, NodeId)> = pods.iter().filter_map(leaving).collect();
        if pods.iter().any(|&(pod, node)| self.is_needed(txn, rankings, pod, node)) {
            return false;
        }
        let mark = txn.mark();
        for &(pod, node) in &pods {
            txn.spare(pod, PodState::Running(node));
        }
        let stands = match self.one_by_one {
            true => self.displace(txn, rankings, &pods) && self.is_allowed(txn),
            false => self.displace_all(txn, rankings, &pods),
        };
        if !stands {
            txn.rewind(mark);
            self.waiting.iter_mut().for_each(|(_, pods)| pods.clear());
        }
        stands
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
            let seated = txn.nodes.seats[node]
                .iter()
                .any(|&pod| self.sits(txn, pod) && txn.pods.shape[pod] == shape);
            seated
                && rankings
                    .of(txn, self.policy, shape, Room::Later)
                    .best_of(txn, ranks.clone())
                    .is_some()
        };
        !fits && self.sits_on(txn, node).next().is_some() && !self.samples.iter().any(&mut movable)
    }

    fn sits(&self, cluster: &Cluster, pod: PodId) -> bool {
        cluster.pods.gang[pod] == Some(self.wish.gang)
            && matches!(cluster.pods.state[pod], PodState::Nominated(_))
    }

    /// Those of the gang that have been promised a place on the node.
    fn sits_on(&self, cluster: &Cluster, node: NodeId) -> impl Iterator<Item = PodId> {
        cluster.nodes.seats[node].iter().copied().filter(|&pod| self.sits(cluster, pod))
    }

    /// Places those again whose room is gone now that these pods are back.
    fn displace(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        back: &[(PodId, NodeId)],
    ) -> bool {
        let ranks = txn.domains.ranks(self.domain);
        for &(pod, node) in back {
            let request = &txn.shapes[txn.pods.shape[pod]].request.clone();
            while request.iter().any(|(resource, _)| txn.nodes.future_idle(resource, node) < 0) {
                let mut sitting: Vec<PodId> = self.sits_on(txn, node).collect();
                sitting.sort_by_cached_key(|&pod| {
                    let ranking = rankings.of(txn, self.policy, txn.pods.shape[pod], Room::Later);
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
        self.seat_each(txn, rankings)
            || self.samples.len() > 1 && self.seat_otherwise(txn, rankings)
    }

    /// Small pods may have taken the room of large ones: everyone is placed again, as long as
    /// patience lasts.
    fn seat_otherwise(&mut self, txn: &mut Txn, rankings: &mut Rankings) -> bool {
        let left = self.patience.checked_sub(self.wish.pods.len());
        let Some(left) = left else { return false };
        self.patience = left;
        self.stand_up(txn);
        self.seat_each(txn, rankings)
    }

    /// Whether the queue may have the gang there with all who stay.
    fn is_allowed(&self, txn: &mut Txn) -> bool {
        self.samples.iter().all(|&pod| {
            let PodState::Nominated(node) = txn.pods.state[pod] else { return true };
            txn.release(pod);
            let allowed =
                self.policy.may_take(txn, self.wish.gang, txn.pods.shape[pod], Room::Later).is_ok();
            txn.nominate(pod, node);
            allowed
        })
    }

    /// The same where it matters who goes where.
    fn displace_all(
        &mut self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        back: &[(PodId, NodeId)],
    ) -> bool {
        let gang = self.wish.gang;
        let nodes: BTreeSet<NodeId> = back.iter().map(|&(_, node)| node).collect();
        if nodes.iter().all(|&node| all_stand(txn, self.policy, gang, node)) {
            return true;
        }
        // A subgroup of which some stood up would not be missed if the others make up the minimum.
        let displaced = nodes.iter().flat_map(|&node| self.sits_on(txn, node));
        let groups: BTreeSet<u32> = displaced.map(|pod| txn.pods.subgroup[pod]).collect();
        let stands_up =
            |pod: &PodId| self.sits(txn, *pod) && groups.contains(&txn.pods.subgroup[*pod]);
        let displaced: Vec<PodId> =
            txn.gangs[gang].pods.iter().copied().filter(stands_up).collect();
        displaced.into_iter().for_each(|pod| txn.release(pod));
        self.seat_together(txn, rankings)
            && nodes.iter().all(|&node| all_stand(txn, self.policy, gang, node))
    }
}
