//! Where evicting whole gangs could make room for a starving one: domain by domain, which pods
//! would be evicted and at what cost, or what prevents it. The engine reports what it tries;
//! nothing is searched for here.

use std::collections::BTreeMap;

use muster_engine::Reason;
use muster_engine::explain::message;
use muster_engine::ids::{DomainId, NodeId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::domains::ROOT;
use muster_engine::trace::{Bundle, BundleKind, DomainOutcome, DomainTrial, Pass};
use muster_text::counted;
use serde::Serialize;

use crate::amounts::listed;
use crate::searches::gang_of;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PassFacts {
    /// `safe`: only bundles that break no gang may be evicted; `whole`: whole gangs too.
    pub bundles: &'static str,
    /// The domains that were tried: the chosen one first, the others in the order in which they
    /// were tried.
    pub domains: Vec<DomainSearch>,
    /// How many more were tried.
    pub more_domains: usize,
    /// Not tried, because the limit on trials was reached or a domain was found that can't be
    /// beaten.
    pub not_tried: Vec<String>,
    /// They could not hold the gang even if they were empty.
    pub too_small: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainSearch {
    /// `None` is the whole cluster.
    pub domain: Option<String>,
    pub works: bool,
    /// Whether it is the one that is used.
    pub chosen: bool,
    /// What would be evicted. If that does not make enough room, everything that was tried.
    pub leave: Vec<BundleFacts>,
    /// Evicted pods that have a node to move to, and that node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<(String, String)>,
    /// How much is evicted, in parts per million of what was lacking.
    pub cost_ppm: Option<i64>,
    /// Pods in the domain that a rule keeps, by gang and rule.
    pub kept: Vec<KeptFacts>,
    /// Why evictions would not make enough room.
    pub why: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleFacts {
    pub gang: String,
    /// `spare`: the gang can lose the pods; `broken`: it lacks others already; `whole`: all pods
    /// that it has left here, which breaks it.
    pub kind: &'static str,
    pub priority: i32,
    pub pods: Vec<String>,
    /// What evicting a whole gang frees, relative to what is lost, in parts per million.
    pub roi_ppm: Option<i64>,
}

#[derive(Serialize)]
pub struct KeptFacts {
    pub gang: String,
    pub rule: &'static str,
    pub pods: Vec<String>,
}

/// `most` domains are listed.
pub fn pass(cluster: &Cluster, pass: &Pass, most: usize) -> PassFacts {
    let mut tried: Vec<&DomainTrial> =
        pass.domains.iter().filter(|trial| is_tried(trial)).collect();
    tried.sort_by_key(|trial| !trial.chosen);
    let named = |wanted: fn(&DomainOutcome) -> bool| {
        let trials = pass.domains.iter().filter(|trial| wanted(&trial.outcome));
        trials
            .map(|trial| name(cluster, trial.domain).unwrap_or_else(|| "the cluster".into()))
            .collect()
    };
    PassFacts {
        bundles: if pass.allowed == BundleKind::Safe { "safe" } else { "whole" },
        more_domains: tried.len().saturating_sub(most),
        domains: tried.into_iter().take(most).map(|trial| told(cluster, trial)).collect(),
        not_tried: named(|outcome| matches!(outcome, DomainOutcome::NotTried)),
        too_small: named(|outcome| matches!(outcome, DomainOutcome::TooSmall)),
    }
}

fn is_tried(trial: &DomainTrial) -> bool {
    !matches!(trial.outcome, DomainOutcome::NotTried | DomainOutcome::TooSmall)
}

fn name(cluster: &Cluster, domain: DomainId) -> Option<String> {
    (domain != ROOT).then(|| cluster.domains[domain].name.to_string())
}

fn told(cluster: &Cluster, trial: &DomainTrial) -> DomainSearch {
    let (leave, cost_ppm) = match &trial.outcome {
        DomainOutcome::Works { victims, cost, .. } => (&victims[..], Some(*cost)),
        DomainOutcome::Fails { victims, .. } | DomainOutcome::TooLittle { victims, .. } => {
            (&victims[..], None)
        }
        DomainOutcome::TooSmall | DomainOutcome::NotTried => (&[][..], None),
    };
    DomainSearch {
        domain: name(cluster, trial.domain),
        works: cost_ppm.is_some(),
        chosen: trial.chosen,
        leave: leave.iter().map(|one| bundle(cluster, one)).collect(),
        moved: moved(cluster, trial),
        cost_ppm,
        kept: kept(cluster, &trial.kept),
        why: why(cluster, trial),
    }
}

/// Evicted pods that have a node to move to, and that node.
fn moved(cluster: &Cluster, trial: &DomainTrial) -> Vec<(String, String)> {
    let DomainOutcome::Works { moved, .. } = &trial.outcome else { return Vec::new() };
    let told = |&(pod, node): &(PodId, NodeId)| {
        (cluster.pods.name(pod).to_string(), cluster.nodes.name[node].to_string())
    };
    moved.iter().map(told).collect()
}

fn bundle(cluster: &Cluster, bundle: &Bundle) -> BundleFacts {
    let gang = &cluster.gangs[bundle.gang];
    BundleFacts {
        gang: gang.key.to_string(),
        kind: match (bundle.kind, bundle.broken) {
            (BundleKind::Whole, _) => "whole",
            (BundleKind::Safe, true) => "broken",
            (BundleKind::Safe, false) => "spare",
        },
        priority: gang.priority,
        pods: bundle.pods.iter().map(|&pod| cluster.pods.name(pod).to_string()).collect(),
        roi_ppm: bundle.roi,
    }
}

fn kept(cluster: &Cluster, kept: &[(PodId, &'static str)]) -> Vec<KeptFacts> {
    let mut found: BTreeMap<(&'static str, String), Vec<String>> = BTreeMap::new();
    for &(pod, rule) in kept {
        let pods = found.entry((rule, gang_of(cluster, pod))).or_default();
        pods.push(cluster.pods.name(pod).to_string());
    }
    found.into_iter().map(|((rule, gang), pods)| KeptFacts { gang, rule, pods }).collect()
}

fn why(cluster: &Cluster, trial: &DomainTrial) -> Option<String> {
    let domain = &cluster.domains[trial.domain].name;
    // In the trial of one domain its own room is what matters.
    let text = |reason: &Reason| match reason {
        Reason::NoDomain { wanted, near, .. } => {
            let holds =
                near.iter().find(|near| near.domain == *domain).map_or(0, |near| near.holds);
            format!("has room for {holds} of {}", counted(u64::from(*wanted), "pod"))
        }
        reason => message(reason, &cluster.dimensions),
    };
    match &trial.outcome {
        DomainOutcome::TooLittle { lacks, .. } => {
            Some(format!("lacks {}", listed(cluster, lacks.iter().copied())))
        }
        DomainOutcome::Fails { why, .. } => {
            Some(why.iter().map(text).collect::<Vec<_>>().join("; "))
        }
        DomainOutcome::Works { .. } | DomainOutcome::TooSmall | DomainOutcome::NotTried => None,
    }
}
