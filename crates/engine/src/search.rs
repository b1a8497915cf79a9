//! Where a gang may go: the domains that its closeness allows, nearest first, and in the first tier that can hold it the
//! best of them. The same for its subgroups inside that domain. Pods that nobody can tell apart are counted, not tried:
//! how many fit in a domain is known (see `ranking.rs`). Only sets of several shapes are tried, the most promising
//! domain first, until none that is left could be better.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::ids::{DomainId, GangId, PodId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::domains::{Domains, ROOT};
use crate::model::gangs::Missing;
use crate::model::pods::{Counts, PodState};
use crate::model::subgroups::Closeness;
use crate::placement::{Rankings, Wish, place};
use crate::policy::{Policy, Room};
use crate::reason::{Near, Reason};
use crate::resources::Amounts;
use crate::txn::Txn;

/// How many domains that came close are named.
const NAMED: usize = 3;

/// Places what is missing of a gang where its closeness and its subgroups allow. Leaves its moves in the transaction
/// either way.
pub fn seat(txn: &mut Txn, policy: &Policy, rankings: &mut Rankings, wish: &Wish) -> Result<(), Vec<Reason>> {
    if !txn.gangs[wish.gang].is_choosy() {
        return place(txn, policy, rankings, wish);
    }
    let asked = |&(shape, _): &(ShapeId, u32)| txn.shapes[shape].request.iter().collect::<Vec<_>>();
    let mut resources: Vec<ResourceId> =
        shapes(txn, wish.pods).iter().flat_map(asked).map(|(resource, _)| resource).collect();
    resources.sort_unstable();
    resources.dedup();
    let weights = resources.into_iter().map(|resource| (resource, policy.domain_weight(txn, resource)));
    let weights = weights.filter(|(_, weight)| *weight > 0).collect();
    let mut search = Search { policy, rankings, gang: wish.gang, room: wish.room, weights };
    search.seat_gang(txn, wish.pods, wish.missing)
}

struct Search<'s> {
    policy: &'s Policy,
    rankings: &'s mut Rankings,
    gang: GangId,
    room: Room,
    /// What its pods ask for, and how much each counts in how full a domain is.
    weights: Vec<(ResourceId, i64)>,
}

/// Pods that go into one domain.
struct Set<'p> {
    /// Those that wait, in the order in which they are placed.
    pods: &'p [PodId],
    missing: &'p Missing,
    /// Where others of them are.
    pin: Option<DomainId>,
}

/// A domain that may do, and how good it would be at best.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Hope {
    /// How many of the waiting pods it would hold.
    holds: u32,
    /// How full it would be with them.
    full: i64,
    name: Reverse<Arc<str>>,
    domain: DomainId,
}

