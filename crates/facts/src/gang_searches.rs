//! Where whole gangs could make room for one that starves: domain by domain, who would leave and
//! what that costs, or what stands in the way. As in `claims.rs`, the engine tells what it tries.

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
    /// `safe`: only what breaks nobody may leave; `whole`: whole gangs too.
    pub bundles: &'static str,
    /// The domains that were tried, the one that is taken first, then in the order in which they
    /// were.
    pub domains: Vec<DomainSearch>,
    /// How many more there are.
    pub more_domains: usize,
    /// Not tried, because others were more promising: as many as may be tried, or one that can't
    /// be beaten.
    pub not_tried: Vec<String>,
    /// They could not hold the gang if they were empty.
    pub too_small: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainSearch {
    /// Nothing stands for the whole cluster.
    pub domain: Option<String>,
    pub works: bool,
    /// And it is the one that is taken.
    pub chosen: bool,
    /// Who would leave. If it doesn't do, who was asked in vain.
    pub leave: Vec<BundleFacts>,
    /// Those of them that have another place, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<(String, String)>,
    /// How much leaves, in parts per million of what was lacking.
    pub cost_ppm: Option<i64>,
    /// Pods there that a rule keeps, by gang and rule.
    pub kept: Vec<KeptFacts>,
    /// Why it would not do.
    pub why: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleFacts {
    pub gang: String,
    /// `spare`: the gang can lose them; `broken`: it lacks others anyway; `whole`: they are the
    /// rest of it here, and it breaks.
    pub kind: &'static str,
    pub priority: i32,
    pub pods: Vec<String>,
    /// What a whole gang returns for what is lost, in parts per million.
    pub roi_ppm: Option<i64>,
}

#[derive(Serialize)]
pub struct KeptFacts {
    pub gang: String,
    pub rule: &'static str,
    pub pods: Vec<String>,
}

/// So many domains are told.
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
        DomainOutcome::Works { gone, cost, .. } => (&gone[..], Some(*cost)),
        DomainOutcome::Fails { gone, .. } | DomainOutcome::TooLittle { gone, .. } => {
            (&gone[..], None)
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

/// Those who leave and have another place, and where.
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
    // Of all domains only this one is of interest here.
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
