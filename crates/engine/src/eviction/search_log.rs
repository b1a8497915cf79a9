//! What comes to light while room is made.

use crate::base::ids::PodId;
use crate::decision::counters::Work;
use crate::decision::reason::Reason;
use crate::eviction::failed_searches::Progress;
use crate::eviction::refusal::Refusal;
use crate::eviction::trace::Trace;
use crate::policy::bundle::Kind;
use crate::policy::plugin::Shield;

/// What comes to light while room is made: the work that it takes, and all of it for someone who
/// looks.
#[derive(Default)]
pub struct Record<'t> {
    pub work: Work,
    /// How far the search has come, in this cycle or before.
    pub progress: Progress,
    pub trace: Option<&'t mut Trace>,
}

/// What comes to light while domains are tried, and why nobody can make room.
pub struct Findings<'f, 't> {
    pub refusal: Refusal,
    /// Who is kept has been told.
    pub again: bool,
    /// A rule that counts what has gone has kept someone.
    pub restrained: bool,
    /// There was no time for all domains.
    pub cut: bool,
    /// There was no time for all that could be tried in a domain.
    pub spent: bool,
    /// What the claimant's queue may not have, where there would be room.
    pub limit: Option<Reason>,
    pub record: &'f mut Record<'t>,
}

impl Findings<'_, '_> {
    pub fn begin_pass(&mut self, allowed: Kind) {
        self.refusal = Refusal::default();
        self.tell(|trace| trace.begin_pass(allowed));
    }

    pub fn keep(&mut self, pods: &[PodId], shield: Shield) {
        if self.again {
            return;
        }
        pods.iter().for_each(|_| self.refusal.keep(shield));
        self.tell(|trace| trace.keep_bundle(pods, shield.rule));
    }

    /// To someone who looks.
    pub fn tell(&mut self, what: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.record.trace {
            what(trace);
        }
    }
}
