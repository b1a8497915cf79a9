//! Domains in which room could be made for a gang, and the candidates for eviction in each.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::room::Room;
use crate::eviction::bundles;
use crate::eviction::bundles::Tenant;
use crate::eviction::candidates::{Eligibility, eligibility, in_scope};
use crate::eviction::need::Need;
use crate::eviction::order::{fair_share_order, ordered};
use crate::eviction::search::Search;
use crate::eviction::table::Way;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::placement::rankings::Rankings;
use crate::policy::bundle::{Bundle, BundleKind, Needed};
use crate::policy::plugin::Veto;

/// A domain in which room may be made.
pub struct CandidateDomain {
    pub domain: DomainId,
    /// Its nodes that accept pods of the gang.
    pub nodes: Vec<NodeId>,
    /// The position of its tier among those that the gang may use, nearest first.
    pub step: usize,
    /// What it lacks in sum.
    pub lack: Needed,
    /// A lower bound for the cost of room there.
    pub least: i64,
    /// The best that the way to make room there can be, from sums; nothing if there is none, or if
    /// that was not asked.
    pub bound: Option<Way>,
    /// Whether it cannot be cleared in the last stage, and was not searched for the reasons.
    pub impossible: bool,
    /// Whether a gang that may leave says how far it is.
    pub told: bool,
    /// What the way is likely to be, if that was asked.
    pub estimate: Option<Way>,
    /// The candidates for eviction, once they have been collected.
    pub victims: Option<Victims>,
}

impl CandidateDomain {
    /// What is known of the way to make room there before that is tried.
    pub fn known_way(&self) -> Option<&Way> {
        self.estimate.as_ref().or(self.bound.as_ref())
    }
}

/// The candidates for eviction in a domain.
#[derive(Default)]
pub struct Victims {
    /// Resources the domain lacks. If the totals suffice but no node fits (fragmentation), the full
    /// request.
    pub needed: Needed,
    /// In the order of eviction.
    pub bundles: Vec<Bundle>,
    /// Pods that a rule protects.
    pub kept: Vec<(PodId, Veto)>,
}