impl Search<'_> {
    fn seat_gang(&mut self, txn: &mut Txn, pods: &[PodId], missing: &Missing) -> Result<(), Vec<Reason>> {
        let gang = &txn.gangs[self.gang];
        let (closeness, ruled) = (gang.closeness.clone(), !gang.rules.is_empty());
        let pin = around(txn, &gang.pods);
        let steps = steps(&txn.domains, closeness.as_ref(), pin, ROOT).map_err(|reason| vec![reason])?;
        let set = Set { pods, missing, pin };
        if ruled {
            self.try_steps(txn, &steps, &set, closeness.as_ref(), &mut |search, txn, domain| {
                search.seat_groups(txn, pods, domain)
            })
        } else {
            self.seat_set(txn, &steps, &set, closeness.as_ref())
        }
    }

    /// Places a set of pods into the best domain of the first step that holds them.
    fn seat_set(
        &mut self,
        txn: &mut Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        closeness: Option<&Closeness>,
    ) -> Result<(), Vec<Reason>> {
        let Some(shape) = one_shape(txn, set.pods) else {
            return self.try_steps(txn, steps, set, closeness, &mut |search, txn, domain| {
                search.place_in(txn, domain, set)
            });
        };
        for step in steps {
            let mut hopes = self.hopes(txn, step, set, &[(shape, set.pods.len() as u32)]);
            if let Some(best) = hopes.pop() {
                return self.place_in(txn, best.domain, set);
            }
        }
        Err(vec![self.too_small(txn, steps, set, closeness)])
    }

    /// Tries the domains of each step, and keeps the best of the first step that has one.
    fn try_steps(
        &mut self,
        txn: &mut Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        closeness: Option<&Closeness>,
        seat: &mut dyn FnMut(&mut Self, &mut Txn, DomainId) -> Result<(), Vec<Reason>>,
    ) -> Result<(), Vec<Reason>> {
        let shapes = shapes(txn, set.pods);
        let start = txn.mark();
        let mut reasons = Vec::new();
        for step in steps {
            let mut hopes = self.hopes(txn, step, set, &shapes);
            let mut best: Option<Hope> = None;
            while let Some(hope) = hopes.pop() {
                if best.as_ref().is_some_and(|best| (best.holds, best.full) >= (hope.holds, hope.full)) {
                    break;
                }
                match seat(self, txn, hope.domain) {
                    Ok(()) if hopes.is_empty() && best.is_none() => return Ok(()),
                    Ok(()) => {
                        let found = self.weigh(txn, hope.domain, set, seat);
                        if best.as_ref().is_none_or(|best| found > *best) {
                            best = Some(found);
                        }
                    }
                    Err(why) if reasons.is_empty() => reasons = why,
                    Err(_) => {}
                }
                txn.rewind(start);
            }
            if let Some(best) = best {
                return seat(self, txn, best.domain);
            }
        }
        let small = self.too_small(txn, steps, set, closeness);
        // Where only one domain was possible, what stopped it there says more.
        if steps.iter().map(Vec::len).sum::<usize>() == 1 && !reasons.is_empty() {
            return Err(reasons);
        }
        Err(vec![small])
    }

    /// What a domain in which the minimum was just placed is worth: as much more as it holds is placed as well.
    fn weigh(
        &mut self,
        txn: &mut Txn,
        domain: DomainId,
        set: &Set,
        seat: &mut dyn FnMut(&mut Self, &mut Txn, DomainId) -> Result<(), Vec<Reason>>,
    ) -> Hope {
        let waits = |txn: &Txn| {
            set.pods.iter().filter(|&&pod| txn.pods.state[pod] == PodState::Pending).count() as u32
        };
        let mut left = waits(txn);
        while left > 0 {
            let mark = txn.mark();
            if seat(self, txn, domain).is_err() || waits(txn) == left {
                txn.rewind(mark);
                break;
            }
            left = waits(txn);
        }
        let holds = set.pods.len() as u32 - left;
        let full = self.fullness(txn, domain, &Amounts::default());
        Hope { holds, full, name: Reverse(txn.domains[domain].name.clone()), domain }
    }

    /// How full a domain is with so much more in it.
    fn fullness(&self, cluster: &Cluster, domain: DomainId, added: &Amounts) -> i64 {
        let part = |&(resource, weight): &(ResourceId, i64)| {
            let (idle, allocatable) = cluster.domains.room(domain, resource);
            let used = allocatable - idle + added.get(resource);
            weight * part_of(used, allocatable)
        };
        self.weights.iter().map(part).sum()
    }

    fn place_in(&mut self, txn: &mut Txn, domain: DomainId, set: &Set) -> Result<(), Vec<Reason>> {
        let waits = |pod: &&PodId| txn.pods.state[**pod] == PodState::Pending;
        let pods: Vec<PodId> = set.pods.iter().filter(waits).copied().collect();
        // In a trial the minimum may be there already; then one more is asked for.
        let placed = (set.pods.len() - pods.len()) as u32;
        let one = Missing::one(set.missing.roles.len());
        let missing = if placed >= set.missing.total { &one } else { set.missing };
        let wish = Wish {
            gang: self.gang,
            pods: &pods,
            missing,
            room: self.room,
            avoid: &[],
            within: domain,
            near: Some(set.pin.unwrap_or(domain)),
        };
        place(txn, self.policy, self.rankings, &wish)
    }

    /// The domains of a step that may hold the missing pods, the most promising last.
    fn hopes(&mut self, txn: &Txn, step: &[DomainId], set: &Set, shapes: &[(ShapeId, u32)]) -> Vec<Hope> {
        let waiting = set.pods.len() as u32;
        let mut held: Vec<u32> = vec![0; step.len()];
        let mut added: Vec<Amounts> = vec![Amounts::default(); step.len()];
        for &(shape, pods) in shapes {
            let ranking = self.rankings.counted(txn, self.policy, shape, self.room);
            for ((&domain, held), added) in step.iter().zip(&mut held).zip(&mut added) {
                let holds = ranking.holds(domain).min(pods);
                *held += holds;
                added.add_all(&txn.shapes[shape].request, i64::from(holds));
            }
        }
        let mut hopes: Vec<Hope> = step
            .iter()
            .zip(held)
            .zip(added)
            .filter(|((_, held), _)| *held >= set.missing.total.min(waiting).max(1))
            .map(|((&domain, holds), added)| {
                let full = self.fullness(txn, domain, &added);
                Hope { holds, full, name: Reverse(txn.domains[domain].name.clone()), domain }
            })
            .collect();
        hopes.sort_unstable();
        hopes
    }

    /// Places what a gang with subgroups needs into a domain: the subgroups that it must have, then others and single pods
    /// up to its minimum; above it, one subgroup or pod.
    fn seat_groups(&mut self, txn: &mut Txn, pods: &[PodId], domain: DomainId) -> Result<(), Vec<Reason>> {
        let whole = self.policy.gangs_are_whole();
        let mut groups = self.groups(txn, pods);
        let required = self.required(txn, &groups);
        let starting = self.short(txn, whole) > 0 || !required.is_empty();
        for &at in &required {
            self.seat_group(txn, at, pods, domain)?;
        }
        groups.retain(|at| !required.contains(at));
        let mut reasons: Vec<Reason> = Vec::new();
        while !starting || self.short(txn, whole) > 0 {
            let mut placed = false;
            for &at in &groups {
                match self.seat_group(txn, at, pods, domain) {
                    Ok(()) => {
                        placed = true;
                        break;
                    }
                    Err(why) if reasons.is_empty() => reasons = why,
                    Err(_) => {}
                }
            }
            match placed {
                true if !starting => return Ok(()),
                true => {}
                false => return Err(reasons),
            }
            groups = self.groups(txn, pods);
        }
        match self.lacks_role(txn, whole) {
            true => Err(reasons),
            false => Ok(()),
        }
    }

    /// How many pods are missing to the gang's minimum.
    fn short(&self, txn: &Txn, whole: bool) -> u32 {
        let gang = &txn.gangs[self.gang];
        let minimum = if whole { gang.minimum } else { 1 };
        minimum.saturating_sub(self.taken(&gang.counts))
    }

    fn lacks_role(&self, txn: &Txn, whole: bool) -> bool {
        let gang = &txn.gangs[self.gang];
        let lacks = gang.roles.iter().any(|role| self.taken(&role.counts) < role.minimum);
        whole && gang.enforces_roles() && lacks
    }

    /// How many pods have a place that counts in this room.
    fn taken(&self, counts: &Counts) -> u32 {
        counts.ready() + if self.room == Room::Later { counts.nominated } else { 0 }
    }

    /// The subgroups with pods that wait, in the order in which they are placed: those that don't run before those that
    /// only grow, then by priority, number and name.
    fn groups(&self, txn: &Txn, pods: &[PodId]) -> Vec<usize> {
        let gang = &txn.gangs[self.gang];
        let mut highest: Vec<Option<i32>> = vec![None; gang.subgroups.len()];
        for &pod in pods.iter().filter(|&&pod| txn.pods.state[pod] == PodState::Pending) {
            let at = txn.pods.subgroup[pod] as usize;
            highest[at] = highest[at].max(Some(txn.pods.order[pod]));
        }
        let mut groups: Vec<usize> = (0..gang.subgroups.len()).filter(|&at| highest[at].is_some()).collect();
        let key = |&at: &usize| {
            let group = &gang.subgroups[at];
            let ready = self.taken(&group.counts) >= gang.size_of(group);
            (ready, Reverse(highest[at]), group.index, group.name.clone())
        };
        groups.sort_by_cached_key(key);
        groups
    }

    /// Of these, the ones without which the gang can't start.
    fn required(&self, txn: &Txn, groups: &[usize]) -> Vec<usize> {
        let gang = &txn.gangs[self.gang];
        let is_ready = |at: usize| {
            let group = &gang.subgroups[at];
            self.taken(&group.counts) >= gang.size_of(group)
        };
        let mut required = Vec::new();
        for (rule, place) in gang.rules.iter().zip(0..) {
            let of_rule = |at: &usize| gang.subgroups[*at].rule == Some(place);
            let ready = (0..gang.subgroups.len()).filter(of_rule).filter(|&at| is_ready(at)).count();
            let lacking = (rule.minimum as usize).saturating_sub(ready);
            required.extend(groups.iter().copied().filter(of_rule).filter(|&at| !is_ready(at)).take(lacking));
        }
        // In the order of all.
        required.sort_by_key(|at| groups.iter().position(|other| other == at));
        required
    }

    /// Places what a subgroup lacks to its size, all of it or nothing; one pod if it lacks nothing.
    fn seat_group(
        &mut self,
        txn: &mut Txn,
        at: usize,
        pods: &[PodId],
        domain: DomainId,
    ) -> Result<(), Vec<Reason>> {
        let gang = &txn.gangs[self.gang];
        let group = &gang.subgroups[at];
        let lacks = gang.size_of(group).saturating_sub(self.taken(&group.counts)).max(1);
        let mine = |pod: &&PodId| {
            txn.pods.subgroup[**pod] as usize == at && txn.pods.state[**pod] == PodState::Pending
        };
        let waiting: Vec<PodId> = pods.iter().filter(mine).copied().collect();
        let have = waiting.len() as u32;
        if have < lacks {
            return Err(vec![Reason::NotEnoughOfSubgroup {
                subgroup: group.name.clone(),
                have,
                need: lacks,
            }]);
        }
        let closeness = group.rule.and_then(|rule| gang.rules[rule as usize].closeness.clone());
        let members = gang.pods.iter().filter(|&&pod| txn.pods.subgroup[pod] as usize == at);
        let pin = around(txn, members);
        let steps = steps(&txn.domains, closeness.as_ref(), pin, domain).map_err(|reason| vec![reason])?;
        let missing = Missing { total: lacks, roles: vec![0; gang.roles.len()] };
        let set = Set { pods: &waiting, missing: &missing, pin };
        let mark = txn.mark();
        let result = self.seat_set(txn, &steps, &set, closeness.as_ref());
        if result.is_err() {
            txn.rewind(mark);
        }
        result
    }

    /// No domain that is allowed can hold the set: how near they came.
    fn too_small(
        &mut self,
        txn: &Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        closeness: Option<&Closeness>,
    ) -> Reason {
        let shapes = shapes(txn, set.pods);
        let any = Missing { total: 0, roles: Vec::new() };
        let open = Set { missing: &any, ..*set };
        let mut hopes: Vec<Hope> = Vec::new();
        for step in steps {
            hopes.extend(self.hopes(txn, step, &open, &shapes));
        }
        hopes.sort_unstable();
        let near = hopes.iter().rev().take(NAMED).map(|hope| {
            let Hope { holds, domain, .. } = hope;
            Near { domain: txn.domains[*domain].name.clone(), holds: *holds }
        });
        Reason::NoDomain {
            wanted: set.missing.total,
            domains: steps.iter().map(|step| step.len() as u32).sum(),
            limit: closeness.filter(|closeness| closeness.hard).and_then(|c| c.limit(&txn.domains).ok()),
            near: near.collect(),
        }
    }
}

