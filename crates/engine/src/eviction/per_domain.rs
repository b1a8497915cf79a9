//! Modes `gang` and `scenario`: evicts bundles, domain by domain.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::base::purpose::Purpose;
use crate::decision::reason::Reason;
use crate::eviction::bundles::{gangs_broken_by, pod_count};
use crate::eviction::causes::Causes;
use crate::eviction::cheapest_nodes;
use crate::eviction::domain_candidates::{CandidateDomain, Victims};
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, evict_until_it_fits};
use crate::eviction::give_back::give_back_bundles;
use crate::eviction::lower_nominations::{nominate_again, release_lower};
use crate::eviction::need::Need;
use crate::eviction::refusal::Refusal;
use crate::eviction::relocate::is_moved;
use crate::eviction::search::Search;
use crate::eviction::search_log::{Record, SearchLog};
use crate::eviction::trace::DomainOutcome;
use crate::model::pods::PodState;
use crate::model::txn::{Move, Txn};
use crate::order::failed_searches::Progress;
use crate::placement::domains::domains_for;
use crate::placement::rankings::Rankings;
use crate::placement::search::place_gang;
use crate::policy::bundle::{Bundle, BundleKind, GANG_AT_MINIMUM, Needed};
use crate::policy::plugin::Veto;

/// How many bundles are tried in first position if the usual order finds no solution.
pub const HEADS: usize = 16;

/// The evictions that make room for the whole gang in a domain.
struct Cleared {
    cost: i64,
    taken: Vec<Bundle>,
    /// Those of the victims that are moved, and where to.
    moved: Vec<(PodId, NodeId)>,
    /// How many pods were evicted and then given back.
    given_back: u32,
}

/// How room is made in a domain: the moves are in the transaction.
pub struct Solution {
    pub cost: i64,
    pub causes: Causes,
    pub given_back: u32,
}

