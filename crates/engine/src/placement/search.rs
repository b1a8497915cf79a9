//! Where a gang is placed: in the domains that its topology rules allow, nearest first, and in the
//! best domain of the first tier that can hold it. The same for its subgroups inside that domain.
//! Equal pods are counted, not tried: the ranking knows how many fit in a domain (see
//! `ranking.rs`). Only sets of several shapes are tried, the domain with the best score first,
//! until none that is left could be better.

mod subgroups;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;
use std::sync::Arc;

use crate::base::ids::{DomainId, GangId, PodId, ResourceId, ShapeId};
use crate::base::resources::Amounts;
use crate::base::room::Room;
use crate::decision::reason::{Near, Reason};
use crate::model::Cluster;
use crate::model::gangs::missing::Missing;
use crate::model::shapes::{one_shape, shapes};
use crate::model::topology::domains::{Domains, ROOT};
use crate::model::topology::places::PlacedPods;
use crate::model::topology::subgroups::TierLimit;
use crate::model::txn::{Mark, Txn};
use crate::placement::domains::steps;
use crate::placement::place::place;
use crate::placement::rankings::Rankings;
use crate::placement::request::{PlacementRequest, Vicinity};
use crate::policy::answers::Policy;

/// How many domains that nearly fit are named.
const NAMED: usize = 3;

/// Places what a gang lacks where its topology rules and its subgroups allow. Leaves its moves in
/// the transaction either way.
pub fn place_gang(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    request: &PlacementRequest,
) -> Result<(), Vec<Reason>> {
    if txn.gangs[request.gang].topology_rules.is_none() {
        return place(txn, policy, rankings, request);
    }
    let asked = |&(shape, _): &(ShapeId, u32)| txn.shapes[shape].request.iter().collect::<Vec<_>>();
    let mut resources: Vec<ResourceId> =
        shapes(txn, request.pods).iter().flat_map(asked).map(|(resource, _)| resource).collect();
    resources.sort_unstable();
    resources.dedup();
    let weights =
        resources.into_iter().map(|resource| (resource, policy.domain_weight(txn, resource)));
    let weights = weights.filter(|(_, weight)| *weight > 0).collect();
    let (gang, room, sparing) = (request.gang, request.room, policy.spares_whole_domains());
    let (open_steps, ranked, start) = (Vec::new(), None, txn.mark());
    let mut search =
        Search { policy, rankings, gang, room, weights, sparing, open_steps, ranked, force: None };
    let result = search.place_all(txn, request.pods, request.missing);
    if result.is_ok() || !sparing {
        return result;
    }
    // Sparing whole domains must not cost the gang its placement.
    txn.rewind(start);
    (search.sparing, search.ranked) = (false, None);
    search.place_all(txn, request.pods, request.missing)
}

/// Makes room for one pod, for example by evictions. The number is how many pods are still to be
/// placed, this one included.
pub type Force<'f> = dyn FnMut(&mut Txn, &mut Rankings, PodId, u32) -> Result<(), Reason> + 'f;

/// Places what a gang lacks with a function that makes room for each pod, subgroups first. Leaves
/// its moves in the transaction either way.
pub fn place_gang_with(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    request: &PlacementRequest,
    force: &mut Force,
) -> Result<(), Vec<Reason>> {
    let (gang, room, sparing) = (request.gang, request.room, false);
    let (weights, open_steps, ranked, force) = (Vec::new(), Vec::new(), None, Some(force));
    let mut search =
        Search { policy, rankings, gang, room, weights, sparing, open_steps, ranked, force };
    match txn.gangs[gang].rules().is_empty() {
        true => search.force_all(txn, request.pods, request.missing).map_err(|reason| vec![reason]),
        false => search.place_groups(txn, request.pods, ROOT),
    }
}

/// Domains to try, step by step.
type Steps = Rc<[Vec<DomainId>]>;

/// Places what is missing into a domain.
type PlaceIn<'a, S> = dyn FnMut(&mut S, &mut Txn, DomainId) -> Result<(), Vec<Reason>> + 'a;

