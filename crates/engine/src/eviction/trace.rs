//! What is tried to make room for a gang: node by node, or domain by domain. The code that decides
//! records it, so that what is shown cannot disagree with what is done. Recording is off in cycles
//! and costs nothing there.

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
    /// In mode `task`: pod by pod, until one finds no node.
    pub attempts: Vec<PodAttempt>,
    /// In the other modes: with safe bundles only, then with whole bundles too, until a pass
    /// succeeds.
    pub passes: Vec<Pass>,
    /// In the other modes: why no room can be made.
    pub refused: Vec<Reason>,
}

/// What is tried with bundles of one kind and of the kinds before it.
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
    /// Whether this domain was selected.
    pub chosen: bool,
    /// Pods there that the preemptor could evict but for a rule, with the rule.
    pub kept: Vec<(PodId, &'static str)>,
}

#[derive(Clone, Debug)]
pub enum DomainOutcome {
    /// The gang does not fit there even if the domain is empty.
    TooSmall,
    /// Other candidates were estimated to cost less, and enough of them were tried.
    NotTried,
    /// It still lacks these amounts in sum when all candidates are evicted.
    TooLittle { victims: Vec<Bundle>, lacks: Vec<(ResourceId, i64)> },
    /// The gang does not fit when these are evicted.
    Fails { victims: Vec<Bundle>, why: Vec<Reason> },
    /// The gang fits when these are evicted; some of them are moved to other nodes. The cost is in
    /// parts per million of what the gang requests.
    Works { victims: Vec<Bundle>, moved: Vec<(PodId, NodeId)>, cost: i64 },
}

/// The search for a node for one pod.
#[derive(Clone, Debug)]
pub struct PodAttempt {
    pub pod: PodId,
    /// The node that it would get.
    pub place: Option<NodeId>,
    /// Why it would get none.
    pub refused: Option<Reason>,
    /// The result for each node where pods would have to be evicted. Kept only for the first and
    /// the last pod for which such nodes were tried.
    pub trials: BTreeMap<NodeId, Trial>,
}

#[derive(Clone, Debug)]
pub struct Trial {
    pub outcome: Outcome,
    /// Pods there that the preemptor could evict but for a rule, with the rule.
    pub kept: Vec<(PodId, &'static str)>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// It does not accept the pod, whatever is evicted.
    Closed,
    /// No pod there may be evicted.
    NoCandidates,
    /// It still lacks these amounts when all candidates are evicted.
    TooLittle { victims: Vec<PodId>, lacks: Vec<(ResourceId, i64)> },
    /// Other candidates were estimated to cost less, and enough of them were tried.
    NotTried,
    /// The pod does not fit when these are evicted.
    Fails { victims: Vec<PodId>, obstacle: Obstacle },
    /// The pod fits when these are evicted and the nominations of these are released.
    Works { victims: Vec<PodId>, released: Vec<PodId>, cost: EvictionCost },
}

/// Why the pod does not fit on a node after evictions there.
#[derive(Clone, Debug)]
pub enum Obstacle {
    /// The preemptor's queue or namespace may not have more.
    Limit(Reason),
    Node(Shown),
    /// It fits only next to nominated pods, which may never start there.
    NeedsNominated,
}

/// What it costs to make room on a node; the fields are compared in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvictionCost {
    /// Victims beyond what PodDisruptionBudgets allow.
    pub broken: usize,
    /// The cost according to a plugin, if one has an opinion.
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

    pub(crate) fn record_veto(&mut self, node: NodeId, pod: PodId, rule: &'static str) {
        self.trial(node, |trial| trial.kept.push((pod, rule)));
    }

    pub(crate) fn conclude(&mut self, node: NodeId, outcome: Outcome) {
        self.trial(node, |trial| trial.outcome = outcome);
    }

    pub(crate) fn begin_pass(&mut self, allowed: BundleKind) {
        self.passes.push(Pass { allowed, domains: Vec::new() });
    }

    /// Adds a domain. What is recorded of bundles from now on belongs to it.
    pub(crate) fn begin_domain(&mut self, domain: DomainId, outcome: DomainOutcome) {
        if let Some(pass) = self.passes.last_mut() {
            pass.domains.push(DomainTrial { domain, outcome, chosen: false, kept: Vec::new() });
        }
    }

    pub(crate) fn record_bundle_veto(&mut self, pods: &[PodId], rule: &'static str) {
        self.domain(|trial| trial.kept.extend(pods.iter().map(|&pod| (pod, rule))));
    }

    pub(crate) fn conclude_domain(&mut self, outcome: DomainOutcome) {
        self.domain(|trial| trial.outcome = outcome);
    }

    pub(crate) fn choose(&mut self, domain: DomainId) {
        let trials = self.passes.last_mut().into_iter().flat_map(|pass| &mut pass.domains);
        trials.filter(|trial| trial.domain == domain).for_each(|trial| trial.chosen = true);
    }

    /// No domain is selected after all.
    pub(crate) fn choose_nothing(&mut self) {
        let trials = self.passes.iter_mut().flat_map(|pass| &mut pass.domains);
        trials.for_each(|trial| trial.chosen = false);
    }

    /// Protected pods, with the rule that protects each.
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
