//! Why each victim is evicted.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::decision::cause::Cause;
use crate::eviction::bundles::gangs_broken_by;
use crate::eviction::candidates::{Eligibility, eligibility};
use crate::eviction::domain_candidates::Victims;
use crate::eviction::search::Search;
use crate::model::txn::Txn;
use crate::order::session::Session;
use crate::policy::bundle::{Bundle, BundleKind};
use crate::policy::preemptor::Preemptor;

/// Why each victim is evicted.
pub type Causes = BTreeMap<PodId, Cause>;

/// The cause of an eviction by purpose, where the search did not note a better one.
pub fn cause(session: &Session, preemptor: GangId, purpose: Purpose, victim: PodId) -> Cause {
    let cluster = &*session.cluster;
    let priority = |gang: Option<GangId>| gang.map_or(0, |gang| cluster.gangs[gang].priority);
    match purpose {
        Purpose::Preempt | Purpose::Consolidate => Cause::Outranked {
            priority: priority(cluster.pods.gang[victim]),
            preemptor: priority(Some(preemptor)),
        },
        Purpose::Within => Cause::OutrankedWithin { priority: cluster.pods.order[victim] },
        Purpose::Reclaim => Cause::Reclaimed {
            from: cluster.pods.gang[victim]
                .map_or(cluster.gangs[preemptor].queue, |gang| cluster.gangs[gang].queue),
            to: cluster.gangs[preemptor].queue,
        },
    }
}

impl Search<'_> {
    /// The cause of each eviction. Evicts the rest of broken gangs too, if `evictBrokenGang` is set
    /// and no rule protects it.
    pub fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], victims: &Victims) -> Causes {
        let mut causes = Causes::new();
        let gangs = gangs_broken_by(taken);
        let is_next =
            |bundle: &&Bundle| bundle.kind == BundleKind::Whole && !gangs.contains(&bundle.gang);
        let next = victims
            .bundles
            .iter()
            .find(is_next)
            .and_then(|bundle| Some((bundle.gang, bundle.roi?)));
        for bundle in taken {
            if bundle.kind == BundleKind::Whole
                && self.settings.bundle_settings.evict_broken
                && !self.fair_share_order()
            {
                let rest = txn.gangs[bundle.gang].pods.clone();
                // The deserved share of its queue does not protect a pod that cannot run alone.
                let preemptor = Preemptor { purpose: Purpose::Preempt, ..self.preemptor };
                for pod in rest {
                    let evictable = matches!(
                        eligibility(txn, self.policy, &self.preemptor, pod),
                        Eligibility::Evictable
                    );
                    if evictable && self.policy.vetoes_after(txn, &preemptor, pod).is_none() {
                        txn.evict(pod);
                        bundle.pods.push(pod);
                    }
                }
            }
            let cause = Cause::Bundle {
                whole: bundle.kind == BundleKind::Whole,
                broken: bundle.broken,
                pods: bundle.pods.len() as u32,
                roi: bundle.roi.filter(|_| !self.fair_share_order()),
                against: next
                    .filter(|_| bundle.kind == BundleKind::Whole && !self.fair_share_order()),
            };
            causes.extend(bundle.pods.iter().map(|&pod| (pod, cause)));
        }
        causes
    }
}