struct Search<'s, 'f> {
    policy: &'s Policy,
    rankings: &'s mut Rankings,
    gang: GangId,
    room: Room,
    /// What its pods ask for, and how much each counts in how full a domain is.
    weights: Vec<(ResourceId, i64)>,
    /// Among equally near domains take the one that leaves the largest others whole, otherwise the
    /// fullest.
    sparing: bool,
    /// The steps of subgroups without placed pods, by rule and by the domain that is searched.
    open_steps: Vec<((u32, DomainId), Steps)>,
    ranked: Option<RankedDomains>,
    force: Option<&'s mut Force<'f>>,
}

/// The domains of a step, ordered by score for one kind of set. Kept as long as only such sets are
/// placed: then only the domain of the last one has changed.
struct RankedDomains {
    /// The shape, how many pods wait, and how many are missing.
    of: (ShapeId, u32, u32),
    step: Vec<DomainId>,
    /// The version for which the order holds.
    mark: Mark,
    rungs: BinaryHeap<DomainScore>,
}

/// Pods that go into one domain.
struct Set<'p> {
    /// The name of their subgroup, if they are one.
    subgroup: Option<&'p Arc<str>>,
    /// The domain inside which theirs must be.
    inside: DomainId,
    /// The pods that wait, in the order of placement.
    pods: &'p [PodId],
    missing: &'p Missing,
    others: &'p PlacedPods,
}

/// A domain that may hold the set, and how good it would be at best.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DomainScore {
    /// How many of the waiting pods it would hold.
    holds: u32,
    /// How many nodes the largest domain around it has that no pod uses yet, if that matters.
    splits: Reverse<u32>,
    /// How full it would be with them, or how little would be left over.
    fill: i64,
    /// The position by name: ties go to the first.
    order: Reverse<u32>,
    domain: DomainId,
}

impl Search<'_, '_> {
    fn place_all(
        &mut self,
        txn: &mut Txn,
        pods: &[PodId],
        missing: &Missing,
    ) -> Result<(), Vec<Reason>> {
        let gang = &txn.gangs[self.gang];
        let (tier_limit, ruled) = (gang.tier_limit().cloned(), !gang.rules().is_empty());
        let others = PlacedPods::of(txn, self.gang, None);
        let steps = steps(&txn.domains, tier_limit.as_ref(), others.common_domain, ROOT)
            .map_err(|reason| vec![reason])?;
        let set = Set { subgroup: None, inside: ROOT, pods, missing, others: &others };
        if ruled && tier_limit.is_none() {
            self.place_groups(txn, pods, ROOT)
        } else if ruled {
            let tried = self.try_steps(
                txn,
                &steps,
                &set,
                tier_limit.as_ref(),
                &mut |search, txn, domain| search.place_groups(txn, pods, domain),
            );
            // A subgroup that no domain holds says more than what happened in one domain.
            tried.map_err(|reasons| {
                let alone = self.subgroup_without_domain(txn, pods, &steps);
                alone.map_or(reasons, |reason| vec![reason])
            })
        } else {
            self.place_set(txn, &steps, &set, tier_limit.as_ref())
        }
    }

    /// Places a set of pods into the best domain of the first step that holds them.
    fn place_set(
        &mut self,
        txn: &mut Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        tier_limit: Option<&TierLimit>,
    ) -> Result<(), Vec<Reason>> {
        if tier_limit.is_none() {
            return self.place_in(txn, steps[0][0], set);
        }
        let Some(shape) = one_shape(txn, set.pods) else {
            return self.try_steps(txn, steps, set, tier_limit, &mut |search, txn, domain| {
                search.place_in(txn, domain, set)
            });
        };
        for step in steps {
            if let Some(domain) = self.best_domain(txn, step, set, shape) {
                let result = self.place_in(txn, domain, set);
                self.update_top(txn, set, shape);
                return result;
            }
        }
        Err(vec![self.too_small(txn, steps, set, tier_limit)])
    }

    /// The best domain of a step for a set of one shape.
    fn best_domain(
        &mut self,
        txn: &Txn,
        step: &[DomainId],
        set: &Set,
        shape: ShapeId,
    ) -> Option<DomainId> {
        let waiting = set.pods.len() as u32;
        let of = (shape, waiting, set.missing.total);
        let same = |ranked: &RankedDomains| {
            ranked.of == of && ranked.mark == txn.mark() && ranked.step == step
        };
        // Where whole domains are spared, each placement changes the scores of other domains too,
        // so the order is not kept.
        let known = self.ranked.take().filter(|ranked| !self.sparing && same(ranked));
        let ranked = known.unwrap_or_else(|| {
            let rungs = self.scores(txn, step, set, &[(shape, waiting)]).into();
            RankedDomains { of, step: step.to_vec(), mark: txn.mark(), rungs }
        });
        let best = ranked.rungs.peek().map(|score| score.domain);
        self.ranked = Some(ranked);
        best
    }

