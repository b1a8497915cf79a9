//! Makes room for a gang in one domain, by evicting bundles.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::base::purpose::Purpose;
use crate::eviction::bundles::{gangs_broken_by, pod_count};
use crate::eviction::cheapest_nodes;
use crate::eviction::domain_candidates::{CandidateDomain, Victims};
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, evict_until_it_fits};
use crate::eviction::give_back::{beyond_budgets, give_back_bundles};
use crate::eviction::need::Need;
use crate::eviction::per_domain::{Solution, Stage};
use crate::eviction::relocate::is_moved;
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::eviction::table::{Table, Way, returns};
use crate::eviction::trace::DomainOutcome;
use crate::model::pods::PodState;
use crate::model::txn::{Move, Txn};
use crate::placement::rankings::Rankings;
use crate::placement::search::place_gang;
use crate::policy::bundle::{Bundle, BundleKind, GANG_AT_MINIMUM, Needed};
use crate::policy::plugin::Veto;

/// How many bundles are tried in first position if the usual order finds no solution.
pub const HEADS: usize = 16;

/// The evictions that make room for the whole gang in a domain.
struct Cleared {
    way: Way,
    taken: Vec<Bundle>,
    /// Those of the victims that are moved, and where to.
    moved: Vec<(PodId, NodeId)>,
    /// How many pods were evicted and then given back.
    given_back: u32,
}

/// What is tried in a domain.
#[derive(Copy, Clone)]
struct Trial<'c> {
    candidate: &'c CandidateDomain,
    victims: &'c Victims,
    stage: &'c Stage,
    /// Bundles that fair shares protect are evicted at last too, if they can be moved instead.
    moves: bool,
}

