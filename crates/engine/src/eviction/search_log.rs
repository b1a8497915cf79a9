//! What a search records besides its result.

use std::collections::BTreeMap;

use crate::base::ids::{DomainId, PodId};
use crate::decision::choice::NextChoice;
use crate::decision::counters::SearchCounters;
use crate::decision::reason::Reason;
use crate::eviction::queue_limit::QueueLimit;
use crate::eviction::refusal::Refusal;
use crate::eviction::table::Way;
use crate::eviction::trace::Trace;
use crate::order::failed_searches::Progress;
use crate::policy::bundle::BundleKind;
use crate::policy::plugin::Veto;

/// The effort and progress of a search, and the trace if a user asked for one.
#[derive(Default)]
pub struct Record<'t> {
    pub work: SearchCounters,
    /// How far the search has come, in this cycle and in earlier ones.
    pub progress: Progress,
    /// What would have been chosen instead of each victim, in mode `task`.
    pub next: BTreeMap<PodId, NextChoice>,
    pub trace: Option<&'t mut Trace>,
}

/// What is found while domains are tried, and why no room could be made.
pub struct SearchLog<'f, 't> {
    pub refusal: Refusal,
    /// Refusals are recorded already, so that a repeated attempt records them no second time.
    pub refusals_recorded: bool,
    /// A rule that counts earlier evictions has protected a pod.
    pub counting_rule_refused: bool,
    /// The budget did not suffice for all domains.
    pub domains_skipped: bool,
    /// The budget did not suffice for all attempts in a domain.
    pub budget_exhausted: bool,
    /// Whether it was tried to place the gang in the last domain: otherwise that was pointless.
    pub placement_tried: bool,
    /// How many domains that can be cleared by sums were tried in this pass, and how many were not
    /// because of the limit of domains.
    pub tried: usize,
    pub untried: usize,
    /// The first domain that was not chosen without being tried, with what is known of the way
    /// there.
    pub next: Option<(DomainId, Option<Way>)>,
    /// The limit of the preemptor's queue that was in the way where there would be room.
    pub limit: Option<Reason>,
    pub queue_limit: QueueLimit,
    pub record: &'f mut Record<'t>,
}

impl<'f, 't> SearchLog<'f, 't> {
    pub fn new(record: &'f mut Record<'t>) -> SearchLog<'f, 't> {
        SearchLog {
            refusal: Refusal::default(),
            refusals_recorded: false,
            counting_rule_refused: false,
            domains_skipped: false,
            budget_exhausted: false,
            placement_tried: false,
            next: None,
            tried: 0,
            untried: 0,
            limit: None,
            queue_limit: QueueLimit::default(),
            record,
        }
    }

    pub fn begin_pass(&mut self, allowed: BundleKind) {
        self.refusal = Refusal::default();
        (self.tried, self.untried) = (0, 0);
        self.queue_limit = QueueLimit::default();
        self.trace(|trace| trace.begin_pass(allowed));
    }

    pub fn record_veto(&mut self, pods: &[PodId], veto: Veto) {
        if self.refusals_recorded {
            // The veto is counted already, but perhaps not with this expiry.
            self.refusal.note_end(veto);
            return;
        }
        pods.iter().for_each(|_| self.refusal.record_veto(veto));
        self.trace(|trace| trace.record_bundle_veto(pods, veto.rule));
    }

    /// Records a trace entry if tracing is on.
    pub fn trace(&mut self, record: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.record.trace {
            record(trace);
        }
    }
}
