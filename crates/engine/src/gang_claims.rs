//! Room for a whole gang by whole bundles of others: domain by domain, the nearest first, only what breaks nobody before anyone is
//! broken. The places that the simulation finds are what the gang is promised.

use std::collections::{BTreeMap, BTreeSet};

use muster_api::Time;

use crate::bundles::{self, AT_MINIMUM, Bundle, Kind, Needed};
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
use crate::trace::{DomainOutcome, Record, Trace};
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
    domain: DomainId,
    cost: i64,
    moves: Vec<Move>,
    causes: Causes,
    /// How many were to leave before it turned out that they need not.
    reprieved: u32,
}

/// What comes to light while domains are tried, and why nobody can make room.
struct Findings<'f, 't> {
    refusal: Refusal,
    record: &'f mut Record<'t>,
}

impl Findings<'_, '_> {
    fn begin_pass(&mut self, allowed: Kind) {
        self.refusal = Refusal::default();
        self.tell(|trace| trace.begin_pass(allowed));
    }

    fn keep(&mut self, pods: &[PodId], shield: Shield) {
        pods.iter().for_each(|_| self.refusal.keep(shield));
        self.tell(|trace| trace.keep_bundle(pods, shield.rule));
    }

    /// To someone who looks.
    fn tell(&mut self, what: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &mut self.record.trace {
            what(trace);
        }
    }
}

