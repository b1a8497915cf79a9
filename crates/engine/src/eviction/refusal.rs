//! Why nobody leaves for a gang.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::GangId;
use crate::base::purpose::Purpose;
use crate::decision::reason::{Limit, Reason};
use crate::order::session::Session;
use crate::policy::plugin::Veto;

/// Why nobody could make room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Nodes on which pods could be asked to leave, and would not help.
    pub nodes: u32,
    /// Pods that a rule keeps, by rule.
    pub kept: BTreeMap<&'static str, u32>,
    /// When the first of these rules ends that time alone ends.
    pub until: Option<Time>,
}

impl Refusal {
    pub fn keep(&mut self, veto: Veto) {
        *self.kept.entry(veto.rule).or_default() += 1;
        self.note_end(veto);
    }

    /// Notes when the rule ends, if time alone ends it.
    pub fn note_end(&mut self, veto: Veto) {
        self.until = [self.until, veto.until].into_iter().flatten().min();
    }

    pub fn reason(self, purpose: Purpose) -> Reason {
        let kept = self.kept.into_iter().map(|(rule, pods)| (rule.to_owned(), pods)).collect();
        Reason::NothingToTake { purpose, nodes: self.nodes, kept }
    }
}

/// Says why nobody leaves for a gang, beside why it waits.
pub fn refuse(session: &mut Session, gang: GangId, purpose: Purpose, refused: Vec<Reason>) {
    let mut reasons = session.cluster.gangs[gang].reasons.clone();
    reasons.retain(|known| {
        !said_for(known, purpose) && refused.iter().all(|reason| !same(known, reason))
    });
    // One action may find nobody where another names those whom it would take, and the rules that
    // keep them.
    let told = reasons.iter().any(|known| finds_nobody(known) == Some(false));
    let adds = |reason: &Reason| !told || finds_nobody(reason) != Some(true);
    // Who deserves nothing has nothing to take back: that is why no one leaves for it, not why it
    // waits.
    let news = refused.into_iter().filter(adds);
    let news = news.filter(|reason| reasons.is_empty() || !deserves_nothing(reason));
    reasons.extend(news.collect::<Vec<_>>());
    session.cluster.gangs.explain(gang, reasons);
}

/// Whether nobody leaves, and no rule keeps anyone either.
fn finds_nobody(reason: &Reason) -> Option<bool> {
    match reason {
        Reason::NothingToTake { kept, .. } => Some(kept.is_empty()),
        _ => None,
    }
}

/// What an action says of this alone, and anew each time.
fn said_for(reason: &Reason, by: Purpose) -> bool {
    matches!(reason, Reason::NothingToTake { purpose, .. } | Reason::NotAttempted { purpose, .. } if *purpose == by)
}

/// Whether two reasons are about the same: the newer one is said, unless only the older one names
/// rules.
pub fn same(one: &Reason, other: &Reason) -> bool {
    let kind = std::mem::discriminant::<Reason>;
    let limits = match (one, other) {
        (Reason::OverLimit { limit: one, .. }, Reason::OverLimit { limit: other, .. }) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        (Reason::NothingToTake { kept, .. }, Reason::NothingToTake { .. }) => kept.is_empty(),
        _ => true,
    };
    kind(one) == kind(other) && limits
}

pub fn deserves_nothing(reason: &Reason) -> bool {
    matches!(reason, Reason::OverLimit { limit: Limit::Deserved(_), lack, .. } if lack.limit == 0)
}
