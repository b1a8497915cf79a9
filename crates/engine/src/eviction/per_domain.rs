//! Modes `gang` and `scenario`: evicts bundles, in the domain that the table prefers
//! (`table.rs`).

use std::ops::Range;

use muster_api::Time;
use rustc_hash::FxHashSet;

use crate::base::ids::DomainId;
use crate::base::purpose::Purpose;
use crate::decision::cause::Cause;
use crate::decision::choice::NextChoice;
use crate::decision::reason::Reason;
use crate::eviction::arguments::MAX_DOMAINS;
use crate::eviction::best_domain::{by_estimate, choose, next_domain};
use crate::eviction::causes::Causes;
use crate::eviction::domain_candidates::CandidateDomain;
use crate::eviction::need::Need;
use crate::eviction::refusal::Refusal;
use crate::eviction::search::Search;
use crate::eviction::search_log::{Record, SearchLog};
use crate::eviction::table::{Table, Way};
use crate::eviction::trace::DomainOutcome;
use crate::model::txn::Txn;
use crate::order::failed_searches::Progress;
use crate::placement::domains::domains_for;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::BundleKind;

/// How room is made in a domain.
pub struct Solution {
    pub domain: DomainId,
    pub way: Way,
    pub causes: Causes,
    pub given_back: u32,
}

impl Solution {
    /// Whether no eviction names the next choice.
    fn lacks_next(&self) -> bool {
        let lacks = |cause: &Cause| matches!(cause, Cause::Bundle { next: None, .. });
        !self.causes.is_empty() && self.causes.values().all(lacks)
    }

    /// Names the next choice with each eviction, if it is known.
    pub fn name_next(&mut self, next: Option<NextChoice>) {
        for cause in self.causes.values_mut() {
            if let Cause::Bundle { next: known, .. } = cause {
                *known = next.or(*known);
            }
        }
    }
}