impl GangTaker<'_> {
    /// Makes room for what the gang lacks in the transaction, and says why each leaves; or why not, and when the first rule ends
    /// that stood in the way and that time alone ends.
    pub fn take(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        until: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Causes, Vec<Reason>> {
        let required = self.required(txn);
        if let Some(&pod) = required.iter().find(|&&pod| txn.never_preempts(pod)) {
            return Err(vec![Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }]);
        }
        if self.claim.purpose == Purpose::Reclaim {
            self.may_reclaim(txn, self.claim.pod).map_err(|reason| vec![reason])?;
        }
        let steps = domains_for(txn, self.claim.gang).map_err(|reason| vec![reason])?;
        let mut findings = Findings { refusal: Refusal::default(), record };
        for allowed in [Kind::Safe, Kind::Whole] {
            if allowed == Kind::Whole && !self.taking.bundling.allow_whole {
                break;
            }
            findings.begin_pass(allowed);
            let mut left = self.taking.bundling.max_domains;
            for step in &steps {
                let domains = self.promising(txn, rankings, &required, step, left, &mut findings);
                left -= domains.len();
                let mut best: Option<Way> = None;
                for (domain, nodes) in domains {
                    let mark = txn.mark();
                    findings.record.work.domains += 1;
                    findings.tell(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
                    let way =
                        self.attempt(txn, rankings, &required, (domain, &nodes), allowed, &mut findings);
                    txn.rewind(mark);
                    if let Some(way) = way
                        && best.as_ref().is_none_or(|known| way.cost < known.cost)
                    {
                        best = Some(way);
                    }
                }
                if let Some(way) = best {
                    findings.tell(|trace| trace.choose(way.domain));
                    let work = &mut findings.record.work;
                    work.selected += way.causes.len() as u32 + way.reprieved;
                    work.reprieved += way.reprieved;
                    txn.replay(&way.moves);
                    return Ok(way.causes);
                }
            }
        }
        *until = findings.refusal.until;
        Err(vec![findings.refusal.reason(self.claim.purpose)])
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
        findings: &mut Findings,
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
            } else {
                findings.tell(|trace| trace.begin_domain(domain, DomainOutcome::TooSmall));
            }
        }
        found.sort_by_key(|&(lack, ..)| lack);
        for (_, domain, _) in found.drain(most.min(found.len())..) {
            findings.tell(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
        }
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
        findings: &mut Findings,
    ) -> Option<Way> {
        let start = txn.mark();
        let mut lack = lacks(txn, required, nodes);
        // Else there is enough in all, but in pieces.
        let needed = if lack.is_empty() { requests(txn, required) } else { lack.clone() };
        let bundles = self.bundles(txn, nodes, &needed, allowed, findings);
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
            placed = self.place(txn, rankings, domain, findings);
            if placed {
                break;
            }
            // The sums are there and the places are not: more and more at a time.
            pause = taken.len() + taken.len().div_ceil(4);
        }
        if !placed && lack.is_empty() && !taken.is_empty() {
            placed = self.place(txn, rankings, domain, findings);
        }
        if !placed {
            findings.refusal.nodes += nodes.len() as u32;
            findings.tell(|trace| trace.conclude_domain(self.failed(txn, rankings, taken, lack)));
            return None;
        }
        let asked = count(&taken);
        self.give_back(txn, rankings, domain, &mut taken, findings);
        let reprieved = asked - count(&taken);
        if self.claim.purpose == Purpose::Reclaim
            && let Err(reason) = self.stays_within(txn)
        {
            let why = vec![reason];
            findings.tell(|trace| trace.conclude_domain(DomainOutcome::Fails { gone: taken, why }));
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
        let cost = causes.keys().map(cost).sum();
        findings.tell(|trace| trace.conclude_domain(DomainOutcome::Works { gone: taken, cost }));
        Some(Way { domain, cost, moves: txn.since(start), causes, reprieved })
    }

    /// Why a domain doesn't do, with all gone who may be asked.
    fn failed(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        gone: Vec<Bundle>,
        lacks: Needed,
    ) -> DomainOutcome {
        if !lacks.is_empty() {
            return DomainOutcome::TooLittle { gone, lacks };
        }
        let mark = txn.mark();
        let why = seat(txn, self.policy, rankings, &self.wish).err().unwrap_or_default();
        txn.rewind(mark);
        DomainOutcome::Fails { gone, why }
    }

    /// What may be asked to leave the nodes, in order, after all rules were asked.
    fn bundles(
        &self,
        txn: &mut Txn,
        nodes: &[NodeId],
        needed: &Needed,
        allowed: Kind,
        findings: &mut Findings,
    ) -> Vec<Bundle> {
        let mut local: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
        let mut kept: BTreeMap<GangId, Shield> = BTreeMap::new();
        for pod in nodes.iter().flat_map(|&node| txn.nodes.seats[node].iter().copied()) {
            let Some(gang) = txn.pods.gang[pod] else { continue };
            match consider(txn, self.policy, &self.claim, pod) {
                Verdict::NoConcern => {}
                Verdict::Kept(shield) => {
                    findings.keep(&[pod], shield);
                    kept.insert(gang, shield);
                }
                Verdict::Free => local.entry(gang).or_default().push(pod),
            }
        }
        let mut found: Vec<Bundle> = Vec::new();
        for (gang, pods) in local {
            let mut bundles = bundles::split(txn, gang, pods, needed);
            bundles.retain(|bundle| {
                let minimum = Shield { rule: AT_MINIMUM, until: None };
                let shield = match bundle.kind {
                    Kind::Safe => None,
                    Kind::Whole if allowed == Kind::Safe => Some(minimum),
                    // A gang is not broken for a part of it.
                    Kind::Whole => kept.get(&gang).copied(),
                };
                shield.iter().for_each(|&shield| findings.keep(&bundle.pods, shield));
                shield.is_none()
            });
            found.extend(bundles);
        }
        bundles::sort(txn, self.policy, &self.claim, &self.taking.bundling, needed, &mut found);
        self.ask(txn, &mut found, findings);
        bundles::sort(txn, self.policy, &self.claim, &self.taking.bundling, needed, &mut found);
        found
    }

    /// Asks the rules that count what has gone, bundle by bundle: a whole one goes whole or not at all, a safe one shrinks.
    fn ask(&self, txn: &mut Txn, bundles: &mut Vec<Bundle>, findings: &mut Findings) {
        let start = txn.mark();
        bundles.retain_mut(|bundle| {
            let mark = txn.mark();
            let mut refused = None;
            bundle.pods.retain(|&pod| match self.policy.restrains(txn, &self.claim, pod) {
                Some(rule) => {
                    let shield = Shield { rule, until: None };
                    findings.keep(&[pod], shield);
                    refused.get_or_insert(shield);
                    false
                }
                None => {
                    txn.evict(pod);
                    true
                }
            });
            if let (Kind::Whole, Some(shield)) = (bundle.kind, refused) {
                findings.keep(&bundle.pods, shield);
                txn.rewind(mark);
                return false;
            }
            !bundle.pods.is_empty()
        });
        txn.rewind(start);
    }

    /// Places the gang in the domain, if it goes there now; else the transaction is as it was.
    fn place(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        domain: DomainId,
        findings: &mut Findings,
    ) -> bool {
        findings.record.work.simulations += 1;
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
    fn give_back(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        domain: DomainId,
        taken: &mut Vec<Bundle>,
        findings: &mut Findings,
    ) {
        for at in (0..taken.len()).rev() {
            if taken[at].kind == Kind::Whole && self.spare(txn, rankings, domain, &taken[at].pods, findings) {
                taken.remove(at);
            }
        }
        let broken: BTreeSet<GangId> =
            taken.iter().filter(|bundle| bundle.kind == Kind::Whole).map(|bundle| bundle.gang).collect();
        for bundle in taken.iter_mut().rev().filter(|bundle| !broken.contains(&bundle.gang)) {
            for at in (0..bundle.pods.len()).rev() {
                if self.spare(txn, rankings, domain, &[bundle.pods[at]], findings) {
                    bundle.pods.remove(at);
                }
            }
        }
        taken.retain(|bundle| !bundle.pods.is_empty());
    }

    /// Lets pods stay if the gang has its places all the same; only those that they displace are placed again.
    fn spare(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        domain: DomainId,
        pods: &[PodId],
        findings: &mut Findings,
    ) -> bool {
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
        let stands = self.place(txn, rankings, domain, findings)
            && nodes.iter().all(|&node| all_stand(txn, self.policy, self.claim.gang, node));
        if !stands {
            txn.rewind(mark);
        }
        stands
    }

    /// Whether the claimant's queue may have all that it was given; if not, why.
    fn stays_within(&self, txn: &mut Txn) -> Result<(), Reason> {
        let promised = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Nominated(_));
        let Some(&last) = self.wish.pods.iter().rev().find(promised) else { return Ok(()) };
        let PodState::Nominated(node) = txn.pods.state[last] else { return Ok(()) };
        txn.release(last);
        let within = self.may_reclaim(txn, last);
        txn.nominate(last, node);
        within
    }

    /// Why each leaves. Of gangs that are broken the rest leaves too, if that is wished for.
    fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], needed: &Needed) -> Causes {
        let mut causes = Causes::new();
        for bundle in taken {
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
                broken: bundle.broken,
                pods: bundle.pods.len() as u32,
                roi: bundle.roi.filter(|_| !needed.is_empty()).unwrap_or_default(),
            };
            causes.extend(bundle.pods.iter().map(|&pod| (pod, cause)));
        }
        causes
    }
}

fn count(bundles: &[Bundle]) -> u32 {
    bundles.iter().map(|bundle| bundle.pods.len() as u32).sum()
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