impl Search<'_> {
    /// Of these domains, those that could hold the gang if they were empty, the lowest bound of the
    /// cost first.
    pub fn feasible_domains(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        need: &Need,
        domains: &[DomainId],
        step: usize,
    ) -> Vec<CandidateDomain> {
        let mut found = Vec::new();
        for &domain in domains {
            let ranks = txn.domains.ranks(domain);
            let nodes = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
            let mut open = vec![false; nodes.len()];
            let holds = need.shapes.iter().all(|&(shape, count)| {
                let ranking = rankings.of(txn, self.policy, shape, Room::FutureIdle);
                open.iter_mut().zip(nodes).for_each(|(open, &node)| *open |= ranking.is_open(node));
                let count = if need.shapes.len() == 1 { count } else { 1 };
                ranking.could_hold(txn, shape, count, ranks.clone())
            });
            let nodes: Vec<NodeId> =
                nodes.iter().zip(open).filter(|(_, open)| *open).map(|(&node, _)| node).collect();
            let total = |resource| {
                nodes.iter().map(|&node| txn.nodes.allocatable[resource][node]).sum::<i64>()
            };
            if holds && need.wanted.iter().all(|&(resource, wanted)| total(resource) >= wanted) {
                let lack = need.lacks(txn, &nodes);
                let least = lack.iter().map(|&(resource, lack)| need.weigh(resource, lack)).sum();
                // A move costs half as much as an eviction.
                let least = if self.fair_share_order() { least / 2 } else { least };
                found.push(CandidateDomain {
                    domain,
                    nodes,
                    step,
                    lack,
                    least,
                    bound: None,
                    told: false,
                    impossible: false,
                    estimate: None,
                    victims: None,
                });
            }
        }
        found.sort_by_key(|candidate| candidate.least);
        found
    }

    /// Collects the candidates for eviction in a domain, in the order of eviction.
    pub fn victims(&self, txn: &mut Txn, need: &Need, candidate: &CandidateDomain) -> Victims {
        let needed =
            if candidate.lack.is_empty() { need.wanted.clone() } else { candidate.lack.clone() };
        let ranks = txn.domains.ranks(candidate.domain);
        let place =
            |cluster: &Cluster, node: NodeId| (cluster.nodes.rank[node] - ranks.start) as usize;
        let mut open = vec![false; ranks.len()];
        candidate.nodes.iter().for_each(|&node| open[place(txn, node)] = true);
        let is_open = |cluster: &Cluster, node: NodeId| {
            ranks.contains(&cluster.nodes.rank[node]) && open[place(cluster, node)]
        };
        // In mode `scenario` a gang that breaks is evicted as a whole, on all nodes.
        let everywhere = self.fair_share_order();
        let mut gangs: Vec<GangId> = Vec::new();
        let mut seen: FxHashSet<GangId> = FxHashSet::default();
        for &pod in candidate.nodes.iter().flat_map(|&node| &txn.nodes.pods_on[node]) {
            gangs.extend(txn.pods.gang[pod].filter(|&gang| seen.insert(gang)));
        }
        gangs.retain(|&gang| in_scope(txn, &self.preemptor, gang));
        let mut local: Vec<(GangId, PodId)> = Vec::new();
        for &gang in &gangs {
            let here = |pod: &PodId| match txn.pods.state[*pod] {
                PodState::Running(node) | PodState::Allocated(node) => {
                    everywhere || is_open(txn, node)
                }
                _ => false,
            };
            local.extend(txn.gangs[gang].pods.iter().copied().filter(here).map(|pod| (gang, pod)));
        }
        let mut kept: Vec<(PodId, Veto)> = Vec::new();
        let mut partly_kept: BTreeSet<GangId> = BTreeSet::new();
        local.retain(|&(gang, pod)| match eligibility(txn, self.policy, &self.preemptor, pod) {
            Eligibility::OutOfScope => false,
            Eligibility::Vetoed(veto) => {
                kept.push((pod, veto));
                partly_kept.insert(gang);
                false
            }
            Eligibility::Evictable => true,
        });
        let deficits = self.deficits(txn, need, candidate.domain, &local);
        let mut bundles: Vec<Bundle> = Vec::new();
        let mut tenants: Vec<Tenant> = Vec::new();
        for pods in local.chunk_by(|a, b| a.0 == b.0) {
            let gang = pods[0].0;
            tenants.clear();
            tenants.extend(pods.iter().map(|&(_, pod)| {
                let node = txn.pods.state[pod].node().filter(|&node| is_open(txn, node));
                let deficit = node.and_then(|node| deficits[place(txn, node)]);
                Tenant { pod, deficit }
            }));
            let before = bundles.len();
            bundles::split(txn, gang, &mut tenants, &needed, &mut bundles);
            // A gang is not broken if a rule protects some of its pods: the rest is not worth it.
            let whole =
                |bundle: &mut Bundle| bundle.gang == gang && bundle.kind == BundleKind::Whole;
            if partly_kept.contains(&gang)
                && bundles.len() > before
                && let Some(bundle) = bundles.pop_if(whole)
            {
                let veto = kept
                    .iter()
                    .find(|(pod, _)| txn.pods.gang[*pod] == Some(gang))
                    .map(|&(_, veto)| veto);
                kept.extend(bundle.pods.iter().filter_map(|&pod| Some((pod, veto?))));
            }
        }
        let bundles = self.in_order(txn, &needed, bundles);
        Victims { needed, bundles, kept }
    }

    /// Puts bundles in the order in which they are evicted.
    fn in_order(&self, txn: &mut Txn, needed: &Needed, bundles: Vec<Bundle>) -> Vec<Bundle> {
        let mut bundles = match self.fair_share_order() {
            true => fair_share_order(txn, self.policy, &self.preemptor, &bundles),
            false => ordered(
                txn,
                self.policy,
                &self.preemptor,
                &self.settings.bundle_settings,
                needed,
                bundles,
            ),
        };
        bundles.iter_mut().zip(0..).for_each(|(bundle, place)| bundle.place = place);
        bundles
    }

    /// What each node of a domain lacks for a pod of the gang, relative to all that is wanted;
    /// nothing if no pod would fit there even if all candidates were evicted.
    fn deficits(
        &self,
        cluster: &Cluster,
        need: &Need,
        domain: DomainId,
        local: &[(GangId, PodId)],
    ) -> Vec<Option<i64>> {
        let requested = |&(shape, _): &(ShapeId, u32)| {
            cluster.shapes[shape].request.iter().map(|(resource, _)| resource)
        };
        let resources: BTreeSet<ResourceId> = need.shapes.iter().flat_map(requested).collect();
        let resources: Vec<ResourceId> = resources.into_iter().collect();
        let ranks = cluster.domains.ranks(domain);
        let mut freed = vec![0; ranks.len() * resources.len()];
        for &(_, pod) in local {
            let node = cluster.pods.state[pod].node();
            let Some(node) = node.filter(|&node| ranks.contains(&cluster.nodes.rank[node])) else {
                continue;
            };
            let row = (cluster.nodes.rank[node] - ranks.start) as usize * resources.len();
            for (sum, &resource) in freed[row..].iter_mut().zip(&resources) {
                *sum += cluster.request_of(cluster.pods.shape[pod], resource);
            }
        }
        // If a limit of the queue is in the way, any eviction helps.
        let limited = |&(shape, _): &(ShapeId, u32)| {
            self.policy.may_allocate(cluster, self.preemptor.gang, shape, Room::FutureIdle).is_err()
        };
        let limited = need.shapes.iter().any(limited);
        let of_shape = |shape: ShapeId, node: NodeId, freed: &[i64]| {
            let mut deficit = 0;
            for (freed, &resource) in freed.iter().zip(&resources) {
                let lack =
                    cluster.request_of(shape, resource) - cluster.nodes.future_idle(resource, node);
                if lack > *freed {
                    return None;
                }
                if lack > 0 {
                    deficit += need.weigh(resource, lack);
                }
            }
            Some(deficit)
        };
        let nodes = &cluster.nodes.by_rank[ranks.start as usize..ranks.end as usize];
        let deficit = |(&node, freed): (&NodeId, &[i64])| {
            let best = need.shapes.iter().find_map(|&(shape, _)| of_shape(shape, node, freed));
            best.or(limited.then_some(0))
        };
        nodes.iter().zip(freed.chunks(resources.len().max(1))).map(deficit).collect()
    }
}