    /// Updates the score of the top domain, in which the set has just been placed.
    fn update_top(&mut self, txn: &Txn, set: &Set, shape: ShapeId) {
        let Some(mut ranked) = self.ranked.take() else { return };
        if let Some(top) = ranked.rungs.pop() {
            let again = self.scores(txn, &[top.domain], set, &[(shape, set.pods.len() as u32)]);
            ranked.rungs.extend(again);
        }
        ranked.mark = txn.mark();
        self.ranked = Some(ranked);
    }

    /// Tries the domains of each step, and keeps the best of the first step that has one.
    fn try_steps(
        &mut self,
        txn: &mut Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        tier_limit: Option<&TierLimit>,
        place_in: &mut PlaceIn<Self>,
    ) -> Result<(), Vec<Reason>> {
        let shapes = shapes(txn, set.pods);
        let start = txn.mark();
        let mut reasons = Vec::new();
        for step in steps {
            let mut scores = self.scores(txn, step, set, &shapes);
            let mut best: Option<DomainScore> = None;
            while let Some(score) = scores.pop() {
                if best.as_ref().is_some_and(|best| *best > score) {
                    break;
                }
                match place_in(self, txn, score.domain) {
                    Ok(()) if scores.is_empty() && best.is_none() => return Ok(()),
                    Ok(()) => {
                        let found = self.weigh(txn, &score, set, place_in);
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
                return place_in(self, txn, best.domain);
            }
        }
        // The reason in the domain that was nearest says more than the number of domains.
        if reasons.is_empty() {
            reasons.push(self.too_small(txn, steps, set, tier_limit));
        }
        Err(reasons)
    }

    /// The score of a domain in which the minimum was just placed: places as many more pods as fit.
    fn weigh(
        &mut self,
        txn: &mut Txn,
        score: &DomainScore,
        set: &Set,
        place_in: &mut PlaceIn<Self>,
    ) -> DomainScore {
        let &DomainScore { splits, order, domain, .. } = score;
        let waits = |txn: &Txn| {
            set.pods.iter().filter(|&&pod| txn.pods.state[pod].needs_node()).count() as u32
        };
        let mut left = waits(txn);
        while left > 0 {
            let mark = txn.mark();
            if place_in(self, txn, domain).is_err() || waits(txn) == left {
                txn.rewind(mark);
                break;
            }
            left = waits(txn);
        }
        let holds = set.pods.len() as u32 - left;
        let fill = self.fullness(txn, domain, &Amounts::default());
        DomainScore { holds, splits, fill, order, domain }
    }

    /// How full a domain is with these amounts added, or how little is left over.
    fn fullness(&self, cluster: &Cluster, domain: DomainId, added: &Amounts) -> i64 {
        let part = |&(resource, weight): &(ResourceId, i64)| {
            let added = added.get(resource);
            match self.sparing {
                true => -weight * cluster.domains.left_over(domain, resource, added),
                false => weight * cluster.domains.fullness(domain, resource, added),
            }
        };
        self.weights.iter().map(part).sum()
    }

    /// How many nodes the largest domain around this one has that no pod uses yet.
    fn splits(&self, domains: &Domains, domain: DomainId) -> u32 {
        let unused = |&domain: &DomainId| {
            let free = |&(resource, _): &(ResourceId, i64)| {
                let (idle, allocatable) = domains.room(domain, resource);
                idle == allocatable
            };
            domain != ROOT && self.weights.iter().all(free)
        };
        let whole = domains.chain(domain).take_while(unused).last();
        whole.filter(|_| self.sparing).map_or(0, |whole| domains.node_count(whole))
    }

    fn place_in(&mut self, txn: &mut Txn, domain: DomainId, set: &Set) -> Result<(), Vec<Reason>> {
        let waits = |pod: &&PodId| txn.pods.state[**pod].needs_node();
        let pods: Vec<PodId> = set.pods.iter().filter(waits).copied().collect();
        // In a trial the minimum may be placed already; then one more pod is requested.
        let placed = (set.pods.len() - pods.len()) as u32;
        let one = Missing::one(set.missing.roles.len());
        let missing = if placed >= set.missing.total { &one } else { set.missing };
        let request = PlacementRequest {
            gang: self.gang,
            pods: &pods,
            missing,
            room: self.room,
            avoid: &[],
            near: Some(Vicinity {
                of: set.others.common_domain.unwrap_or(domain),
                within: domain,
                others: &set.others.domains,
            }),
        };
        place(txn, self.policy, self.rankings, &request)
    }

    /// The domains of a step that may hold the missing pods, the best score last.
    fn scores(
        &mut self,
        txn: &Txn,
        step: &[DomainId],
        set: &Set,
        shapes: &[(ShapeId, u32)],
    ) -> Vec<DomainScore> {
        let need = set.missing.total.min(set.pods.len() as u32).max(1);
        // For each shape what each domain holds of it.
        let mut held: Vec<u32> = Vec::with_capacity(step.len() * shapes.len());
        for &(shape, pods) in shapes {
            let ranking = self.rankings.counted(txn, self.policy, shape, self.room);
            held.extend(step.iter().map(|&domain| ranking.holds(domain).min(pods)));
        }
        let mut scores: Vec<DomainScore> = Vec::new();
        let mut added = Amounts::default();
        for (at, &domain) in step.iter().enumerate() {
            let of_shapes = || held.iter().skip(at).step_by(step.len());
            let holds = of_shapes().sum();
            if holds >= need {
                added.clear();
                for (&(shape, _), &pods) in shapes.iter().zip(of_shapes()) {
                    added.add_all(&txn.shapes[shape].request, i64::from(pods));
                }
                let fill = self.fullness(txn, domain, &added);
                let splits = Reverse(self.splits(&txn.domains, domain));
                scores.push(DomainScore {
                    holds,
                    splits,
                    fill,
                    order: Reverse(txn.domains[domain].order),
                    domain,
                });
            }
        }
        scores.sort_unstable();
        scores
    }

    /// Places as many pods as are missing, each with the function that makes room.
    fn force_all(
        &mut self,
        txn: &mut Txn,
        pods: &[PodId],
        missing: &Missing,
    ) -> Result<(), Reason> {
        let mut missing = missing.clone();
        for (at, &pod) in pods.iter().enumerate() {
            let role = txn.pods.role[pod] as usize;
            if missing.total > 0
                && missing.wants(role)
                && let Some(force) = &mut self.force
            {
                force(txn, self.rankings, pod, (pods.len() - at) as u32)?;
                missing.take(role);
            }
        }
        let (have, need) = (pods.len() as u32, pods.len() as u32 + missing.total);
        if missing.total == 0 {
            Ok(())
        } else {
            Err(Reason::NotEnoughPods { have, need, gated: 0 })
        }
    }

    /// Why no allowed domain can hold the set, with the nearest ones.
    fn too_small(
        &mut self,
        txn: &Txn,
        steps: &[Vec<DomainId>],
        set: &Set,
        tier_limit: Option<&TierLimit>,
    ) -> Reason {
        let shapes = shapes(txn, set.pods);
        let any = Missing { total: 0, roles: Vec::new() };
        let open = Set { missing: &any, ..*set };
        let mut scores: Vec<DomainScore> = Vec::new();
        for step in steps {
            scores.extend(self.scores(txn, step, &open, &shapes));
        }
        scores.sort_unstable();
        let near = scores.iter().rev().take(NAMED).map(|score| {
            let DomainScore { holds, domain, .. } = score;
            Near { domain: txn.domains[*domain].name.clone(), holds: *holds }
        });
        let inside = Some(set.inside).filter(|&inside| inside != ROOT);
        Reason::NoDomain {
            wanted: set.missing.total,
            subgroup: set.subgroup.cloned(),
            inside: inside.map(|inside| txn.domains[inside].name.clone()),
            domains: steps.iter().map(|step| step.len() as u32).sum(),
            limit: tier_limit
                .filter(|tier_limit| tier_limit.hard)
                .and_then(|c| c.limit(&txn.domains).ok()),
            near: near.collect(),
        }
    }
}
