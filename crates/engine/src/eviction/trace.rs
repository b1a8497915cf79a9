//! What is tried to make room for a gang: node by node, or by whole gangs domain by domain. It is
//! written by the code that decides (`claims.rs`, `victims.rs`, `gang_claims.rs`) while someone
//! looks, so that what is told can't disagree with what is done. When nobody looks it costs
//! nothing.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{DomainId, GangId, NodeId, PodId, QueueId, ResourceId};
use crate::decision::plan::{Plan, Work};
use crate::decision::reason::{Reason, Shown};
use crate::engine::Engine;
use crate::eviction::claims::Errand;
use crate::eviction::failed_searches::Progress;
use crate::eviction::{claims, rights};
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Purpose;

pub use crate::eviction::bundles::Bundle;
pub use crate::eviction::bundles::Kind;
pub use crate::eviction::rights::TakingBack;

/// What comes to light while room is made: the work that it takes, and all of it for someone who
/// looks.
#[derive(Default)]
pub(crate) struct Record<'t> {
    pub work: Work,
    /// How far the search has come, in this cycle or before.
    pub progress: Progress,
    pub trace: Option<&'t mut Trace>,
}

/// What an action tries for a gang.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In mode `task`: pod by pod, until one gets no place.
    pub attempts: Vec<Attempt>,
    /// In mode `gang`: only what breaks nobody, then whole gangs too, until one of them does.
    pub passes: Vec<Pass>,
    /// In mode `gang`: why it comes to nothing, if it does.
    pub refused: Vec<Reason>,
}

/// What is tried with bundles of one kind, and of those before it.
#[derive(Clone, Debug)]
pub struct Pass {
    pub allowed: Kind,
    /// In the order in which they are tried.
    pub domains: Vec<DomainTrial>,
}

#[derive(Clone, Debug)]
pub struct DomainTrial {
    pub domain: DomainId,
    pub outcome: DomainOutcome,
    /// It is the one that is taken.
    pub chosen: bool,
    /// Pods there that the claimant might have, but for a rule.
    pub kept: Vec<(PodId, &'static str)>,
}

#[derive(Clone, Debug)]
pub enum DomainOutcome {
    /// It could not hold the gang if it were empty.
    TooSmall,
    /// Enough others were more promising.
    NotTried,
    /// It would lack these in all, even if all left who may be asked.
    TooLittle { gone: Vec<Bundle>, lacks: Vec<(ResourceId, i64)> },
    /// It would not do with these gone.
    Fails { gone: Vec<Bundle>, why: Vec<Reason> },
    /// It would do with these gone, some of whom have another place. What leaves is counted in
    /// parts per million of what was lacking.
    Works { gone: Vec<Bundle>, moved: Vec<(PodId, NodeId)>, cost: i64 },
}

/// The search for a place for one pod.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub pod: PodId,
    /// The place that it would get.
    pub place: Option<NodeId>,
    /// Why it would get none.
    pub refused: Option<Reason>,
    /// What came of each node, if others have to leave; kept of the first such pod and of the
    /// last.
    pub trials: BTreeMap<NodeId, Trial>,
}

#[derive(Clone, Debug)]
pub struct Trial {
    pub outcome: Outcome,
    /// Pods there that the claimant might have, but for a rule.
    pub kept: Vec<(PodId, &'static str)>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// It doesn't take the pod, whoever leaves.
    Closed,
    /// Nobody there may be asked to leave.
    Nobody,
    /// It would lack these even if all left who may be asked.
    TooLittle { victims: Vec<PodId>, lacks: Vec<(ResourceId, i64)> },
    /// Enough others were more promising.
    NotTried,
    /// It would not do with these gone.
    Fails { gone: Vec<PodId>, obstacle: Obstacle },
    /// It would do with these gone, and the promises of these taken back.
    Works { gone: Vec<PodId>, taken_back: Vec<PodId>, bill: Bill },
}

/// Why a node doesn't do although pods have left.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// The claimant's queue or namespace may not take it.
    Limit(Reason),
    Node(Shown),
    /// It would do only beside pods that have been promised a place there and may never come.
    Company,
}

/// What it costs to make room on a node, in the order in which it counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bill {
    /// How many leave against a rule that should hold where it can.
    pub broken: usize,
    /// As a plugin prices it, if one does.
    pub price: Option<i64>,
    pub highest_priority: Option<i32>,
    pub sum_of_priorities: i64,
    pub pods: usize,
}

impl Trace {
    pub(crate) fn begin(&mut self, pod: PodId) {
        if let [before @ .., last] = self.attempts.as_mut_slice()
            && before.iter().any(|attempt| !attempt.trials.is_empty())
        {
            last.trials.clear();
        }
        self.attempts.push(Attempt { pod, place: None, refused: None, trials: BTreeMap::new() });
    }