/// The domains that may hold pods with this closeness inside another domain: step by step those that keep them nearest to
/// where others of them are, and of those the lowest tiers. The error says why there are none at all.
fn steps(
    domains: &Domains,
    closeness: Option<&Closeness>,
    pin: Option<DomainId>,
    inside: DomainId,
) -> Result<Vec<Vec<DomainId>>, Reason> {
    let Some(closeness) = closeness else { return Ok(vec![vec![inside]]) };
    let limit = closeness.limit(domains).map_err(|tier| Reason::NoSuchTier { tier })?;
    let allowed = |domain: &DomainId| domains[*domain].tier <= limit;
    let top = match pin {
        // The highest domain around them that is allowed, but not above where the search is.
        Some(pin) => {
            let around = domains.chain(pin).filter(|at| domains.holds(inside, *at));
            around.take_while(allowed).last().ok_or_else(|| Reason::TooFarApart {
                domain: domains[pin].name.clone(),
                tier: domains[pin].tier,
                limit,
            })?
        }
        None => inside,
    };
    let near = |domain: DomainId| pin.map_or(0, |pin| domains[domains.common(pin, domain)].tier);
    let below = domains.below(top).map(DomainId).filter(allowed);
    let mut keyed: Vec<((u32, u32), DomainId)> =
        below.map(|domain| ((near(domain), domains[domain].tier), domain)).collect();
    keyed.sort_unstable();
    let steps = keyed.chunk_by(|a, b| a.0 == b.0);
    Ok(steps.map(|step| step.iter().map(|&(_, domain)| domain).collect()).collect())
}

