//! Room for a whole gang by whole bundles of others: domain by domain, the nearest first, only what
//! breaks nobody before anyone is broken. The places that the simulation finds are what the gang is
//! promised.

pub mod moving;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muster_api::Time;
use rustc_hash::FxHashSet;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, ResourceId, ShapeId};
use crate::base::parts_per_million;
use crate::base::purpose::Purpose;
use crate::base::resources::{Amounts, PODS};
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::reason::Reason;
use crate::eviction::bundles::Tenant;
use crate::eviction::domain_fit::Seating;
use crate::eviction::failed_searches::Progress;
use crate::eviction::order::by_turns;
use crate::eviction::trace::{DomainOutcome, Record, Trace};
use crate::eviction::victims::{
    Refusal, Verdict, concerns, consider_one, give_again, take_back, weaker,
};
use crate::eviction::{bundles, cheapest_nodes, relocate};
use crate::model::Cluster;
use crate::model::gangs::missing::required;
use crate::model::pods::PodState;
use crate::model::shapes::{shapes, size_of};
use crate::model::txn::{Move, Txn};
use crate::nomination::release::suffice;
use crate::placement::domains::domains_for;
use crate::placement::rankings::Rankings;
use crate::placement::request::Wish;
use crate::placement::search::seat;
use crate::policy::answers::Policy;
use crate::policy::bundle::{AT_MINIMUM, Bundle, Kind, Needed};
use crate::policy::plugin::Shield;
use crate::policy::preemptor::Claim;
use crate::settings::eviction::Taking;

/// How many bundles are tried as the first where the usual order leads to nothing.
pub const HEADS: usize = 16;

/// The rule that keeps what would be given back at once.
const GOES_FIRST: &str = "being served before the claimant";

/// Why each pod leaves.
pub type Causes = BTreeMap<PodId, Cause>;

/// A gang that takes room by bundles.
pub struct GangTaker<'t> {
    pub policy: &'t Policy,
    pub taking: &'t Taking,
    /// How many moves may be tried.
    pub budget: u64,
    /// For the first of its pods.
    pub claim: Claim,
    pub wish: Wish<'t>,
    /// What its queue had before.
    pub had: &'t Amounts,
}

/// What a gang lacks.
pub struct Need {
    /// In the order in which they are placed.
    pods: Vec<PodId>,
    /// How many pods of each, the largest first.
    shapes: Vec<(ShapeId, u32)>,
    /// What they ask for in all.
    wanted: Needed,
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
    /// Who may be asked to leave, once anyone has asked.
    victims: Option<Victims>,
}

#[derive(Default)]
struct Victims {
    /// What is lacking; all that is wanted where nothing is in all, since what there is is in
    /// pieces.
    needed: Needed,
    /// In the order in which they leave.
    bundles: Vec<Bundle>,
    kept: Vec<(PodId, Shield)>,
}

/// Those who left a domain so that everyone has a place there.
struct Cleared {
    cost: i64,
    taken: Vec<Bundle>,
    /// Those of them that have another place, and where.
    moved: Vec<(PodId, NodeId)>,
    /// How many were to leave before it turned out that they need not.
    reprieved: u32,
}

/// A way to make room in a domain.
pub struct Way {
    cost: i64,
    causes: Causes,
    reprieved: u32,
}

/// What comes to light while domains are tried, and why nobody can make room.
pub struct Findings<'f, 't> {
    refusal: Refusal,
    /// Who is kept has been told.
    again: bool,
    /// A rule that counts what has gone has kept someone.
    restrained: bool,
    /// There was no time for all domains.
    cut: bool,
    /// There was no time for all that could be tried in a domain.
    spent: bool,
    /// What the claimant's queue may not have, where there would be room.
    limit: Option<Reason>,
    record: &'f mut Record<'t>,
}

impl Findings<'_, '_> {
    fn begin_pass(&mut self, allowed: Kind) {
        self.refusal = Refusal::default();
        self.tell(|trace| trace.begin_pass(allowed));
    }

