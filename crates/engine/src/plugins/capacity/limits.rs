//! The most that a queue may use: its capability, those of the queues above it, and what it
//! deserves if non-preemptable gangs must stay within that.

use crate::base::ids::{GangId, QueueId, ResourceId, Table};
use crate::base::resources::PODS;
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::model::queues::ROOT;
use crate::plugins::capacity::{Capacity, ENTRY};
use crate::shares::deserved::real_capability;

/// A limit of a queue or of one above it.
pub(super) struct Bound {
    pub(super) queue: QueueId,
    pub(super) resource: ResourceId,
    pub(super) limit: i64,
}

impl Capacity {
    /// The limits on the path up: its own, and in a tree those of all its ancestors. The root
    /// limits nothing unless set.
    pub(super) fn with_bounds<R>(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        read: impl FnOnce(&[Bound]) -> R,
    ) -> R {
        self.limits.with(cluster, |cluster| self.bounds(cluster), |table| read(&table[queue]))
    }

    fn bounds(&self, cluster: &Cluster) -> Table<QueueId, Vec<Bound>> {
        let mut table = Table::default();
        for queue in cluster.queues.ids() {
            let lineage = &cluster.queues[queue].lineage;
            let up = if self.tree { lineage } else { &lineage[..1] };
            let mut bounds = Vec::new();
            for &queue in up {
                for resource in (0..cluster.dimensions.len()).map(ResourceId::from) {
                    let limit = self.limit(cluster, queue, resource);
                    if limit < i64::MAX {
                        bounds.push(Bound { queue, resource, limit });
                    }
                }
            }
            table.push(bounds);
        }
        table
    }

    /// The most a queue may use: its capability, and what the guarantees of its siblings leave of
    /// the parent's.
    fn limit(&self, cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
        if !self.tree {
            return real_capability(cluster, queue, resource);
        }
        let own = cluster.queues[queue].capability.get(resource).unwrap_or(i64::MAX);
        let Some(&parent) = cluster.queues[queue].lineage.get(1) else { return own };
        let siblings: i64 = cluster
            .queues
            .iter()
            .filter(|(id, other)| {
                *id != queue && other.exists && other.lineage.get(1) == Some(&parent)
            })
            .map(|(_, other)| other.guarantee.get(resource).unwrap_or(0))
            .sum();
        if siblings == 0 {
            return own;
        }
        let above = self.limit(cluster, parent, resource).min(cluster.total.get(resource));
        let assured = cluster.queues[queue].guarantee.get(resource).unwrap_or(0);
        own.min((above - siblings).max(assured))
    }

    /// Non-preemptable gangs may not borrow: they would never give it back. A queue that names no
    /// resource deserves nothing; one that names some doesn't limit the others. The root only
    /// limits what it names.
    pub(super) fn keeps_to_deserved(
        &self,
        cluster: &Cluster,
        gang: GangId,
        wanted: impl Iterator<Item = (ResourceId, i64)> + Clone,
    ) -> Result<(), Reason> {
        if !self.protected_within_deserved || !cluster.gangs[gang].protected {
            return Ok(());
        }
        let lineage = &cluster.queues[cluster.gangs[gang].queue].lineage;
        for &queue in if self.tree { lineage } else { &lineage[..1] } {
            let row = &cluster.queues[queue];
            let silent = queue != ROOT && row.deserved.is_empty() && row.guarantee.is_empty();
            for (resource, want) in wanted.clone() {
                // The guaranteed amount is kept for the queue, so other queues don't miss it.
                let named = row.deserved.get(resource).max(row.guarantee.get(resource));
                let nothing = (silent && resource != PODS).then_some(0);
                let used = row.protected.get(resource);
                if let Some(limit) = named.or(nothing).filter(|limit| used + want > *limit) {
                    let lack = Lack { resource, want, used, limit };
                    let limit = Limit::DeservedForGood(row.name.clone());
                    return Err(Reason::OverLimit { plugin: ENTRY.name.into(), limit, lack });
                }
            }
        }
        Ok(())
    }
}
