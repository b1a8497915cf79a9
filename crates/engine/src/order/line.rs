//! Who is next: the queues with their waiting gangs, asked for again after every turn.

use std::cmp::Ordering;

use muster_api::{DequeueStrategy, QueueState, Time};

use crate::base::ids::{GangId, QueueId};
use crate::config::Settings;
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::gangs::Origin;
use crate::policy::answers::Policy;

pub struct Line {
    queues: Vec<QueueLine>,
}

struct QueueLine {
    queue: QueueId,
    /// The next one last.
    gangs: Vec<GangId>,
}

impl Line {
    pub fn new(
        cluster: &Cluster,
        policy: &Policy,
        gangs: impl IntoIterator<Item = GangId>,
    ) -> Line {
        let mut queues: Vec<QueueLine> = Vec::new();
        let mut place = vec![usize::MAX; cluster.queues.len()];
        for gang in gangs {
            let queue = cluster.gangs[gang].queue;
            let at = &mut place[usize::from(queue)];
            if *at == usize::MAX {
                *at = queues.len();
                queues.push(QueueLine { queue, gangs: Vec::new() });
            }
            queues[*at].gangs.push(gang);
        }
        for line in &mut queues {
            line.gangs.sort_by(|&a, &b| policy.gang_order(cluster, b, a));
        }
        // In a tree, who goes first of two depends on where their ways part, so that three can go
        // before one another in a circle. Who is met first then is no matter of arrival.
        queues.sort_by(|a, b| cluster.queues[a.queue].name.cmp(&cluster.queues[b.queue].name));
        Line { queues }
    }

    /// The first gang of the first queue that may be served. Gangs of queues that may take nothing
    /// learn why.
    pub fn next(&mut self, cluster: &mut Cluster, policy: &Policy) -> Option<(QueueId, GangId)> {
        self.queues.retain(|line| {
            if line.gangs.is_empty() {
                return false;
            }
            let Some(reason) = policy.overused(cluster, line.queue) else { return true };
            for &gang in &line.gangs {
                cluster.gangs.explain(gang, vec![reason.clone()]);
            }
            false
        });
        self.next_of_all(cluster, policy)
    }

    /// The first gang of the first queue, whatever its queue may take.
    pub fn next_of_all(&mut self, cluster: &Cluster, policy: &Policy) -> Option<(QueueId, GangId)> {
        let next =
            |line: &QueueLine| (line.queue, *line.gangs.last().expect("empty lines are left out"));
        let order =
            |a: &&mut QueueLine, b: &&mut QueueLine| policy.queue_order(cluster, next(a), next(b));
        let best = self.queues.iter_mut().filter(|line| !line.gangs.is_empty()).min_by(order)?;
        let gang = best.gangs.pop().expect("empty lines were left out");
        Some((best.queue, gang))
    }

    /// The gang wants another turn; its place may have changed.
    pub fn put_back(&mut self, cluster: &Cluster, policy: &Policy, gang: GangId) {
        let queue = cluster.gangs[gang].queue;
        if let Some(line) = self.queues.iter_mut().find(|line| line.queue == queue) {
            let place = line.gangs.partition_point(|&other| {
                policy.gang_order(cluster, other, gang) == Ordering::Greater
            });
            line.gangs.insert(place, gang);
        }
    }

    /// Nobody of this queue goes past its head. Returns those who wait behind it.
    pub fn stop(&mut self, queue: QueueId) -> Vec<GangId> {
        let line = self.queues.iter_mut().find(|line| line.queue == queue);
        line.map(|line| std::mem::take(&mut line.gangs)).unwrap_or_default()
    }
}

/// Whether a gang may be tried at all: what it names is there, and it is complete.
pub fn gate(cluster: &Cluster, policy: &Policy, gang: GangId, now: Time) -> Result<(), Reason> {
    named(cluster, policy, gang)?;
    let row = &cluster.gangs[gang];
    if let Some(until) = row.backoff_until.filter(|&until| until > now) {
        return Err(Reason::Backoff { until, failures: row.failures });
    }
    policy.valid(cluster, gang)
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

/// Since when the gang waits, if that is so long ago that nobody of its traverse queue may pass it
/// any more.
pub fn overdue(cluster: &Cluster, settings: &Settings, gang: GangId, now: Time) -> Option<Time> {
    let since = cluster.gangs[gang].waiting_since?;
    let late =
        settings.traverse_head_wait_ms > 0 && now >= since.plus_ms(settings.traverse_head_wait_ms);
    let traverse = cluster.queues[cluster.gangs[gang].queue].strategy == DequeueStrategy::Traverse;
    (late && traverse).then_some(since)
}

/// Whether a gang that can't be placed now keeps everyone behind it waiting.
pub fn blocks(cluster: &Cluster, settings: &Settings, gang: GangId, now: Time) -> bool {
    let strategy = cluster.queues[cluster.gangs[gang].queue].strategy;
    strategy == DequeueStrategy::Fifo || overdue(cluster, settings, gang, now).is_some()
}
