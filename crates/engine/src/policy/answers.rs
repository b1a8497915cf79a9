//! The configured plugins as one policy. A plugin answers questions; how many answers become one is
//! written here once for each kind of question: first difference, all agree, vote, sum.

use std::cmp::{Ordering, Reverse};

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::{DomainId, GangId, NodeId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::resources::{Amounts, EPHEMERAL, PODS, Share};
use crate::config::{Bundling, Mode};
use crate::decision::plan::{Cause, Method};
use crate::decision::reason::{Reason, Why};
use crate::eviction::bundles;
use crate::eviction::bundles::{Bundle, Needed};
use crate::model::Cluster;
use crate::model::devices::Sharing;
use crate::model::topology::domains::ROOT;
use crate::shares::admission::Admission;
use crate::shares::fair::Rules;

/// Which room a placement may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// Free now and promised to nobody: the pod can be bound.
    Now,
    /// Free once what is leaving has left: the pod can be promised a place.
    Later,
    /// Free now, even if it is promised: the pod is gone before the promise needs it.
    Meanwhile,
}

/// How far an answer about a node looks. It says when the answer must be asked for again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// At what the node says of itself.
    Facts,
    /// At what is on the node.
    Node,
    /// At what is on other nodes too.
    Cluster,
}

/// A vote on letting a gang into the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vote {
    Abstain,
    Permit,
    Reject(Reason),
}

/// Who wants room that others have.
#[derive(Copy, Clone, Debug)]
pub struct Claim {
    pub mode: Mode,
    pub purpose: Purpose,
    pub gang: GangId,
    pub pod: PodId,
    pub now: Time,
    /// How the pods leave that it takes.
    pub method: Method,
}

/// A rule that keeps a pod where it is, and when it ends if time alone ends it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shield {
    pub rule: &'static str,
    pub until: Option<Time>,
}

/// Pods that should not run where they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwanted {
    /// Who is to leave now, in order.
    pub pods: Vec<(PodId, Cause)>,
    /// When others are to leave.
    pub next: Option<Time>,
}

/// From whom room is taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Purpose {
    /// From gangs of the same queue that matter less.
    Preempt,
    /// From pods of the same gang that matter less.
    Within,
    /// From queues that have more than they deserve.
    Reclaim,
    /// From gangs of any queue whose pods find a place elsewhere.
    Consolidate,
}

impl Claim {
    /// Whole gangs are taken rather than pod by pod: what a gang needs is then no rule, but a
    /// price.
    pub fn by_gang(&self) -> bool {
        self.mode != Mode::Task
    }

    /// Queues are measured by their fair shares rather than by what they deserve.
    pub fn by_fair_share(&self) -> bool {
        self.mode == Mode::Scenario
    }
}

impl Purpose {
    fn question(self) -> Question {
        match self {
            Purpose::Preempt | Purpose::Within | Purpose::Consolidate => Question::Preempt,
            Purpose::Reclaim => Question::Reclaim,
        }
    }
}

/// What can be asked. A plugin lists the questions that it answers, and only those are put to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Question {
    GangOrder,
    QueueOrder,
    PodOrder,
    Ready,
    Enqueue,
    Overused,
    MayTake,
    Filter,
    Score,
    DomainScore,
    Domains,
    Protects,
    Preempt,
    Reclaim,
    Shuffle,
}

impl Question {
    const ALL: [Question; 15] = [
        Question::GangOrder,
        Question::QueueOrder,
        Question::PodOrder,
        Question::Ready,
        Question::Enqueue,
        Question::Overused,
        Question::MayTake,
        Question::Filter,
        Question::Score,
        Question::DomainScore,
        Question::Domains,
        Question::Protects,
        Question::Preempt,
        Question::Reclaim,
        Question::Shuffle,
    ];

    /// Whether the configuration lets a plugin's answer count.
    fn switched_on(self, switches: &Switches) -> bool {
        match self {
            Question::GangOrder => switches.gang_order,
            Question::QueueOrder => switches.queue_order,
            Question::PodOrder => switches.pod_order,
            Question::Ready => switches.ready,
            Question::Enqueue => switches.enqueue,
            Question::Overused => switches.overused,
            Question::MayTake => switches.may_take,
            Question::Filter => switches.filter,
            Question::Score | Question::DomainScore => switches.score,
            Question::Domains => switches.domains,
            Question::Protects => switches.preemptable || switches.reclaimable,
            Question::Preempt => switches.preemptable,
            Question::Reclaim => switches.reclaimable,
            Question::Shuffle => switches.shuffle,
        }
    }
}

