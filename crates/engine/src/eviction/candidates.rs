//! Who may be asked to leave: every veto is here.

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::answers::Policy;
use crate::policy::bundle::{Bundle, BundleKind};
use crate::policy::plugin::Veto;
use crate::policy::preemptor::Preemptor;

/// The rule that keeps what would be given back at once.
const GOES_FIRST: &str = "being served before the preemptor";

/// The rule that keeps those who would be one too many.
pub const TOO_MANY: Veto = Veto { rule: "maxMoves", until: None };

/// Whether a pod may be asked to leave for a claim, but for rules that count others that have gone.
pub enum Eligibility {
    /// The claimant has no right to its place at all.
    OutOfScope,
    Vetoed(Veto),
    Evictable,
}

pub fn group_eligibility(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    pod: PodId,
) -> Eligibility {
    match cluster.pods.gang[pod] {
        Some(gang) if in_scope(cluster, preemptor, gang) => {
            eligibility(cluster, policy, preemptor, pod)
        }
        _ => Eligibility::OutOfScope,
    }
}

/// Whether pods of a gang may be asked to leave for a claim at all.
pub fn in_scope(cluster: &Cluster, preemptor: &Preemptor, gang: GangId) -> bool {
    let (own, other) = (&cluster.gangs[preemptor.gang], &cluster.gangs[gang]);
    let lower_nominations = !preemptor.by_gang() || other.priority < own.priority;
    let movable = other.origin == Origin::Group;
    let in_scope = match preemptor.purpose {
        Purpose::Preempt => gang != preemptor.gang && other.queue == own.queue && lower_nominations,
        Purpose::Within => gang == preemptor.gang,
        Purpose::Reclaim => other.queue != own.queue && cluster.queues[other.queue].reclaimable,
        Purpose::Consolidate => gang != preemptor.gang && movable,
    };
    // Nobody breaks a gang that is being bound.
    let binding = preemptor.by_gang() && other.counts.allocated > 0;
    // Who wants more than its minimum takes from those who have more than theirs.
    in_scope
        && (other.ready(true) || !wants_more(cluster, preemptor))
        && (preemptor.purpose == Purpose::Within
            || !binding && !was_nominated_this_cycle(cluster, gang))
}

/// Whether a gang that takes by gangs has its minimum already: then it breaks nobody.
pub fn wants_more(cluster: &Cluster, preemptor: &Preemptor) -> bool {
    preemptor.by_gang()
        && missing_after_nominations(&cluster.gangs[preemptor.gang], true).total == 0
}

/// The same for one of its pods.
pub fn eligibility(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    pod: PodId,
) -> Eligibility {
    let modest = cluster.shapes[cluster.pods.shape[preemptor.pod]].best_effort;
    let runs = matches!(cluster.pods.state[pod], PodState::Running(_));
    let anyone = matches!(preemptor.purpose, Purpose::Reclaim | Purpose::Consolidate);
    let outranked = anyone || policy.outranks(cluster, preemptor, pod);
    if !runs || !outranked || modest && !cluster.shapes[cluster.pods.shape[pod]].best_effort {
        return Eligibility::OutOfScope;
    }
    let refused =
        cluster.eviction_refused.get(&pod).copied().filter(|until| *until > preemptor.now);
    let eviction_refused =
        refused.map(|until| Veto { rule: "an eviction that was refused", until: Some(until) });
    let always = || policy.protects(cluster, pod).map(|rule| Veto { rule, until: None });
    let veto = eviction_refused.or_else(always).or_else(|| moves(cluster, preemptor, pod));
    let veto = veto.or_else(|| policy.vetoes(cluster, preemptor, pod));
    veto.map_or(Eligibility::Evictable, Eligibility::Vetoed)
}

/// A gang of which some leave for places that are kept for them would lose those in vain if others
/// were lost.
pub fn moves(cluster: &Cluster, preemptor: &Preemptor, pod: PodId) -> Option<Veto> {
    let gang = cluster.pods.gang[pod].filter(|_| preemptor.purpose != Purpose::Consolidate)?;
    let until = cluster.gangs[gang].reserved().iter().map(|place| place.until).min()?;
    Some(Veto { rule: "its gang's move to other nodes", until: Some(until) })
}

/// Whether others were asked to leave for a gang in this cycle: whoever takes from it now would let
/// them go for nobody.
pub fn was_nominated_this_cycle(cluster: &Cluster, gang: GangId) -> bool {
    let just_now = |pod: &PodId| {
        let nomination = cluster
            .nomination_ledger
            .get(pod)
            .filter(|nomination| nomination.needs_evictions && !nomination.published);
        nomination.is_some_and(|nomination| {
            cluster.pods.state[*pod] == PodState::Nominated(nomination.node)
        })
    };
    !cluster.nomination_ledger.is_empty() && cluster.gangs[gang].pods.iter().any(just_now)
}

/// Evicts a pod, unless a rule that counts what has gone forbids it.
pub fn evict_one(
    txn: &mut Txn,
    policy: &Policy,
    preemptor: &Preemptor,
    pod: PodId,
) -> Result<PodId, Veto> {
    match policy.vetoes_after(txn, preemptor, pod) {
        Some(veto) => Err(veto),
        None => {
            txn.evict(pod);
            Ok(pod)
        }
    }
}

impl Search<'_> {
    /// Asks the pods of a bundle to leave, after the rules that count what has gone: who goes
    /// together goes whole or not at all, others as far as they may. Freely, if it doesn't
    /// matter yet what their queue keeps.
    pub fn evict(
        &self,
        txn: &mut Txn,
        bundle: &Bundle,
        freely: bool,
        log: &mut SearchLog,
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
                && let Some(rule) = self.vetoed_for_its_gang(txn, bundle.gang)
            {
                log.counting_rule_refused = true;
                log.keep(&bundle.pods, Veto { rule, until: None });
                txn.rewind(mark);
                return None;
            }
            let alone = bundle.kind == BundleKind::Safe && !bundle.all_or_nothing && !bundle.broken;
            if alone && !txn.gangs[bundle.gang].can_spare(txn.pods.place(pod)) {
                continue;
            }
            match evict_one(txn, self.policy, &self.preemptor, pod) {
                Err(veto) => {
                    log.counting_rule_refused = true;
                    if bundle.all_or_nothing {
                        log.keep(&bundle.pods, veto);
                        txn.rewind(mark);
                        return None;
                    }
                    log.keep(&[pod], veto);
                }
                Ok(pod) => gone.push(pod),
            }
        }
        if !gone.is_empty() && !freely && self.served_before_preemptor(txn, bundle.gang) {
            log.counting_rule_refused = true;
            log.keep(&gone, Veto { rule: GOES_FIRST, until: None });
            txn.rewind(mark);
            return None;
        }
        (!gone.is_empty()).then(|| bundle.of(gone))
    }

    /// The rule that keeps what leaves a gang at once, if queues are measured by fair shares.
    pub fn vetoed_for_its_gang(&self, cluster: &Cluster, gang: GangId) -> Option<&'static str> {
        match self.fair_share_order() {
            true => self.policy.vetoes_gang_loss(cluster, &self.preemptor, gang),
            false => None,
        }
    }

    /// Whether a gang that has left would be served before the claimant: it gets its room back.
    pub fn served_before_preemptor(&self, cluster: &Cluster, gang: GangId) -> bool {
        let next = |gang: GangId| (cluster.gangs[gang].queue, gang);
        self.fair_share_order()
            && self.preemptor.purpose == Purpose::Reclaim
            && self.policy.queue_order(cluster, next(gang), next(self.preemptor.gang)).is_lt()
    }
}