impl Search<'_> {
    /// Makes room in one domain. Leaves its moves in the transaction either way.
    pub fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (candidate, stage): (&mut CandidateDomain, &Stage),
        log: &mut SearchLog,
    ) -> Option<Solution> {
        if candidate.victims.is_none() {
            candidate.victims = Some(self.victims(txn, need, candidate));
        }
        let victims = candidate.victims.as_ref()?;
        victims.kept.iter().for_each(|&(pod, veto)| log.record_veto(&[pod], veto));
        let (allowed, others): (Vec<&Bundle>, Vec<&Bundle>) =
            victims.bundles.iter().partition(|bundle| bundle.kind <= stage.allowed);
        let minimum = Veto { rule: GANG_AT_MINIMUM, until: None };
        others.iter().for_each(|bundle| log.record_veto(&bundle.pods, minimum));
        let trial = Trial { candidate, victims, stage, moves: false };
        log.counting_rule_refused = false;
        let cleared = self.clear_best(txn, rankings, need, (trial, allowed), log);
        let Some(mut cleared) = cleared else {
            log.refusal.nodes += candidate.nodes.len() as u32;
            return None;
        };
        let causes = self.causes(txn, &mut cleared.taken, victims);
        let Cleared { way, taken, moved, given_back } = cleared;
        let cost = way.cost;
        log.trace(|trace| {
            trace.conclude_domain(DomainOutcome::Works { victims: taken, moved, cost })
        });
        Some(Solution { domain: candidate.domain, way, causes, given_back })
    }

    /// Evicts these bundles in the order of the table, and in other orders where that may be
    /// better. Leaves the moves of the best way in the transaction.
    fn clear_best(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (trial, mut bundles): (Trial, Vec<&Bundle>),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let start = txn.mark();
        let by_one: Vec<Bundle>;
        let mut ordered = bundles.clone();
        if trial.stage.may_violate_budgets {
            // Pods of a budget are evicted as far as it allows before others violate it.
            by_one = bundles.iter().flat_map(|bundle| bundle.units()).collect();
            ordered = by_one.iter().collect();
        }
        let cleared = self.clear(txn, rankings, need, (trial, &ordered), log);
        let others = bundles.iter().any(|bundle| !bundle.instead.is_empty());
        let worth_trying = match &cleared {
            Some(cleared) => {
                (others || bundles.len() > 1) && self.may_be_outdone(trial, &cleared.way)
            }
            // All candidates are evicted already: another order helps only if a rule counts
            // evictions.
            None => others || log.counting_rule_refused,
        };
        if !worth_trying {
            return cleared;
        }
        let worst =
            cleared.as_ref().map(|cleared| cleared.taken.iter().map(|bundle| bundle.class).max());
        bundles.retain(|bundle| worst.is_none_or(|worst| worst >= Some(bundle.class)));
        let moves = txn.since(start);
        txn.rewind(start);
        log.refusals_recorded = true;
        let known = cleared.is_some();
        let other = self.clear_in_other_orders(txn, rankings, need, (trial, &bundles, known), log);
        log.refusals_recorded = false;
        let Some((other, other_moves)) = other else {
            txn.replay(&moves);
            return cleared;
        };
        let table = Table::new(self.policy, &self.preemptor, &self.settings.bundle_settings);
        let first = cleared.as_ref().is_some_and(|first| {
            table.choose(txn, &[&first.way, &other.way]).is_some_and(|(best, _)| best == 0)
        });
        txn.replay(if first { &moves } else { &other_moves });
        if first { cleared } else { Some(other) }
    }

    /// Whether another order of eviction might make room in a better way.
    fn may_be_outdone(&self, Trial { candidate, victims, .. }: Trial, way: &Way) -> bool {
        if self.fair_share_order() {
            return way.cost > candidate.least;
        }
        let most = returns(victims.needed.len(), candidate.least);
        most.saturating_sub(way.returns) > self.settings.bundle_settings.roi_threshold
    }

    /// Evicts these bundles in other orders. Returns the way and its moves; leaves the transaction
    /// as it was.
    fn clear_in_other_orders(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (trial, bundles, known): (Trial, &[&Bundle], bool),
        log: &mut SearchLog,
    ) -> Option<(Cleared, Vec<Move>)> {
        let start = txn.mark();
        let single: Vec<Bundle> = bundles.iter().flat_map(|bundle| bundle.one_by_one()).collect();
        let losses: Vec<i64> =
            single.iter().map(|bundle| need.loss(txn, trial.victims, bundle)).collect();
        // First an order that clears room for one pod after the other, each where the table says.
        let mut spare: BTreeMap<GangId, usize> = BTreeMap::new();
        for bundle in bundles
            .iter()
            .filter(|bundle| bundle.kind == BundleKind::Safe && !bundle.all_or_nothing)
        {
            *spare.entry(bundle.gang).or_default() += bundle.pods.len();
        }
        let order = cheapest_nodes::by_cheapest_room(
            txn,
            &need.shapes,
            &trial.candidate.nodes,
            &single,
            &losses,
            spare,
        );
        // If a rule limits how many may be evicted, also try each of the first bundles in front of
        // all others.
        let heads = if !known && log.counting_rule_refused { HEADS.min(order.len()) } else { 1 };
        for head in 0..heads {
            if head > 0 && !self.may_go_on(txn) {
                log.budget_exhausted |= !known;
                break;
            }
            let ahead = std::iter::once(order[head]);
            let others = order.iter().copied().filter(|&at| at != order[head]);
            let ordered: Vec<&Bundle> = ahead.chain(others).map(|at| &single[at]).collect();
            let found = self.clear(txn, rankings, need, (trial, &ordered), log);
            let moves = txn.since(start);
            txn.rewind(start);
            if let Some(found) = found {
                return Some((found, moves));
            }
        }
        let moves = self.preemptor.purpose == Purpose::Reclaim
            && !self.settings.bundle_settings.counts_moved;
        if known || !log.counting_rule_refused || !self.fair_share_order() || !moves {
            return None;
        }
        // A pod that is moved is not taken from its queue.
        let ordered: Vec<&Bundle> = order.iter().map(|&at| &single[at]).collect();
        let trial = Trial { moves, ..trial };
        let found = self.clear(txn, rankings, need, (trial, &ordered), log);
        let moves = txn.since(start);
        txn.rewind(start);
        found.map(|found| (found, moves))
    }

    /// Evicts bundles in this order until the gang fits, and gives back what is not needed. Leaves
    /// its moves in the transaction either way.
    fn clear(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (trial, bundles): (Trial, &[&Bundle]),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let Trial { candidate, victims, stage, moves } = trial;
        let mut fit =
            DomainFit::new(txn, self.policy, self.placement, &need.pods, candidate.domain);
        let lacks = need.lacks(txn, &candidate.nodes);
        let (budget, tries_again) = (self.budget, moves || stage.may_violate_budgets);
        let rules = Rules { lacks, budget, tries_again, ..Rules::default() };
        let order = bundles.iter().copied();
        let evicted =
            evict_until_it_fits(txn, rankings, &mut fit, order, rules, |txn, bundle, again| {
                let (moves, may_violate) = (again && moves, again && stage.may_violate_budgets);
                self.evict(txn, bundle, (moves, may_violate), log)
            });
        let Evicted { fits, evicted: mut taken, lacks, untried, stopped } = evicted;
        log.record.work.scenarios += taken.len() as u32;
        log.record.work.filtered += untried;
        log.refusal.evictable |= !taken.is_empty();
        log.placement_tried |= fit.tries > 0;
        if stopped.is_some() {
            log.budget_exhausted = true;
            return None;
        }
        if !fits {
            log.record.work.simulations += fit.tries;
            log.trace(|trace| trace.conclude_domain(self.failed(txn, rankings, taken, lacks)));
            return None;
        }
        let evicted = pod_count(&taken);
        give_back_bundles(txn, rankings, &mut fit, &mut taken);
        log.record.work.simulations += fit.tries;
        let moved = if self.fair_share_order() {
            self.relocate(txn, rankings, &mut taken)
        } else {
            Vec::new()
        };
        if moves
            && (moved.len() > self.settings.max_moves || !self.losses_are_fair(txn, &taken, &moved))
        {
            return None;
        }
        if let Err(reason) = self.check_outcome(txn, &taken, &moved) {
            // Another order might be allowed.
            log.counting_rule_refused |= self.fair_share_order();
            log.limit.get_or_insert_with(|| reason.clone());
            let why = vec![reason];
            log.trace(|trace| trace.conclude_domain(DomainOutcome::Fails { victims: taken, why }));
            return None;
        }
        let way = self.way(txn, need, (candidate, victims), &taken, &moved);
        Some(Cleared { way, given_back: evicted - pod_count(&taken), taken, moved })
    }

    /// What all that leaves amounts to. What moves is not lost.
    pub fn way(
        &self,
        txn: &Txn,
        need: &Need,
        (candidate, victims): (&CandidateDomain, &Victims),
        taken: &[Bundle],
        moved: &[(PodId, NodeId)],
    ) -> Way {
        // The loss of a whole bundle includes the surplus of its gang.
        let broken = gangs_broken_by(taken);
        let mut way = Way { step: candidate.step, ..Way::default() };
        for bundle in taken {
            let whole = bundle.kind == BundleKind::Whole;
            let (moved, lost): (Vec<PodId>, Vec<PodId>) =
                bundle.pods.iter().partition(|pod| is_moved(moved, **pod));
            way.cost += match bundle.kind {
                BundleKind::Whole => need.loss(txn, victims, bundle),
                BundleKind::Safe if broken.contains(&bundle.gang) => 0,
                BundleKind::Safe => {
                    let lost = need.loss(txn, victims, &bundle.of(lost.clone()));
                    need.loss(txn, victims, &bundle.of(moved)) / 2 + lost
                }
            };
            if lost.is_empty() {
                continue;
            }
            let gang = &txn.gangs[bundle.gang];
            way.breaks |= whole;
            way.priority = way.priority.max(Some(gang.priority));
            way.queues.push(gang.queue);
            way.gangs.push(bundle.gang);
            way.broken.extend(Some(bundle.gang).filter(|_| whole));
        }
        way.queues.sort_unstable();
        way.queues.dedup();
        way.returns = returns(victims.needed.len(), way.cost);
        way.violations = beyond_budgets(txn, taken).len();
        way
    }

    /// The outcome of a domain where the gang does not fit although all candidates are evicted.
    fn failed(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        victims: Vec<Bundle>,
        lacks: Needed,
    ) -> DomainOutcome {
        if !lacks.is_empty() {
            return DomainOutcome::TooLittle { victims, lacks };
        }
        let mark = txn.mark();
        let own = txn.gangs[self.preemptor.gang].pods.clone();
        let nominated = |pod: &PodId| {
            matches!(txn.pods.state[*pod], PodState::Nominated(_))
                && self.placement.pods.contains(pod)
        };
        let placed: Vec<PodId> = own.into_iter().filter(nominated).collect();
        placed.into_iter().for_each(|pod| txn.release(pod));
        let why = place_gang(txn, self.policy, rankings, &self.placement).err().unwrap_or_default();
        txn.rewind(mark);
        DomainOutcome::Fails { victims, why }
    }
}
