//! What would have to leave a domain, from the amounts that are free on its nodes after each
//! eviction. No pod is placed. Only asked where more domains can be cleared than may be tried, so
//! that the best of them are.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use crate::base::ids::{NodeId, PodId, ShapeId};
use crate::eviction::bundles::gangs_broken_by;
use crate::eviction::domain_candidates::CandidateDomain;
use crate::eviction::need::Need;
use crate::eviction::per_domain::Stage;
use crate::eviction::search::Search;
use crate::eviction::search_log::SearchLog;
use crate::eviction::table::Way;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::policy::bundle::{Bundle, BundleKind};

/// Whether the nodes of a domain have enough: in sum, and for each shape on single nodes.
struct Enough<'n> {
    need: &'n Need,
    nodes: &'n [NodeId],
    among: FxHashSet<NodeId>,
    /// For each shape, how many more pods the nodes should hold.
    lacking: Vec<i64>,
}

impl<'n> Enough<'n> {
    fn new(cluster: &Cluster, need: &'n Need, nodes: &'n [NodeId]) -> Enough<'n> {
        let lack = |&(shape, count): &(ShapeId, u32)| {
            i64::from(count) - nodes.iter().map(|&node| fits(cluster, shape, node)).sum::<i64>()
        };
        let lacking = need.shapes.iter().map(lack).collect();
        Enough { need, nodes, among: nodes.iter().copied().collect(), lacking }
    }

    /// Changes states of these pods, and counts again on their nodes.
    fn after(&mut self, txn: &mut Txn, pods: &[PodId], change: impl FnOnce(&mut Txn)) {
        let mut touched: Vec<NodeId> =
            pods.iter().filter_map(|&pod| txn.pods.state[pod].node()).collect();
        touched.sort_unstable();
        touched.dedup();
        touched.retain(|node| self.among.contains(node));
        self.count(txn, &touched, 1);
        change(txn);
        self.count(txn, &touched, -1);
    }

    fn count(&mut self, cluster: &Cluster, nodes: &[NodeId], times: i64) {
        for (lacking, &(shape, _)) in self.lacking.iter_mut().zip(&self.need.shapes) {
            *lacking += times * nodes.iter().map(|&node| fits(cluster, shape, node)).sum::<i64>();
        }
    }

    fn reached(&self, cluster: &Cluster) -> bool {
        self.lacking.iter().all(|&lacking| lacking <= 0)
            && (self.need.shapes.len() == 1 || self.need.lacks(cluster, self.nodes).is_empty())
    }
}

/// How many pods of a shape a node has room for, by amounts alone.
fn fits(cluster: &Cluster, shape: ShapeId, node: NodeId) -> i64 {
    let request = cluster.shapes[shape].request.iter();
    let fits = request.map(|(id, want)| cluster.nodes.future_idle(id, node).max(0) / want.max(1));
    fits.min().unwrap_or(0)
}

impl Search<'_> {
    /// What would have to leave, or the least that it can be; nothing if the domain cannot be
    /// cleared. Leaves the transaction as it was.
    pub fn estimate(
        &self,
        txn: &mut Txn,
        need: &Need,
        (candidate, stage): (&mut CandidateDomain, &Stage),
        log: &mut SearchLog,
    ) -> Option<Way> {
        if candidate.victims.is_none() {
            candidate.victims = Some(self.victims(txn, need, candidate));
        }
        let victims = candidate.victims.as_ref()?;
        let mark = txn.mark();
        let allowed = victims.bundles.iter().filter(|bundle| bundle.kind <= stage.allowed);
        let allowed: Vec<Bundle> = allowed.flat_map(Bundle::units).collect();
        let mut enough = Enough::new(txn, need, &candidate.nodes);
        let silent = std::mem::replace(&mut log.refusals_recorded, true);
        log.counting_rule_refused = false;
        let mut taken: Vec<Bundle> = Vec::new();
        for may_violate in [false, true] {
            if may_violate && !stage.may_violate_budgets {
                continue;
            }
            for bundle in &allowed {
                if enough.reached(txn) {
                    break;
                }
                let pods: Vec<PodId> = bundle.rest.iter().chain(&bundle.pods).copied().collect();
                enough.after(txn, &pods, |txn| {
                    taken.extend(self.evict(txn, bundle, (false, may_violate), log));
                });
            }
        }
        log.refusals_recorded = silent;
        let reached = enough.reached(txn);
        if reached {
            self.keep_what_is_not_needed(txn, &mut enough, &mut taken);
        }
        let way = reached.then(|| self.way(txn, need, (candidate, victims), &taken, &[]));
        txn.rewind(mark);
        // Where a rule counts what has left, another order or moves may help.
        let may_help = log.counting_rule_refused && (self.fair_share_order() || !taken.is_empty());
        way.or_else(|| candidate.bound.clone().filter(|_| may_help))
    }

    fn keep_what_is_not_needed(&self, txn: &mut Txn, enough: &mut Enough, taken: &mut Vec<Bundle>) {
        taken.sort_by_key(|bundle| Reverse(bundle.place));
        let mut broken = gangs_broken_by(taken);
        let mut at = 0;
        while let Some(bundle) = taken.get(at) {
            let pods = bundle.pods.clone();
            let (gang, whole) = (bundle.gang, bundle.kind == BundleKind::Whole);
            let worth_it = whole || !broken.contains(&gang);
            let before = txn.mark();
            enough.after(txn, &pods, |txn| {
                for &pod in &pods {
                    if let PodState::Releasing(node) = txn.pods.state[pod] {
                        txn.keep_running(pod, node);
                    }
                }
            });
            if worth_it && enough.reached(txn) {
                taken.remove(at);
                broken.retain(|&other| !whole || other != gang);
            } else {
                enough.after(txn, &pods, |txn| txn.rewind(before));
                at += 1;
            }
        }
    }
}
