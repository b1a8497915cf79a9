//! Which pods may be evicted: every veto is here.

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

/// The rule that protects gangs which would get their room back at once.
const SERVED_FIRST: &str = "being served before the preemptor";

/// The rules that protect gangs which have just got a node or will get one.
const BOUND_NOW: &str = "being bound just now";
const GETS_ROOM: &str = "room that is made for its gang";

/// The rule that protects what a queue has, whatever it deserves.
const NOT_RECLAIMABLE: &str = "its queue's reclaimable: false";

/// The rule that protects pods beyond the largest number of moves.
pub const TOO_MANY: Veto = Veto { rule: "maxMoves", until: None };

/// Whether a pod may be evicted for a preemptor, apart from rules that count earlier evictions.
pub enum Eligibility {
    /// The action does not evict such pods for this preemptor, so that no rule needs to protect it.
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

/// Whether the action evicts pods of a gang for this preemptor at all.
pub fn in_scope(cluster: &Cluster, preemptor: &Preemptor, gang: GangId) -> bool {
    let (own, other) = (&cluster.gangs[preemptor.gang], &cluster.gangs[gang]);
    let lower_priority = !preemptor.by_gang() || other.priority < own.priority;
    let movable = other.origin == Origin::Group;
    let in_scope = match preemptor.purpose {
        Purpose::Preempt => gang != preemptor.gang && other.queue == own.queue && lower_priority,
        Purpose::Within => gang == preemptor.gang,
        Purpose::Reclaim => other.queue != own.queue,
        Purpose::Consolidate => gang != preemptor.gang && movable,
    };
    // A preemptor that has its minimum evicts only surplus, so only from gangs that are complete.
    in_scope && (other.ready(true) || !wants_more(cluster, preemptor))
}

/// The rule that protects all pods of a gang that is in scope, if any.
pub fn gang_stays(cluster: &Cluster, preemptor: &Preemptor, gang: GangId) -> Option<&'static str> {
    let row = &cluster.gangs[gang];
    match preemptor.purpose {
        Purpose::Within => None,
        Purpose::Reclaim if !cluster.queues[row.queue].reclaimable => Some(NOT_RECLAIMABLE),
        // A gang that is being bound is not evicted by bundles.
        _ if preemptor.by_gang() && row.counts.allocated > 0 => Some(BOUND_NOW),
        _ => was_served_this_cycle(cluster, gang).then_some(GETS_ROOM),
    }
}

/// Whether the preemptor evicts bundles and has its minimum already. Then it breaks no gang.
pub fn wants_more(cluster: &Cluster, preemptor: &Preemptor) -> bool {
    preemptor.by_gang()
        && missing_after_nominations(&cluster.gangs[preemptor.gang], true).total == 0
}

/// The eligibility of a pod whose gang is in scope.
pub fn eligibility(
    cluster: &Cluster,
    policy: &Policy,
    preemptor: &Preemptor,
    pod: PodId,
) -> Eligibility {
    let best_effort = cluster.shapes[cluster.pods.shape[preemptor.pod]].best_effort;
    let bound_now = matches!(cluster.pods.state[pod], PodState::Allocated(_));
    let runs = bound_now || matches!(cluster.pods.state[pod], PodState::Running(_));
    let any_priority = matches!(preemptor.purpose, Purpose::Reclaim | Purpose::Consolidate);
    let outranked = any_priority || policy.outranks(cluster, preemptor, pod);
    if !runs || !outranked || best_effort && !cluster.shapes[cluster.pods.shape[pod]].best_effort {
        return Eligibility::OutOfScope;
    }
    let of_gang = cluster.pods.gang[pod].and_then(|gang| gang_stays(cluster, preemptor, gang));
    if let Some(rule) = bound_now.then_some(BOUND_NOW).or(of_gang) {
        return Eligibility::Vetoed(Veto { rule, until: None });
    }
    let refused =
        cluster.eviction_refused.get(&pod).copied().filter(|until| *until > preemptor.now);
    let eviction_refused =
        refused.map(|until| Veto { rule: "an eviction that was refused", until: Some(until) });
    let protected = || policy.protects(cluster, pod).map(|rule| Veto { rule, until: None });
    let veto = eviction_refused.or_else(protected).or_else(|| gang_moves(cluster, preemptor, pod));
    let veto = veto.or_else(|| policy.vetoes(cluster, preemptor, pod));
    veto.map_or(Eligibility::Evictable, Eligibility::Vetoed)
}