    pub(crate) fn end(&mut self, place: Option<NodeId>, refused: Option<&Reason>) {
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.place = place;
            attempt.refused = refused.cloned();
        }
    }

    pub(crate) fn keep(&mut self, node: NodeId, pod: PodId, rule: &'static str) {
        self.trial(node, |trial| trial.kept.push((pod, rule)));
    }

    pub(crate) fn conclude(&mut self, node: NodeId, outcome: Outcome) {
        self.trial(node, |trial| trial.outcome = outcome);
    }

    pub(crate) fn begin_pass(&mut self, allowed: Kind) {
        self.passes.push(Pass { allowed, domains: Vec::new() });
    }

    /// What becomes of a domain; what is told of bundles from now on is told of this one.
    pub(crate) fn begin_domain(&mut self, domain: DomainId, outcome: DomainOutcome) {
        if let Some(pass) = self.passes.last_mut() {
            pass.domains.push(DomainTrial { domain, outcome, chosen: false, kept: Vec::new() });
        }
    }

    pub(crate) fn keep_bundle(&mut self, pods: &[PodId], rule: &'static str) {
        self.domain(|trial| trial.kept.extend(pods.iter().map(|&pod| (pod, rule))));
    }

    pub(crate) fn conclude_domain(&mut self, outcome: DomainOutcome) {
        self.domain(|trial| trial.outcome = outcome);
    }

    pub(crate) fn choose(&mut self, domain: DomainId) {
        let trials = self.passes.last_mut().into_iter().flat_map(|pass| &mut pass.domains);
        trials.filter(|trial| trial.domain == domain).for_each(|trial| trial.chosen = true);
    }

    /// Nothing comes of what was chosen.
    pub(crate) fn choose_nothing(&mut self) {
        let trials = self.passes.iter_mut().flat_map(|pass| &mut pass.domains);
        trials.for_each(|trial| trial.chosen = false);
    }

    /// Those whom a rule keeps, with the rule.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (PodId, &'static str)> + '_ {
        let nodes = self
            .attempts
            .iter()
            .flat_map(|attempt| attempt.trials.values())
            .map(|trial| &trial.kept);
        let domains = self.passes.iter().flat_map(|pass| &pass.domains).map(|trial| &trial.kept);
        nodes.chain(domains).flatten().copied()
    }

    fn domain(&mut self, change: impl FnOnce(&mut DomainTrial)) {
        if let Some(trial) = self.passes.last_mut().and_then(|pass| pass.domains.last_mut()) {
            change(trial);
        }
    }

    fn trial(&mut self, node: NodeId, change: impl FnOnce(&mut Trial)) {
        if let Some(attempt) = self.attempts.last_mut() {
            let untried = Trial { outcome: Outcome::NotTried, kept: Vec::new() };
            change(attempt.trials.entry(node).or_insert(untried));
        }
    }
}

impl Engine {
    /// What `preempt` and `reclaim` would try for a gang that starves, by the name of the action.
    /// Nothing comes of it.
    pub fn trace(&mut self, gang: GangId, now: Time) -> Vec<(&'static str, Trace)> {
        let mut traces = Vec::new();
        self.look(now, &mut |session, errand| {
            traces.extend(claims::trace(session, gang, errand).map(|trace| (errand.action, trace)));
        });
        traces
    }

    /// What a queue would take back for the first of its gangs that lacks room, and from whom.
    pub fn taking_back(&mut self, queue: QueueId, now: Time) -> Option<TakingBack> {
        let mut found = None;
        self.look(now, &mut |session, errand| {
            if errand.purpose == Purpose::Reclaim && found.is_none() {
                found = rights::taking_back(session, queue, errand);
            }
        });
        found
    }

    /// Lets someone look at the errand of each action that takes room, as in a cycle. Everything
    /// stays as it was.
    fn look(&mut self, now: Time, at: &mut dyn FnMut(&mut Session, Errand)) {
        self.cluster.settle();
        let before = self.cluster.generation;
        let settings = &self.config.settings;
        for action in &self.config.actions {
            let Some(errand) = Errand::of(settings, action.name) else { continue };
            let mut session = Session {
                cluster: &mut self.cluster,
                policy: &self.config.policy,
                // Those of the cycles stay as they are.
                rankings: &mut Rankings::default(),
                settings,
                plan: &mut Plan::default(),
                now,
                heads: Vec::new(),
            };
            at(&mut session, errand);
        }
        // Who was at rest is so still.
        if let Some((generation, _)) =
            self.rests.as_mut().filter(|(generation, _)| *generation == before)
        {
            *generation = self.cluster.generation;
        }
    }
}
