//! What holds a gang back before any node is looked at.

use muster_api::{DequeueStrategy, QueueState, Time};

use crate::base::ids::GangId;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::policy::answers::Policy;
use crate::settings::actions::Settings;

/// Whether a gang may be tried at all: what it names is there, and it is complete.
pub fn gate(cluster: &Cluster, policy: &Policy, gang: GangId, now: Time) -> Result<(), Reason> {
    named(cluster, policy, gang)?;
    let row = &cluster.gangs[gang];
    if let Some(until) = row.backoff_until.filter(|&until| until > now) {
        return Err(Reason::Backoff { until, failures: row.failures });
    }
    policy.gang_can_start(cluster, gang)
}

/// Whether what a gang names is there and open.
pub fn named(cluster: &Cluster, policy: &Policy, gang: GangId) -> Result<(), Reason> {
    let gang = &cluster.gangs[gang];
    if gang.origin == Origin::Missing {
        return Err(Reason::GroupMissing { group: gang.key.clone() });
    }
    let queue = &cluster.queues[gang.queue];
    let name = queue.name.clone();
    if !queue.exists {
        return Err(Reason::QueueMissing { queue: name });
    }
    if let Some(line) = &queue.broken {
        return Err(Reason::QueueBroken { queue: name, line: line.clone() });
    }
    if policy.hierarchical() && queue.children > 0 {
        return Err(Reason::QueueHasChildren { queue: name });
    }
    if let Some(closed) = queue
        .lineage
        .iter()
        .map(|&at| &cluster.queues[at])
        .find(|queue| queue.state != QueueState::Open)
    {
        return Err(Reason::QueueClosed { queue: closed.name.clone(), state: closed.state });
    }
    Ok(())
}

/// Since when the gang waits, if that is so long ago that no gang of its traverse queue may
/// overtake it any more.
pub fn overdue(cluster: &Cluster, settings: &Settings, gang: GangId, now: Time) -> Option<Time> {
    let since = cluster.gangs[gang].waiting_since?;
    let late =
        settings.traverse_head_wait_ms > 0 && now >= since.plus_ms(settings.traverse_head_wait_ms);
    let traverse = cluster.queues[cluster.gangs[gang].queue].strategy == DequeueStrategy::Traverse;
    (late && traverse).then_some(since)
}

/// Whether a gang that can't be placed now keeps the gangs behind it waiting.
pub fn blocks(cluster: &Cluster, settings: &Settings, gang: GangId, now: Time) -> bool {
    let strategy = cluster.queues[cluster.gangs[gang].queue].strategy;
    strategy == DequeueStrategy::Fifo || overdue(cluster, settings, gang, now).is_some()
}
