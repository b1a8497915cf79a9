//! Searches for room that failed. They are not repeated, for the same gang or for one that needs at
//! least as much, until something happens that could help.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::{DomainId, GangId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::decision::reason::{Found, Reason};
use crate::model::Cluster;
use crate::model::gangs::missing::{Missing, required};
use crate::model::shapes::{one_shape, shapes};
use crate::model::topology::subgroups::{Rule, TierLimit};
use crate::policy::answers::Policy;

/// Everything that decides whether room can be made for a gang that holds none yet. A shape covers
/// what a pod requests and its labels, ports, volumes and claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    queue: QueueId,
    priority: i32,
    protected: bool,
    never_preempts: bool,
    #[serde(alias = "closeness")]
    tier_limit: Option<TierLimit>,
    rules: Vec<Rule>,
    /// The resources its pods request: other queues must exceed their shares in one of these.
    #[serde(default)]
    asked: Vec<ResourceId>,
    /// The shapes, when each was created (since slots are reused), and how many pods of it must be
    /// placed.
    shapes: Vec<(ShapeId, u64, u32)>,
}

impl Signature {
    /// None for a gang that holds room already: other gangs are not like it.
    pub fn of(
        cluster: &Cluster,
        gang: GangId,
        pods: &[PodId],
        missing: &Missing,
        mode: Mode,
    ) -> Option<Signature> {
        let row = &cluster.gangs[gang];
        let simple = one_shape(cluster, pods).is_some() && row.topology_rules.is_none();
        if !row.idle() || !simple && mode != Mode::Scenario {
            return None;
        }
        let required = required(cluster, pods, missing);
        // In mode `task` a pod without a node says the same of any number of pods; otherwise a
        // failure only holds for gangs that are no smaller.
        let least = |count: u32| if mode == Mode::Task { 0 } else { count };
        let shape =
            |(shape, count): (ShapeId, u32)| (shape, cluster.shapes[shape].born, least(count));
        let asked =
            row.requested.iter().filter(|&(_, amount)| amount > 0).map(|(resource, _)| resource);
        Some(Signature {
            queue: row.queue,
            priority: row.priority,
            protected: row.protected,
            never_preempts: required.iter().any(|&pod| cluster.never_preempts(pod)),
            tier_limit: row.tier_limit().cloned(),
            rules: row.rules().to_vec(),
            asked: asked.collect(),
            shapes: shapes(cluster, &required).into_iter().map(shape).collect(),
        })
    }

    /// Whether making room for this gang is at least as hard as for the other.
    fn is_no_easier_than(&self, other: &Signature) -> bool {
        let alike = |a: &(ShapeId, u64, u32), b: &(ShapeId, u64, u32)| {
            (a.0, a.1) == (b.0, b.1) && a.2 >= b.2
        };
        let Signature {
            queue,
            priority,
            protected,
            never_preempts,
            tier_limit,
            rules,
            asked,
            shapes,
        } = other;
        (self.queue, self.protected, self.never_preempts) == (*queue, *protected, *never_preempts)
            && self.priority <= *priority
            && self.tier_limit == *tier_limit
            && self.rules == *rules
            && self.asked == *asked
            && self.shapes.len() == shapes.len()
            && self.shapes.iter().zip(shapes).all(|(a, b)| alike(a, b))
    }
}

/// A gang for which no room could be made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub gang: Arc<str>,
    signature: Signature,
    pub reasons: Vec<Reason>,
    /// When a veto that was in the way expires.
    pub until: Option<Time>,
}

/// The failed searches of an action, and the state for which they hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FailedSearches {
    #[serde(alias = "hope")]
    outlook_version: u64,
    /// The shares of queues, if the action depends on them.
    #[serde(default)]
    shares: Vec<Amounts>,
    failures: Vec<Failure>,
    #[serde(default)]
    cut: Interrupted,
    /// The interrupted searches of the last cycle that have not been resumed. Those that never are
    /// get dropped.
    #[serde(skip)]
    last: Interrupted,
}

/// Where searches were cut short.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Interrupted {
    /// The first gang for which there was no budget at all. The next cycle begins with it.
    next: Option<Arc<str>>,
    searches: BTreeMap<Arc<str>, (SearchKey, Progress)>,
}

/// What a gang lacked when its search was cut short. If it lacks something else, the search starts
/// over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchKey {
    pub signature: Option<Signature>,
    pub pods: usize,
    /// How many of them must be placed.
    pub missing: u32,
}

/// How far a search has come that was cut short.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The domains tried since the last change that could help.
    pub tried: BTreeSet<DomainId>,
    /// Domains tried before that, longest ago first. All others are tried before them, so that a
    /// search that starts over again and again still reaches every domain.
    before: Vec<DomainId>,
    /// How often the budget was doubled because it was exhausted in the first domain.
    pub doubled: u32,
    /// A PodDisruptionBudget has kept pods that could be evicted if nothing else makes room.
    #[serde(default)]
    pub budgets_refused: bool,
    pub refused: Refused,
    /// The limit of the preemptor's queue that was in the way where there would be room.
    pub limit: Option<Reason>,
}

/// Why no room could be made in the domains that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    nodes: u32,
    #[serde(default)]
    evictable: bool,
    #[serde(default)]
    large: bool,
    kept: BTreeMap<String, u32>,
    pub until: Option<Time>,
}

impl Progress {
    /// Notes that a domain was searched completely and has no room.
    pub fn finish(&mut self, domain: DomainId) {
        self.tried.insert(domain);
        self.before.retain(|&other| other != domain);
    }

