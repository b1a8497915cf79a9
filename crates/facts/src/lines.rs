//! Gangs and queues on one line each: their state, and why gangs wait.

use std::collections::BTreeMap;

use muster_engine::ids::{GangId, QueueId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Origin;
use muster_engine::{Amounts, Engine, Reason, Shown, explain, search};
use serde::Serialize;

use crate::amounts::{amounts, sparse};

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GangLine {
    pub name: String,
    pub queue: String,
    pub phase: String,
    pub priority: i32,
    pub min_member: u32,
    pub running: u32,
    pub pending: u32,
    pub nominated: u32,
    pub succeeded: u32,
    pub failed: u32,
    /// Pods that were evicted or deleted and still terminate.
    pub terminating: u32,
    pub domain: Option<String>,
    pub reasons: Vec<ReasonLine>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReasonLine {
    pub stage: &'static str,
    pub reason: &'static str,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodesLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NodesLine {
    pub total: u32,
    pub fit: u32,
    pub unfit: Vec<BarLine>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BarLine {
    pub nodes: u32,
    pub why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub want: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueLine {
    pub name: String,
    /// How much of its share the queue uses, for the resource of which it uses most. The share is
    /// the fair share where queues are measured by that, else what it deserves, else the cluster.
    pub share: f64,
    /// What the fraction is relative to.
    pub share_of: ShareOf,
    /// What its pods use, nominations included.
    pub allocated: BTreeMap<String, String>,
    /// The part of it that is kept for nominated pods.
    pub nominated: BTreeMap<String, String>,
    /// As the queue says, or by its weight.
    pub deserved: BTreeMap<String, String>,
    /// Set where queues are measured by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_share: Option<BTreeMap<String, String>>,
    pub capability: BTreeMap<String, String>,
    pub weight: i32,
    pub parent: Option<String>,
    pub running: usize,
    pub pending: usize,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ShareOf {
    FairShare,
    Deserved,
    Cluster,
}

impl ShareOf {
    pub fn words(self) -> &'static str {
        match self {
            ShareOf::FairShare => "fair share",
            ShareOf::Deserved => "deserved",
            ShareOf::Cluster => "cluster",
        }
    }
}

pub fn gang_line(cluster: &Cluster, id: GangId) -> GangLine {
    let gang = &cluster.gangs[id];
    let counts = &gang.counts;
    let phase = match gang.origin {
        // A pod without a PodGroup has no phase on the API server; the phase follows from the state
        // of the pod.
        Origin::Solo if counts.running + counts.allocated + counts.releasing > 0 => {
            "Running".to_owned()
        }
        Origin::Solo if counts.succeeded + counts.failed > 0 => "Completed".to_owned(),
        Origin::Solo => "Pending".to_owned(),
        _ => format!("{:?}", gang.phase),
    };
    // Without HyperNodes the only domain is the whole cluster, which says nothing.
    let domain = search::domain_of(cluster, id).filter(|_| cluster.domains.are_real());
    GangLine {
        name: gang.key.to_string(),
        queue: cluster.queues[gang.queue].name.to_string(),
        phase,
        priority: gang.priority,
        min_member: gang.minimum,
        running: counts.running + counts.allocated,
        pending: counts.pending + counts.gated + counts.nominated,
        nominated: counts.nominated,
        succeeded: counts.succeeded,
        failed: counts.failed,
        terminating: counts.releasing,
        domain: domain.map(|domain| cluster.domains[domain].name.to_string()),
        reasons: if gang.waits() {
            gang.reasons.iter().map(|reason| reason_line(cluster, reason)).collect()
        } else {
            Vec::new()
        },
    }
}

pub fn reason_line(cluster: &Cluster, reason: &Reason) -> ReasonLine {
    let dimensions = &cluster.dimensions;
    let nodes = match reason {
        Reason::NoNodes { histogram, .. } => Some(NodesLine {
            total: histogram.nodes,
            fit: histogram.fit,
            unfit: histogram
                .bars
                .iter()
                .map(|bar| {
                    let short = match bar.why {
                        Shown::Short { resource, want, best } => Some((resource, want, best)),
                        _ => None,
                    };
                    BarLine {
                        nodes: bar.nodes,
                        why: explain::shown_text(&bar.why, dimensions),
                        resource: short.map(|(resource, ..)| dimensions.name(resource).to_owned()),
                        want: short.map(|(resource, want, _)| dimensions.show(resource, want)),
                        best: short.map(|(resource, _, best)| dimensions.show(resource, best)),
                    }
                })
                .collect(),
        }),
        _ => None,
    };
    ReasonLine {
        stage: reason.stage().name(),
        reason: explain::word(reason),
        message: explain::message(reason, dimensions),
        nodes,
    }
}

pub fn queue_line(engine: &Engine, id: QueueId) -> QueueLine {
    let cluster = engine.cluster();
    let queue = &cluster.queues[id];
    let mut taken = queue.held.clone();
    taken.add_amounts(&queue.nominated, 1);
    let fair = engine.policy().fair_share_of(cluster, id);
    let measure = fair.clone().or_else(|| engine.policy().deserves(cluster, id));
    let (measure, share, share_of) = match measure {
        Some((measure, share)) if !measure.is_zero() => {
            let of = if fair.is_some() { ShareOf::FairShare } else { ShareOf::Deserved };
            (measure, share, of)
        }
        _ => {
            let share = muster_engine::Share::dominant(&taken, |r| cluster.total.get(r));
            (Amounts::default(), share, ShareOf::Cluster)
        }
    };
    let gangs = || {
        cluster.gangs.iter().filter(|(_, gang)| cluster.queues[gang.queue].lineage.contains(&id))
    };
    QueueLine {
        name: queue.name.to_string(),
        share: share.ppm().min(i64::from(u32::MAX)) as f64 / 1e6,
        share_of,
        allocated: amounts(cluster, taken.iter()),
        nominated: amounts(cluster, queue.nominated.iter()),
        deserved: match fair {
            Some(_) => sparse(cluster, &queue.deserved),
            None => amounts(cluster, measure.iter()),
        },
        fair_share: fair.map(|(fair, _)| amounts(cluster, fair.iter())),
        capability: sparse(cluster, &queue.capability),
        weight: queue.weight,
        parent: queue.lineage.get(1).map(|&parent| cluster.queues[parent].name.to_string()),
        running: gangs()
            .filter(|(_, gang)| gang.counts.running + gang.counts.allocated > 0)
            .count(),
        pending: gangs()
            .filter(|(_, gang)| gang.idle() && gang.counts.pending + gang.counts.gated > 0)
            .count(),
    }
}
