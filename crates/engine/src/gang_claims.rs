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
use crate::placement::{Rankings, Wish};
use crate::plan::Cause;
use crate::policy::{Claim, Policy, Purpose, Room, Shield};
use crate::reason::Reason;
use crate::resources::PODS;
use crate::search::domains_for;
use crate::seating::Seating;
use crate::txn::{Move, Txn};
use crate::victims::{Refusal, Verdict, concerns, consider_one, give_again, take_back};

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

/// A domain in which room may be made.
struct Field {
    domain: DomainId,
    /// The nodes there that take pods of the gang.
    nodes: Vec<NodeId>,
    /// What it has too little of.
    lack: Needed,
    /// No way to make room there costs less.
    least: i64,
    /// Who may be asked to leave, in order; once anyone has asked.
    victims: Option<Victims>,
}

struct Victims {
    /// Who lacks nothing in all asks for everything, since what there is is in pieces.
    needed: Needed,
    bundles: Vec<Bundle>,
    kept: Refusal,
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
        let mut left = self.taking.bundling.max_domains;
        let mut fields: Vec<Vec<Field>> = Vec::new();
        for step in &steps {
            fields.push(self.promising(txn, rankings, &required, step, left));
            left -= fields.last().map_or(0, Vec::len);
        }
        let mut refusal = Refusal::default();
        for allowed in [Kind::Safe, Kind::Whole] {
            if allowed == Kind::Whole && !self.taking.bundling.allow_whole {
                break;
            }
            refusal = Refusal::default();
            for step in &mut fields {
                if let Some(causes) = self.take_in(txn, rankings, &required, step, allowed, &mut refusal) {
                    return Ok(causes);
                }
            }
        }
        *until = refusal.until;
        Err(vec![refusal.reason(self.claim.purpose)])
    }

    /// Makes room in the domain of a step where that costs least.
    fn take_in(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        required: &[PodId],
        step: &mut [Field],
        allowed: Kind,
        refusal: &mut Refusal,
    ) -> Option<Causes> {
        let mut best: Option<Way> = None;
        for at in 0..step.len() {
            if best.as_ref().is_some_and(|best| best.cost <= step[at].least) {
                break;
            }
            let mark = txn.mark();
            let found = self.attempt(txn, rankings, required, &mut step[at], allowed, refusal);
            if let Some((cost, causes)) = found
                && best.as_ref().is_none_or(|best| cost < best.cost)
            {
                // What can't be beaten stays as it is.
                if step.get(at + 1).is_none_or(|next| next.least >= cost) {
                    return Some(causes);
                }
                best = Some(Way { cost, moves: txn.since(mark), causes });
            }
            txn.rewind(mark);
        }
        let way = best?;
        txn.replay(&way.moves);
        Some(way.causes)
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

    /// Of these domains, those that could hold the gang if they were empty; where least is lacking first.
    fn promising(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        required: &[PodId],
        step: &[DomainId],
        most: usize,
    ) -> Vec<Field> {
        let mut shapes: BTreeMap<ShapeId, u32> = BTreeMap::new();
        for &pod in required {
            *shapes.entry(txn.pods.shape[pod]).or_default() += 1;
        }
        let wanted = requests(txn, required);
        let mut found = Vec::new();
        for &domain in step {
            let ranks = txn.domains.ranks(domain);
            let nodes = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
            let mut open = vec![false; nodes.len()];
            let holds = shapes.iter().all(|(&shape, &count)| {
                let ranking = rankings.of(txn, self.policy, shape, Room::Later);
                open.iter_mut().zip(nodes).for_each(|(open, &node)| *open |= ranking.is_open(node));
                let count = if shapes.len() == 1 { count } else { 1 };
                ranking.could_hold(txn, shape, count, ranks.clone())
            });
            if holds {
                let nodes: Vec<NodeId> =
                    nodes.iter().zip(open).filter(|(_, open)| *open).map(|(&node, _)| node).collect();
                let lack = lacks(txn, &wanted, &nodes);
                let least = lack.iter().map(|&(resource, lack)| weigh(&wanted, resource, lack)).sum();
                found.push(Field { domain, nodes, lack, least, victims: None });
            }
        }
        found.sort_by_key(|field| field.least);
        found.truncate(most);
        found
    }

    /// Makes room in one domain, with as few gone as possible, and says what that costs. Leaves its moves in the transaction either
    /// way.
    fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        required: &[PodId],
        field: &mut Field,
        allowed: Kind,
        refusal: &mut Refusal,
    ) -> Option<(i64, Causes)> {
        let promises = take_back(txn, &self.claim, &field.nodes);
        let wanted = requests(txn, required);
        let mut lack = match promises.is_empty() {
            true => field.lack.clone(),
            false => lacks(txn, &wanted, &field.nodes),
        };
        let mut seating = Seating::new(txn, self.policy, self.wish, required, field.domain);
        let mut seated = !promises.is_empty() && lack.is_empty() && seating.seat(txn, rankings);
        let mut taken: Vec<Bundle> = Vec::new();
        if !seated {
            self.know_victims(txn, &wanted, field);
        }
        let nobody = Victims { needed: wanted.clone(), bundles: Vec::new(), kept: Refusal::default() };
        let victims = field.victims.as_ref().unwrap_or(&nobody);
        for bundle in victims.bundles.iter().filter(|bundle| bundle.kind <= allowed) {
            if seated {
                break;
            }
            let Some(bundle) = self.evict(txn, bundle, refusal) else { continue };
            for &pod in &bundle.pods {
                for (resource, lack) in &mut lack {
                    *lack -= txn.request_of(txn.pods.shape[pod], *resource);
                }
            }
            lack.retain(|&(_, lack)| lack > 0);
            taken.push(bundle);
            seated = lack.is_empty() && seating.seat(txn, rankings);
        }
        if !seated && lack.is_empty() && !taken.is_empty() {
            seated = seating.seat_now(txn, rankings);
        }
        if !seated {
            refusal.add(&victims.kept);
            refusal.nodes += field.nodes.len() as u32;
            return None;
        }
        give_back(txn, rankings, &mut seating, &mut taken);
        if self.claim.purpose == Purpose::Reclaim && !self.stays_within(txn) {
            return None;
        }
        give_again(txn, self.policy, &promises);
        let causes = self.causes(txn, &mut taken, victims);
        let of_pod = |&pod: &PodId| -> i64 {
            let amount = |&(resource, _): &(ResourceId, i64)| {
                weigh(&wanted, resource, txn.request_of(txn.pods.shape[pod], resource))
            };
            victims.needed.iter().map(amount).sum()
        };
        Some((causes.keys().map(of_pod).sum(), causes))
    }

    /// Finds out who may be asked to leave a domain, in order.
    fn know_victims(&self, txn: &mut Txn, wanted: &Needed, field: &mut Field) {
        if field.victims.is_some() {
            return;
        }
        let needed = if field.lack.is_empty() { wanted.clone() } else { field.lack.clone() };
        let mut local: Vec<(GangId, PodId)> = Vec::new();
        for pod in field.nodes.iter().flat_map(|&node| txn.nodes.seats[node].iter().copied()) {
            if let (Some(gang), PodState::Running(_)) = (txn.pods.gang[pod], txn.pods.state[pod]) {
                local.push((gang, pod));
            }
        }
        local.sort_unstable();
        let mut kept = Refusal::default();
        let mut bundles: Vec<Bundle> = Vec::new();
        for pods in local.chunk_by(|a, b| a.0 == b.0) {
            let gang = pods[0].0;
            if !concerns(txn, &self.claim, gang) {
                continue;
            }
            let mut free: Vec<PodId> = Vec::with_capacity(pods.len());
            let mut whole = true;
            for &(_, pod) in pods {
                match consider_one(txn, self.policy, &self.claim, pod) {
                    Verdict::NoConcern => {}
                    Verdict::Kept(shield) => {
                        kept.keep(shield);
                        whole = false;
                    }
                    Verdict::Free => free.push(pod),
                }
            }
            let before = bundles.len();
            bundles::split(txn, gang, &mut free, &needed, &mut bundles);
            // A gang is not broken for a part of it.
            if !whole && bundles.len() > before {
                bundles.pop_if(|bundle| bundle.kind == Kind::Whole);
            }
        }
        bundles::sort(txn, self.policy, &self.claim, &self.taking.bundling, &mut bundles);
        field.victims = Some(Victims { needed, bundles, kept });
    }

    /// Asks the pods of a bundle to leave, after the rules that count what has gone: who goes together goes whole or not at all, others
    /// as far as they may.
    fn evict(&self, txn: &mut Txn, bundle: &Bundle, refusal: &mut Refusal) -> Option<Bundle> {
        let mark = txn.mark();
        let mut gone = Vec::with_capacity(bundle.pods.len());
        for &pod in &bundle.pods {
            match self.policy.restrains(txn, &self.claim, pod) {
                Some(rule) => {
                    refusal.keep(Shield { rule, until: None });
                    if bundle.together {
                        txn.rewind(mark);
                        return None;
                    }
                }
                None => {
                    txn.evict(pod);
                    gone.push(pod);
                }
            }
        }
        (!gone.is_empty()).then(|| bundle.of(gone))
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
    fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], victims: &Victims) -> Causes {
        let mut causes = Causes::new();
        let broken_gangs = broken(taken);
        let stays = |bundle: &&Bundle| bundle.kind == Kind::Whole && !broken_gangs.contains(&bundle.gang);
        let next = victims.bundles.iter().find(stays).and_then(|bundle| Some((bundle.gang, bundle.roi?)));
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
                roi: bundle.roi.unwrap_or_default(),
                against: next.filter(|_| bundle.kind == Kind::Whole),
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

/// What the nodes will have too little of, in all.
fn lacks(cluster: &Cluster, wanted: &Needed, nodes: &[NodeId]) -> Needed {
    let mut lacks = wanted.clone();
    for (resource, lack) in &mut lacks {
        *lack -= nodes.iter().map(|&node| cluster.nodes.future_idle(*resource, node).max(0)).sum::<i64>();
    }
    lacks.retain(|&(_, lack)| lack > 0);
    lacks
}

/// An amount against what is wanted in all, in parts per million, so that resources can be added up and domains compared.
fn weigh(wanted: &Needed, resource: ResourceId, amount: i64) -> i64 {
    wanted.iter().find(|(of, _)| *of == resource).map_or(0, |&(_, wanted)| bundles::share(amount, wanted))
}

/// Gives back what is not needed: what breaks a gang first, the most valuable first, then what goes together, then single pods.
fn give_back(txn: &mut Txn, rankings: &mut Rankings, seating: &mut Seating, taken: &mut Vec<Bundle>) {
    for kind in [Kind::Whole, Kind::Safe] {
        let broken = broken(taken);
        for at in (0..taken.len()).rev() {
            let bundle = &taken[at];
            if bundle.kind != kind || !bundle.together || kind == Kind::Safe && broken.contains(&bundle.gang)
            {
                continue;
            }
            if seating.spare(txn, rankings, &bundle.pods) {
                taken.remove(at);
            }
        }
    }
    let broken = broken(taken);
    for bundle in taken.iter_mut().rev().filter(|bundle| !bundle.together && !broken.contains(&bundle.gang)) {
        for at in (0..bundle.pods.len()).rev() {
            if seating.spare(txn, rankings, &[bundle.pods[at]]) {
                bundle.pods.remove(at);
            }
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
}

/// The gangs that are broken.
fn broken(taken: &[Bundle]) -> BTreeSet<GangId> {
    taken.iter().filter(|bundle| bundle.kind == Kind::Whole).map(|bundle| bundle.gang).collect()
}
