//! Room for a whole gang by whole bundles of others: domain by domain, the nearest first, only what breaks nobody before anyone is
//! broken. The places that the simulation finds are what the gang is promised.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::Time;

use crate::bundles::{self, Bundle, Kind, Needed};
use crate::config::Taking;
use crate::ids::{DomainId, GangId, NodeId, PodId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::gangs::Missing;
use crate::model::pods::PodState;
use crate::nominations::not_promised;
use crate::placement::{Rankings, Wish};
use crate::plan::Cause;
use crate::policy::{Claim, Policy, Purpose, Room, Shield};
use crate::reason::Reason;
use crate::resources::PODS;
use crate::search::{domain_of, domains_for, seat};
use crate::txn::{Move, Txn};
use crate::victims::{Refusal, Verdict, all_stand, consider};

/// Why each pod leaves.
pub type Causes = BTreeMap<PodId, Cause>;

/// A gang that takes room by bundles.
pub struct GangTaker<'t> {
    pub policy: &'t Policy,
    pub taking: &'t Taking,
    /// For the first of its pods.
    pub claim: Claim,
    pub wish: Wish<'t>,
}

/// A way to make room in a domain.
struct Way {
    cost: i64,
    moves: Vec<Move>,
    causes: Causes,
}

impl GangTaker<'_> {
    /// Makes room for what the gang lacks in the transaction, and says why each leaves; or why not, and when the first rule ends
    /// that stood in the way and that time alone ends.
    pub fn take(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        until: &mut Option<Time>,
    ) -> Result<Causes, Vec<Reason>> {
        let required = self.required(txn);
        if let Some(&pod) = required.iter().find(|&&pod| txn.never_preempts(pod)) {
            return Err(vec![Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }]);
        }
        if self.claim.purpose == Purpose::Reclaim {
            self.may_reclaim(txn, self.claim.pod).map_err(|reason| vec![reason])?;
        }
        let steps = domains_for(txn, self.claim.gang).map_err(|reason| vec![reason])?;
        let mut refusal = Refusal::default();
        for allowed in [Kind::Safe, Kind::Whole] {
            if allowed == Kind::Whole && !self.taking.bundling.allow_whole {
                break;
            }
            refusal = Refusal::default();
            let mut left = self.taking.bundling.max_domains;
            for step in &steps {
                let domains = self.promising(txn, rankings, &required, step, left);
                left -= domains.len();
                let mut best: Option<Way> = None;
                for (domain, nodes) in domains {
                    let mark = txn.mark();
                    let way = self.attempt(txn, rankings, &required, (domain, &nodes), allowed, &mut refusal);
                    txn.rewind(mark);
                    if let Some(way) = way
                        && best.as_ref().is_none_or(|known| way.cost < known.cost)
                    {
                        best = Some(way);
                    }
                }
                if let Some(way) = best {
                    txn.replay(&way.moves);
                    return Ok(way.causes);
                }
            }
        }
        *until = refusal.until;
        Err(vec![refusal.reason(self.claim.purpose)])
    }

    fn may_reclaim(&self, cluster: &Cluster, pod: PodId) -> Result<(), Reason> {
        let claim = Claim { pod, ..self.claim };
        let nothing = || Refusal::default().reason(Purpose::Reclaim);
        self.policy.may_reclaim(cluster, &claim).map_err(|reason| reason.unwrap_or_else(nothing))
    }

    /// The pods that make the gang whole, in order.
    fn required(&self, cluster: &Cluster) -> Vec<PodId> {
        let Missing { mut total, mut roles } = self.wish.missing.clone();
        let mut required = Vec::new();
        for &pod in self.wish.pods {
            let role = roles.get_mut(cluster.pods.role[pod] as usize).filter(|role| **role > 0);
            let owed = role.is_some();
            if let Some(role) = role {
                *role -= 1;
            }
            if total > 0 && (owed || total > roles.iter().sum()) {
                total -= 1;
                required.push(pod);
            }
        }
        required
    }

    /// Of these domains, those that could hold the gang if they were empty, with the nodes there that take its pods; where least
    /// is lacking first.
    fn promising(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        required: &[PodId],
        step: &[DomainId],
        most: usize,
    ) -> Vec<(DomainId, Vec<NodeId>)> {
        let mut shapes: BTreeMap<ShapeId, u32> = BTreeMap::new();
        for &pod in required {
            *shapes.entry(txn.pods.shape[pod]).or_default() += 1;
        }
        let mut found = Vec::new();
        for &domain in step {
            let ranks = txn.domains.ranks(domain);
            let mut open: BTreeSet<u32> = BTreeSet::new();
            let holds = shapes.iter().all(|(&shape, &count)| {
                let ranking = rankings.of(txn, self.policy, shape, Room::Later);
                let takes = |rank: &u32| ranking.is_open(txn.nodes.by_rank[*rank as usize]);
                open.extend(ranks.clone().filter(takes));
                let count = if shapes.len() == 1 { count } else { 1 };
                ranking.could_hold(txn, shape, count, ranks.clone())
            });
            if holds {
                let nodes: Vec<NodeId> = open.iter().map(|&rank| txn.nodes.by_rank[rank as usize]).collect();
                let lack: i64 =
                    lacks(txn, required, &nodes).iter().map(|&(id, lack)| weigh(txn, id, lack)).sum();
                found.push((lack, domain, nodes));
            }
        }
        found.sort_by_key(|&(lack, ..)| lack);
        found.truncate(most);
        found.into_iter().map(|(_, domain, nodes)| (domain, nodes)).collect()
    }

    /// Makes room in one domain, with as few gone as possible. Leaves its moves in the transaction either way.
    fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        required: &[PodId],
        (domain, nodes): (DomainId, &[NodeId]),
        allowed: Kind,
        refusal: &mut Refusal,
    ) -> Option<Way> {
        let start = txn.mark();
        let mut lack = lacks(txn, required, nodes);
        // Else there is enough in all, but in pieces.
        let needed = if lack.is_empty() { requests(txn, required) } else { lack.clone() };
        let bundles = self.bundles(txn, nodes, &needed, allowed, refusal);
        let mut taken: Vec<Bundle> = Vec::new();
        let mut pause = 1;
        let mut placed = false;
        for bundle in bundles {
            for &pod in &bundle.pods {
                txn.evict(pod);
                for (resource, lack) in &mut lack {
                    *lack -= txn.request_of(txn.pods.shape[pod], *resource);
                }
            }
            lack.retain(|&(_, lack)| lack > 0);
            taken.push(bundle);
            if !lack.is_empty() || taken.len() < pause {
                continue;
            }
            placed = self.place(txn, rankings, domain);
            if placed {
                break;
            }
            // The sums are there and the places are not: more and more at a time.
            pause = taken.len() + taken.len().div_ceil(4);
        }
        if !placed && lack.is_empty() && !taken.is_empty() {
            placed = self.place(txn, rankings, domain);
        }
        if !placed {
            refusal.nodes += nodes.len() as u32;
            return None;
        }
        self.give_back(txn, rankings, domain, &mut taken);
        if self.claim.purpose == Purpose::Reclaim && !self.stays_within(txn) {
            return None;
        }
        let causes = self.causes(txn, &mut taken, &needed);
        let cost = |&pod: &PodId| -> i64 {
            let amount = |&(id, need): &(ResourceId, i64)| {
                let amount = txn.request_of(txn.pods.shape[pod], id);
                (i128::from(amount) * 1_000_000 / i128::from(need.max(1))) as i64
            };
            needed.iter().map(amount).sum()
        };
        Some(Way { cost: causes.keys().map(cost).sum(), moves: txn.since(start), causes })
    }

    /// What may be asked to leave the nodes, in order, after all rules were asked.
    fn bundles(
        &self,
        txn: &mut Txn,
        nodes: &[NodeId],
        needed: &Needed,
        allowed: Kind,
        refusal: &mut Refusal,
    ) -> Vec<Bundle> {
        let mut local: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
        let mut kept: BTreeSet<GangId> = BTreeSet::new();
        for pod in nodes.iter().flat_map(|&node| txn.nodes.seats[node].iter().copied()) {
            let Some(gang) = txn.pods.gang[pod] else { continue };
            match consider(txn, self.policy, &self.claim, pod) {
                Verdict::NoConcern => {}
                Verdict::Kept(shield) => {
                    refusal.keep(shield);
                    kept.insert(gang);
                }
                Verdict::Free => local.entry(gang).or_default().push(pod),
            }
        }
        let mut found: Vec<Bundle> = Vec::new();
        for (gang, pods) in local {
            let mut bundles = bundles::split(txn, gang, pods, needed);
            // A gang is not broken for a part of it.
            bundles.retain(|bundle| {
                bundle.kind <= allowed && (bundle.kind == Kind::Safe || !kept.contains(&gang))
            });
            found.extend(bundles);
        }
        bundles::sort(txn, self.policy, &self.claim, &self.taking.bundling, needed, &mut found);
        self.ask(txn, &mut found, refusal);
        bundles::sort(txn, self.policy, &self.claim, &self.taking.bundling, needed, &mut found);
        found
    }

    /// Asks the rules that count what has gone, bundle by bundle: a whole one goes whole or not at all, a safe one shrinks.
    fn ask(&self, txn: &mut Txn, bundles: &mut Vec<Bundle>, refusal: &mut Refusal) {
        let start = txn.mark();
        bundles.retain_mut(|bundle| {
            let mark = txn.mark();
            let before = bundle.pods.len();
            bundle.pods.retain(|&pod| match self.policy.restrains(txn, &self.claim, pod) {
                Some(rule) => {
                    refusal.keep(Shield { rule, until: None });
                    false
                }
                None => {
                    txn.evict(pod);
                    true
                }
            });
            if bundle.kind == Kind::Whole && bundle.pods.len() < before {
                txn.rewind(mark);
                return false;
            }
            !bundle.pods.is_empty()
        });
        txn.rewind(start);
    }

    /// Places the gang in the domain, if it goes there now; else the transaction is as it was.
    fn place(&self, txn: &mut Txn, rankings: &mut Rankings, domain: DomainId) -> bool {
        let mark = txn.mark();
        let gang = self.claim.gang;
        let missing = not_promised(&txn.gangs[gang], true);
        let waits = |pod: &PodId| txn.pods.state[*pod] == PodState::Pending;
        let pods: Vec<PodId> = self.wish.pods.iter().copied().filter(waits).collect();
        let wish = Wish { pods: &pods, missing: &missing, ..self.wish };
        let placed = seat(txn, self.policy, rankings, &wish).is_ok()
            && domain_of(txn, gang).is_none_or(|at| txn.domains.holds(domain, at));
        if !placed {
            txn.rewind(mark);
        }
        placed
    }

    /// Gives back what is not needed: whole bundles first, the most valuable first, then single pods of safe ones.
    fn give_back(&self, txn: &mut Txn, rankings: &mut Rankings, domain: DomainId, taken: &mut Vec<Bundle>) {
        for at in (0..taken.len()).rev() {
            if taken[at].kind == Kind::Whole && self.spare(txn, rankings, domain, &taken[at].pods) {
                taken.remove(at);
            }
        }
        let broken: BTreeSet<GangId> =
            taken.iter().filter(|bundle| bundle.kind == Kind::Whole).map(|bundle| bundle.gang).collect();
        for bundle in taken.iter_mut().rev().filter(|bundle| !broken.contains(&bundle.gang)) {
            for at in (0..bundle.pods.len()).rev() {
                if self.spare(txn, rankings, domain, &[bundle.pods[at]]) {
                    bundle.pods.remove(at);
                }
            }
        }
        taken.retain(|bundle| !bundle.pods.is_empty());
    }

    /// Lets pods stay if the gang has its places all the same; only those that they displace are placed again.
    fn spare(&self, txn: &mut Txn, rankings: &mut Rankings, domain: DomainId, pods: &[PodId]) -> bool {
        let mark = txn.mark();
        let mut nodes = BTreeSet::new();
        for &pod in pods {
            let PodState::Releasing(node) = txn.pods.state[pod] else { continue };
            txn.spare(pod, PodState::Running(node));
            nodes.insert(node);
        }
        if nodes.iter().all(|&node| all_stand(txn, self.policy, self.claim.gang, node)) {
            return true;
        }
        let displaced: Vec<PodId> = txn.gangs[self.claim.gang]
            .pods
            .iter()
            .copied()
            .filter(|&pod| matches!(txn.pods.state[pod], PodState::Nominated(node) if nodes.contains(&node)))
            .collect();
        displaced.into_iter().for_each(|pod| txn.release(pod));
        let stands = self.place(txn, rankings, domain)
            && nodes.iter().all(|&node| all_stand(txn, self.policy, self.claim.gang, node));
        if !stands {
            txn.rewind(mark);
        }
        stands
    }

    /// Whether the claimant's queue may have all that it was given.
    fn stays_within(&self, txn: &mut Txn) -> bool {
        let promised = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Nominated(_));
        let Some(&last) = self.wish.pods.iter().rev().find(promised) else { return true };
        let PodState::Nominated(node) = txn.pods.state[last] else { return true };
        txn.release(last);
        let within = self.may_reclaim(txn, last).is_ok();
        txn.nominate(last, node);
        within
    }

    /// Why each leaves. Of gangs that are broken the rest leaves too, if that is wished for.
    fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], needed: &Needed) -> Causes {
        let mut causes = Causes::new();
        for bundle in taken {
            let broken = bundle.kind == Kind::Safe && !txn.gangs[bundle.gang].ready(true);
            if bundle.kind == Kind::Whole && self.taking.bundling.evict_broken {
                let rest = txn.gangs[bundle.gang].pods.clone();
                for pod in rest {
                    let runs = matches!(txn.pods.state[pod], PodState::Running(_));
                    if runs && self.policy.protects(txn, pod).is_none() {
                        txn.evict(pod);
                        bundle.pods.push(pod);
                    }
                }
            }
            let cause = Cause::Bundle {
                whole: bundle.kind == Kind::Whole,
                broken,
                pods: bundle.pods.len() as u32,
                roi: bundle.roi.filter(|_| !needed.is_empty()).unwrap_or_default(),
            };
            causes.extend(bundle.pods.iter().map(|&pod| (pod, cause)));
        }
        causes
    }
}

/// What pods ask for in all.
fn requests(cluster: &Cluster, pods: &[PodId]) -> Needed {
    let mut sums: BTreeMap<ResourceId, i64> = BTreeMap::new();
    for &pod in pods {
        for (resource, amount) in cluster.shapes[cluster.pods.shape[pod]].request.iter() {
            if resource != PODS {
                *sums.entry(resource).or_default() += amount;
            }
        }
    }
    sums.into_iter().filter(|&(_, amount)| amount > 0).collect()
}

/// What the nodes will have too little of for these pods, in all.
fn lacks(cluster: &Cluster, pods: &[PodId], nodes: &[NodeId]) -> Needed {
    let mut lacks = requests(cluster, pods);
    for (resource, lack) in &mut lacks {
        *lack -= nodes.iter().map(|&node| cluster.nodes.future_idle(*resource, node).max(0)).sum::<i64>();
    }
    lacks.retain(|&(_, lack)| lack > 0);
    lacks
}

/// An amount against what the cluster has, so that resources can be added up.
fn weigh(cluster: &Cluster, resource: ResourceId, amount: i64) -> i64 {
    (i128::from(amount) * 1_000_000 / i128::from(cluster.total.get(resource).max(1))) as i64
}