    /// The position of a domain in the search: first those that are done, then those that were
    /// never tried, then the others, longest ago first.
    pub fn turn(&self, domain: DomainId) -> usize {
        let before = || self.before.iter().position(|&other| other == domain);
        if self.tried.contains(&domain) { 0 } else { before().map_or(1, |at| at + 2) }
    }

    /// Starts over after a change that could help.
    fn begin_anew(&mut self) {
        let tried = std::mem::take(&mut self.tried);
        self.before.retain(|domain| !tried.contains(domain));
        self.before.extend(tried);
        self.budgets_refused = false;
        self.refused = Refused::default();
        self.limit = None;
    }
}

impl Refused {
    /// Adds the result of another domain: nodes on which evictions would not help, whether pods
    /// may be evicted there and whether it is large enough, protected pods by rule, and when the
    /// first of these rules expires.
    pub fn add(
        &mut self,
        nodes: u32,
        (evictable, large): (bool, bool),
        kept: BTreeMap<&'static str, u32>,
        until: Option<Time>,
    ) {
        self.nodes += nodes;
        self.evictable |= evictable;
        self.large |= large;
        self.until = [self.until, until].into_iter().flatten().min();
        for (rule, pods) in kept {
            *self.kept.entry(rule.to_owned()).or_default() += pods;
        }
    }

    pub fn reason(self, purpose: Purpose) -> Reason {
        let found = Found::of(self.evictable, self.large);
        let kept = self.kept.into_iter().collect();
        Reason::NothingToTake { purpose, nodes: self.nodes, kept, found }
    }
}

/// The failed searches of all actions, kept from cycle to cycle.
pub type Memory = BTreeMap<Purpose, FailedSearches>;

impl FailedSearches {
    /// What is known from earlier cycles and still holds.
    pub fn recall(
        memory: &mut Memory,
        cluster: &Cluster,
        policy: &Policy,
        purpose: Purpose,
        mode: Mode,
    ) -> FailedSearches {
        if mode != Mode::Scenario {
            return FailedSearches::default();
        }
        let (outlook_version, shares) =
            (cluster.outlook_version(), shares_of(cluster, policy, purpose));
        let mut known = memory.remove(&purpose).unwrap_or_default();
        if (known.outlook_version, &known.shares) != (outlook_version, &shares) {
            known.begin_anew();
        }
        FailedSearches {
            outlook_version,
            shares,
            failures: known.failures,
            last: known.cut,
            cut: Interrupted::default(),
        }
    }

    /// Keeps it for the next cycle.
    pub fn keep(mut self, memory: &mut Memory, cluster: &Cluster, purpose: Purpose, mode: Mode) {
        // What this action changed could help.
        if self.outlook_version != cluster.outlook_version() {
            self.forget(cluster);
        }
        let FailedSearches { failures, cut, .. } = &self;
        let nothing = failures.is_empty() && cut.searches.is_empty() && cut.next.is_none();
        if mode == Mode::Scenario && !nothing {
            memory.insert(purpose, FailedSearches { last: Interrupted::default(), ..self });
        }
    }

    pub fn known_failure(&self, signature: &Signature, now: Time) -> Option<&Failure> {
        let holds = |failure: &&Failure| failure.until.is_none_or(|until| now < until);
        let mut failures = self.failures.iter().filter(holds);
        failures.find(|failure| signature.is_no_easier_than(&failure.signature))
    }

    pub fn note(
        &mut self,
        cluster: &Cluster,
        gang: GangId,
        signature: Signature,
        known: (Vec<Reason>, Option<Time>),
    ) {
        let (gang, (reasons, until)) = (cluster.gangs[gang].key.clone(), known);
        self.failures.push(Failure { gang, signature, reasons, until });
    }

    /// Forgets all failures after a change.
    pub fn forget(&mut self, cluster: &Cluster) {
        self.outlook_version = cluster.outlook_version();
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.failures.clear();
        let searches = self.cut.searches.values_mut().chain(self.last.searches.values_mut());
        searches.for_each(|(_, progress)| progress.begin_anew());
    }

    /// The gang to begin with, since the last cycle had no budget left for it.
    pub fn first(&self) -> Option<Arc<str>> {
        self.last.next.clone()
    }

    /// How far the search for a gang had come when it was cut short.
    pub fn resume(&mut self, gang: &str, key: &SearchKey) -> Progress {
        let known = self.last.searches.remove(gang).filter(|(of, _)| of == key);
        known.map(|(_, progress)| progress).unwrap_or_default()
    }

    /// Notes where the search for a gang was cut short.
    pub fn cut_short(&mut self, gang: Arc<str>, key: SearchKey, progress: Progress) {
        self.cut.searches.insert(gang, (key, progress));
    }

    /// Notes that there is no budget for a gang in this cycle.
    pub fn put_off(&mut self, gang: Arc<str>) {
        if let Some(search) = self.last.searches.remove(&gang) {
            self.cut.searches.insert(gang.clone(), search);
        }
        self.cut.next.get_or_insert(gang);
    }
}

/// Pending gangs make no room, but the shares of queues depend on what all gangs want.
fn shares_of(cluster: &Cluster, policy: &Policy, purpose: Purpose) -> Vec<Amounts> {
    if purpose != Purpose::Reclaim {
        return Vec::new();
    }
    cluster.queues.ids().filter_map(|queue| Some(policy.deserves(cluster, queue)?.0)).collect()
}
