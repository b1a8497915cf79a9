//! Modes `gang` and `scenario`: bundles of gangs leave, domain by domain.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId};
use crate::base::purpose::Purpose;
use crate::decision::reason::Reason;
use crate::eviction::bundles::{broken, count};
use crate::eviction::causes::Causes;
use crate::eviction::cheapest_nodes;
use crate::eviction::domain_candidates::{CandidateDomain, Victims};
use crate::eviction::domain_fit::DomainFit;
use crate::eviction::evict_until_it_fits::{Evicted, Rules, evict_until_it_fits};
use crate::eviction::give_back::give_back_bundles;
use crate::eviction::lower_nominations::{give_again, release_lower};
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

/// How many bundles are tried as the first where the usual order leads to nothing.
pub const HEADS: usize = 16;

/// Those who left a domain so that everyone has a place there.
struct Cleared {
    cost: i64,
    taken: Vec<Bundle>,
    /// Those of them that have another place, and where.
    moved: Vec<(PodId, NodeId)>,
    /// How many were to leave before it turned out that they need not.
    reprieved: u32,
}

/// A way to make room in a domain.
pub struct Way {
    pub cost: i64,
    pub causes: Causes,
    pub reprieved: u32,
}

impl Search<'_> {
    /// Makes room for what the gang lacks in the transaction, and says why each leaves; or why not,
    /// and when the first rule ends that stood in the way and that time alone ends.
    pub fn take(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        until: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Causes, Vec<Reason>> {
        let need = self.need(txn);
        if let Some(&pod) = need.pods.iter().find(|&&pod| txn.never_preempts(pod)) {
            return Err(vec![Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }]);
        }
        self.policy
            .could_ever_allocate(txn, self.preemptor.gang, &need.wanted)
            .map_err(|reason| vec![reason])?;
        if self.preemptor.purpose == Purpose::Reclaim {
            self.policy.may_reclaim(txn, &self.preemptor).map_err(|reason| vec![reason])?;
        }
        let moves = self.preemptor.purpose == Purpose::Consolidate;
        if moves && !self.there_is_enough(txn, &need) {
            return Err(Vec::new());
        }
        let steps = domains_for(txn, self.preemptor.gang).map_err(|reason| vec![reason])?;
        let (refusal, limit) = (Refusal::default(), None);
        let (refusals_recorded, counting_rule_refused) = (false, false);
        let (domains_skipped, budget_exhausted) = (false, false);
        let mut log = SearchLog {
            refusal,
            refusals_recorded,
            counting_rule_refused,
            domains_skipped,
            budget_exhausted,
            limit,
            record,
        };
        let bundle_settings = &self.settings.bundle_settings;
        let passes: &[BundleKind] = match (
            bundle_settings.allow_whole,
            bundle_settings.priority_first || self.fair_share_order(),
        ) {
            (false, _) => &[BundleKind::Safe],
            (true, true) => &[BundleKind::Whole],
            (true, false) => &[BundleKind::Safe, BundleKind::Whole],
        };
        let mut fields: Vec<Vec<CandidateDomain>> = Vec::new();
        for &allowed in passes {
            log.begin_pass(allowed);
            let mut left = bundle_settings.max_domains;
            for (at, step) in steps.iter().enumerate() {
                if fields.len() == at {
                    fields.push(self.promising(txn, rankings, &need, step));
                }
                for &domain in step
                    .iter()
                    .filter(|&&domain| fields[at].iter().all(|field| field.domain != domain))
                {
                    log.record.work.scenarios += 1;
                    log.record.work.filtered += 1;
                    log.tell(|trace| trace.begin_domain(domain, DomainOutcome::TooSmall));
                }
                let progress = &log.record.progress;
                fields[at].sort_by_cached_key(|field| progress.turn(field.domain));
                let known = |field: &&CandidateDomain| progress.tried.contains(&field.domain);
                let known = fields[at].iter().filter(known).count();
                let most = left.min(fields[at].len() - known);
                let (tried, others) = fields[at][known..].split_at_mut(most);
                let all = others.is_empty();
                for field in &*others {
                    log.tell(|trace| trace.begin_domain(field.domain, DomainOutcome::NotTried));
                }
                left -= tried.len();
                if let Some(way) = self.take_in(txn, rankings, &need, tried, allowed, &mut log) {
                    let work = &mut log.record.work;
                    work.selected += way.causes.len() as u32 + way.reprieved;
                    work.reprieved += way.reprieved;
                    return Ok(way.causes);
                }
                // By scenarios the next cycle goes on with the others.
                log.domains_skipped |= !all && self.fair_share_order();
                if log.domains_skipped {
                    break;
                }
            }
        }
        let SearchLog { refusal, limit, domains_skipped, record, .. } = log;
        let (progress, purpose) = (&mut record.progress, self.preemptor.purpose);
        let Refusal { nodes, kept, until: ends } = refusal;
        progress.refused.add(nodes, kept, ends);
        progress.limit = progress.limit.take().or(limit);
        *until = progress.refused.until;
        if domains_skipped {
            return Err(vec![Reason::NotAttempted { purpose, steps: txn.steps() }]);
        }
        let Progress { limit, refused, .. } = std::mem::take(progress);
        Err(vec![limit.unwrap_or_else(|| refused.reason(purpose))])
    }

    /// Makes room in the domain of a step where that costs least.
    fn take_in(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        step: &mut [CandidateDomain],
        allowed: BundleKind,
        log: &mut SearchLog,
    ) -> Option<Way> {
        let mut best: Option<(Way, DomainId, Vec<Move>)> = None;
        for at in 0..step.len() {
            // One is begun in any case, so that the search comes to an end.
            if log.record.work.domains > 0 && !self.may_go_on(txn) {
                log.domains_skipped |= best.is_none();
                break;
            }
            let domain = step[at].domain;
            log.tell(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
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
                // The next cycle goes on here; with more, if this was all that was tried.
                log.record.progress.doubled += u32::from(log.record.work.domains == 1);
                log.refusal = refusal;
                log.domains_skipped |= best.is_none();
                txn.rewind(mark);
                break;
            }
            if self.fair_share_order() {
                log.record.progress.finish(domain);
            }
            if let Some(way) = found
                && best.as_ref().is_none_or(|(best, ..)| way.cost < best.cost)
            {
                let unbeaten = step[at + 1..].iter().all(|next| next.least >= way.cost);
                if unbeaten {
                    // What can't be beaten stays as it is.
                    log.tell(|trace| trace.choose(domain));
                    return Some(way);
                }
                best = Some((way, domain, txn.since(mark)));
            }
            txn.rewind(mark);
        }
        let (way, domain, moves) = best?;
        log.tell(|trace| trace.choose(domain));
        txn.replay(&moves);
        Some(way)
    }

    /// Makes room in one domain. Leaves its moves in the transaction either way.
    fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        field: &mut CandidateDomain,
        allowed: BundleKind,
        log: &mut SearchLog,
    ) -> Option<Way> {
        if field.victims.is_none() {
            field.victims = Some(self.victims(txn, need, field));
        }
        let nominations = release_lower(txn, &self.preemptor, &field.nodes);
        let victims = field.victims.as_ref()?;
        victims.kept.iter().for_each(|&(pod, veto)| log.keep(&[pod], veto));
        let (mut bundles, others): (Vec<&Bundle>, Vec<&Bundle>) =
            victims.bundles.iter().partition(|bundle| bundle.kind <= allowed);
        let minimum = Veto { rule: GANG_AT_MINIMUM, until: None };
        others.iter().for_each(|bundle| log.keep(&bundle.pods, minimum));
        let start = txn.mark();
        log.counting_rule_refused = false;
        let mut cleared = self.clear(txn, rankings, need, (field, victims), (&bundles, false), log);
        let others = bundles.iter().any(|bundle| !bundle.instead.is_empty());
        let promising = match &cleared {
            Some(cleared) => cleared.cost > field.least && (others || bundles.len() > 1),
            // All have left who may: in another order they are no more, unless a rule counted.
            None => others || log.counting_rule_refused,
        };
        if promising {
            let worst = cleared
                .as_ref()
                .map(|cleared| cleared.taken.iter().map(|bundle| bundle.class).max());
            bundles.retain(|bundle| worst.is_none_or(|worst| worst >= Some(bundle.class)));
            let moves = txn.since(start);
            txn.rewind(start);
            log.refusals_recorded = true;
            let better = self.clear_otherwise(
                txn,
                rankings,
                need,
                (field, victims),
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
            log.refusal.nodes += field.nodes.len() as u32;
            return None;
        };
        give_again(txn, self.policy, &nominations);
        let causes = self.causes(txn, &mut cleared.taken, victims);
        let Cleared { cost, taken, moved, reprieved } = cleared;
        log.tell(|trace| trace.conclude_domain(DomainOutcome::Works { gone: taken, moved, cost }));
        Some(Way { cost, causes, reprieved })
    }

    /// Looks for a way that costs less than the one that is known, with these bundles in another
    /// order. Leaves its moves in the transaction if it finds one.
    fn clear_otherwise(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (field, victims): (&CandidateDomain, &Victims),
        (bundles, known): (&[&Bundle], Option<&Cleared>),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let start = txn.mark();
        let single: Vec<Bundle> = bundles.iter().flat_map(|bundle| bundle.one_by_one()).collect();
        let losses: Vec<i64> =
            single.iter().map(|bundle| need.loss(txn, victims, bundle)).collect();
        // Place after place, each where least is lost.
        let mut spare: BTreeMap<GangId, usize> = BTreeMap::new();
        for bundle in bundles
            .iter()
            .filter(|bundle| bundle.kind == BundleKind::Safe && !bundle.all_or_nothing)
        {
            *spare.entry(bundle.gang).or_default() += bundle.pods.len();
        }
        let order =
            cheapest_nodes::by_place(txn, &need.shapes, &field.nodes, &single, &losses, spare);
        // And where a rule lets only so many go, each of the first before all others.
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
            let found = self.clear(txn, rankings, need, (field, victims), (&ordered, false), log);
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
        // Whoever has another place isn't taken from its queue.
        let ordered: Vec<&Bundle> = order.iter().map(|&at| &single[at]).collect();
        self.clear(txn, rankings, need, (field, victims), (&ordered, true), log)
    }

    /// Lets bundles leave in this order until everyone has a place, and as few as possible; then
    /// also those whom their queue keeps, if they may be moved. Leaves its moves in the
    /// transaction either way.
    fn clear(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (field, victims): (&CandidateDomain, &Victims),
        (bundles, moves): (&[&Bundle], bool),
        log: &mut SearchLog,
    ) -> Option<Cleared> {
        let mut fit = DomainFit::new(txn, self.policy, self.placement, &need.pods, field.domain);
        let lacks = need.lacks(txn, &field.nodes);
        let (budget, asks_again) = (self.budget, moves);
        let rules = Rules { lacks, budget, asks_again, ..Rules::default() };
        let candidates = bundles.iter().copied();
        let evicted = evict_until_it_fits(
            txn,
            rankings,
            &mut fit,
            candidates,
            rules,
            |txn, bundle, again| self.evict(txn, bundle, again, log),
        );
        let Evicted { fits, gone: mut taken, lacks, untried, stopped } = evicted;
        log.record.work.scenarios += taken.len() as u32;
        log.record.work.filtered += untried;
        if stopped.is_some() {
            log.budget_exhausted = true;
            return None;
        }
        if !fits {
            log.record.work.simulations += fit.tries;
            log.tell(|trace| trace.conclude_domain(self.failed(txn, rankings, taken, lacks)));
            return None;
        }
        let asked = count(&taken);
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
        if let Err(reason) = self.stands(txn, &taken, &moved) {
            // In another order it might.
            log.counting_rule_refused |= self.fair_share_order();
            log.limit.get_or_insert_with(|| reason.clone());
            let why = vec![reason];
            log.tell(|trace| trace.conclude_domain(DomainOutcome::Fails { gone: taken, why }));
            return None;
        }
        // All of a gang that breaks is lost with its whole bundle.
        let gangs = broken(&taken);
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
        Some(Cleared { cost, reprieved: asked - count(&taken), taken, moved })
    }

    /// Why a domain doesn't do, with all gone who may be asked.
    fn failed(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        gone: Vec<Bundle>,
        lacks: Needed,
    ) -> DomainOutcome {
        if !lacks.is_empty() {
            return DomainOutcome::TooLittle { gone, lacks };
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
        DomainOutcome::Fails { gone, why }
    }
}
