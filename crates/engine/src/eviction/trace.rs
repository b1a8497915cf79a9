//! What is tried to make room for a gang: node by node, or by whole gangs domain by domain. It is
//! written by the code that decides while someone looks, so that what is told can't disagree with
//! what is done. When nobody looks it costs nothing.

use std::collections::BTreeMap;

use crate::base::ids::{DomainId, NodeId, PodId, ResourceId};
use crate::decision::node_reason::Shown;
use crate::decision::reason::Reason;

pub use crate::eviction::queries::TakingBack;
pub use crate::policy::bundle::Bundle;
pub use crate::policy::bundle::BundleKind;

/// What an action tries for a gang.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In mode `task`: pod by pod, until one gets no place.
    pub attempts: Vec<PodAttempt>,
    /// In mode `gang`: only what breaks nobody, then whole gangs too, until one of them does.
    pub passes: Vec<Pass>,
    /// In mode `gang`: why it comes to nothing, if it does.
    pub refused: Vec<Reason>,
}

/// What is tried with bundles of one kind, and of those before it.
#[derive(Clone, Debug)]
pub struct Pass {
    pub allowed: BundleKind,
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
pub struct PodAttempt {
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
    /// No pod there may be evicted.
    NoCandidates,
    /// It would lack these even if all left who may be asked.
    TooLittle { victims: Vec<PodId>, lacks: Vec<(ResourceId, i64)> },
    /// Enough others were more promising.
    NotTried,
    /// It would not do with these gone.
    Fails { gone: Vec<PodId>, obstacle: Obstacle },
    /// It would do with these gone, and the promises of these taken back.
    Works { gone: Vec<PodId>, taken_back: Vec<PodId>, cost: EvictionCost },
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
pub struct EvictionCost {
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
        self.attempts.push(PodAttempt { pod, place: None, refused: None, trials: BTreeMap::new() });
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

    pub(crate) fn begin_pass(&mut self, allowed: BundleKind) {
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