/// A scheduling opinion. Every method has a neutral answer; override only what you decide.
pub trait Plugin: Send {
    // Order.
    fn gang_order(&self, _: &Cluster, _a: GangId, _b: GangId) -> Ordering {
        Ordering::Equal
    }
    fn queue_order(&self, _: &Cluster, _a: QueueId, _b: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// Between the next gangs of two queues that are equal otherwise.
    fn turn_order(&self, _: &Cluster, _a: GangId, _b: GangId) -> Ordering {
        Ordering::Equal
    }
    /// Of a gang's pods, the most urgent is placed first.
    fn pod_urgency(&self, _: &Cluster, _: PodId) -> i64 {
        0
    }

    // Gates and votes.
    /// Whether a gang could start if there were room.
    fn valid(&self, _: &Cluster, _: GangId) -> Result<(), Reason> {
        Ok(())
    }
    /// A gang starts with its whole minimum or not at all.
    fn gangs_are_whole(&self) -> bool {
        false
    }
    fn enqueue(&self, _: &Cluster, _: &Admission, _: GangId) -> Vote {
        Vote::Abstain
    }
    /// Whether a queue's line is served at all.
    fn overused(&self, _: &Cluster, _: QueueId) -> Option<Reason> {
        None
    }
    /// Whether a gang's queue may take one more pod of a shape for it.
    fn may_take(&self, _: &Cluster, _: GangId, _: ShapeId, _: Room) -> Result<(), Reason> {
        Ok(())
    }
    /// Whether a gang's queue may have so much more for it, whoever leaves: asked before anyone has
    /// to.
    fn may_hold(&self, _: &Cluster, _: GangId, _wanted: &Needed) -> Result<(), Reason> {
        Ok(())
    }

    // Placement.
    /// Marks the nodes that won't do, among those that still fit.
    fn filter(&self, _: Reach, _: &Cluster, _: (ShapeId, Room), _: &[NodeId], _: &mut [Why]) {}
    /// Adds points, in thousandths; every plugin gives up to 100 points times its weight.
    fn score(&self, _: Reach, _: &Cluster, _: ShapeId, _: &[NodeId], _: &mut [i64]) {}

    /// When time alone changes what it says of nodes, if it does.
    fn next_change(&self, _now: Time) -> Option<Time> {
        None
    }

    /// Points for all nodes below a domain, because of what is in it; for the root, for those that
    /// no other domain holds.
    fn domain_score(&self, _: &Cluster, _: ShapeId, _: DomainId) -> Option<i64> {
        None
    }
    /// How pods share the cards of a node. The ranking sees to it that each finds one.
    fn sharing(&self) -> Option<Sharing> {
        None
    }

    /// How much a resource counts in how full a domain is.
    fn domain_weight(&self, _: &Cluster, _: ResourceId) -> Option<i64> {
        None
    }
    /// Of domains that are equally near, take the one that leaves the largest others whole.
    fn spares_whole_domains(&self) -> bool {
        false
    }

    // Eviction.
    /// Protects a pod from eviction, with a word for the rule.
    fn protects(&self, _: &Cluster, _: PodId) -> Option<&'static str> {
        None
    }
    /// The same for one claim, whatever else is taken for it.
    fn shields(&self, _: &Cluster, _: &Claim, _victim: PodId) -> Option<Shield> {
        None
    }
    /// The same, given all that has been taken for it already.
    fn restrains(&self, _: &Cluster, _: &Claim, _victim: PodId) -> Option<&'static str> {
        None
    }
    /// When time alone ends the rule by which it restrains such a pod, if it does.
    fn restrains_until(&self, _: &Cluster, _: &Claim, _victim: PodId) -> Option<Time> {
        None
    }
    /// Which of these pods, leaving in this order, break a rule that the claim breaks only if it
    /// must.
    fn breaks(&self, _: &Cluster, _: &Claim, _victims: &[PodId], _broken: &mut Vec<PodId>) {}
    /// Whether the claimant matters more than the victim.
    fn outranks(&self, _: &Cluster, _: &Claim, _victim: PodId) -> Option<bool> {
        None
    }
    /// What it costs to take these pods from a node, if not what their priorities say.
    fn price(&self, _: &Cluster, _: &Claim, _: NodeId, _victims: &[PodId]) -> Option<i64> {
        None
    }
    /// Whether the claimant's queue may take from others for one more pod.
    fn may_reclaim(&self, _: &Cluster, _: &Claim) -> Option<Result<(), Reason>> {
        None
    }
    /// Keeps what a gang would lose at once, given all that has been taken already. Asked where
    /// queues are measured by fair shares.
    fn withholds(&self, _: &Cluster, _: &Claim, _gang: GangId) -> Option<&'static str> {
        None
    }
    /// Why a plan may not stand in which the claimant has its places and these pods have left for
    /// it; its queue had so much before.
    fn objects(&self, _: &Cluster, _: &Claim, _had: &Amounts, _gone: &[PodId]) -> Option<Reason> {
        None
    }
    /// Which of two queues gives first.
    fn victim_order(&self, _: &Cluster, _: &Claim, _a: QueueId, _b: QueueId) -> Ordering {
        Ordering::Equal
    }
    /// Who leaves a domain that lacks this much, where whole gangs are taken: the places of these
    /// bundles in the order in which they are taken. Who is not named stays.
    fn select(&self, _: &Cluster, _: &Claim, _: &Needed, _: &[Bundle]) -> Option<Vec<usize>> {
        None
    }

    /// Pods that should leave for nobody's sake.
    fn unwanted(&self, _: &Cluster) -> Unwanted {
        Unwanted::default()
    }
    /// Keeps such a pod where it is, given all that have left, with a word for the rule.
    fn retains(&self, _: &Cluster, _: PodId) -> Option<&'static str> {
        None
    }

    // Shares.
    /// How the fair shares of queues are found, if it goes by them.
    fn fairness(&self) -> Option<Rules> {
        None
    }
    /// Queues are to be served by their fair shares from now on.
    fn measure_by_fair_shares(&mut self) {}

    // Reports.
    /// The queue's fair share and what it has of it, if queues are measured by that rather than by
    /// what they deserve.
    fn fair_share_of(&self, _: &Cluster, _: QueueId) -> Option<(Amounts, Share)> {
        None
    }
    /// What the queue should have and what it has of it, as this plugin sees them.
    fn deserves(&self, _: &Cluster, _: QueueId) -> Option<(Amounts, Share)> {
        None
    }
}

