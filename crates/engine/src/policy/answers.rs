//! The configured plugins as one policy. A plugin answers questions; how several answers become one
//! is written here once for each kind of question: first difference, all agree, vote, sum.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::purpose::Purpose;
use crate::base::resources::{Amounts, EPHEMERAL, PODS, Share};
use crate::base::room::Room;
use crate::decision::cause::Cause;
use crate::decision::node_reason::Why;
use crate::decision::reason::{Found, Reason};
use crate::model::Cluster;
use crate::model::devices::Sharing;
use crate::model::topology::domains::ROOT;
use crate::policy::bundle::{Bundle, Needed};
use crate::policy::plugin::{Plugin, Scope, Unwanted, Veto, Vote};
use crate::policy::preemptor::Preemptor;
use crate::policy::question::{Question, Switches};
use crate::shares::admission::Admission;
use crate::shares::fair::Rules;

pub struct ConfiguredPlugin {
    pub name: &'static str,
    pub tier: usize,
    pub plugin: Box<dyn Plugin>,
    pub switches: Switches,
    /// The arguments as they were written, but for lists and maps.
    pub arguments: BTreeMap<String, String>,
}

/// All plugins, tier after tier.
pub struct Policy {
    pub plugins: Vec<ConfiguredPlugin>,
    /// For each question, the plugins that are asked.
    asked: [Vec<usize>; Question::COUNT],
}

impl Policy {
    pub fn new(plugins: Vec<ConfiguredPlugin>) -> Policy {
        let answers: Vec<Vec<Question>> =
            plugins.iter().map(|configured| configured.plugin.answers()).collect();
        let asked = Question::ALL.map(|question| {
            let is_asked = |&at: &usize| {
                answers[at].contains(&question) && question.counts(&plugins[at].switches)
            };
            (0..plugins.len()).filter(is_asked).collect()
        });
        Policy { plugins, asked }
    }

    pub fn measure_by_fair_shares(&mut self) {
        self.plugins.iter_mut().for_each(|configured| configured.plugin.measure_by_fair_shares());
    }

    #[inline]
    fn asked(&self, question: Question) -> impl Iterator<Item = &dyn Plugin> {
        self.asked[question as usize]
            .iter()
            .map(|&configured| self.plugins[configured].plugin.as_ref())
    }

