//! What is spoken for before any pod is placed: the resources of gangs that were let into the line and do not
//! hold them yet. Counted once per cycle, and moved by each admission.

use crate::ids::{GangId, QueueId, SpaceId, Table};
use crate::model::Cluster;
use crate::resources::Amounts;

#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Awaited by admitted gangs: in all, per queue with its ancestors, per namespace.
    pub cluster: Amounts,
    pub queue: Table<QueueId, Amounts>,
    pub space: Table<SpaceId, Amounts>,
    /// What gangs hold above their `minResources`: it can be taken back, so admission doesn't count it.
    pub elastic: Table<QueueId, Amounts>,
}

impl Admission {
    pub fn count(cluster: &Cluster) -> Admission {
        let mut admission = Admission::default();
        admission.queue.grow(cluster.queues.len(), Amounts::default());
        admission.elastic.grow(cluster.queues.len(), Amounts::default());
        admission.space.grow(cluster.spaces.len(), Amounts::default());
        for (id, gang) in cluster.gangs.iter() {
            if gang.admitted() {
                admission.admit(cluster, id);
            }
            let Some(minimum) = &gang.min_resources else { continue };
            for (resource, held) in gang.held.iter() {
                let surplus = (held - minimum.get(resource).unwrap_or(0)).max(0);
                for &queue in &cluster.queues[gang.queue].lineage {
                    admission.elastic[queue].add(resource, surplus);
                }
            }
        }
        admission
    }

    /// Counts a gang that is let in.
    pub fn admit(&mut self, cluster: &Cluster, gang: GangId) {
        self.count_gang(cluster, gang, 1);
    }

    /// Takes back a gang that gives its admission up.
    pub fn give_back(&mut self, cluster: &Cluster, gang: GangId) {
        self.count_gang(cluster, gang, -1);
    }

    fn count_gang(&mut self, cluster: &Cluster, gang: GangId, sign: i64) {
        let gang = &cluster.gangs[gang];
        for (resource, amount) in gang.awaited() {
            self.cluster.add(resource, sign * amount);
            self.space[gang.space].add(resource, sign * amount);
            for &queue in &cluster.queues[gang.queue].lineage {
                self.queue[queue].add(resource, sign * amount);
            }
        }
    }
}
