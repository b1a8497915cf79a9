//! What comes to light while room is made.

use crate::base::ids::PodId;
use crate::decision::counters::SearchCounters;
use crate::decision::reason::Reason;
use crate::eviction::refusal::Refusal;
use crate::eviction::trace::Trace;
use crate::order::failed_searches::Progress;
use crate::policy::bundle::BundleKind;
use crate::policy::plugin::Veto;

/// What comes to light while room is made: the work that it takes, and all of it for someone who
/// looks.
#[derive(Default)]
pub struct Record<'t> {
    pub work: SearchCounters,
    /// How far the search has come, in this cycle or before.
    pub progress: Progress,
    pub trace: Option<&'t mut Trace>,
}

/// What comes to light while domains are tried, and why nobody can make room.
pub struct SearchLog<'f, 't> {
    pub refusal: Refusal,
    /// Who is kept has been told.
    pub refusals_recorded: bool,
    /// A rule that counts what has gone has kept someone.
    pub counting_rule_refused: bool,
    /// There was no time for all domains.
    pub domains_skipped: bool,
    /// There was no time for all that could be tried in a domain.
    pub budget_exhausted: bool,
    /// What the claimant's queue may not have, where there would be room.
    pub limit: Option<Reason>,
    pub record: &'f mut Record<'t>,
}

impl SearchLog<'_, '_> {
    pub fn begin_pass(&mut self, allowed: BundleKind) {
        self.refusal = Refusal::default();
        self.tell(|trace| trace.begin_pass(allowed));
    }

    pub fn keep(&mut self, pods: &[PodId], veto: Veto) {
        if self.refusals_recorded {
            // The veto is recorded already, but perhaps not when this rule ends.
            self.refusal.note_end(veto);
            return;
        }
        pods.iter().for_each(|_| self.refusal.keep(veto));
        self.tell(|trace| trace.keep_bundle(pods, veto.rule));
    }

    /// To someone who looks.
    pub fn tell(&mut self, what: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.record.trace {
            what(trace);
        }
    }
}
