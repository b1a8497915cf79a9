//! Chooses the domain in which room is made: tries domains in the order of what is known of them,
//! and compares the ways that were found by the table (`table.rs`).

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::base::ids::DomainId;
use crate::base::purpose::Purpose;
use crate::decision::choice::{Choice, Line, NextChoice};
use crate::eviction::domain_candidates::CandidateDomain;
use crate::eviction::need::Need;
use crate::eviction::per_domain::{Solution, Stage};
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::eviction::table::{Table, Way};
use crate::eviction::trace::DomainOutcome;
use crate::model::Cluster;
use crate::model::txn::{Move, Txn};
use crate::placement::rankings::Rankings;

/// How many domains that cannot be cleared are searched for what is in the way.
const EXPLAINED: usize = 64;

/// A domain where room was found, and the moves that make it.
pub struct Found {
    domain: DomainId,
    solution: Solution,
    moves: Vec<Move>,
}

impl Search<'_> {
    /// Makes room in the one of these domains that the table prefers, if at most `left` of them are
    /// tried.
    pub fn in_best_domain(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (mut domains, stage): (Vec<&mut CandidateDomain>, &Stage),
        left: &mut usize,
        log: &mut SearchLog,
    ) -> Option<Solution> {
        let table = Table::new(self.policy, &self.preemptor, &self.settings.bundle_settings);
        let mut impossible = self.impossible(txn, need, &mut domains, (&table, stage));
        let mut waiting = self.line_up(txn, domains, &table, log);
        if !stage.may_violate_budgets {
            let tried = &log.record.progress.tried;
            let all = waiting.len();
            waiting.retain(|candidate| !tried.contains(&candidate.domain));
            log.tried += all - waiting.len();
        }
        let mut found: Vec<Found> = Vec::new();
        let moves = self.preemptor.purpose == Purpose::Consolidate;
        while let Some(candidate) = waiting.pop_front() {
            let domain = candidate.domain;
            let is_worse = self.is_surely_worse(txn, &table, candidate, &found);
            let cut = *left > 0 && waiting.len() >= *left;
            if cut && !is_worse && candidate.estimate.is_none() && !moves {
                let way = self.estimate(txn, need, (candidate, stage), log);
                match way {
                    Some(_) => {
                        candidate.estimate = way;
                        insert(txn, &table, &mut waiting, candidate, log);
                    }
                    None => impossible.push(candidate),
                }
                continue;
            }
            log.trace(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
            if is_worse {
                if log.next.is_none() && self.would_hold(txn, need, (candidate, stage)) {
                    log.next = Some((domain, candidate.bound.clone()));
                }
                continue;
            }
            // At least one domain is tried in each cycle, so that the search ends at some time.
            let exhausted = log.record.work.domains > 0 && !self.may_go_on(txn);
            if *left == 0 || exhausted {
                // In mode `scenario` the next cycle tries the other domains.
                log.domains_skipped |= found.is_empty() && self.fair_share_order();
                let matters = found.is_empty() && !exhausted;
                let counts = matters && self.can_be_cleared(txn, need, (candidate, stage), log);
                log.untried += usize::from(counts);
                continue;
            }
            *left -= 1;
            log.tried += 1;
            let mark = txn.mark();
            let only = found.is_empty() && waiting.is_empty();
            match self.try_domain(txn, rankings, need, (candidate, stage), log) {
                // The moves stay in the transaction.
                Some(solution) if only => {
                    log.trace(|trace| trace.choose(domain));
                    return Some(solution);
                }
                Some(solution) => {
                    found.push(Found { domain, solution, moves: txn.since(mark) });
                }
                None if log.budget_exhausted => {
                    log.domains_skipped |= found.is_empty();
                    txn.rewind(mark);
                    break;
                }
                // It cannot be cleared whatever is evicted, so it counts against no limit.
                None if !log.placement_tried => {
                    *left += 1;
                    log.tried -= 1;
                }
                None => {}
            }
            txn.rewind(mark);
        }
        // What is in the way in the others is told for each stage if a user asks, otherwise once.
        let traced = log.record.trace.is_some();
        impossible.iter_mut().for_each(|candidate| candidate.impossible = !traced);
        if found.is_empty() && !log.domains_skipped && traced {
            found = self.explain_impossible(txn, rankings, need, (impossible, stage), log);
        }
        choose(txn, &table, found, log)
    }

    /// Takes the domains out that cannot be cleared whatever is evicted.
    fn impossible<'c>(
        &self,
        txn: &Txn,
        need: &Need,
        domains: &mut Vec<&'c mut CandidateDomain>,
        (table, stage): (&Table, &Stage),
    ) -> Vec<&'c mut CandidateDomain> {
        domains.iter_mut().for_each(|candidate| candidate.impossible = false);
        let purpose = self.preemptor.purpose;
        if domains.len() < 2 || purpose == Purpose::Consolidate {
            return Vec::new();
        }
        self.bound(txn, need, domains, (table, stage));
        let (possible, impossible) =
            std::mem::take(domains).into_iter().partition(|candidate| candidate.bound.is_some());
        *domains = possible;
        impossible
    }

    /// Puts domains in the order in which they are tried: by how good the way there may be.
    fn line_up<'c>(
        &self,
        txn: &Txn,
        mut domains: Vec<&'c mut CandidateDomain>,
        table: &Table,
        log: &SearchLog,
    ) -> VecDeque<&'c mut CandidateDomain> {
        domains.sort_by(|a, b| by_estimate(txn, table, a, b));
        let progress = &log.record.progress;
        domains.sort_by_cached_key(|candidate| progress.turn(candidate.domain));
        domains.into()
    }

    /// Whether a domain that is not tried counts among those that the limit left out.
    fn can_be_cleared(
        &self,
        txn: &mut Txn,
        need: &Need,
        (candidate, stage): (&mut CandidateDomain, &Stage),
        log: &mut SearchLog,
    ) -> bool {
        self.preemptor.purpose == Purpose::Consolidate
            || candidate.estimate.is_some()
            || self.estimate(txn, need, (candidate, stage), log).is_some()
    }

    fn try_domain(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (candidate, stage): (&mut CandidateDomain, &Stage),
        log: &mut SearchLog,
    ) -> Option<Solution> {
        let domain = candidate.domain;
        log.record.work.domains += 1;
        let refusal = log.refusal.clone();
        (log.budget_exhausted, log.placement_tried) = (false, false);
        let before = std::mem::take(&mut log.record.progress.budgets_refused);
        let solution = match self.preemptor.purpose {
            Purpose::Consolidate => {
                log.placement_tried = true;
                self.move_others(txn, rankings, need, (domain, &candidate.nodes), log)
            }
            _ => self.attempt(txn, rankings, need, (candidate, stage), log),
        };
        let progress = &mut log.record.progress;
        if solution.is_none() && progress.budgets_refused && !stage.may_violate_budgets {
            log.next.get_or_insert((domain, None));
        }
        progress.budgets_refused |= before;
        if solution.is_none() && !log.budget_exhausted {
            log.queue_limit.ask(txn, self.policy, &self.preemptor, &need.pods);
        }
        if solution.is_none() && log.budget_exhausted {
            // The next cycle continues with this domain, and with twice the budget if it was the
            // only one.
            log.record.progress.doubled += u32::from(log.record.work.domains == 1);
            log.refusal = refusal;
        } else if self.fair_share_order() {
            log.record.progress.finish(domain);
        }
        solution
    }

    /// Tries domains that cannot be cleared, so that the reasons name what is in the way there.
    pub fn explain_impossible(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (impossible, stage): (Vec<&mut CandidateDomain>, &Stage),
        log: &mut SearchLog,
    ) -> Vec<Found> {
        let most = log.record.trace.as_ref().map_or(EXPLAINED, |_| usize::MAX);
        let mut found: Vec<Found> = Vec::new();
        for candidate in impossible.into_iter().take(most) {
            // In mode `scenario` the next cycle continues with the others.
            if log.record.progress.tried.contains(&candidate.domain) {
                continue;
            }
            if log.record.work.domains > 0 && !self.may_go_on(txn) {
                log.domains_skipped |= found.is_empty();
                break;
            }
            let (mark, domain) = (txn.mark(), candidate.domain);
            log.trace(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
            if let Some(solution) = self.try_domain(txn, rankings, need, (candidate, stage), log) {
                // The sums may have been too strict, since moves change them.
                found.push(Found { domain, solution, moves: txn.since(mark) });
            } else {
                log.domains_skipped |= log.budget_exhausted && found.is_empty();
            }
            txn.rewind(mark);
        }
        found
    }

    /// Whether the table prefers a known way to anything that this domain can offer.
    fn is_surely_worse(
        &self,
        txn: &Txn,
        table: &Table,
        candidate: &CandidateDomain,
        found: &[Found],
    ) -> bool {
        let known: Vec<&Way> = found.iter().map(|found| &found.solution.way).collect();
        match &candidate.bound {
            _ if self.preemptor.purpose == Purpose::Consolidate => {
                known.iter().any(|known| known.cost <= candidate.least)
            }
            Some(bound) => {
                !known.is_empty() && table.surely_beats(txn, &known, (bound, candidate.told))
            }
            None => false,
        }
    }
}