impl Search<'_> {
    /// Makes room in the transaction for what the gang lacks, and returns the cause of each
    /// eviction; or why there is no room. `until` is when the first veto in the way expires.
    pub fn make_room(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        until: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Causes, Vec<Reason>> {
        let need = self.need(txn);
        self.may_begin(txn, &need)?;
        let steps = domains_for(txn, self.preemptor.gang).map_err(|reason| vec![reason])?;
        let mut log = SearchLog::new(record);
        let bundle_settings = &self.settings.bundle_settings;
        let mut candidates: Vec<Vec<CandidateDomain>> = Vec::new();
        for &allowed in self.passes() {
            log.begin_pass(allowed);
            let mut left = bundle_settings.max_domains;
            for (at, step) in steps.iter().enumerate() {
                if candidates.len() == at {
                    candidates.push(self.feasible_domains(txn, rankings, &need, step));
                }
                for &domain in step.iter().filter(|&&domain| {
                    candidates[at].iter().all(|candidate| candidate.domain != domain)
                }) {
                    log.record.work.scenarios += 1;
                    log.record.work.filtered += 1;
                    log.trace(|trace| trace.begin_domain(domain, DomainOutcome::TooSmall));
                }
                let progress = &log.record.progress;
                candidates[at].sort_by_cached_key(|candidate| progress.turn(candidate.domain));
                let known =
                    |candidate: &&CandidateDomain| progress.tried.contains(&candidate.domain);
                let known = candidates[at].iter().filter(known).count();
                let most = left.min(candidates[at].len() - known);
                let (tried, others) = candidates[at][known..].split_at_mut(most);
                let all = others.is_empty();
                for candidate in &*others {
                    log.trace(|trace| {
                        trace.begin_domain(candidate.domain, DomainOutcome::NotTried)
                    });
                }
                left -= tried.len();
                if let Some(solution) =
                    self.in_cheapest_domain(txn, rankings, &need, tried, allowed, &mut log)
                {
                    let work = &mut log.record.work;
                    work.selected += solution.causes.len() as u32 + solution.given_back;
                    work.reprieved += solution.given_back;
                    return Ok(solution.causes);
                }
                // In mode `scenario` the next cycle tries the other domains.
                log.domains_skipped |= !all && self.fair_share_order();
                if log.domains_skipped {
                    break;
                }
            }
        }
        Err(self.conclude(txn, log, until))
    }

    /// Asks what no eviction can change, before the first domain is tried.
    fn may_begin(&self, txn: &Txn, need: &Need) -> Result<(), Vec<Reason>> {
        if let Some(&pod) = need.pods.iter().find(|&&pod| txn.never_preempts(pod)) {
            return Err(vec![Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }]);
        }
        self.policy
            .could_ever_allocate(txn, self.preemptor.gang, &need.wanted)
            .map_err(|reason| vec![reason])?;
        match self.preemptor.purpose {
            Purpose::Reclaim => {
                self.policy.may_reclaim(txn, &self.preemptor).map_err(|reason| vec![reason])
            }
            Purpose::Consolidate if !self.has_enough_in_sum(txn, need) => Err(Vec::new()),
            _ => Ok(()),
        }
    }

    /// Which bundles may be evicted: where that is the first question, first those that break no
    /// gang, then all.
    fn passes(&self) -> &'static [BundleKind] {
        let settings = &self.settings.bundle_settings;
        match (settings.allow_whole, settings.priority_first || self.fair_share_order()) {
            (false, _) => &[BundleKind::Safe],
            (true, true) => &[BundleKind::Whole],
            (true, false) => &[BundleKind::Safe, BundleKind::Whole],
        }
    }

    /// Why there is no room, from all domains that were tried in this cycle and before.
    fn conclude(&self, txn: &Txn, log: SearchLog, until: &mut Option<Time>) -> Vec<Reason> {
        let SearchLog { refusal, limit, domains_skipped, record, .. } = log;
        let (progress, purpose) = (&mut record.progress, self.preemptor.purpose);
        let Refusal { nodes, kept, until: ends } = refusal;
        progress.refused.add(nodes, kept, ends);
        progress.limit = progress.limit.take().or(limit);
        *until = progress.refused.until;
        if domains_skipped {
            return vec![Reason::NotAttempted { purpose, steps: txn.steps() }];
        }
        let Progress { limit, refused, .. } = std::mem::take(progress);
        vec![limit.unwrap_or_else(|| refused.reason(purpose))]
    }

    /// Makes room in the one of these domains where that costs least.
    fn in_cheapest_domain(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        step: &mut [CandidateDomain],
        allowed: BundleKind,
        log: &mut SearchLog,
    ) -> Option<Solution> {
        let mut best: Option<(Solution, DomainId, Vec<Move>)> = None;
        for at in 0..step.len() {
            // At least one domain is tried in each cycle, so that the search ends at some time.
            if log.record.work.domains > 0 && !self.may_go_on(txn) {
                log.domains_skipped |= best.is_none();
                break;
            }
            let domain = step[at].domain;
            log.trace(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
            if best.as_ref().is_some_and(|(best, ..)| best.cost <= step[at].least) {
                continue;
            }
            let mark = txn.mark();
            log.record.work.domains += 1;
            let refusal = log.refusal.clone();
            log.budget_exhausted = false;
            let found = match self.preemptor.purpose {
                Purpose::Consolidate => {
                    self.move_others(txn, rankings, need, (domain, &step[at].nodes), log)
                }
                _ => self.attempt(txn, rankings, need, &mut step[at], allowed, log),
            };
            if found.is_none() && log.budget_exhausted {
                // The next cycle continues with this domain, and with twice the budget if it was
                // the only one.
                log.record.progress.doubled += u32::from(log.record.work.domains == 1);
                log.refusal = refusal;
                log.domains_skipped |= best.is_none();
                txn.rewind(mark);
                break;
            }
            if self.fair_share_order() {
                log.record.progress.finish(domain);
            }
            if let Some(solution) = found
                && best.as_ref().is_none_or(|(best, ..)| solution.cost < best.cost)
            {
                let unbeaten = step[at + 1..].iter().all(|next| next.least >= solution.cost);
                if unbeaten {
                    // No other domain can cost less: the moves stay in the transaction.
                    log.trace(|trace| trace.choose(domain));
                    return Some(solution);
                }
                best = Some((solution, domain, txn.since(mark)));
            }
            txn.rewind(mark);
        }
        let (solution, domain, moves) = best?;
        log.trace(|trace| trace.choose(domain));
        txn.replay(&moves);
        Some(solution)
    }

    /// Makes room in one domain. Leaves its moves in the transaction either way.
    fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        candidate: &mut CandidateDomain,
        allowed: BundleKind,
        log: &mut SearchLog,
    ) -> Option<Solution> {
        if candidate.victims.is_none() {
            candidate.victims = Some(self.victims(txn, need, candidate));
        }
        let nominations = release_lower(txn, &self.preemptor, &candidate.nodes);
        let victims = candidate.victims.as_ref()?;
        victims.kept.iter().for_each(|&(pod, veto)| log.record_veto(&[pod], veto));
        let (mut bundles, others): (Vec<&Bundle>, Vec<&Bundle>) =
            victims.bundles.iter().partition(|bundle| bundle.kind <= allowed);
        let minimum = Veto { rule: GANG_AT_MINIMUM, until: None };
        others.iter().for_each(|bundle| log.record_veto(&bundle.pods, minimum));
        let start = txn.mark();
        log.counting_rule_refused = false;
        let mut cleared =
            self.clear(txn, rankings, need, (candidate, victims), (&bundles, false), log);
        let others = bundles.iter().any(|bundle| !bundle.instead.is_empty());
        let worth_trying = match &cleared {
            Some(cleared) => cleared.cost > candidate.least && (others || bundles.len() > 1),
            // All candidates are evicted already: another order helps only if a rule counts
            // evictions.
            None => others || log.counting_rule_refused,
        };
        if worth_trying {
            let worst = cleared
                .as_ref()
                .map(|cleared| cleared.taken.iter().map(|bundle| bundle.class).max());
            bundles.retain(|bundle| worst.is_none_or(|worst| worst >= Some(bundle.class)));
            let moves = txn.since(start);
            txn.rewind(start);
            log.refusals_recorded = true;
            let better = self.clear_in_other_orders(
                txn,
                rankings,
                need,
                (candidate, victims),
                (&bundles, cleared.as_ref()),
                log,
            );
            log.refusals_recorded = false;
            match better {
                Some(better) => cleared = Some(better),
                None => txn.replay(&moves),
            }
        }
        let Some(mut cleared) = cleared else {
            log.refusal.nodes += candidate.nodes.len() as u32;
            return None;
        };
        nominate_again(txn, self.policy, &nominations);
        let causes = self.causes(txn, &mut cleared.taken, victims);
        let Cleared { cost, taken, moved, given_back } = cleared;
        log.trace(|trace| {
            trace.conclude_domain(DomainOutcome::Works { victims: taken, moved, cost })
        });
        Some(Solution { cost, causes, given_back })
    }

    /// Looks for a cheaper solution than the known one by evicting these bundles in other orders.
    /// Leaves its moves in the transaction if it finds one.
    fn clear_in_other_orders(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (candidate, victims): (&CandidateDomain, &Victims),
        (bundles, known): (&[&Bundle], Option<&Cleared>),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let start = txn.mark();
        let single: Vec<Bundle> = bundles.iter().flat_map(|bundle| bundle.one_by_one()).collect();
        let losses: Vec<i64> =
            single.iter().map(|bundle| need.loss(txn, victims, bundle)).collect();
        // First an order that clears room for one pod after the other, each where least is lost.
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
            &candidate.nodes,
            &single,
            &losses,
            spare,
        );
        // If a rule limits how many may be evicted, also try each of the first bundles in front of
        // all others.
        let heads =
            if known.is_none() && log.counting_rule_refused { HEADS.min(order.len()) } else { 1 };
        for head in 0..heads {
            if head > 0 && !self.may_go_on(txn) {
                log.budget_exhausted |= known.is_none();
                break;
            }
            let ahead = std::iter::once(order[head]);
            let others = order.iter().copied().filter(|&at| at != order[head]);
            let ordered: Vec<&Bundle> = ahead.chain(others).map(|at| &single[at]).collect();
            let found =
                self.clear(txn, rankings, need, (candidate, victims), (&ordered, false), log);
            if let Some(found) =
                found.filter(|found| known.is_none_or(|known| found.cost < known.cost))
            {
                return Some(found);
            }
            txn.rewind(start);
        }
        let moves = self.preemptor.purpose == Purpose::Reclaim
            && !self.settings.bundle_settings.counts_moved;
        if known.is_some() || !log.counting_rule_refused || !self.fair_share_order() || !moves {
            return None;
        }
        // A pod that is moved is not taken from its queue.
        let ordered: Vec<&Bundle> = order.iter().map(|&at| &single[at]).collect();
        self.clear(txn, rankings, need, (candidate, victims), (&ordered, true), log)
    }

    /// Evicts bundles in this order until the gang fits, and gives back what is not needed. With
    /// `moves`, bundles that fair shares protect are evicted at last too, if they can be moved
    /// instead. Leaves its moves in the transaction either way.
    fn clear(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (candidate, victims): (&CandidateDomain, &Victims),
        (bundles, moves): (&[&Bundle], bool),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let mut fit =
            DomainFit::new(txn, self.policy, self.placement, &need.pods, candidate.domain);
        let lacks = need.lacks(txn, &candidate.nodes);
        let (budget, tries_again) = (self.budget, moves);
        let rules = Rules { lacks, budget, tries_again, ..Rules::default() };
        let order = bundles.iter().copied();
        let evicted =
            evict_until_it_fits(txn, rankings, &mut fit, order, rules, |txn, bundle, again| {
                self.evict(txn, bundle, again, log)
            });
        let Evicted { fits, evicted: mut taken, lacks, untried, stopped } = evicted;
        log.record.work.scenarios += taken.len() as u32;
        log.record.work.filtered += untried;
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
        // The loss of a whole bundle includes the surplus of its gang.
        let gangs = gangs_broken_by(&taken);
        let lost =
            |bundle: &&Bundle| bundle.kind == BundleKind::Whole || !gangs.contains(&bundle.gang);
        let loss = |bundle: &Bundle| match bundle.kind {
            BundleKind::Whole => need.loss(txn, victims, bundle),
            BundleKind::Safe => {
                let (moved, lost) = bundle.pods.iter().partition(|pod| is_moved(&moved, **pod));
                need.loss(txn, victims, &bundle.of(moved)) / 2
                    + need.loss(txn, victims, &bundle.of(lost))
            }
        };
        let cost = taken.iter().filter(lost).map(loss).sum();
        Some(Cleared { cost, given_back: evicted - pod_count(&taken), taken, moved })
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
