//! Why no pod is evicted for a gang.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::GangId;
use crate::base::purpose::Purpose;
use crate::decision::reason::{Found, Limit, Reason};
use crate::order::session::Session;
use crate::policy::plugin::Veto;

/// Why evictions could not make room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Nodes where pods could be evicted, but that would not free enough.
    pub nodes: u32,
    /// Pods that may be evicted were found.
    pub evictable: bool,
    /// A node, or a domain, was found that would be large enough if it were empty.
    pub large: bool,
    /// Protected pods, by the rule that protects them.
    pub kept: BTreeMap<&'static str, u32>,
    /// When the first of these rules expires, if any does.
    pub until: Option<Time>,
}

impl Refusal {
    pub fn record_veto(&mut self, veto: Veto) {
        *self.kept.entry(veto.rule).or_default() += 1;
        self.note_end(veto);
    }

    /// Notes when the rule expires, if it does.
    pub fn note_end(&mut self, veto: Veto) {
        self.until = [self.until, veto.until].into_iter().flatten().min();
    }

    pub fn reason(self, purpose: Purpose) -> Reason {
        let kept = self.kept.into_iter().map(|(rule, pods)| (rule.to_owned(), pods)).collect();
        let found = Found::of(self.evictable, self.large);
        Reason::NothingToTake { purpose, nodes: self.nodes, kept, found }
    }
}

/// Adds to the reasons why a gang waits why no pod is evicted for it.
pub fn refuse(session: &mut Session, gang: GangId, purpose: Purpose, refused: Vec<Reason>) {
    let mut reasons = session.cluster.gangs[gang].reasons.clone();
    reasons.retain(|known| {
        !is_from(known, purpose) && refused.iter().all(|reason| !same(known, reason))
    });
    // An action that finds no candidates adds nothing if another one names protected candidates.
    let names_rules = reasons.iter().any(|known| finds_no_candidates(known) == Some(false));
    let is_new = |reason: &Reason| !names_rules || finds_no_candidates(reason) != Some(true);
    // A queue that deserves nothing has nothing to reclaim. That explains why there are no
    // evictions, but not why the gang waits, so it is not said beside other reasons.
    let added = refused.into_iter().filter(is_new);
    let added = added.filter(|reason| reasons.is_empty() || !deserves_nothing(reason));
    reasons.extend(added.collect::<Vec<_>>());
    session.cluster.gangs.explain(gang, reasons);
}

/// Whether there are no candidates at all, not even protected ones; nothing for other reasons.
fn finds_no_candidates(reason: &Reason) -> Option<bool> {
    match reason {
        Reason::NothingToTake { kept, .. } => Some(kept.is_empty()),
        _ => None,
    }
}

/// Whether only this action gives the reason. It replaces the one that it gave before.
fn is_from(reason: &Reason, by: Purpose) -> bool {
    match reason {
        Reason::NothingToTake { purpose, .. }
        | Reason::NotAttempted { purpose, .. }
        | Reason::DomainsNotTried { purpose, .. } => *purpose == by,
        _ => false,
    }
}

/// Whether two reasons are about the same. Then the newer one replaces the older one, unless only
/// the older one names rules.
pub fn same(one: &Reason, other: &Reason) -> bool {
    let kind = std::mem::discriminant::<Reason>;
    let limits = match (one, other) {
        (Reason::OverLimit { limit: one, .. }, Reason::OverLimit { limit: other, .. }) => {
            std::mem::discriminant(one) == std::mem::discriminant(other)
        }
        (Reason::NothingToTake { kept, .. }, Reason::NothingToTake { .. }) => kept.is_empty(),
        (
            Reason::DomainsNotTried { purpose: one, .. },
            Reason::DomainsNotTried { purpose: other, .. },
        ) => one == other,
        _ => true,
    };
    kind(one) == kind(other) && limits
}

pub fn deserves_nothing(reason: &Reason) -> bool {
    matches!(reason, Reason::OverLimit { limit: Limit::Deserved(_), lack, .. } if lack.limit == 0)
}
