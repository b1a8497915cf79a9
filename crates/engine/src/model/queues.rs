//! The queue tree. Sums of what its gangs hold go up to the root.

use std::sync::Arc;

use muster_api::keys::{DEFAULT_QUEUE, ROOT_QUEUE};
use muster_api::{DequeueStrategy, QueueState, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::base::ids::{QueueId, ResourceId, Table};
use crate::base::resources::{Amounts, PODS, Sparse};
use crate::decision::reason::BrokenLine;
use crate::model::Cluster;
use crate::model::pods::Sum;

pub const ROOT: QueueId = QueueId(0);
pub const DEFAULT: QueueId = QueueId(1);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queues {
    rows: Table<QueueId, Queue>,
    by_name: FxHashMap<Arc<str>, QueueId>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Queue {
    pub name: Arc<str>,
    /// False for a queue that is only named by others; `root` and `default` are always there.
    pub exists: bool,
    pub version: u64,
    pub created: Time,
    pub weight: i32,
    pub priority: i32,
    pub state: QueueState,
    /// Others may take from it what it has above what it deserves.
    pub reclaimable: bool,
    pub strategy: DequeueStrategy,
    /// Unset dimensions are unlimited.
    pub capability: Sparse,
    /// Unset dimensions are zero.
    pub guarantee: Sparse,
    pub deserved: Sparse,
    pub parent: Option<QueueId>,
    /// Itself, its parent, … the root. Only itself if the way up is broken.
    pub lineage: Vec<QueueId>,
    pub children: u32,
    pub broken: Option<BrokenLine>,
    pub node_groups: Option<Box<NodeGroups>>,
    /// `volcano.sh/nodegroup-resource-limits`: how much it may use of each group.
    pub group_limits: Option<GroupLimits>,
    #[serde(default)]
    pub min_runtime: MinRuntime,
    /// `volcano.sh/hierarchy` and its weights, root first.
    pub hierarchy: Vec<(Arc<str>, i64)>,
    pub held: Amounts,
    pub nominated: Amounts,
    pub leaving: Amounts,
    /// What its pods have or want, wherever they are. Events alone change it.
    pub requested: Amounts,
    /// The part of what is held and nominated that belongs to non-preemptable gangs.
    pub protected: Amounts,
    /// Awaited by gangs that were let in, while `enqueue` lets gangs in; nothing otherwise.
    pub awaited: Amounts,
}

/// How long gangs of a queue keep their minimum before others may take it, in milliseconds, where
/// it says so (plugin `minruntime`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinRuntime {
    /// Others of the same queue.
    pub preempt: Option<i64>,
    /// Other queues.
    pub reclaim: Option<i64>,
}

/// Where a queue's pods may run, by node group (plugin `nodegroup`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeGroups {
    pub required: Vec<String>,
    pub preferred: Vec<String>,
    pub anti_required: Vec<String>,
    pub anti_preferred: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupLimits {
    PerGroup(Vec<(String, Sparse)>),
    /// They cannot be read, so nothing may be used.
    Unreadable,
}

impl Default for Queues {
    fn default() -> Self {
        let mut new = Queues { rows: Table::default(), by_name: FxHashMap::default() };
        for name in [ROOT_QUEUE, DEFAULT_QUEUE] {
            let id = new.slot(name);
            new.rows[id].exists = true;
        }
        new.draw_lines();
        new
    }
}

impl Queue {
    /// Whether the object of a queue says the same as another: what it has and wants is not said
    /// there.
    pub(super) fn says_the_same(&self, other: &Queue) -> bool {
        let terms = |queue: &Queue| {
            let Queue {
                exists,
                created,
                weight,
                priority,
                state,
                reclaimable,
                strategy,
                parent,
                ..
            } = queue;
            (*exists, *created, *weight, *priority, *state, *reclaimable, *strategy, *parent)
        };
        let amounts = |queue: &Queue| {
            [&queue.capability, &queue.guarantee, &queue.deserved].map(Sparse::clone)
        };
        terms(self) == terms(other)
            && amounts(self) == amounts(other)
            && (&self.node_groups, &self.group_limits) == (&other.node_groups, &other.group_limits)
            && (&self.min_runtime, &self.hierarchy) == (&other.min_runtime, &other.hierarchy)
    }

    fn named(name: Arc<str>) -> Queue {
        Queue {
            name,
            exists: false,
            version: 0,
            created: Time::default(),
            weight: 1,
            priority: 0,
            state: QueueState::Open,
            reclaimable: true,
            strategy: DequeueStrategy::Traverse,
            capability: Sparse::default(),
            guarantee: Sparse::default(),
            deserved: Sparse::default(),
            parent: None,
            lineage: Vec::new(),
            children: 0,
            broken: None,
            node_groups: None,
            group_limits: None,
            min_runtime: MinRuntime::default(),
            hierarchy: Vec::new(),
            held: Amounts::default(),
            nominated: Amounts::default(),
            leaving: Amounts::default(),
            requested: Amounts::default(),
            protected: Amounts::default(),
            awaited: Amounts::default(),
        }
    }

    #[inline]
    pub(super) fn sum_mut(&mut self, sum: Sum) -> &mut Amounts {
        match sum {
            Sum::Held => &mut self.held,
            Sum::Nominated => &mut self.nominated,
            Sum::Leaving => &mut self.leaving,
        }
    }

    /// What it holds, has nominated or is about to get: what queues are ordered by.
    pub fn claimed(&self, resource: crate::base::ids::ResourceId) -> i64 {
        self.taken(resource) + self.awaited.get(resource)
    }

    /// What its gangs hold or have nominated: the queue's share.
    pub fn taken(&self, resource: crate::base::ids::ResourceId) -> i64 {
        self.held.get(resource) + self.nominated.get(resource)
    }

    /// Restricts its pods to groups of nodes.
    pub(super) fn picky(&self) -> bool {
        self.node_groups.is_some() || self.group_limits.is_some()
    }

    /// Back to what a queue is before its object is known; sums stay.
    pub(super) fn forget(&mut self) {
        let blank = Queue::named(self.name.clone());
        let sums = (
            std::mem::take(&mut self.held),
            std::mem::take(&mut self.nominated),
            std::mem::take(&mut self.leaving),
            std::mem::take(&mut self.requested),
            std::mem::take(&mut self.protected),
        );
        *self = blank;
        (self.held, self.nominated, self.leaving, self.requested, self.protected) = sums;
    }
}

impl Queues {
    pub fn find(&self, name: &str) -> Option<QueueId> {
        self.by_name.get(name).copied()
    }

    pub fn slot(&mut self, name: &str) -> QueueId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let shared: Arc<str> = name.into();
        let id = self.rows.push(Queue::named(shared.clone()));
        self.by_name.insert(shared, id);
        let lineage = if id == ROOT { vec![ROOT] } else { vec![id, ROOT] };
        self.rows[id].lineage = lineage;
        id
    }

    pub fn iter(&self) -> impl Iterator<Item = (QueueId, &Queue)> {
        self.rows.iter()
    }

    pub fn ids(&self) -> impl Iterator<Item = QueueId> + use<> {
        self.rows.ids()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Finds each queue's way to the root anew. A queue whose way is broken stands alone.
    pub(super) fn draw_lines(&mut self) {
        for id in self.ids() {
            self.rows[id].children = 0;
        }
        for id in self.ids() {
            let (lineage, broken) = self.line_of(id);
            if broken.is_none() && id != ROOT && self.rows[id].exists {
                let parent = lineage[1];
                self.rows[parent].children += 1;
            }
            self.rows[id].lineage = lineage;
            self.rows[id].broken = broken;
        }
    }

    fn line_of(&self, id: QueueId) -> (Vec<QueueId>, Option<BrokenLine>) {
        let mut line = vec![id];
        let mut at = id;
        while at != ROOT {
            let parent = self.rows[at].parent.unwrap_or(ROOT);
            if !self.rows[parent].exists {
                return (vec![id], Some(BrokenLine::UnknownParent(self.rows[parent].name.clone())));
            }
            if line.contains(&parent) {
                return (vec![id], Some(BrokenLine::Cycle));
            }
            line.push(parent);
            at = parent;
        }
        (line, None)
    }
}

impl std::ops::Index<QueueId> for Queues {
    type Output = Queue;

    #[inline]
    fn index(&self, id: QueueId) -> &Queue {
        &self.rows[id]
    }
}

impl std::ops::IndexMut<QueueId> for Queues {
    #[inline]
    fn index_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.rows[id]
    }
}

/// The resources of which queues have shares.
pub fn divided(cluster: &Cluster) -> impl Iterator<Item = ResourceId> + use<> {
    (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&resource| resource != PODS)
}

/// What there is to divide: all that ready nodes have and other schedulers don't use.
pub fn total(cluster: &Cluster, resource: ResourceId) -> i64 {
    let all = cluster.total.get(resource) - cluster.foreign.get(resource);
    all.max(0).min(capability(&cluster.queues[ROOT], resource))
}

pub fn capability(queue: &Queue, resource: ResourceId) -> i64 {
    queue.capability.get(resource).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_leaves_only_its_own_queues_without_a_root() {
        let mut queues = Queues::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| queues.slot(name));
        for (queue, parent) in [(a, b), (b, a), (c, ROOT)] {
            queues[queue].exists = true;
            queues[queue].parent = Some(parent);
        }
        queues.draw_lines();
        assert_eq!(queues[a].broken, Some(BrokenLine::Cycle));
        assert_eq!(queues[b].broken, Some(BrokenLine::Cycle));
        assert_eq!(queues[c].lineage, [c, ROOT]);
        assert_eq!(queues[ROOT].children, 2, "default and c");
    }
}
