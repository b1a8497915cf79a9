//! Who may be asked to leave: every veto is here.

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::eviction::search::GangTaker;
use crate::eviction::search_log::Findings;
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::model::gangs::missing::not_promised;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, Kind};
use crate::policy::plugin::Shield;
use crate::policy::preemptor::Claim;

/// The rule that keeps what would be given back at once.
const GOES_FIRST: &str = "being served before the claimant";

/// The rule that keeps those who would be one too many.
pub const TOO_MANY: Shield = Shield { rule: "maxMoves", until: None };

/// Whether a pod may be asked to leave for a claim, but for rules that count others that have gone.
pub enum Verdict {
    /// The claimant has no right to its place at all.
    NoConcern,
    Kept(Shield),
    Free,
}

pub fn consider(cluster: &Cluster, policy: &Policy, claim: &Claim, pod: PodId) -> Verdict {
    match cluster.pods.gang[pod] {
        Some(gang) if concerns(cluster, claim, gang) => consider_one(cluster, policy, claim, pod),
        _ => Verdict::NoConcern,
    }
}

/// Whether pods of a gang may be asked to leave for a claim at all.
pub fn concerns(cluster: &Cluster, claim: &Claim, gang: GangId) -> bool {
    let (own, other) = (&cluster.gangs[claim.gang], &cluster.gangs[gang]);
    let weaker = !claim.by_gang() || other.priority < own.priority;
    let movable = other.origin == Origin::Group;
    let in_scope = match claim.purpose {
        Purpose::Preempt => gang != claim.gang && other.queue == own.queue && weaker,
        Purpose::Within => gang == claim.gang,
        Purpose::Reclaim => other.queue != own.queue && cluster.queues[other.queue].reclaimable,
        Purpose::Consolidate => gang != claim.gang && movable,
    };
    // Nobody breaks a gang that is being bound.
    let binding = claim.by_gang() && other.counts.allocated > 0;
    // Who wants more than its minimum takes from those who have more than theirs.
    in_scope
        && (other.ready(true) || !wants_more(cluster, claim))
        && (claim.purpose == Purpose::Within || !binding && !just_claimed(cluster, gang))
}

/// Whether a gang that takes by gangs has its minimum already: then it breaks nobody.
pub fn wants_more(cluster: &Cluster, claim: &Claim) -> bool {
    claim.by_gang() && not_promised(&cluster.gangs[claim.gang], true).total == 0
}

/// The same for one of its pods.
pub fn consider_one(cluster: &Cluster, policy: &Policy, claim: &Claim, pod: PodId) -> Verdict {
    let modest = cluster.shapes[cluster.pods.shape[claim.pod]].best_effort;
    let runs = matches!(cluster.pods.state[pod], PodState::Running(_));
    let anyone = matches!(claim.purpose, Purpose::Reclaim | Purpose::Consolidate);
    let outranked = anyone || policy.outranks(cluster, claim, pod);
    if !runs || !outranked || modest && !cluster.shapes[cluster.pods.shape[pod]].best_effort {
        return Verdict::NoConcern;
    }
    let refused = cluster.spared.get(&pod).copied().filter(|until| *until > claim.now);
    let spared =
        refused.map(|until| Shield { rule: "an eviction that was refused", until: Some(until) });
    let always = || policy.protects(cluster, pod).map(|rule| Shield { rule, until: None });
    let shield = spared.or_else(always).or_else(|| moves(cluster, claim, pod));
    let shield = shield.or_else(|| policy.shields(cluster, claim, pod));
    shield.map_or(Verdict::Free, Verdict::Kept)
}

/// A gang of which some leave for places that are kept for them would lose those in vain if others
/// were lost.
pub fn moves(cluster: &Cluster, claim: &Claim, pod: PodId) -> Option<Shield> {
    let gang = cluster.pods.gang[pod].filter(|_| claim.purpose != Purpose::Consolidate)?;
    let until = cluster.gangs[gang].reserved().iter().map(|place| place.until).min()?;
    Some(Shield { rule: "its gang's move to other nodes", until: Some(until) })
}

/// Whether others were asked to leave for a gang in this cycle: whoever takes from it now would let
/// them go for nobody.
pub fn just_claimed(cluster: &Cluster, gang: GangId) -> bool {
    let just_now = |pod: &PodId| {
        let promise = cluster.promised.get(pod).filter(|promise| promise.evicted && !promise.told);
        promise.is_some_and(|promise| cluster.pods.state[*pod] == PodState::Nominated(promise.node))
    };
    !cluster.promised.is_empty() && cluster.gangs[gang].pods.iter().any(just_now)
}

impl GangTaker<'_> {
    /// Asks the pods of a bundle to leave, after the rules that count what has gone: who goes
    /// together goes whole or not at all, others as far as they may. Freely, if it doesn't
    /// matter yet what their queue keeps.
    pub fn evict(
        &self,
        txn: &mut Txn,
        bundle: &Bundle,
        freely: bool,
        findings: &mut Findings,
    ) -> Option<Bundle> {
        let mark = txn.mark();
        let mut gone = Vec::with_capacity(bundle.pods.len());
        let stays = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Running(_));
        let rest: Vec<PodId> = bundle.rest.iter().filter(stays).copied().collect();
        let core: Vec<PodId> = bundle.pods.iter().filter(stays).copied().collect();
        for (at, &pod) in rest.iter().chain(&core).enumerate() {
            // What a gang can spare leaves pod by pod, then the others at once.
            if at <= rest.len()
                && !freely
                && let Some(rule) = self.withheld(txn, bundle.gang)
            {
                findings.restrained = true;
                findings.keep(&bundle.pods, Shield { rule, until: None });
                txn.rewind(mark);
                return None;
            }
            let alone = bundle.kind == Kind::Safe && !bundle.together && !bundle.broken;
            if alone && !txn.gangs[bundle.gang].can_spare(txn.pods.place(pod)) {
                continue;
            }
            match self.policy.restrains(txn, &self.claim, pod) {
                Some(shield) => {
                    findings.restrained = true;
                    if bundle.together {
                        findings.keep(&bundle.pods, shield);
                        txn.rewind(mark);
                        return None;
                    }
                    findings.keep(&[pod], shield);
                }
                None => {
                    txn.evict(pod);
                    gone.push(pod);
                }
            }
        }
        if !gone.is_empty() && !freely && self.goes_first(txn, bundle.gang) {
            findings.restrained = true;
            findings.keep(&gone, Shield { rule: GOES_FIRST, until: None });
            txn.rewind(mark);
            return None;
        }
        (!gone.is_empty()).then(|| bundle.of(gone))
    }

    /// The rule that keeps what leaves a gang at once, if queues are measured by fair shares.
    pub fn withheld(&self, cluster: &Cluster, gang: GangId) -> Option<&'static str> {
        match self.by_turns() {
            true => self.policy.withholds(cluster, &self.claim, gang),
            false => None,
        }
    }

    /// Whether a gang that has left would be served before the claimant: it gets its room back.
    pub fn goes_first(&self, cluster: &Cluster, gang: GangId) -> bool {
        let next = |gang: GangId| (cluster.gangs[gang].queue, gang);
        self.by_turns()
            && self.claim.purpose == Purpose::Reclaim
            && self.policy.queue_order(cluster, next(gang), next(self.claim.gang)).is_lt()
    }
}