/// Which of a plugin's answers count, as the configuration says. Named after the questions.
#[derive(Clone, Debug)]
pub struct Switches {
    pub gang_order: bool,
    pub queue_order: bool,
    pub pod_order: bool,
    pub ready: bool,
    pub enqueue: bool,
    pub overused: bool,
    pub may_take: bool,
    pub filter: bool,
    pub score: bool,
    pub domains: bool,
    pub preemptable: bool,
    pub reclaimable: bool,
    pub shuffle: bool,
    pub hierarchy: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            gang_order: true,
            queue_order: true,
            pod_order: true,
            ready: true,
            enqueue: true,
            overused: true,
            may_take: true,
            filter: true,
            score: true,
            domains: true,
            preemptable: true,
            reclaimable: true,
            shuffle: true,
            hierarchy: false,
        }
    }
}

pub struct Seat {
    pub name: &'static str,
    pub tier: usize,
    pub answers: &'static [Question],
    pub plugin: Box<dyn Plugin>,
    pub switches: Switches,
}

/// All plugins, tier after tier.
pub struct Policy {
    pub seats: Vec<Seat>,
    /// For each question, who is asked.
    asked: [Vec<usize>; Question::ALL.len()],
}

impl Policy {
    pub fn new(seats: Vec<Seat>) -> Policy {
        let asked = Question::ALL.map(|question| {
            let answers = |seat: &Seat| {
                seat.answers.contains(&question) && question.switched_on(&seat.switches)
            };
            (0..seats.len()).filter(|&seat| answers(&seats[seat])).collect()
        });
        Policy { seats, asked }
    }