    /// Which gang is served first, as a total order. A broken gang gets its nodes back before new
    /// gangs use them.
    pub fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let incomplete_first = self.incomplete_first(cluster, a, b);
        if incomplete_first.is_ne() {
            return incomplete_first;
        }
        let opinions = self.asked(Question::GangOrder);
        first_difference(opinions.map(|plugin| plugin.gang_order(cluster, a, b))).then_with(|| {
            let (a, b) = (&cluster.gangs[a], &cluster.gangs[b]);
            a.created.cmp(&b.created).then_with(|| a.key.cmp(&b.key))
        })
    }

    /// Which queue is served first, given the next gang of each. A partly placed gang is completed
    /// first, whichever queue it is in: until then it only wastes room.
    pub fn queue_order(
        &self,
        cluster: &Cluster,
        a: (QueueId, GangId),
        b: (QueueId, GangId),
    ) -> Ordering {
        let incomplete_first = self.incomplete_first(cluster, a.1, b.1);
        if incomplete_first.is_ne() {
            return incomplete_first;
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

    /// A gang that is below its minimum is completed first.
    fn incomplete_first(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let whole = self.enforces_minimum();
        let is_broken = |gang: GangId| cluster.gangs[gang].is_broken(whole);
        is_broken(b).cmp(&is_broken(a))
    }

    /// Sorts the pods of a gang if a plugin has an opinion; otherwise its list is in order already.
    pub fn order_pods(&self, cluster: &Cluster, pods: &mut [PodId]) {
        for plugin in self.asked(Question::PodOrder).collect::<Vec<_>>().into_iter().rev() {
            let urgency = |pod: PodId| plugin.pod_urgency(cluster, pod);
            let first = pods.first().map(|&pod| urgency(pod));
            if pods.iter().any(|&pod| Some(urgency(pod)) != first) {
                pods.sort_by_key(|&pod| Reverse(urgency(pod)));
            }
        }
    }

    /// Whether queues are a tree: gangs belong into its leaves, and the limits of all ancestors
    /// apply.
    pub fn hierarchical(&self) -> bool {
        self.asked(Question::Shares).any(Plugin::has_queue_tree)
    }

    pub fn fairness(&self) -> Option<Rules> {
        self.asked(Question::Shares).find_map(Plugin::fairness)
    }

    pub fn enforces_minimum(&self) -> bool {
        self.asked(Question::Ready).any(Plugin::enforces_minimum)
    }

    pub fn gang_can_start(&self, cluster: &Cluster, gang: GangId) -> Result<(), Reason> {
        self.asked(Question::Ready).try_for_each(|plugin| plugin.gang_can_start(cluster, gang))
    }

    /// Any rejection rejects; all plugins that reject give their reason.
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

    pub fn may_allocate(
        &self,
        cluster: &Cluster,
        gang: GangId,
        shape: ShapeId,
        room: Room,
    ) -> Result<(), Reason> {
        self.asked(Question::MayAllocate)
            .try_for_each(|plugin| plugin.may_allocate(cluster, gang, shape, room))
    }

    pub fn could_ever_allocate(
        &self,
        cluster: &Cluster,
        gang: GangId,
        wanted: &Needed,
    ) -> Result<(), Reason> {
        self.asked(Question::MayAllocate)
            .try_for_each(|plugin| plugin.could_ever_allocate(cluster, gang, wanted))
    }

    pub fn filter(
        &self,
        reach: Scope,
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
        reach: Scope,
        cluster: &Cluster,
        shape: ShapeId,
        nodes: &[NodeId],
        scores: &mut [i64],
    ) {
        for plugin in self.asked(Question::Score) {
            plugin.score(reach, cluster, shape, nodes, scores);
        }
    }

    /// What a domain adds to the score of every node in it, if any plugin has an opinion.
    pub fn domain_score(&self, cluster: &Cluster, shape: ShapeId, domain: DomainId) -> Option<i64> {
        let opinions = self.asked(Question::DomainScore);
        opinions
            .filter_map(|plugin| plugin.domain_score(cluster, shape, domain))
            .reduce(|a, b| a + b)
    }

    pub fn scores_domains(&self, cluster: &Cluster, shape: ShapeId) -> bool {
        cluster.domains.are_real() && self.domain_score(cluster, shape, ROOT).is_some()
    }

    /// How many domains an evicting action tries at most, and the argument that says so: the
    /// smallest count.
    pub fn most_domains_to_clear(&self) -> Option<(&'static str, usize)> {
        let counts = self.asked(Question::Domains).filter_map(Plugin::most_domains_to_clear);
        counts.min_by_key(|&(_, most)| most)
    }

    pub fn spares_whole_domains(&self) -> bool {
        self.asked(Question::Domains).any(Plugin::spares_whole_domains)
    }

    /// How much a resource counts for the use of a domain: the first opinion, or the same for all
    /// except those that are never scarce.
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

    /// The rule that protects a pod from this preemptor, whatever else is evicted, if any.
    pub fn vetoes(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<Veto> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| plugin.vetoes(cluster, preemptor, victim))
    }

    /// The rule that protects a pod from this preemptor now, if any.
    pub fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<Veto> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| {
            let rule = plugin.vetoes_after(cluster, preemptor, victim)?;
            Some(Veto { rule, until: plugin.restrains_until(cluster, preemptor, victim) })
        })
    }

    /// Whether the preemptor outranks the victim: the first tier with an opinion decides, and there
    /// all must agree.
    pub fn outranks(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> bool {
        let mut tier = None;
        let mut verdict = false;
        for &configured in &self.asked[Question::of(preemptor.purpose) as usize] {
            let configured = &self.plugins[configured];
            if tier.is_some_and(|tier| tier != configured.tier) {
                break;
            }
            if let Some(opinion) = configured.plugin.outranks(cluster, preemptor, victim) {
                verdict = opinion && (verdict || tier.is_none());
                tier = Some(configured.tier);
            }
        }
        verdict
    }

    /// The cost of evicting these pods from a node: the first opinion.
    pub fn eviction_cost(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        node: NodeId,
        victims: &[PodId],
    ) -> Option<i64> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| plugin.eviction_cost(cluster, preemptor, node, victims))
    }

    /// The rule that protects what a gang would lose at once, if any.
    pub fn vetoes_gang_loss(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        gang: GangId,
    ) -> Option<&'static str> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| plugin.vetoes_gang_loss(cluster, preemptor, gang))
    }

    /// Why the plan of a preemptor is rejected.
    pub fn rejects_outcome(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        had: &Amounts,
        gone: &[PodId],
    ) -> Option<Reason> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| plugin.rejects_outcome(cluster, preemptor, had, gone))
    }

    /// Whether the preemptor's queue may reclaim for one more pod: some plugin must be in charge,
    /// and all must agree.
    pub fn may_reclaim(&self, cluster: &Cluster, preemptor: &Preemptor) -> Result<(), Reason> {
        let opinions = self
            .asked(Question::Reclaim)
            .filter_map(|plugin| plugin.may_reclaim(cluster, preemptor));
        let mut said = Err(Reason::NothingToTake {
            purpose: Purpose::Reclaim,
            nodes: 0,
            kept: Vec::new(),
            found: Found::NoRule,
        });
        for opinion in opinions {
            opinion?;
            said = Ok(());
        }
        said
    }

    /// Which of two queues is evicted from first: as plugins say, otherwise the one that would be
    /// served last.
    pub fn queue_gives_first(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        a: QueueId,
        b: QueueId,
    ) -> Ordering {
        let named = self
            .asked(Question::Reclaim)
            .map(|plugin| plugin.queue_gives_first(cluster, preemptor, a, b));
        let served =
            self.asked(Question::QueueOrder).map(|plugin| plugin.queue_order(cluster, b, a));
        first_difference(named.chain(served))
    }

    /// The bundles to evict, in order, by their positions in the list: the first opinion.
    pub fn order_bundles(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        needed: &Needed,
        bundles: &[Bundle],
    ) -> Option<Vec<usize>> {
        let mut asked = self.asked(Question::of(preemptor.purpose));
        asked.find_map(|plugin| plugin.order_bundles(cluster, preemptor, needed, bundles))
    }

    /// When answers about nodes change by time alone: cached answers hold until then.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        self.asked(Question::NextChange).filter_map(|plugin| plugin.next_change(now)).min()
    }

    /// The pods to shuffle: all that a plugin names, each for the first reason.
    pub fn pods_to_shuffle(&self, cluster: &Cluster) -> Unwanted {
        let mut all = Unwanted::default();
        for Unwanted { pods, next } in
            self.asked(Question::Shuffle).map(|plugin| plugin.pods_to_shuffle(cluster))
        {
            let fresh = |(pod, _): &(PodId, Cause)| all.pods.iter().all(|(known, _)| known != pod);
            let pods: Vec<(PodId, Cause)> = pods.into_iter().filter(fresh).collect();
            all.pods.extend(pods);
            all.next = [all.next, next].into_iter().flatten().min();
        }
        all
    }

    /// The rule that protects such a pod now, if any.
    pub fn vetoes_shuffle(&self, cluster: &Cluster, pod: PodId) -> Option<&'static str> {
        self.asked(Question::Shuffle).find_map(|plugin| plugin.vetoes_shuffle(cluster, pod))
    }

    pub fn fair_share_of(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        self.asked(Question::Shares).find_map(|plugin| plugin.fair_share_of(cluster, queue))
    }

    pub fn deserves(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        self.asked(Question::Shares).find_map(|plugin| plugin.deserves(cluster, queue))
    }
}

/// Tiers in order, first difference wins.
fn first_difference(opinions: impl Iterator<Item = Ordering>) -> Ordering {
    opinions.into_iter().find(|opinion| opinion.is_ne()).unwrap_or(Ordering::Equal)
}