/// `part / whole` in 2^20ths, rounded down. Equal parts of unequal wholes are equal, as long as the wholes are below 2^43
/// or multiples of what they are above it.
fn part_of(part: i64, whole: i64) -> i64 {
    let (part, whole) = (part.max(0) as u64, whole.max(0) as u64);
    let cut = (u64::BITS - whole.max(part).leading_zeros()).saturating_sub(43);
    ((part >> cut) << 20).checked_div(whole >> cut).map_or(0, |found| found as i64)
}

/// The smallest domain that holds those of the pods that have places.
pub fn around<'p>(cluster: &Cluster, pods: impl IntoIterator<Item = &'p PodId>) -> Option<DomainId> {
    let placed = pods.into_iter().filter_map(|&pod| match cluster.pods.state[pod] {
        PodState::Allocated(node) | PodState::Running(node) | PodState::Nominated(node) => Some(node),
        _ => None,
    });
    cluster.domains.around(placed)
}

/// The domain in which a gang is, if any of it has a place.
pub fn domain_of(cluster: &Cluster, gang: GangId) -> Option<DomainId> {
    around(cluster, &cluster.gangs[gang].pods)
}

/// The shapes of pods with how many have each.
fn shapes(cluster: &Cluster, pods: &[PodId]) -> Vec<(ShapeId, u32)> {
    let mut found: Vec<ShapeId> = pods.iter().map(|&pod| cluster.pods.shape[pod]).collect();
    found.sort_unstable();
    found.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

/// The shape of all of them, if it is one and no rule between pods concerns it.
pub fn one_shape(cluster: &Cluster, pods: &[PodId]) -> Option<ShapeId> {
    let shape = cluster.pods.shape[*pods.first()?];
    let same = pods.iter().all(|&pod| cluster.pods.shape[pod] == shape);
    (same && !cluster.shapes[shape].uses_claims() && !cluster.far_reaching(shape)).then_some(shape)
}