    pub fn measure_by_fair_shares(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.plugin.measure_by_fair_shares());
    }

    #[inline]
    fn asked(&self, question: Question) -> impl Iterator<Item = &dyn Plugin> {
        self.asked[question as usize].iter().map(|&seat| self.seats[seat].plugin.as_ref())
    }

    /// Which gang goes first. Always total. One that ran and lost pods gets its place back before
    /// new work takes it.
    pub fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let halves = self.halves(cluster, a, b);
        if halves.is_ne() {
            return halves;
        }
        let opinions = self.asked(Question::GangOrder);
        first_difference(opinions.map(|plugin| plugin.gang_order(cluster, a, b))).then_with(|| {
            let (a, b) = (&cluster.gangs[a], &cluster.gangs[b]);
            a.created.cmp(&b.created).then_with(|| a.key.cmp(&b.key))
        })
    }

    /// Which queue is served first, given the gang that is next in each. What is bound by halves is
    /// finished first, whosever it is: until then it only wastes room.
    pub fn queue_order(
        &self,
        cluster: &Cluster,
        a: (QueueId, GangId),
        b: (QueueId, GangId),
    ) -> Ordering {
        let halves = self.halves(cluster, a.1, b.1);
        if halves.is_ne() {
            return halves;
        }
        let queues =
            self.asked(Question::QueueOrder).map(|plugin| plugin.queue_order(cluster, a.0, b.0));
        let turns =
            self.asked(Question::QueueOrder).map(|plugin| plugin.turn_order(cluster, a.1, b.1));
        first_difference(queues.chain(turns)).then_with(|| {
            let (a, b) = (&cluster.queues[a.0], &cluster.queues[b.0]);
            a.created.cmp(&b.created).then_with(|| a.name.cmp(&b.name))
        })
    }

    /// What holds places for less than its minimum is finished first.
    fn halves(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let whole = self.gangs_are_whole();
        let is_broken = |gang: GangId| cluster.gangs[gang].is_broken(whole);
        is_broken(b).cmp(&is_broken(a))
    }

    /// Puts the pods of a gang in order where a plugin has an opinion; its list is in order
    /// otherwise.
    pub fn order_pods(&self, cluster: &Cluster, pods: &mut [PodId]) {
        for plugin in self.asked(Question::PodOrder).collect::<Vec<_>>().into_iter().rev() {
            let urgency = |pod: PodId| plugin.pod_urgency(cluster, pod);
            let first = pods.first().map(|&pod| urgency(pod));
            if pods.iter().any(|&pod| Some(urgency(pod)) != first) {
                pods.sort_by_key(|&pod| Reverse(urgency(pod)));
            }
        }
    }

    /// Queues are a tree: work belongs into its leaves, and limits hold all the way up.
    pub fn hierarchical(&self) -> bool {
        self.seats.iter().any(|seat| seat.switches.hierarchy && seat.name == "capacity")
    }

    pub fn fairness(&self) -> Option<Rules> {
        self.seats.iter().find_map(|seat| seat.plugin.fairness())
    }

    pub fn gangs_are_whole(&self) -> bool {
        self.asked(Question::Ready).any(Plugin::gangs_are_whole)
    }

    pub fn valid(&self, cluster: &Cluster, gang: GangId) -> Result<(), Reason> {
        self.asked(Question::Ready).try_for_each(|plugin| plugin.valid(cluster, gang))
    }

    /// Any reject rejects; all that reject say why.
    pub fn enqueue(
        &self,
        cluster: &Cluster,
        admission: &Admission,
        gang: GangId,
    ) -> Result<(), Vec<Reason>> {
        let votes =
            self.asked(Question::Enqueue).map(|plugin| plugin.enqueue(cluster, admission, gang));
        let rejected: Vec<Reason> = votes
            .filter_map(|vote| match vote {
                Vote::Reject(reason) => Some(reason),
                Vote::Abstain | Vote::Permit => None,
            })
            .collect();
        if rejected.is_empty() { Ok(()) } else { Err(rejected) }
    }

    pub fn overused(&self, cluster: &Cluster, queue: QueueId) -> Option<Reason> {
        self.asked(Question::Overused).find_map(|plugin| plugin.overused(cluster, queue))
    }

    pub fn may_take(
        &self,
        cluster: &Cluster,
        gang: GangId,
        shape: ShapeId,
        room: Room,
    ) -> Result<(), Reason> {
        self.asked(Question::MayTake)
            .try_for_each(|plugin| plugin.may_take(cluster, gang, shape, room))
    }

    pub fn may_hold(&self, cluster: &Cluster, gang: GangId, wanted: &Needed) -> Result<(), Reason> {
        self.asked(Question::MayTake).try_for_each(|plugin| plugin.may_hold(cluster, gang, wanted))
    }

    pub fn filter(
        &self,
        reach: Reach,
        cluster: &Cluster,
        placed: (ShapeId, Room),
        nodes: &[NodeId],
        why: &mut [Why],
    ) {
        for plugin in self.asked(Question::Filter) {
            plugin.filter(reach, cluster, placed, nodes, why);
        }
    }

    pub fn sharing(&self) -> Option<Sharing> {
        self.asked(Question::Filter).find_map(Plugin::sharing)
    }

    pub fn score(
        &self,
        reach: Reach,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        for plugin in self.asked(Question::Score) {
            plugin.score(reach, cluster, shape, nodes, scores);
        }
    }

    /// What a domain adds to the score of every node below it, if anyone has an opinion.
    pub fn domain_score(&self, cluster: &Cluster, shape: ShapeId, domain: DomainId) -> Option<i64> {
        let opinions = self.asked(Question::DomainScore);
        opinions
            .filter_map(|plugin| plugin.domain_score(cluster, shape, domain))
            .reduce(|a, b| a + b)
    }

    pub fn scores_domains(&self, cluster: &Cluster, shape: ShapeId) -> bool {
        cluster.domains.are_real() && self.domain_score(cluster, shape, ROOT).is_some()
    }

    pub fn spares_whole_domains(&self) -> bool {
        self.asked(Question::Domains).any(Plugin::spares_whole_domains)
    }

    /// How much a resource counts in how full a domain is: the first opinion, or the same for all
    /// but those that are never scarce.
    pub fn domain_weight(&self, cluster: &Cluster, resource: ResourceId) -> i64 {
        let opinion = self
            .asked(Question::Domains)
            .find_map(|plugin| plugin.domain_weight(cluster, resource));
        opinion.unwrap_or(i64::from(resource != PODS && resource != EPHEMERAL))
    }

    /// The rule that protects a pod from eviction, if any.
    pub fn protects(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        let own = cluster.pods.fact[pod].protected;
        let of_gang = || cluster.pods.gang[pod].is_some_and(|gang| cluster.gangs[gang].protected);
        let marked = || (own || of_gang()).then_some("volcano.sh/preemptable: false");
        self.asked(Question::Protects)
            .find_map(|plugin| plugin.protects(cluster, pod))
            .or_else(marked)
    }

    /// The rule that keeps a pod from this claim, whatever else is taken, if any.
    pub fn shields(&self, cluster: &Cluster, claim: &Claim, victim: PodId) -> Option<Shield> {
        let mut asked = self.asked(claim.purpose.question());
        asked.find_map(|plugin| plugin.shields(cluster, claim, victim))
    }

    /// The rule that keeps a pod from being taken for this claim now, if any.
    pub fn restrains(&self, cluster: &Cluster, claim: &Claim, victim: PodId) -> Option<Shield> {
        let mut asked = self.asked(claim.purpose.question());
        asked.find_map(|plugin| {
            let rule = plugin.restrains(cluster, claim, victim)?;
            Some(Shield { rule, until: plugin.restrains_until(cluster, claim, victim) })
        })
    }

    /// The pods that break a rule by leaving in this order, where the claim may: they leave last,
    /// and what breaks fewest rules is best.
    pub fn breaks(&self, cluster: &Cluster, claim: &Claim, victims: &[PodId]) -> Vec<PodId> {
        let mut broken = Vec::new();
        for plugin in self.asked(claim.purpose.question()) {
            plugin.breaks(cluster, claim, victims, &mut broken);
        }
        broken
    }

    /// Whether the claimant matters more than the victim: the first tier with an opinion decides,
    /// and there all must agree.
    pub fn outranks(&self, cluster: &Cluster, claim: &Claim, victim: PodId) -> bool {
        let mut tier = None;
        let mut verdict = false;
        for &seat in &self.asked[claim.purpose.question() as usize] {
            let seat = &self.seats[seat];
            if tier.is_some_and(|tier| tier != seat.tier) {
                break;
            }
            if let Some(opinion) = seat.plugin.outranks(cluster, claim, victim) {
                verdict = opinion && (verdict || tier.is_none());
                tier = Some(seat.tier);
            }
        }
        verdict
    }

    /// What it costs to take these pods from a node: the first opinion.
    pub fn price(
        &self,
        cluster: &Cluster,
        claim: &Claim,
        node: NodeId,
        victims: &[PodId],
    ) -> Option<i64> {
        let mut asked = self.asked(claim.purpose.question());
        asked.find_map(|plugin| plugin.price(cluster, claim, node, victims))
    }

    /// The rule that keeps what a gang would lose at once, if any.
    pub fn withholds(
        &self,
        cluster: &Cluster,
        claim: &Claim,
        gang: GangId,
    ) -> Option<&'static str> {
        let mut asked = self.asked(claim.purpose.question());
        asked.find_map(|plugin| plugin.withholds(cluster, claim, gang))
    }

    /// Why the plan of a claim may not stand.
    pub fn objects(
        &self,
        cluster: &Cluster,
        claim: &Claim,
        had: &Amounts,
        gone: &[PodId],
    ) -> Option<Reason> {
        let mut asked = self.asked(claim.purpose.question());
        asked.find_map(|plugin| plugin.objects(cluster, claim, had, gone))
    }

    /// Whether the claimant's queue may take from others for one more pod: somebody must be in
    /// charge, and all must agree.
    pub fn may_reclaim(&self, cluster: &Cluster, claim: &Claim) -> Result<(), Reason> {
        let opinions =
            self.asked(Question::Reclaim).filter_map(|plugin| plugin.may_reclaim(cluster, claim));
        let mut said =
            Err(Reason::NothingToTake { purpose: Purpose::Reclaim, nodes: 0, kept: Vec::new() });
        for opinion in opinions {
            opinion?;
            said = Ok(());
        }
        said
    }

    /// Which of two queues gives first to a claim: whom plugins name, else the one that would be
    /// served last.
    pub fn victim_order(
        &self,
        cluster: &Cluster,
        claim: &Claim,
        a: QueueId,
        b: QueueId,
    ) -> Ordering {
        let named =
            self.asked(Question::Reclaim).map(|plugin| plugin.victim_order(cluster, claim, a, b));
        let served =
            self.asked(Question::QueueOrder).map(|plugin| plugin.queue_order(cluster, b, a));
        first_difference(named.chain(served))
    }

    /// Puts bundles in the order in which they are taken: as the first plugin says that has an
    /// opinion, else by the usual order. A bundle is taken once and as it is, whatever a plugin
    /// says.
    pub fn select(
        &self,
        cluster: &Cluster,
        claim: &Claim,
        bundling: &Bundling,
        needed: &Needed,
        mut bundles: Vec<Bundle>,
    ) -> Vec<Bundle> {
        let mut asked = self.asked(claim.purpose.question());
        let Some(chosen) = asked.find_map(|plugin| plugin.select(cluster, claim, needed, &bundles))
        else {
            bundles::sort(cluster, self, claim, bundling, &mut bundles);
            return bundles;
        };
        let mut left: Vec<Option<Bundle>> = bundles.into_iter().map(Some).collect();
        let named = chosen.into_iter().filter_map(|at| left.get_mut(at)?.take());
        let mut ordered: Vec<Bundle> = named.collect();
        ordered.iter_mut().zip(0..).for_each(|(bundle, class)| bundle.class = class);
        ordered
    }

    /// When time alone changes what is said of nodes: all that was found out about them holds until
    /// then.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        self.seats.iter().filter_map(|seat| seat.plugin.next_change(now)).min()
    }

    /// Who should leave for nobody's sake: whom any plugin names, for the first reason.
    pub fn unwanted(&self, cluster: &Cluster) -> Unwanted {
        let mut all = Unwanted::default();
        for Unwanted { pods, next } in
            self.asked(Question::Shuffle).map(|plugin| plugin.unwanted(cluster))
        {
            let fresh = |(pod, _): &(PodId, Cause)| all.pods.iter().all(|(known, _)| known != pod);
            let pods: Vec<(PodId, Cause)> = pods.into_iter().filter(fresh).collect();
            all.pods.extend(pods);
            all.next = [all.next, next].into_iter().flatten().min();
        }
        all
    }

    /// The rule that keeps such a pod where it is now, if any.
    pub fn retains(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        self.asked(Question::Shuffle).find_map(|plugin| plugin.retains(cluster, pod))
    }

    pub fn fair_share_of(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        self.seats.iter().find_map(|seat| seat.plugin.fair_share_of(cluster, queue))
    }

    pub fn deserves(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        self.seats.iter().find_map(|seat| seat.plugin.deserves(cluster, queue))
    }
}

/// Tiers in order, first difference wins.
fn first_difference(opinions: impl Iterator<Item = Ordering>) -> Ordering {
    opinions.into_iter().find(|opinion| opinion.is_ne()).unwrap_or(Ordering::Equal)
}