/// A part of the search: what may be evicted where. A later stage begins only if the earlier ones
/// found nothing, so the order of stages decides before everything that is compared within one.
#[derive(Clone, Debug)]
pub struct Stage {
    pub allowed: BundleKind,
    /// The tiers that are tried together, nearest first.
    steps: Range<usize>,
    /// PodDisruptionBudgets that no veto enforces may be violated.
    pub may_violate_budgets: bool,
    /// Whether this stage begins a pass over all tiers, which may try so many domains.
    begins_pass: bool,
    /// Whether every way breaks a gang, since none was found that does not.
    pub breaks_at_least: bool,
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
        let mut candidates: Vec<Vec<CandidateDomain>> = Vec::new();
        let mut left = 0;
        let stages = self.stages(steps.len());
        for (at, stage) in stages.iter().enumerate() {
            if stage.may_violate_budgets && !log.record.progress.budgets_refused {
                continue;
            }
            if stage.begins_pass {
                log.begin_pass(stage.allowed);
                left = self.most_domains().1;
            }
            self.collect(txn, rankings, &need, (&steps, stage), &mut candidates);
            let mut domains: Vec<&mut CandidateDomain> = Vec::new();
            for (at, feasible) in candidates[stage.steps.clone()].iter_mut().enumerate() {
                note_too_small(&steps[stage.steps.start + at], feasible, &mut log);
                domains.extend(feasible.iter_mut());
            }
            let found =
                self.in_best_domain(txn, rankings, &need, (domains, stage), &mut left, &mut log);
            if let Some(mut solution) = found {
                if solution.lacks_next() {
                    let later = (&steps[..], &stages[at + 1..]);
                    let next =
                        self.in_later_stage(txn, rankings, &need, later, (candidates, &solution));
                    solution.name_next(next);
                }
                return Ok(accept(solution, &mut log));
            }
            if log.domains_skipped {
                break;
            }
        }
        match self.in_impossible_domains(txn, rankings, &need, (candidates, &stages), &mut log) {
            Some(solution) => Ok(accept(solution, &mut log)),
            None => Err(self.conclude(txn, log, until)),
        }
    }

    /// Searches the domains that cannot be cleared for what is in the way there.
    fn in_impossible_domains(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (mut candidates, stages): (Vec<Vec<CandidateDomain>>, &[Stage]),
        log: &mut SearchLog,
    ) -> Option<Solution> {
        let last = stages.iter().rfind(|stage| !stage.may_violate_budgets)?;
        if log.domains_skipped {
            return None;
        }
        let impossible = candidates.iter_mut().flatten().filter(|candidate| candidate.impossible);
        let found = self.explain_impossible(txn, rankings, need, (impossible.collect(), last), log);
        let table = Table::new(self.policy, &self.preemptor, &self.settings.bundle_settings);
        choose(txn, &table, found, log)
    }

    /// Collects the domains of a stage that could hold the gang.
    fn collect(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        need: &Need,
        (steps, stage): (&[Vec<DomainId>], &Stage),
        candidates: &mut Vec<Vec<CandidateDomain>>,
    ) {
        while candidates.len() < stage.steps.end {
            let at = candidates.len();
            candidates.push(self.feasible_domains(txn, rankings, need, &steps[at], at));
        }
    }

    /// The domain that a later stage would try first: the next choice if there is none in this one.
    fn in_later_stage(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        need: &Need,
        (steps, stages): (&[Vec<DomainId>], &[Stage]),
        (mut candidates, solution): (Vec<Vec<CandidateDomain>>, &Solution),
    ) -> Option<NextChoice> {
        let table = Table::new(self.policy, &self.preemptor, &self.settings.bundle_settings);
        for stage in stages.iter().filter(|stage| !stage.may_violate_budgets) {
            self.collect(txn, rankings, need, (steps, stage), &mut candidates);
            let domains = candidates[stage.steps.clone()].iter_mut().flatten();
            let is_other = |domain: DomainId| !txn.domains.holds(domain, solution.domain);
            let mut domains: Vec<&mut CandidateDomain> =
                domains.filter(|candidate| is_other(candidate.domain)).collect();
            if domains.is_empty() {
                continue;
            }
            self.bound(txn, need, &mut domains, (&table, stage));
            let best = domains
                .into_iter()
                .filter(|candidate| candidate.bound.is_some())
                .filter(|candidate| self.would_hold(txn, need, (candidate, stage)))
                .min_by(|a, b| by_estimate(txn, &table, a, b));
            if let Some(best) = best {
                return next_domain(
                    txn,
                    &table,
                    &solution.way,
                    Some((best.domain, best.bound.clone())),
                );
            }
        }
        None
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

    /// The stages of the search. Budgets come first in the table: they are violated only if
    /// nothing else makes room, in whatever tier and with whatever bundles.
    fn stages(&self, steps: usize) -> Vec<Stage> {
        let settings = &self.settings.bundle_settings;
        let priority_first = settings.priority_first
            && self.preemptor.purpose == Purpose::Preempt
            && !self.fair_share_order();
        let kinds: &[BundleKind] =
            match (settings.allow_whole, priority_first || self.fair_share_order()) {
                (false, _) => &[BundleKind::Safe],
                (true, true) => &[BundleKind::Whole],
                (true, false) => &[BundleKind::Safe, BundleKind::Whole],
            };
        let mut stages = Vec::new();
        for &allowed in kinds {
            // The lowest priority may be in a farther tier.
            let together = if priority_first { steps.max(1) } else { 1 };
            for first in (0..steps).step_by(together) {
                stages.push(Stage {
                    allowed,
                    steps: first..first + together,
                    may_violate_budgets: false,
                    begins_pass: first == 0,
                    breaks_at_least: kinds.len() > 1 && allowed == BundleKind::Whole,
                });
            }
        }
        if self.preemptor.purpose != Purpose::Consolidate {
            let allowed = kinds[kinds.len() - 1];
            stages.push(Stage {
                allowed,
                steps: 0..steps,
                may_violate_budgets: true,
                begins_pass: true,
                breaks_at_least: false,
            });
        }
        stages
    }

    /// Why there is no room, from all domains that were tried in this cycle and before.
    fn conclude(&self, txn: &Txn, log: SearchLog, until: &mut Option<Time>) -> Vec<Reason> {
        let SearchLog { refusal, domains_skipped, untried, tried, record, .. } = log;
        let limit = log.limit.or(log.queue_limit.in_the_way());
        let (progress, purpose) = (&mut record.progress, self.preemptor.purpose);
        let Refusal { nodes, evictable, large, kept, until: ends } = refusal;
        progress.refused.add(nodes, (evictable, large), kept, ends);
        progress.limit = progress.limit.take().or(limit);
        *until = progress.refused.until;
        let mut reasons = match domains_skipped {
            true => vec![Reason::NotAttempted { purpose, steps: txn.steps() }],
            false => {
                let Progress { limit, refused, .. } = std::mem::take(progress);
                vec![limit.unwrap_or_else(|| refused.reason(purpose))]
            }
        };
        if untried > 0 {
            let (limit, most) = self.most_domains();
            let (left, of, most) = (untried as u32, (untried + tried) as u32, most as u32);
            let limit = limit.into();
            reasons.push(Reason::DomainsNotTried { purpose, left, of, limit, most });
        }
        reasons
    }

    /// How many domains may be tried, and the argument that says so.
    fn most_domains(&self) -> (&'static str, usize) {
        let own = (MAX_DOMAINS.name, self.settings.bundle_settings.max_domains);
        let of_plugins = self.policy.most_domains_to_clear();
        of_plugins.filter(|&(_, most)| most < own.1).unwrap_or(own)
    }
}

fn accept(solution: Solution, log: &mut SearchLog) -> Causes {
    let work = &mut log.record.work;
    work.selected += solution.causes.len() as u32 + solution.given_back;
    work.reprieved += solution.given_back;
    solution.causes
}

/// Notes the domains that cannot hold the gang even when they are empty.
fn note_too_small(step: &[DomainId], feasible: &[CandidateDomain], log: &mut SearchLog) {
    log.refusal.large |= !feasible.is_empty();
    let feasible: FxHashSet<DomainId> = feasible.iter().map(|other| other.domain).collect();
    for &domain in step.iter().filter(|&domain| !feasible.contains(domain)) {
        log.record.work.scenarios += 1;
        log.record.work.filtered += 1;
        log.trace(|trace| trace.begin_domain(domain, DomainOutcome::TooSmall));
    }
}