    fn keep(&mut self, pods: &[PodId], shield: Shield) {
        if self.again {
            return;
        }
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
    /// Makes room for what the gang lacks in the transaction, and says why each leaves; or why not,
    /// and when the first rule ends that stood in the way and that time alone ends.
    pub fn take(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        until: &mut Option<Time>,
        record: &mut Record,
    ) -> Result<Causes, Vec<Reason>> {
        let need = self.need(txn);
        if let Some(&pod) = need.pods.iter().find(|&&pod| txn.never_preempts(pod)) {
            return Err(vec![Reason::NeverPreempts { pod: txn.pods.name(pod).clone() }]);
        }
        self.policy.may_hold(txn, self.claim.gang, &need.wanted).map_err(|reason| vec![reason])?;
        if self.claim.purpose == Purpose::Reclaim {
            self.policy.may_reclaim(txn, &self.claim).map_err(|reason| vec![reason])?;
        }
        let moves = self.claim.purpose == Purpose::Consolidate;
        if moves && !self.there_is_enough(txn, &need) {
            return Err(Vec::new());
        }
        let steps = domains_for(txn, self.claim.gang).map_err(|reason| vec![reason])?;
        let (refusal, limit) = (Refusal::default(), None);
        let (again, restrained, cut, spent) = (false, false, false, false);
        let mut findings = Findings { refusal, again, restrained, cut, spent, limit, record };
        let bundling = &self.taking.bundling;
        let passes: &[Kind] =
            match (bundling.allow_whole, bundling.priority_first || self.by_turns()) {
                (false, _) => &[Kind::Safe],
                (true, true) => &[Kind::Whole],
                (true, false) => &[Kind::Safe, Kind::Whole],
            };
        let mut fields: Vec<Vec<Field>> = Vec::new();
        for &allowed in passes {
            findings.begin_pass(allowed);
            let mut left = bundling.max_domains;
            for (at, step) in steps.iter().enumerate() {
                if fields.len() == at {
                    fields.push(self.promising(txn, rankings, &need, step));
                }
                for &domain in step
                    .iter()
                    .filter(|&&domain| fields[at].iter().all(|field| field.domain != domain))
                {
                    findings.record.work.scenarios += 1;
                    findings.record.work.filtered += 1;
                    findings.tell(|trace| trace.begin_domain(domain, DomainOutcome::TooSmall));
                }
                let progress = &findings.record.progress;
                fields[at].sort_by_cached_key(|field| progress.turn(field.domain));
                let known = |field: &&Field| progress.tried.contains(&field.domain);
                let known = fields[at].iter().filter(known).count();
                let most = left.min(fields[at].len() - known);
                let (tried, others) = fields[at][known..].split_at_mut(most);
                let all = others.is_empty();
                for field in &*others {
                    findings
                        .tell(|trace| trace.begin_domain(field.domain, DomainOutcome::NotTried));
                }
                left -= tried.len();
                if let Some(way) = self.take_in(txn, rankings, &need, tried, allowed, &mut findings)
                {
                    let work = &mut findings.record.work;
                    work.selected += way.causes.len() as u32 + way.reprieved;
                    work.reprieved += way.reprieved;
                    return Ok(way.causes);
                }
                // By scenarios the next cycle goes on with the others.
                findings.cut |= !all && self.by_turns();
                if findings.cut {
                    break;
                }
            }
        }
        let Findings { refusal, limit, cut, record, .. } = findings;
        let (progress, purpose) = (&mut record.progress, self.claim.purpose);
        progress.refused.add(refusal);
        progress.limit = progress.limit.take().or(limit);
        *until = progress.refused.until;
        if cut {
            return Err(vec![Reason::NotAttempted { purpose, steps: txn.steps() }]);
        }
        let Progress { limit, refused, .. } = std::mem::take(progress);
        Err(vec![limit.unwrap_or_else(|| refused.reason(purpose))])
    }

    /// Makes room in the domain of a step where that costs least.
    fn take_in(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        step: &mut [Field],
        allowed: Kind,
        findings: &mut Findings,
    ) -> Option<Way> {
        let mut best: Option<(Way, DomainId, Vec<Move>)> = None;
        for at in 0..step.len() {
            // One is begun in any case, so that the search comes to an end.
            if findings.record.work.domains > 0 && !self.may_go_on(txn) {
                findings.cut |= best.is_none();
                break;
            }
            let domain = step[at].domain;
            findings.tell(|trace| trace.begin_domain(domain, DomainOutcome::NotTried));
            if best.as_ref().is_some_and(|(best, ..)| best.cost <= step[at].least) {
                continue;
            }
            let mark = txn.mark();
            findings.record.work.domains += 1;
            let refusal = findings.refusal.clone();
            findings.spent = false;
            let found = match self.claim.purpose {
                Purpose::Consolidate => {
                    self.move_others(txn, rankings, need, (domain, &step[at].nodes), findings)
                }
                _ => self.attempt(txn, rankings, need, &mut step[at], allowed, findings),
            };
            if found.is_none() && findings.spent {
                // The next cycle goes on here; with more, if this was all that was tried.
                findings.record.progress.doubled += u32::from(findings.record.work.domains == 1);
                findings.refusal = refusal;
                findings.cut |= best.is_none();
                txn.rewind(mark);
                break;
            }
            if self.by_turns() {
                findings.record.progress.finish(domain);
            }
            if let Some(way) = found
                && best.as_ref().is_none_or(|(best, ..)| way.cost < best.cost)
            {
                let unbeaten = step[at + 1..].iter().all(|next| next.least >= way.cost);
                if unbeaten {
                    // What can't be beaten stays as it is.
                    findings.tell(|trace| trace.choose(domain));
                    return Some(way);
                }
                best = Some((way, domain, txn.since(mark)));
            }
            txn.rewind(mark);
        }
        let (way, domain, moves) = best?;
        findings.tell(|trace| trace.choose(domain));
        txn.replay(&moves);
        Some(way)
    }

    /// Bundles are taken in the order of queues and priorities, and whoever leaves is placed
    /// elsewhere if that can be.
    fn by_turns(&self) -> bool {
        self.claim.by_fair_share()
    }

    /// Whether more may be tried for this gang.
    fn may_go_on(&self, txn: &Txn) -> bool {
        !self.by_turns() || txn.steps() < self.budget
    }

    fn need(&self, cluster: &Cluster) -> Need {
        let pods = required(cluster, self.wish.pods, self.wish.missing);
        let mut shapes = shapes(cluster, &pods);
        // Of equal size, as they are placed.
        let first = |shape: ShapeId| pods.iter().position(|&pod| cluster.pods.shape[pod] == shape);
        shapes.sort_by_cached_key(|&(shape, _)| (Reverse(size_of(cluster, shape)), first(shape)));
        let mut sums: BTreeMap<ResourceId, i64> = BTreeMap::new();
        for &(shape, count) in &shapes {
            for (resource, amount) in cluster.shapes[shape].request.iter() {
                *sums.entry(resource).or_default() += amount * i64::from(count);
            }
        }
        let wanted =
            sums.into_iter().filter(|&(resource, amount)| resource != PODS && amount > 0).collect();
        Need { pods, shapes, wanted }
    }

    /// Of these domains, those that could hold the gang if they were empty; where least is lacking
    /// first.
    fn promising(
        &self,
        txn: &Txn,
        rankings: &mut Rankings,
        need: &Need,
        step: &[DomainId],
    ) -> Vec<Field> {
        let mut found = Vec::new();
        for &domain in step {
            let ranks = txn.domains.ranks(domain);
            let nodes = &txn.nodes.by_rank[ranks.start as usize..ranks.end as usize];
            let mut open = vec![false; nodes.len()];
            let holds = need.shapes.iter().all(|&(shape, count)| {
                let ranking = rankings.of(txn, self.policy, shape, Room::Later);
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
                // Promises that are taken back cost nothing, and who is moved half.
                let least = if weaker(txn, &self.claim, &nodes).is_empty() { least } else { 0 };
                let least = if self.by_turns() { least / 2 } else { least };
                found.push(Field { domain, nodes, lack, least, victims: None });
            }
        }
        found.sort_by_key(|field| field.least);
        found
    }

    /// Makes room in one domain. Leaves its moves in the transaction either way.
    fn attempt(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        field: &mut Field,
        allowed: Kind,
        findings: &mut Findings,
    ) -> Option<Way> {
        if field.victims.is_none() {
            field.victims = Some(self.victims(txn, need, field));
        }
        let promises = take_back(txn, &self.claim, &field.nodes);
        let victims = field.victims.as_ref()?;
        victims.kept.iter().for_each(|&(pod, shield)| findings.keep(&[pod], shield));
        let (mut bundles, others): (Vec<&Bundle>, Vec<&Bundle>) =
            victims.bundles.iter().partition(|bundle| bundle.kind <= allowed);
        let minimum = Shield { rule: AT_MINIMUM, until: None };
        others.iter().for_each(|bundle| findings.keep(&bundle.pods, minimum));
        let start = txn.mark();
        findings.restrained = false;
        let mut cleared =
            self.clear(txn, rankings, need, (field, victims), (&bundles, false), findings);
        let others = bundles.iter().any(|bundle| !bundle.instead.is_empty());
        let promising = match &cleared {
            Some(cleared) => cleared.cost > field.least && (others || bundles.len() > 1),
            // All have left who may: in another order they are no more, unless a rule counted.
            None => others || findings.restrained,
        };
        if promising {
            let worst = cleared
                .as_ref()
                .map(|cleared| cleared.taken.iter().map(|bundle| bundle.class).max());
            bundles.retain(|bundle| worst.is_none_or(|worst| worst >= Some(bundle.class)));
            let moves = txn.since(start);
            txn.rewind(start);
            findings.again = true;
            let better = self.clear_otherwise(
                txn,
                rankings,
                need,
                (field, victims),
                (&bundles, cleared.as_ref()),
                findings,
            );
            findings.again = false;
            match better {
                Some(better) => cleared = Some(better),
                None => txn.replay(&moves),
            }
        }
        let Some(mut cleared) = cleared else {
            findings.refusal.nodes += field.nodes.len() as u32;
            return None;
        };
        give_again(txn, self.policy, &promises);
        let causes = self.causes(txn, &mut cleared.taken, victims);
        let Cleared { cost, taken, moved, reprieved } = cleared;
        findings
            .tell(|trace| trace.conclude_domain(DomainOutcome::Works { gone: taken, moved, cost }));
        Some(Way { cost, causes, reprieved })
    }

    /// Looks for a way that costs less than the one that is known, with these bundles in another
    /// order. Leaves its moves in the transaction if it finds one.
    fn clear_otherwise(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (field, victims): (&Field, &Victims),
        (bundles, known): (&[&Bundle], Option<&Cleared>),
        findings: &mut Findings,
    ) -> Option<Cleared> {
        let start = txn.mark();
        let single: Vec<Bundle> = bundles.iter().flat_map(|bundle| bundle.one_by_one()).collect();
        let losses: Vec<i64> =
            single.iter().map(|bundle| need.loss(txn, victims, bundle)).collect();
        // Place after place, each where least is lost.
        let mut spare: BTreeMap<GangId, usize> = BTreeMap::new();
        for bundle in bundles.iter().filter(|bundle| bundle.kind == Kind::Safe && !bundle.together)
        {
            *spare.entry(bundle.gang).or_default() += bundle.pods.len();
        }
        let order =
            cheapest_nodes::by_place(txn, &need.shapes, &field.nodes, &single, &losses, spare);
        // And where a rule lets only so many go, each of the first before all others.
        let heads = if known.is_none() && findings.restrained { HEADS.min(order.len()) } else { 1 };
        for head in 0..heads {
            if head > 0 && !self.may_go_on(txn) {
                findings.spent |= known.is_none();
                break;
            }
            let ahead = std::iter::once(order[head]);
            let others = order.iter().copied().filter(|&at| at != order[head]);
            let ordered: Vec<&Bundle> = ahead.chain(others).map(|at| &single[at]).collect();
            let found =
                self.clear(txn, rankings, need, (field, victims), (&ordered, false), findings);
            if let Some(found) =
                found.filter(|found| known.is_none_or(|known| found.cost < known.cost))
            {
                return Some(found);
            }
            txn.rewind(start);
        }
        let moves = self.claim.purpose == Purpose::Reclaim && !self.taking.bundling.counts_moved;
        if known.is_some() || !findings.restrained || !self.by_turns() || !moves {
            return None;
        }
        // Whoever has another place isn't taken from its queue.
        let ordered: Vec<&Bundle> = order.iter().map(|&at| &single[at]).collect();
        self.clear(txn, rankings, need, (field, victims), (&ordered, true), findings)
    }

    /// Lets bundles leave in this order until everyone has a place, and as few as possible; then
    /// also those whom their queue keeps, if they may be moved. Leaves its moves in the
    /// transaction either way.
    fn clear(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        need: &Need,
        (field, victims): (&Field, &Victims),
        (bundles, moves): (&[&Bundle], bool),
        findings: &mut Findings,
    ) -> Option<Cleared> {
        let mut lack = need.lacks(txn, &field.nodes);
        let mut seating = Seating::new(txn, self.policy, self.wish, &need.pods, field.domain);
        let mut taken: Vec<Bundle> = Vec::new();
        let mut seated = lack.is_empty() && seating.seat(txn, rankings);
        let mut line: VecDeque<(&Bundle, bool)> =
            bundles.iter().map(|&bundle| (bundle, false)).collect();
        while !seated && let Some((bundle, freely)) = line.pop_front() {
            if !self.may_go_on(txn) {
                findings.spent = true;
                return None;
            }
            let Some(bundle) = self.evict(txn, bundle, freely, findings) else {
                line.extend((moves && !freely).then_some((bundle, true)));
                continue;
            };
            for &pod in &bundle.pods {
                for (resource, lack) in &mut lack {
                    *lack -= txn.request_of(txn.pods.shape[pod], *resource);
                }
            }
            lack.retain(|&(_, lack)| lack > 0);
            taken.push(bundle);
            findings.record.work.scenarios += 1;
            findings.record.work.filtered += u32::from(!lack.is_empty());
            seated = lack.is_empty() && seating.seat(txn, rankings);
        }
        seated = seated || lack.is_empty() && seating.seat_anew(txn, rankings);
        if !seated {
            findings.record.work.simulations += seating.tries;
            findings.tell(|trace| trace.conclude_domain(self.failed(txn, rankings, taken, lack)));
            return None;
        }
        let asked = count(&taken);
        give_back(txn, rankings, &mut seating, &mut taken);
        findings.record.work.simulations += seating.tries;
        let moved =
            if self.by_turns() { self.rehouse(txn, rankings, &mut taken) } else { Vec::new() };
        if moves && (moved.len() > self.taking.max_moves || !self.lost_fairly(txn, &taken, &moved))
        {
            return None;
        }
        if let Err(reason) = self.stands(txn, &taken, &moved) {
            // In another order it might.
            findings.restrained |= self.by_turns();
            findings.limit.get_or_insert_with(|| reason.clone());
            let why = vec![reason];
            findings.tell(|trace| trace.conclude_domain(DomainOutcome::Fails { gone: taken, why }));
            return None;
        }
        // All of a gang that breaks is lost with its whole bundle.
        let gangs = broken(&taken);
        let lost = |bundle: &&Bundle| bundle.kind == Kind::Whole || !gangs.contains(&bundle.gang);
        let loss = |bundle: &Bundle| match bundle.kind {
            Kind::Whole => need.loss(txn, victims, bundle),
            Kind::Safe => {
                let (moved, lost) = bundle.pods.iter().partition(|pod| is_moved(&moved, **pod));
                need.loss(txn, victims, &bundle.of(moved)) / 2
                    + need.loss(txn, victims, &bundle.of(lost))
            }
        };
        let cost = taken.iter().filter(lost).map(loss).sum();
        Some(Cleared { cost, reprieved: asked - count(&taken), taken, moved })
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
        let own = txn.gangs[self.claim.gang].pods.clone();
        let promised = |pod: &PodId| {
            matches!(txn.pods.state[*pod], PodState::Nominated(_)) && self.wish.pods.contains(pod)
        };
        let seated: Vec<PodId> = own.into_iter().filter(promised).collect();
        seated.into_iter().for_each(|pod| txn.release(pod));
        let why = seat(txn, self.policy, rankings, &self.wish).err().unwrap_or_default();
        txn.rewind(mark);
        DomainOutcome::Fails { gone, why }
    }

    /// Who may be asked to leave a domain, in order.
    fn victims(&self, txn: &mut Txn, need: &Need, field: &Field) -> Victims {
        let needed = if field.lack.is_empty() { need.wanted.clone() } else { field.lack.clone() };
        let ranks = txn.domains.ranks(field.domain);
        let place =
            |cluster: &Cluster, node: NodeId| (cluster.nodes.rank[node] - ranks.start) as usize;
        let mut open = vec![false; ranks.len()];
        field.nodes.iter().for_each(|&node| open[place(txn, node)] = true);
        let is_open = |cluster: &Cluster, node: NodeId| {
            ranks.contains(&cluster.nodes.rank[node]) && open[place(cluster, node)]
        };
        // What breaks leaves as a whole, wherever it is.
        let everywhere = self.by_turns();
        let mut gangs: Vec<GangId> = Vec::new();
        let mut met: FxHashSet<GangId> = FxHashSet::default();
        for &pod in field.nodes.iter().flat_map(|&node| &txn.nodes.seats[node]) {
            gangs.extend(txn.pods.gang[pod].filter(|&gang| met.insert(gang)));
        }
        gangs.retain(|&gang| concerns(txn, &self.claim, gang));
        let mut local: Vec<(GangId, PodId)> = Vec::new();
        for &gang in &gangs {
            let here = |pod: &PodId| match txn.pods.state[*pod] {
                PodState::Running(node) => everywhere || is_open(txn, node),
                _ => false,
            };
            local.extend(txn.gangs[gang].pods.iter().copied().filter(here).map(|pod| (gang, pod)));
        }
        let mut kept: Vec<(PodId, Shield)> = Vec::new();
        let mut partly: BTreeSet<GangId> = BTreeSet::new();
        local.retain(|&(gang, pod)| match consider_one(txn, self.policy, &self.claim, pod) {
            Verdict::NoConcern => false,
            Verdict::Kept(shield) => {
                kept.push((pod, shield));
                partly.insert(gang);
                false
            }
            Verdict::Free => true,
        });
        let deficits = self.deficits(txn, need, field.domain, &local);
        let mut bundles: Vec<Bundle> = Vec::new();
        let mut free: Vec<Tenant> = Vec::new();
        for pods in local.chunk_by(|a, b| a.0 == b.0) {
            let gang = pods[0].0;
            free.clear();
            free.extend(pods.iter().map(|&(_, pod)| {
                let node = txn.pods.state[pod].node().filter(|&node| is_open(txn, node));
                let deficit = node.and_then(|node| deficits[place(txn, node)]);
                Tenant { pod, deficit }
            }));
            let before = bundles.len();
            bundles::split(txn, gang, &mut free, &needed, &mut bundles);
            // A gang is not broken for a part of it.
            let whole = |bundle: &mut Bundle| bundle.gang == gang && bundle.kind == Kind::Whole;
            if partly.contains(&gang)
                && bundles.len() > before
                && let Some(bundle) = bundles.pop_if(whole)
            {
                let shield = kept
                    .iter()
                    .find(|(pod, _)| txn.pods.gang[*pod] == Some(gang))
                    .map(|&(_, shield)| shield);
                kept.extend(bundle.pods.iter().filter_map(|&pod| Some((pod, shield?))));
            }
        }
        let mut bundles = match self.by_turns() {
            true => by_turns(txn, self.policy, &self.claim, &bundles),
            false => self.policy.select(txn, &self.claim, &self.taking.bundling, &needed, bundles),
        };
        let pods: Vec<PodId> =
            bundles.iter().flat_map(|bundle| bundle.pods.iter().copied()).collect();
        let broken: BTreeSet<PodId> =
            self.policy.breaks(txn, &self.claim, &pods).into_iter().collect();
        if !broken.is_empty() {
            let last = bundles.iter().map(|bundle| bundle.class + 1).max().unwrap_or(0);
            let breaks = |bundle: &&mut Bundle| bundle.pods.iter().any(|pod| broken.contains(pod));
            bundles.iter_mut().filter(breaks).for_each(|bundle| bundle.class += last);
            bundles.sort_by_key(|bundle| bundle.class);
        }
        Victims { needed, bundles, kept }
    }

    /// What each node of a domain lacks for a pod of the gang, against all that is wanted; nothing
    /// if no pod would fit there whoever leaves.
    fn deficits(
        &self,
        cluster: &Cluster,
        need: &Need,
        domain: DomainId,
        local: &[(GangId, PodId)],
    ) -> Vec<Option<i64>> {
        let asked = |&(shape, _): &(ShapeId, u32)| {
            cluster.shapes[shape].request.iter().map(|(resource, _)| resource)
        };
        let resources: BTreeSet<ResourceId> = need.shapes.iter().flat_map(asked).collect();
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
        // Where the queue may take no more, it helps that anyone leaves.
        let limited = |&(shape, _): &(ShapeId, u32)| {
            self.policy.may_take(cluster, self.claim.gang, shape, Room::Later).is_err()
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

    /// Asks the pods of a bundle to leave, after the rules that count what has gone: who goes
    /// together goes whole or not at all, others as far as they may. Freely, if it doesn't
    /// matter yet what their queue keeps.
    fn evict(
        &self,
        txn: &mut Txn,
        bundle: &Bundle,
        freely: bool,
        findings: &mut Findings,
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
                && let Some(rule) = self.withheld(txn, bundle.gang)
            {
                findings.restrained = true;
                findings.keep(&bundle.pods, Shield { rule, until: None });
                txn.rewind(mark);
                return None;
            }
            let alone = bundle.kind == Kind::Safe && !bundle.together && !bundle.broken;
            if alone && !txn.gangs[bundle.gang].can_spare(txn.pods.place(pod)) {
                continue;
            }
            match self.policy.restrains(txn, &self.claim, pod) {
                Some(shield) => {
                    findings.restrained = true;
                    if bundle.together {
                        findings.keep(&bundle.pods, shield);
                        txn.rewind(mark);
                        return None;
                    }
                    findings.keep(&[pod], shield);
                }
                None => {
                    txn.evict(pod);
                    gone.push(pod);
                }
            }
        }
        if !gone.is_empty() && !freely && self.goes_first(txn, bundle.gang) {
            findings.restrained = true;
            findings.keep(&gone, Shield { rule: GOES_FIRST, until: None });
            txn.rewind(mark);
            return None;
        }
        (!gone.is_empty()).then(|| bundle.of(gone))
    }

    /// The rule that keeps what leaves a gang at once, if queues are measured by fair shares.
    fn withheld(&self, cluster: &Cluster, gang: GangId) -> Option<&'static str> {
        match self.by_turns() {
            true => self.policy.withholds(cluster, &self.claim, gang),
            false => None,
        }
    }

    /// Whether those who leave and have no other place may all be lost, one after the other. Leaves
    /// the transaction as it was.
    fn lost_fairly(&self, txn: &mut Txn, taken: &[Bundle], moved: &[(PodId, NodeId)]) -> bool {
        let mark = txn.mark();
        for &pod in self.wish.pods {
            if matches!(txn.pods.state[pod], PodState::Nominated(_)) {
                txn.release(pod);
            }
        }
        let lost = |bundle: &Bundle| -> Vec<PodId> {
            bundle.pods.iter().copied().filter(|&pod| !is_moved(moved, pod)).collect()
        };
        let lost: Vec<(GangId, Vec<PodId>)> =
            taken.iter().map(|bundle| (bundle.gang, lost(bundle))).collect();
        for &pod in lost.iter().flat_map(|(_, pods)| pods) {
            if let PodState::Releasing(home) = txn.pods.state[pod] {
                txn.spare(pod, PodState::Running(home));
            }
        }
        let fair = lost.iter().filter(|(_, pods)| !pods.is_empty()).all(|(gang, pods)| {
            let mut asked = false;
            let fair = pods.iter().all(|&pod| {
                let alone = txn.gangs[*gang].can_spare(txn.pods.place(pod));
                let kept = (alone || !asked) && self.withheld(txn, *gang).is_some();
                asked |= !alone;
                txn.evict(pod);
                !kept
            });
            fair && !self.goes_first(txn, *gang)
        });
        txn.rewind(mark);
        fair
    }

    /// Whether a gang that has left would be served before the claimant: it gets its room back.
    fn goes_first(&self, cluster: &Cluster, gang: GangId) -> bool {
        let next = |gang: GangId| (cluster.gangs[gang].queue, gang);
        self.by_turns()
            && self.claim.purpose == Purpose::Reclaim
            && self.policy.queue_order(cluster, next(gang), next(self.claim.gang)).is_lt()
    }

    /// Finds other places for those who leave. Who finds one where it was doesn't leave.
    fn rehouse(
        &self,
        txn: &mut Txn,
        rankings: &mut Rankings,
        taken: &mut Vec<Bundle>,
    ) -> Vec<(PodId, NodeId)> {
        let leaving: Vec<PodId> =
            taken.iter().flat_map(|bundle| bundle.pods.iter().copied()).collect();
        let moved = relocate::rehouse_all(txn, self.policy, rankings, &leaving);
        let gone = |pod: &PodId| !matches!(txn.pods.state[*pod], PodState::Running(_));
        taken.iter_mut().for_each(|bundle| bundle.pods.retain(gone));
        taken.retain(|bundle| !bundle.pods.is_empty());
        // A gang that has its minimum elsewhere has lost what it can spare. What it waits for is no
        // such place.
        let mark = txn.mark();
        for bundle in taken.iter_mut().filter(|bundle| bundle.kind == Kind::Whole) {
            for pod in txn.gangs[bundle.gang].pods.clone() {
                if matches!(txn.pods.state[pod], PodState::Nominated(_)) && !is_moved(&moved, pod) {
                    txn.release(pod);
                }
            }
            if suffice(txn, bundle.gang, true) {
                bundle.kind = Kind::Safe;
            }
        }
        txn.rewind(mark);
        moved
    }

    /// Whether the plan stands; if not, why.
    fn stands(
        &self,
        txn: &mut Txn,
        taken: &[Bundle],
        moved: &[(PodId, NodeId)],
    ) -> Result<(), Reason> {
        if !self.by_turns() {
            return if self.claim.purpose == Purpose::Reclaim {
                self.stays_within(txn)
            } else {
                Ok(())
            };
        }
        let counts = |pod: &PodId| self.taking.bundling.counts_moved || !is_moved(moved, *pod);
        let pods = taken.iter().flat_map(|bundle| bundle.pods.iter().copied());
        let gone: Vec<PodId> = pods.filter(counts).collect();
        self.policy.objects(txn, &self.claim, self.had, &gone).map_or(Ok(()), Err)
    }

    /// Whether the claimant's queue may have all that it was given; if not, why.
    fn stays_within(&self, txn: &mut Txn) -> Result<(), Reason> {
        let promised = |pod: &&PodId| matches!(txn.pods.state[**pod], PodState::Nominated(_));
        let Some(&last) = self.wish.pods.iter().rev().find(promised) else { return Ok(()) };
        let PodState::Nominated(node) = txn.pods.state[last] else { return Ok(()) };
        txn.release(last);
        let within = self.policy.may_reclaim(txn, &Claim { pod: last, ..self.claim });
        txn.nominate(last, node);
        within
    }

    /// Why each leaves. Of gangs that are broken the rest leaves too, if that is wished for and no
    /// rule keeps it.
    fn causes(&self, txn: &mut Txn, taken: &mut [Bundle], victims: &Victims) -> Causes {
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

impl Need {
    /// What the nodes will have too little of, in all.
    fn lacks(&self, cluster: &Cluster, nodes: &[NodeId]) -> Needed {
        let mut lacks = self.wanted.clone();
        for (resource, lack) in &mut lacks {
            *lack -= nodes
                .iter()
                .map(|&node| cluster.nodes.future_idle(*resource, node).max(0))
                .sum::<i64>();
        }
        lacks.retain(|&(_, lack)| lack > 0);
        lacks
    }

    /// An amount against what is wanted in all, in parts per million, so that resources can be
    /// added up and domains compared.
    fn weigh(&self, resource: ResourceId, amount: i64) -> i64 {
        let wanted = self.wanted.iter().find(|(of, _)| *of == resource);
        wanted.map_or(0, |&(_, wanted)| parts_per_million::share(amount, wanted))
    }

    /// What is lost with a bundle of what is needed: all that the gang had, if it is broken.
    fn loss(&self, cluster: &Cluster, victims: &Victims, bundle: &Bundle) -> i64 {
        let gang = &cluster.gangs[bundle.gang];
        let has = |resource| match bundle.kind {
            Kind::Whole => gang.held.get(resource) + gang.leaving.get(resource),
            Kind::Safe => {
                let of_pod = |&pod: &PodId| cluster.request_of(cluster.pods.shape[pod], resource);
                bundle.pods.iter().map(of_pod).sum()
            }
        };
        victims.needed.iter().map(|&(resource, _)| self.weigh(resource, has(resource))).sum()
    }
}

fn is_moved(moved: &[(PodId, NodeId)], pod: PodId) -> bool {
    moved.iter().any(|&(other, _)| other == pod)
}

fn count(bundles: &[Bundle]) -> u32 {
    bundles.iter().map(|bundle| bundle.pods.len() as u32).sum()
}

/// Gives back what is not needed: what breaks a gang first, the most valuable first, then what goes
/// together, then single pods.
fn give_back(
    txn: &mut Txn,
    rankings: &mut Rankings,
    seating: &mut Seating,
    taken: &mut Vec<Bundle>,
) {
    for bundle in taken.iter_mut().rev().filter(|bundle| bundle.kind == Kind::Whole) {
        if seating.spare(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    taken.retain(|bundle| !bundle.pods.is_empty());
    let broken = broken(taken);
    let safe = |bundle: &&mut Bundle| !broken.contains(&bundle.gang);
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| bundle.together) {
        if seating.spare(txn, rankings, &bundle.pods) {
            bundle.pods.clear();
        }
    }
    for bundle in taken.iter_mut().rev().filter(safe).filter(|bundle| !bundle.together) {
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
