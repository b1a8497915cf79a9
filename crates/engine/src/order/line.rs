//! Which gang is next: the queues with their waiting gangs, asked for again after every turn.

use std::cmp::Ordering;

use crate::base::ids::{GangId, QueueId};
use crate::model::Cluster;
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
        // In a tree, which of two goes first depends on where their ways part, so that three can go
        // before one another in a circle. Then the order of arrival must not decide which is met
        // first.
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

    /// No gang of this queue overtakes its head. Returns the gangs behind it.
    pub fn stop(&mut self, queue: QueueId) -> Vec<GangId> {
        let line = self.queues.iter_mut().find(|line| line.queue == queue);
        line.map(|line| std::mem::take(&mut line.gangs)).unwrap_or_default()
    }
}