/// Puts a domain back into the line.
fn insert<'c>(
    cluster: &Cluster,
    table: &Table,
    waiting: &mut VecDeque<&'c mut CandidateDomain>,
    candidate: &'c mut CandidateDomain,
    log: &SearchLog,
) {
    let turn = |domain| log.record.progress.turn(domain);
    let own = turn(candidate.domain);
    let comes_before = |other: &&mut CandidateDomain| {
        let turns = turn(other.domain).cmp(&own);
        turns.then_with(|| by_estimate(cluster, table, other, candidate)).is_lt()
    };
    let at = waiting.partition_point(comes_before);
    waiting.insert(at, candidate);
}

/// Compares two domains by what is known of the way to make room there.
pub fn by_estimate(
    cluster: &Cluster,
    table: &Table,
    a: &CandidateDomain,
    b: &CandidateDomain,
) -> Ordering {
    match (a.known_way(), b.known_way()) {
        (Some(a), Some(b)) => table.estimated(cluster, a, b),
        _ => Ordering::Equal,
    }
}

/// Another domain as the next choice; without a way, only budgets are known to be in the way there.
pub fn next_domain(
    cluster: &Cluster,
    table: &Table,
    way: &Way,
    next: Option<(DomainId, Option<Way>)>,
) -> Option<NextChoice> {
    let (domain, other) = next?;
    let line = match &other {
        Some(other) => table.deciding_line(cluster, way, other),
        None => Line::Budgets,
    };
    let figures = other.map_or((0, 0), |other| table.figures(cluster, line, way, &other));
    Some(NextChoice { choice: Choice::Domain(domain), line, figures })
}

/// Makes the moves of the best of these ways again, and says in its causes which would be next.
pub fn choose(
    txn: &mut Txn,
    table: &Table,
    mut found: Vec<Found>,
    log: &mut SearchLog,
) -> Option<Solution> {
    let ways: Vec<&Way> = found.iter().map(|found| &found.solution.way).collect();
    let (best, next) = table.choose(txn, &ways)?;
    let other = next.map(|(next, _)| (found[next].domain, Some(found[next].solution.way.clone())));
    let next = next_domain(txn, table, ways[best], other.or(log.next.take()));
    let Found { domain, mut solution, moves } = found.swap_remove(best);
    solution.name_next(next);
    log.trace(|trace| trace.choose(domain));
    txn.replay(&moves);
    Some(solution)
}
