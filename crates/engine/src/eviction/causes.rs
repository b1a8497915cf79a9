//! Why each victim is evicted.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Purpose;
use crate::decision::cause::Cause;
use crate::decision::choice::{Choice, Line, NextChoice};
use crate::eviction::candidates::{Eligibility, eligibility};
use crate::eviction::domain_candidates::Victims;
use crate::eviction::search::Search;
use crate::eviction::table::{Table, Way};
use crate::model::gangs::lost_work::says_how_far;
use crate::model::txn::Txn;
use crate::order::session::Session;
use crate::policy::bundle::{Bundle, BundleKind};
use crate::policy::preemptor::Preemptor;

/// Why each victim is evicted.
pub type Causes = BTreeMap<PodId, Cause>;

/// The cause of an eviction by purpose, where the search did not note a better one.
pub fn cause(
    session: &Session,
    preemptor: GangId,
    purpose: Purpose,
    (victim, next): (PodId, Option<NextChoice>),
) -> Cause {
    let cluster = &*session.cluster;
    let priority = |gang: Option<GangId>| gang.map_or(0, |gang| cluster.gangs[gang].priority);
    match purpose {
        Purpose::Preempt | Purpose::Consolidate => Cause::Outranked {
            priority: priority(cluster.pods.gang[victim]),
            preemptor: priority(Some(preemptor)),
            next,
        },
        Purpose::Within => Cause::OutrankedWithin { priority: cluster.pods.order[victim] },
        Purpose::Reclaim => Cause::Reclaimed {
            from: cluster.pods.gang[victim]
                .map_or(cluster.gangs[preemptor].queue, |gang| cluster.gangs[gang].queue),
            to: cluster.gangs[preemptor].queue,
            next,
        },
    }
}

impl Search<'_> {
    /// The cause of each eviction. Evicts the rest of broken gangs too, if `evictBrokenGang` is set
    /// and no rule protects it.
    pub fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], victims: &Victims) -> Causes {
        let mut causes = Causes::new();
        let nexts = self.next_choices(txn, taken, victims);
        for (bundle, next) in taken.iter_mut().zip(nexts) {
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
                next,
            };
            causes.extend(bundle.pods.iter().map(|&pod| (pod, cause)));
        }
        causes
    }

    /// For each of these bundles, what would have been evicted next instead, and why it was not.
    fn next_choices(
        &self,
        txn: &Txn,
        taken: &[Bundle],
        victims: &Victims,
    ) -> Vec<Option<NextChoice>> {
        let leaving: BTreeSet<GangId> = taken.iter().map(|bundle| bundle.gang).collect();
        let last = victims.bundles.iter().rposition(|bundle| leaving.contains(&bundle.gang));
        let stays = |bundle: &&Bundle| !leaving.contains(&bundle.gang);
        let kept = |bundle: &&Bundle| bundle.pods.iter().any(|&pod| !txn.budgets.allow(txn, pod));
        let mut after = victims.bundles.iter().skip(last.map_or(0, |last| last + 1)).filter(stays);
        let next = after.find(|bundle| !kept(bundle));
        // Bundles that a budget keeps come after all others.
        let beyond = || victims.bundles.iter().filter(stays).find(kept);
        let Some((next, beyond)) =
            next.map(|next| (next, false)).or_else(|| Some((beyond()?, true)))
        else {
            return vec![None; taken.len()];
        };
        let table = Table::new(self.policy, &self.preemptor, &self.settings.bundle_settings);
        let by_plugin = self
            .policy
            .order_bundles(txn, &self.preemptor, &victims.needed, &victims.bundles)
            .is_some();
        let next_way = Way::of(txn, next);
        let choice = |bundle: &Bundle| {
            let way = Way::of(txn, bundle);
            let line = match (beyond, by_plugin) {
                (true, _) => Line::Budgets,
                (false, true) => Line::Plugin,
                (false, false) => table.deciding_line(txn, &way, &next_way),
            };
            let figures = table.figures(txn, line, &way, &next_way);
            NextChoice { choice: Choice::Gang(next.gang), line, figures }
        };
        // Many bundles differ from the next in the same way.
        let told = taken.iter().any(|bundle| says_how_far(txn, bundle.gang));
        let alike = |a: &Bundle, b: &Bundle| {
            let key = |one: &Bundle| (one.class, one.turn, one.roi, txn.gangs[one.gang].priority);
            !told && key(a) == key(b)
        };
        let mut choices: Vec<Option<NextChoice>> = Vec::with_capacity(taken.len());
        for (at, bundle) in taken.iter().enumerate() {
            match at.checked_sub(1).filter(|&before| alike(&taken[before], bundle)) {
                Some(before) => choices.push(choices[before]),
                None => choices.push(Some(choice(bundle))),
            }
        }
        choices
    }
}
