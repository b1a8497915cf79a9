//! Why each pod leaves.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::decision::cause::Cause;
use crate::eviction::bundles::broken;
use crate::eviction::candidates::{Verdict, consider_one};
use crate::eviction::domain_candidates::Victims;
use crate::eviction::search::GangTaker;
use crate::model::txn::Txn;
use crate::order::session::Session;
use crate::policy::bundle::{Bundle, Kind};
use crate::policy::preemptor::Claim;

/// Why each pod leaves.
pub type Causes = BTreeMap<PodId, Cause>;

pub fn cause(session: &Session, claimant: GangId, purpose: Purpose, victim: PodId) -> Cause {
    let cluster = &*session.cluster;
    let priority = |gang: Option<GangId>| gang.map_or(0, |gang| cluster.gangs[gang].priority);
    match purpose {
        Purpose::Preempt | Purpose::Consolidate => Cause::Outranked {
            priority: priority(cluster.pods.gang[victim]),
            claimant: priority(Some(claimant)),
        },
        Purpose::Within => Cause::OutrankedWithin { priority: cluster.pods.order[victim] },
        Purpose::Reclaim => Cause::Reclaimed {
            from: cluster.pods.gang[victim]
                .map_or(cluster.gangs[claimant].queue, |gang| cluster.gangs[gang].queue),
            to: cluster.gangs[claimant].queue,
        },
    }
}

impl GangTaker<'_> {
    /// Why each leaves. Of gangs that are broken the rest leaves too, if that is wished for and no
    /// rule keeps it.
    pub fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], victims: &Victims) -> Causes {
        let mut causes = Causes::new();
        let gangs = broken(taken);
        let stays = |bundle: &&Bundle| bundle.kind == Kind::Whole && !gangs.contains(&bundle.gang);
        let next =
            victims.bundles.iter().find(stays).and_then(|bundle| Some((bundle.gang, bundle.roi?)));
        for bundle in taken {
            if bundle.kind == Kind::Whole && self.taking.bundling.evict_broken && !self.by_turns() {
                let rest = txn.gangs[bundle.gang].pods.clone();
                // What its queue deserves is no reason to keep what can't run.
                let claim = Claim { purpose: Purpose::Preempt, ..self.claim };
                for pod in rest {
                    let free =
                        matches!(consider_one(txn, self.policy, &self.claim, pod), Verdict::Free);
                    if free && self.policy.restrains(txn, &claim, pod).is_none() {
                        txn.evict(pod);
                        bundle.pods.push(pod);
                    }
                }
            }
            let cause = Cause::Bundle {
                whole: bundle.kind == Kind::Whole,
                broken: bundle.broken,
                pods: bundle.pods.len() as u32,
                roi: bundle.roi.filter(|_| !self.by_turns()),
                against: next.filter(|_| bundle.kind == Kind::Whole && !self.by_turns()),
            };
            causes.extend(bundle.pods.iter().map(|&pod| (pod, cause)));
        }
        causes
    }
}
