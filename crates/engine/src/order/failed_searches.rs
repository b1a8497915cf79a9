//! Searches for room that failed. They are not repeated, for the same gang or for one that needs at
//! least as much, until something happens that could help.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::base::ids::{DomainId, GangId, PodId, QueueId, ResourceId, ShapeId};
use crate::base::purpose::{Mode, Purpose};
use crate::base::resources::Amounts;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::missing::{Missing, required};
use crate::model::shapes::{one_shape, shapes};
use crate::model::topology::subgroups::{Rule, TierLimit};
use crate::policy::answers::Policy;

/// All that matters to whether room can be made for a gang that has none yet. A shape says what a
/// pod asks for and which labels, ports, volumes and claims it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    queue: QueueId,
    priority: i32,
    protected: bool,
    never_preempts: bool,
    #[serde(alias = "closeness")]
    tier_limit: Option<TierLimit>,
    rules: Vec<Rule>,
    /// What any of its pods asks for: of this others must have more than their shares.
    #[serde(default)]
    asked: Vec<ResourceId>,
    /// With how many pods of each must be placed; and when it was met first, since numbers are
    /// used again.
    shapes: Vec<(ShapeId, u64, u32)>,
}

impl Signature {
    /// Nothing for a gang that has places already: others are not like it.
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
        // One pod that gets no place tells as much of any number; a whole gang only of gangs that
        // are no smaller.
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

    /// Whether a gang like this is served no more easily than another.
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

/// A gang for which nothing was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    pub gang: Arc<str>,
    signature: Signature,
    pub reasons: Vec<Reason>,
    /// When a rule ends that stood in the way.
    pub until: Option<Time>,
}

/// The failed searches of an action, and what they hold for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FailedSearches {
    #[serde(alias = "hope")]
    outlook_version: u64,
    /// What queues should have, where that decides.
    #[serde(default)]
    shares: Vec<Amounts>,
    failures: Vec<Failure>,
    #[serde(default)]
    cut: Interrupted,
    /// The same of the last cycle, as far as it has not been asked for. What is not asked for is
    /// over.
    #[serde(skip)]
    last: Interrupted,
}

/// Where the search for room was cut short.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Interrupted {
    /// The gang for which there was no time at all, and which comes first in the next cycle.
    next: Option<Arc<str>>,
    searches: BTreeMap<Arc<str>, (SearchKey, Progress)>,
}

/// What a gang lacked when the search was cut short. With another lack it is another search.
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
    /// The domains that have been tried since anything happened that could help.
    pub tried: BTreeSet<DomainId>,
    /// Those that were tried before that, longest ago first. All others come before them, so that
    /// a search gets everywhere which begins anew time and again.
    before: Vec<DomainId>,
    /// How often its budget was doubled, since it ended before the first domain did.
    pub doubled: u32,
    pub refused: Refused,
    /// What the preemptor's queue may not have, where there would be room.
    pub limit: Option<Reason>,
}

/// Why no room could be made in the domains that were tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    nodes: u32,
    kept: BTreeMap<String, u32>,
    pub until: Option<Time>,
}

impl Progress {
    /// A domain was searched to its end, and no room was found.
    pub fn finish(&mut self, domain: DomainId) {
        self.tried.insert(domain);
        self.before.retain(|&other| other != domain);
    }

    /// When a domain has its turn: after what is done with come those that have never been tried.
    pub fn turn(&self, domain: DomainId) -> usize {
        let before = || self.before.iter().position(|&other| other == domain);
        if self.tried.contains(&domain) { 0 } else { before().map_or(1, |at| at + 2) }
    }

    /// Something has happened that could help.
    fn begin_anew(&mut self) {
        let tried = std::mem::take(&mut self.tried);
        self.before.retain(|domain| !tried.contains(domain));
        self.before.extend(tried);
        self.refused = Refused::default();
        self.limit = None;
    }
}

impl Refused {
    /// Adds what was found in another domain: nodes on which evictions would not help, pods that a
    /// rule keeps, by rule, and when the first of these rules ends.
    pub fn add(&mut self, nodes: u32, kept: BTreeMap<&'static str, u32>, until: Option<Time>) {
        self.nodes += nodes;
        self.until = [self.until, until].into_iter().flatten().min();
        for (rule, pods) in kept {
            *self.kept.entry(rule.to_owned()).or_default() += pods;
        }
    }

    pub fn reason(self, purpose: Purpose) -> Reason {
        Reason::NothingToTake { purpose, nodes: self.nodes, kept: self.kept.into_iter().collect() }
    }
}

/// What all actions have found out, from cycle to cycle.
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
        // Whatever this action has changed could help.
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

    /// Something has happened.
    pub fn forget(&mut self, cluster: &Cluster) {
        self.outlook_version = cluster.outlook_version();
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.failures.clear();
        let searches = self.cut.searches.values_mut().chain(self.last.searches.values_mut());
        searches.for_each(|(_, progress)| progress.begin_anew());
    }

    /// The gang that comes first, since there was no time for it in the last cycle.
    pub fn first(&self) -> Option<Arc<str>> {
        self.last.next.clone()
    }

    /// How far the search for a gang had come when it was cut short.
    pub fn resume(&mut self, gang: &str, key: &SearchKey) -> Progress {
        let known = self.last.searches.remove(gang).filter(|(of, _)| of == key);
        known.map(|(_, progress)| progress).unwrap_or_default()
    }

    /// The search for a gang was cut short here.
    pub fn cut_short(&mut self, gang: Arc<str>, key: SearchKey, progress: Progress) {
        self.cut.searches.insert(gang, (key, progress));
    }

    /// There is no time for a gang in this cycle.
    pub fn put_off(&mut self, gang: Arc<str>) {
        if let Some(search) = self.last.searches.remove(&gang) {
            self.cut.searches.insert(gang.clone(), search);
        }
        self.cut.next.get_or_insert(gang);
    }
}

/// Work that only waits makes no room, but what queues should have follows from what all of them
/// want.
fn shares_of(cluster: &Cluster, policy: &Policy, purpose: Purpose) -> Vec<Amounts> {
    if purpose != Purpose::Reclaim {
        return Vec::new();
    }
    cluster.queues.ids().filter_map(|queue| Some(policy.deserves(cluster, queue)?.0)).collect()
}