/// While pods of a gang move to reserved nodes, its other pods are protected: without them the
/// reservations would be useless.
fn gang_moves(cluster: &Cluster, preemptor: &Preemptor, pod: PodId) -> Option<Veto> {
    let gang = cluster.pods.gang[pod].filter(|_| preemptor.purpose != Purpose::Consolidate)?;
    let until = cluster.gangs[gang].reserved().iter().map(|reservation| reservation.until).min()?;
    Some(Veto { rule: "its gang's move to other nodes", until: Some(until) })
}

/// Whether pods are evicted for a gang in this cycle. Evicting the gang too, or releasing its
/// nominations, would make those evictions useless.
pub fn was_served_this_cycle(cluster: &Cluster, gang: GangId) -> bool {
    cluster.served_now.contains(&gang)
}

/// Evicts a pod, unless a rule that counts earlier evictions forbids it.
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
    /// Evicts a bundle as far as the rules that count earlier evictions allow: all of it or nothing
    /// if its pods belong together, otherwise each pod that may be evicted. Returns what was
    /// evicted. With `moves_expected`, fair shares are not asked: the pods are expected to move,
    /// and the losses are checked afterwards. With `may_violate`, PodDisruptionBudgets hold only as
    /// far as a veto enforces them.
    pub fn evict(
        &self,
        txn: &mut Txn,
        bundle: &Bundle,
        (moves_expected, may_violate): (bool, bool),
        log: &mut SearchLog,
    ) -> Option<Bundle> {
        let mark = txn.mark();
        let mut evicted = Vec::with_capacity(bundle.pods.len());
        let runs = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Running(_));
        let rest: Vec<PodId> = bundle.rest.iter().filter(runs).copied().collect();
        let core: Vec<PodId> = bundle.pods.iter().filter(runs).copied().collect();
        for (at, &pod) in rest.iter().chain(&core).enumerate() {
            // Asked before each pod of the surplus, and once before the rest, which is evicted at
            // once.
            if at <= rest.len()
                && !moves_expected
                && let Some(rule) = self.vetoed_for_its_gang(txn, bundle.gang)
            {
                log.counting_rule_refused = true;
                log.record_veto(&bundle.pods, Veto { rule, until: None });
                txn.rewind(mark);
                return None;
            }
            let alone = bundle.kind == BundleKind::Safe && !bundle.all_or_nothing && !bundle.broken;
            if alone && !txn.gangs[bundle.gang].can_spare(txn.pods.place(pod)) {
                continue;
            }
            let veto = self.policy.vetoes_after(txn, &self.preemptor, pod);
            if veto.is_none() && !may_violate && !txn.budgets.allow(txn, pod) {
                log.record.progress.budgets_refused = true;
                if bundle.all_or_nothing {
                    txn.rewind(mark);
                    return None;
                }
                continue;
            }
            match veto.map_or(Ok(pod), Err) {
                Err(veto) => {
                    log.counting_rule_refused = true;
                    if bundle.all_or_nothing {
                        log.record_veto(&bundle.pods, veto);
                        txn.rewind(mark);
                        return None;
                    }
                    log.record_veto(&[pod], veto);
                }
                Ok(pod) => {
                    txn.evict(pod);
                    evicted.push(pod);
                }
            }
        }
        if !evicted.is_empty() && !moves_expected && self.served_before_preemptor(txn, bundle.gang)
        {
            log.counting_rule_refused = true;
            log.record_veto(&evicted, Veto { rule: SERVED_FIRST, until: None });
            txn.rewind(mark);
            return None;
        }
        (!evicted.is_empty()).then(|| bundle.of(evicted))
    }

    /// The rule that protects a gang from losing more, if queues are measured by fair shares.
    pub fn vetoed_for_its_gang(&self, cluster: &Cluster, gang: GangId) -> Option<&'static str> {
        match self.fair_share_order() {
            true => self.policy.vetoes_gang_loss(cluster, &self.preemptor, gang),
            false => None,
        }
    }

    /// Whether an evicted gang would be served before the preemptor, and so get its room back.
    pub fn served_before_preemptor(&self, cluster: &Cluster, gang: GangId) -> bool {
        let queued = |gang: GangId| (cluster.gangs[gang].queue, gang);
        self.fair_share_order()
            && self.preemptor.purpose == Purpose::Reclaim
            && self.policy.queue_order(cluster, queued(gang), queued(self.preemptor.gang)).is_lt()
    }
}
