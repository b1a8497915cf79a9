//! What is spoken for before any pod is placed: the resources of gangs that were let into the line
//! and do not hold them yet. Counted once per cycle, and moved by each admission.

use crate::base::ids::{GangId, NodeId, QueueId, SpaceId, Table};
use crate::base::resources::Amounts;
use crate::model::Cluster;
use crate::model::pods::PodState;

#[derive(Clone, Debug, Default)]
pub struct Admission {
    /// Used on the nodes by any pod, or nominated.
    pub used: Amounts,
    /// Awaited by admitted gangs: in all, and per namespace. Per queue it is in the queues
    /// themselves, so that their order changes with each admission.
    pub cluster: Amounts,
    pub space: Table<SpaceId, Amounts>,
    /// What gangs hold above their `minResources`: it can be taken back, so admission doesn't
    /// count it.
    pub elastic: Table<QueueId, Amounts>,
}

impl Admission {
    pub fn count(cluster: &mut Cluster) -> Admission {
        let mut admission = Admission { used: used(cluster), ..Admission::default() };
        admission.elastic.grow(cluster.queues.len(), Amounts::default());
        admission.space.grow(cluster.spaces.len(), Amounts::default());
        let admitted: Vec<GangId> =
            cluster.gangs.iter().filter(|(_, gang)| gang.admitted()).map(|(id, _)| id).collect();
        for gang in admitted {
            admission.admit(cluster, gang);
        }
        for (_, gang) in cluster.gangs.iter() {
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
    pub fn admit(&mut self, cluster: &mut Cluster, gang: GangId) {
        self.count_gang(cluster, gang, 1);
    }

    /// Takes back a gang that gives its admission up.
    pub fn give_back(&mut self, cluster: &mut Cluster, gang: GangId) {
        self.count_gang(cluster, gang, -1);
    }

    fn count_gang(&mut self, cluster: &mut Cluster, gang: GangId, sign: i64) {
        // Plugins that order queues by what they await must look again.
        cluster.generation += 1;
        let gated = gated(cluster, gang);
        let gang = &cluster.gangs[gang];
        for (resource, amount) in gang.awaited() {
            let amount = (amount - gated.get(resource)).max(0);
            self.cluster.add(resource, sign * amount);
            self.space[gang.space].add(resource, sign * amount);
            for at in 0..cluster.queues[gang.queue].lineage.len() {
                let queue = cluster.queues[gang.queue].lineage[at];
                cluster.queues[queue].awaited.add(resource, sign * amount);
            }
        }
    }

    /// All gangs are admitted that can be: what is awaited no longer orders the queues.
    pub fn close(self, cluster: &mut Cluster) {
        cluster.generation += 1;
        for queue in cluster.queues.ids() {
            cluster.queues[queue].awaited = Amounts::default();
        }
    }
}

fn used(cluster: &Cluster) -> Amounts {
    let mut used = Amounts::default();
    for resource in cluster.nodes.idle.ids() {
        let on =
            |node| cluster.nodes.used(resource, node) + cluster.nodes.nominated[resource][node];
        let lets_go = |node: &NodeId| cluster.nodes.fact[*node].lets_go();
        used.add(resource, cluster.nodes.live().filter(lets_go).map(on).sum());
    }
    used
}

/// What pods behind scheduling gates ask for: it is not awaited before the gates are removed.
fn gated(cluster: &Cluster, gang: GangId) -> Amounts {
    let mut gated = Amounts::default();
    if cluster.gangs[gang].counts.gated > 0 {
        for &pod in &cluster.gangs[gang].pods {
            if cluster.pods.state[pod] == PodState::Gated {
                gated.add_all(&cluster.shapes[cluster.pods.shape[pod]].request, 1);
            }
        }
    }
    gated
}
