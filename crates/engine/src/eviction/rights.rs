//! What a queue would take back from others, told by deciding it once more.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::decision::reason::Reason;
use crate::eviction::claims::{Errand, decide, grows, starves};
use crate::eviction::trace::Trace;
use crate::model::Cluster;
use crate::order::session::Session;

/// What a queue takes back for the first of its gangs that lacks room.
#[derive(Clone, Debug)]
pub struct TakingBack {
    /// The name of the action.
    pub action: &'static str,
    pub gang: GangId,
    /// Why it takes nothing; empty if it does.
    pub refused: Vec<Reason>,
    /// The queues of those who leave, in the order in which they do.
    pub from: Vec<QueueId>,
    /// Other queues of which someone might have left, but for a rule; by name.
    pub kept: Vec<(QueueId, &'static str)>,
}

pub fn taking_back(session: &mut Session, queue: QueueId, errand: Errand) -> Option<TakingBack> {
    let gang = in_need(session, queue, errand)?;
    let own = session.cluster.gangs[gang].queue;
    let (trace, outcome) = match session.policy.overused(session.cluster, own) {
        Some(reason) => (Trace::default(), Err(vec![reason])),
        None => decide(session, gang, errand)?,
    };
    let cluster = &*session.cluster;
    let (leaving, refused) = match outcome {
        Ok(leaving) => (leaving, Vec::new()),
        Err(refused) => (Vec::new(), refused),
    };
    let mut from: Vec<QueueId> = Vec::new();
    for queue in leaving.iter().filter_map(|&pod| queue_of(cluster, pod)) {
        if !from.contains(&queue) {
            from.push(queue);
        }
    }
    let mut rules: BTreeMap<QueueId, &'static str> = BTreeMap::new();
    for (pod, rule) in trace.kept() {
        let queue = queue_of(cluster, pod).filter(|queue| *queue != own && !from.contains(queue));
        queue.map(|queue| *rules.entry(queue).or_insert(rule));
    }
    let mut kept: Vec<(QueueId, &'static str)> = rules.into_iter().collect();
    kept.sort_by_key(|&(queue, _)| &cluster.queues[queue].name);
    Some(TakingBack { action: errand.action, gang, refused, from, kept })
}

/// The first gang of a queue, or of those below it, that lacks room: one that starves goes before
/// one that grows.
fn in_need(session: &Session, queue: QueueId, errand: Errand) -> Option<GangId> {
    let (cluster, policy) = (&*session.cluster, session.policy);
    let below = |gang: &GangId| cluster.queues[cluster.gangs[*gang].queue].lineage.contains(&queue);
    let first = |wants: fn(&Session, GangId) -> bool| {
        let waiting = cluster.gangs.waiting().iter().copied().filter(below);
        waiting
            .filter(|&gang| wants(session, gang))
            .min_by(|&a, &b| policy.gang_order(cluster, a, b))
    };
    first(starves).or_else(|| first(grows).filter(|_| errand.helps_to_grow()))
}

fn queue_of(cluster: &Cluster, pod: PodId) -> Option<QueueId> {
    cluster.pods.gang[pod].map(|gang| cluster.gangs[gang].queue)
}
