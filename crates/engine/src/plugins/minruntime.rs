//! A gang that has started keeps its minimum for a while: as long as its queue says, or one above
//! it.

use std::cell::RefCell;

use muster_api::Time;
use rustc_hash::FxHashMap;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::purpose::Purpose;
use crate::model::Cluster;
use crate::model::gangs::lost_work;
use crate::model::queues::MinRuntime;
use crate::plugins::proportion::PerEvent;
use crate::policy::plugin::{Entry, Plugin, Veto, answers};
use crate::policy::preemptor::Preemptor;
use crate::settings::argument::Argument;

const PREEMPT: &str = "defaultPreemptMinRuntime";
const RECLAIM: &str = "defaultReclaimMinRuntime";
const RESOLVE: &str = "reclaimResolveMethod";

const RULE: &str = "minimum run time";

pub static ENTRY: Entry = Entry {
    name: "minruntime",
    summary: "does not break a gang before it has run for its queue's minimum run time",
    arguments: &[
        Argument {
            name: PREEMPT,
            default: "0s",
            meaning: "how long preempt does not break a gang, unless its queue or an ancestor \
                      says otherwise with the annotation `volcano.sh/preempt-min-runtime`; below \
                      zero is 0s",
        },
        Argument {
            name: RECLAIM,
            default: "0s",
            meaning: "the same for reclaim, with the annotation `volcano.sh/reclaim-min-runtime`",
        },
        Argument {
            name: RESOLVE,
            default: "lca",
            meaning: "whose annotation counts for reclaim: with lca that of the first queue below \
                      the lowest common ancestor, on the way to the gang's queue; with queue that \
                      of the gang's own queue. If it has none, that of its nearest ancestor",
        },
    ],
    differs: "The plugin is KAI's, not Volcano's. The time counts from when the gang last got its \
              minimum: the start of the pod that completed it. An annotation of the queue root \
              takes precedence over the defaults. A gang that waits only for this is tried again \
              when the time is over.",
    build: |args, _| {
        let resolve = [("lca", Resolve::Parting), ("queue", Resolve::Own)];
        Box::new(Protection {
            preempt: args.signed_duration_ms(PREEMPT).unwrap_or(0),
            reclaim: args.signed_duration_ms(RECLAIM).unwrap_or(0),
            resolve: args.word(RESOLVE, "lca or queue", &resolve).unwrap_or(Resolve::Parting),
            began: PerEvent::default(),
        })
    },
};

struct Protection {
    /// The defaults for queues without an annotation, in milliseconds.
    preempt: i64,
    reclaim: i64,
    resolve: Resolve,
    /// When gangs started, for those that were asked about.
    began: PerEvent<RefCell<FxHashMap<GangId, Option<Time>>>>,
}

/// Where the search for an annotation starts if another queue reclaims.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Resolve {
    /// The queue below the lowest common ancestor of both, on the path to the gang's queue.
    Parting,
    /// The gang's own queue.
    Own,
}

impl Protection {
    /// How long a gang of a queue keeps its minimum from a gang of another queue, or of the same.
    fn min_runtime(&self, cluster: &Cluster, purpose: Purpose, from: QueueId, to: QueueId) -> i64 {
        let up = |queue: QueueId| &cluster.queues[queue].lineage[..];
        let first = |queues: &[QueueId], says: fn(&MinRuntime) -> Option<i64>| {
            queues.iter().find_map(|&queue| says(&cluster.queues[queue].min_runtime))
        };
        match purpose {
            Purpose::Within => 0,
            Purpose::Preempt | Purpose::Consolidate => {
                first(up(from), |says| says.preempt).unwrap_or(self.preempt)
            }
            Purpose::Reclaim => {
                let start = match self.resolve {
                    Resolve::Own => 0,
                    Resolve::Parting => parting(up(from), up(to)),
                };
                first(&up(from)[start..], |says| says.reclaim).unwrap_or(self.reclaim)
            }
        }
    }

    /// Until when a pod is protected as part of its gang's minimum, if it is. A gang below its
    /// minimum has nothing to protect.
    fn end(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<Time> {
        let id = cluster.pods.gang[victim]?;
        let gang = &cluster.gangs[id];
        let to = cluster.gangs[preemptor.gang].queue;
        let least = self.min_runtime(cluster, preemptor.purpose, gang.queue, to);
        if least <= 0 || !gang.ready(true) || gang.runs_without(cluster.pods.place(victim)) {
            return None;
        }
        let end = self.began(cluster, id)?.plus_ms(least);
        (end > preemptor.now).then_some(end)
    }

    fn began(&self, cluster: &Cluster, gang: GangId) -> Option<Time> {
        self.began.with(
            cluster,
            |_| RefCell::default(),
            |known| {
                *known.borrow_mut().entry(gang).or_insert_with(|| lost_work::began(cluster, gang))
            },
        )
    }
}

/// The last queue on the path up from a queue before it meets the path up from another.
fn parting(from: &[QueueId], to: &[QueueId]) -> usize {
    let common = from.iter().position(|queue| to.contains(queue)).unwrap_or(from.len());
    common.saturating_sub(1)
}

#[answers]
impl Plugin for Protection {
    fn vetoes(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<Veto> {
        let end = self.end(cluster, preemptor, victim)?;
        Some(Veto { rule: RULE, until: Some(end) })
    }

    /// A gang that has more than its minimum gives the surplus, and no more.
    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        self.end(cluster, preemptor, victim).map(|_| RULE)
    }

    fn restrains_until(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<Time> {
        self.end(cluster, preemptor, victim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_part_below_the_lowest_queue_that_is_above_both() {
        let [root, dev, prod, alice, bob] = [0, 1, 2, 3, 4].map(QueueId);
        let [dev_up, prod_up] = [vec![dev, root], vec![prod, root]];
        let [alice_up, bob_up] = [vec![alice, dev, root], vec![bob, dev, root]];
        let parts = |from: &[QueueId], to: &[QueueId]| from[parting(from, to)];
        assert_eq!(parts(&alice_up, &bob_up), alice);
        assert_eq!(parts(&alice_up, &prod_up), dev, "queues of different departments");
        assert_eq!(parts(&prod_up, &alice_up), prod);
        // Work in a queue that has child queues, which is possible without a hierarchy.
        assert_eq!(parts(&alice_up, &dev_up), alice);
        assert_eq!(parts(&dev_up, &alice_up), dev);
        // A queue without a path to the root.
        assert_eq!(parts(&[bob], &alice_up), bob);
    }
}
