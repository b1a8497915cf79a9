//! What was tried in vain, so that nothing is tried again for those who are no easier to serve until something happens that could help.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_api::Time;
use serde::{Deserialize, Serialize};

use crate::config::Mode;
use crate::ids::{GangId, PodId, QueueId, ResourceId, ShapeId};
use crate::model::Cluster;
use crate::model::gangs::Missing;
use crate::model::subgroups::{Closeness, Rule};
use crate::placement::one_shape;
use crate::policy::{Policy, Purpose};
use crate::reason::Reason;
use crate::resources::Amounts;
use crate::search::{required, shapes};

/// All that matters to whether room can be made for a gang that has none yet. A shape says what a pod asks for and which labels, ports,
/// volumes and claims it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    queue: QueueId,
    priority: i32,
    protected: bool,
    never_preempts: bool,
    closeness: Option<Closeness>,
    rules: Vec<Rule>,
    /// What any of its pods asks for: of this others must have more than their shares.
    asked: Vec<ResourceId>,
    /// With how many pods of each must be placed; and when it was met first, since numbers are used again.
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
        let simple = one_shape(cluster, pods).is_some() && row.choosy.is_none();
        if !row.idle() || !simple && mode != Mode::Scenario {
            return None;
        }
        let required = required(cluster, pods, missing);
        // One pod that gets no place tells as much of any number; a whole gang only of gangs that are no smaller.
        let least = |count: u32| if mode == Mode::Task { 0 } else { count };
        let shape = |(shape, count): (ShapeId, u32)| (shape, cluster.shapes[shape].born, least(count));
        let asked = row.requested.iter().filter(|&(_, amount)| amount > 0).map(|(resource, _)| resource);
        Some(Signature {
            queue: row.queue,
            priority: row.priority,
            protected: row.protected,
            never_preempts: required.iter().any(|&pod| cluster.never_preempts(pod)),
            closeness: row.closeness().cloned(),
            rules: row.rules().to_vec(),
            asked: asked.collect(),
            shapes: shapes(cluster, &required).into_iter().map(shape).collect(),
        })
    }

    /// Whether a gang like this is served no more easily than another.
    fn is_no_easier_than(&self, other: &Signature) -> bool {
        let alike = |a: &(ShapeId, u64, u32), b: &(ShapeId, u64, u32)| (a.0, a.1) == (b.0, b.1) && a.2 >= b.2;
        let Signature { queue, priority, protected, never_preempts, closeness, rules, asked, shapes } = other;
        (self.queue, self.protected, self.never_preempts) == (*queue, *protected, *never_preempts)
            && self.priority <= *priority
            && self.closeness == *closeness
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

/// What an action has found out: since when it holds, and for whom.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Fruitless {
    hope: u64,
    /// What queues should have, where that decides.
    #[serde(default)]
    shares: Vec<Amounts>,
    failures: Vec<Failure>,
    /// Where the search for room was cut short.
    pub unfinished: Option<Unfinished>,
}

/// The gang that comes first in the next cycle, and how many of its domains have been tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    pub gang: Arc<str>,
    pub tried: usize,
}

/// What all actions have found out, from cycle to cycle.
pub type Memory = BTreeMap<Purpose, Fruitless>;

impl Fruitless {
    /// What is known from earlier cycles and still holds.
    pub fn recall(cluster: &mut Cluster, policy: &Policy, purpose: Purpose, mode: Mode) -> Fruitless {
        if mode != Mode::Scenario {
            return Fruitless::default();
        }
        let (hope, shares) = (cluster.hope(), shares_of(cluster, policy, purpose));
        let mut known = cluster.fruitless.remove(&purpose).unwrap_or_default();
        if (known.hope, &known.shares) != (hope, &shares) {
            known.failures.clear();
        }
        Fruitless { hope, shares, ..known }
    }

    /// Keeps it for the next cycle.
    pub fn keep(self, cluster: &mut Cluster, purpose: Purpose, mode: Mode) {
        let nothing = self.failures.is_empty() && self.unfinished.is_none();
        if mode == Mode::Scenario && !nothing {
            let hope = cluster.hope();
            // Whatever this action has changed could help.
            let failures = if self.hope == hope { self.failures } else { Vec::new() };
            cluster.fruitless.insert(purpose, Fruitless { hope, failures, ..self });
        }
    }

    pub fn covers(&self, signature: &Signature, now: Time) -> Option<&Failure> {
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
        self.hope = cluster.hope();
        self.failures.clear();
    }

    /// How many domains of the gang have been tried in the last cycle.
    pub fn tried(&self, gang: &str) -> usize {
        self.unfinished.as_ref().filter(|left| *left.gang == *gang).map_or(0, |left| left.tried)
    }
}

/// Work that only waits makes no room, but what queues should have follows from what all of them want.
fn shares_of(cluster: &Cluster, policy: &Policy, purpose: Purpose) -> Vec<Amounts> {
    if purpose != Purpose::Reclaim {
        return Vec::new();
    }
    cluster.queues.ids().filter_map(|queue| Some(policy.deserves(cluster, queue)?.0)).collect()
}
