//! Queues with quotas of their own: a guarantee, a deserved amount, and a hard limit; flat or as a
//! tree.

pub mod fair_shares;
mod limits;
mod reclaim;

use std::cmp::Ordering;

use crate::base::ids::{GangId, PodId, QueueId, ResourceId, ShapeId, Table};
use crate::base::parts_per_million::PPM;
use crate::base::purpose::Purpose;
use crate::base::resources::{Amounts, PODS, Share};
use crate::base::room::Room;
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::model::gangs::missing::missing_after_nominations;
use crate::model::pods::PodState;
use crate::model::usage::Memory;
use crate::plugins::capacity::fair_shares::SHARE;
use crate::plugins::capacity::limits::Bound;
use crate::plugins::capacity::reclaim::{DESERVED, is_scarce};
use crate::plugins::proportion::{PerEvent, counted, guarded, vote};
use crate::policy::bundle::Needed;
use crate::policy::plugin::{Entry, Plugin, Vote, answers};
use crate::policy::preemptor::Preemptor;
use crate::settings::args::Args;
use crate::settings::argument::Argument;
use crate::shares::admission::Admission;
use crate::shares::fair::{Rules, Shares};

pub static ENTRY: Entry = Entry {
    name: "capacity",
    summary: "quotas per queue: guarantee, deserved, capability; flat, or a tree with \
              enableHierarchy",
    arguments: &[
        Argument {
            name: "ancestorReclaimLevel",
            default: "0",
            meaning: "how many levels of ancestors a queue may reclaim for: within what these \
                      deserve",
        },
        Argument {
            name: "reclaimerSaturationMultiplier",
            default: "1",
            meaning: "mode scenario: a queue that would have more than its fair share takes back \
                      only from queues that then have more than this many times as much of theirs \
                      (at least 1)",
        },
        Argument {
            name: "kValue",
            default: "1.0",
            meaning: "how much a queue's past usage lowers its fair share; no effect without one \
                      of the next two",
        },
        Argument {
            name: "usageHalfLife",
            default: "",
            meaning: "past usage counts, and half as much after this time: `24h`",
        },
        Argument {
            name: "usageWindow",
            default: "168h",
            meaning: "how long past usage counts; only if this or `usageHalfLife` is given",
        },
        Argument {
            name: "nonPreemptibleWithinDeserved",
            default: "false",
            meaning: "non-preemptable gangs (`volcano.sh/preemptable: \"false\"`) together stay \
                      within what their queue deserves or is guaranteed, and in a tree each queue \
                      above it. A queue that names nothing deserves nothing; one that names some \
                      resources limits only those (write `nvidia.com/gpu: 0` for none of it)",
        },
        Argument {
            name: "capacity.DynamicResourceAllocationEnable",
            default: "false",
            meaning: "accepted: pods with resource claims are refused with that reason",
        },
        Argument {
            name: "capacity.DRAConsumableCapacityEnable",
            default: "false",
            meaning: "accepted: pods with resource claims are refused with that reason",
        },
    ],
    differs: "A resource that `capability` doesn't name is unlimited, also in a hierarchy. A \
              queue whose parents are missing or form a cycle, or a queue with children that has \
              jobs of its own, blocks only itself.",
    build: |args, switches| {
        Box::new(Capacity {
            tree: switches.hierarchy,
            reclaim_levels: args.at_least(0, "ancestorReclaimLevel", 0) as usize,
            saturation: saturation(args),
            protected_within_deserved: args.bool("nonPreemptibleWithinDeserved", false),
            by_shares: false,
            shares: PerEvent::default(),
            rules: rules(args, switches.hierarchy),
            limits: PerEvent::default(),
        })
    },
};

fn saturation(args: &mut Args) -> i128 {
    let key = "reclaimerSaturationMultiplier";
    let multiplier = args.millionths(key, 1_000_000);
    if multiplier < 1_000_000 {
        let help = "write 1 or more: with less, queues would reclaim from each other endlessly";
        args.problem(key, "it is below 1".to_owned(), help.to_owned());
    }
    i128::from(multiplier)
}

/// A week.
const WINDOW_MS: i64 = 7 * 24 * 3_600_000;
/// More would make no difference: a queue that has used more than its weight gets nothing of the
/// surplus.
const MOST_K: i64 = 1_000 * PPM;

fn rules(args: &mut Args, tree: bool) -> Rules {
    let k_ppm = args.millionths("kValue", PPM);
    if k_ppm < 0 {
        let help = "write 0 or more: a negative value would reward the queues that used most";
        args.problem("kValue", "it is below 0".to_owned(), help.to_owned());
    }
    let k_ppm = k_ppm.clamp(0, MOST_K);
    let (half_life_ms, window_ms) = (args.span_ms("usageHalfLife"), args.span_ms("usageWindow"));
    let memory = Memory { half_life_ms, window_ms: window_ms.unwrap_or(WINDOW_MS) };
    Rules { tree, k_ppm, memory: half_life_ms.or(window_ms).map(|_| memory) }
}

pub struct Capacity {
    tree: bool,
    /// For how many levels of ancestors a queue may reclaim.
    reclaim_levels: usize,
    protected_within_deserved: bool,
    /// The factor by which the share of a reclaiming queue is multiplied before it is compared, in
    /// parts per million.
    saturation: i128,
    /// Queues are served by their fair shares.
    by_shares: bool,
    shares: PerEvent<Shares>,
    /// How fair shares are computed.
    rules: Rules,
    /// The limits of each queue.
    limits: PerEvent<Table<QueueId, Vec<Bound>>>,
}

impl Capacity {
    /// How much of what it deserves a queue uses. One that deserves nothing always counts as full.
    fn share(&self, cluster: &Cluster, queue: QueueId) -> Share {
        let row = &cluster.queues[queue];
        let deserved =
            row.deserved.iter().filter(|&(resource, amount)| resource != PODS && amount > 0);
        let shares = deserved.map(|(resource, amount)| Share::of(row.claimed(resource), amount));
        shares.max().unwrap_or(Share::ONE)
    }

    fn deserves_nothing(&self, cluster: &Cluster, queue: QueueId) -> bool {
        cluster.queues[queue]
            .deserved
            .iter()
            .all(|(resource, amount)| resource == PODS || amount == 0)
    }

    /// Whether a queue would have more than it deserves after a gang's turn, its share then, and
    /// the size of the turn. For a gang below its minimum the turn is its missing pods, each
    /// counted like its first.
    fn after_turn(&self, cluster: &Cluster, queue: QueueId, gang: GangId) -> (bool, Share, Share) {
        let (row, gang) = (&cluster.queues[queue], &cluster.gangs[gang]);
        let pending = |pod: &&PodId| cluster.pods.state[**pod] == PodState::Pending;
        let shape = gang.pods.iter().find(pending).map(|&pod| cluster.pods.shape[pod]);
        let pods = i64::from(gang.missing(true).total.max(1));
        let mut over = false;
        let (mut share, mut size) = (Share::ZERO, Share::ZERO);
        for (resource, deserved) in row.deserved.iter().filter(|&(resource, _)| resource != PODS) {
            let want =
                shape.map_or(0, |shape| cluster.request_of(shape, resource)).saturating_mul(pods);
            let after = row.claimed(resource).saturating_add(want);
            over |= want > 0 && after > deserved;
            share = share.max(Share::of(after, deserved));
            size = size.max(Share::of(want, cluster.total.get(resource)));
        }
        (over, share, size)
    }

    fn order(&self, cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
        let priority = |queue: QueueId| cluster.queues[queue].priority;
        priority(b)
            .cmp(&priority(a))
            .then_with(|| self.share(cluster, a).cmp(&self.share(cluster, b)))
            .then_with(|| self.deserves_nothing(cluster, a).cmp(&self.deserves_nothing(cluster, b)))
    }
}

#[answers]
impl Plugin for Capacity {
    /// In a tree the branches are compared where the paths from the root part.
    fn queue_order(&self, cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
        if self.by_shares {
            return Ordering::Equal;
        }
        let (top_a, top_b) = self.parting(cluster, a, b);
        let priority = |queue: QueueId| cluster.queues[queue].priority;
        priority(b).cmp(&priority(a)).then_with(|| self.order(cluster, top_a, top_b))
    }

    /// The queue that stays within what it deserves is served first, then the one with the smaller
    /// share after its turn, then the smaller turn.
    fn turn_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        if self.by_shares {
            return self.serves_first(cluster, a, b);
        }
        let (top_a, top_b) = self.parting(cluster, cluster.gangs[a].queue, cluster.gangs[b].queue);
        self.after_turn(cluster, top_a, a).cmp(&self.after_turn(cluster, top_b, b))
    }

    fn enqueue(&self, cluster: &Cluster, admission: &Admission, gang: GangId) -> Vote {
        let awaited = cluster.gangs[gang].awaited();
        self.with_bounds(cluster, cluster.gangs[gang].queue, |bounds| {
            for &Bound { queue, resource, limit } in bounds {
                let Some(&(_, want)) = awaited.iter().find(|(awaited, _)| *awaited == resource)
                else {
                    continue;
                };
                let vote = vote(cluster, admission, queue, ENTRY.name, (resource, want), limit);
                if matches!(vote, Vote::Reject(_)) {
                    return vote;
                }
            }
            Vote::Permit
        })
    }

    fn may_allocate(
        &self,
        cluster: &Cluster,
        gang: GangId,
        shape: ShapeId,
        room: Room,
    ) -> Result<(), Reason> {
        let queue = cluster.gangs[gang].queue;
        self.keeps_to_deserved(cluster, gang, cluster.shapes[shape].request.iter())?;
        self.with_bounds(cluster, queue, |bounds| {
            for &Bound { queue, resource, limit } in bounds {
                let Some(want) = cluster.shapes[shape].request.get(resource) else { continue };
                let used = counted(cluster, queue, resource, room);
                if used + want > limit {
                    let lack = Lack { resource, want, used, limit };
                    let limit = Limit::Capability(cluster.queues[queue].name.clone());
                    return Err(Reason::OverLimit { plugin: ENTRY.name.into(), limit, lack });
                }
            }
            Ok(())
        })
    }

    fn could_ever_allocate(
        &self,
        cluster: &Cluster,
        gang: GangId,
        wanted: &Needed,
    ) -> Result<(), Reason> {
        self.keeps_to_deserved(cluster, gang, wanted.iter().copied())
    }

    /// A queue may reclaim what it deserves: with one more pod it is within that for some resource
    /// that the pod requests.
    fn may_reclaim(&self, cluster: &Cluster, preemptor: &Preemptor) -> Option<Result<(), Reason>> {
        if preemptor.by_fair_share() {
            return Some(self.stays_within_share(cluster, preemptor));
        }
        let shape = cluster.pods.shape[preemptor.pod];
        let queue = cluster.gangs[preemptor.gang].queue;
        if self.rights(cluster, queue, (shape, 1)).next().is_some() {
            return Some(Ok(()));
        }
        let row = &cluster.queues[queue];
        let silent = self.silent_ancestor(cluster, queue, shape);
        let mut asked =
            cluster.shapes[shape].request.iter().filter(|&(resource, _)| resource != PODS);
        let (resource, want) = silent.map_or_else(|| asked.next(), |(_, asked)| Some(asked))?;
        let (used, limit) = (row.taken(resource), row.deserved.get(resource).unwrap_or(0));
        let lack = Lack { resource, want, used, limit };
        let queue = row.name.clone();
        let limit = match silent {
            Some((above, _)) => Limit::DeservedBelow {
                queue,
                above: cluster.queues[above].name.clone(),
                levels: self.reclaim_levels as u32,
            },
            None => Limit::Deserved(queue),
        };
        Some(Err(Reason::OverLimit { plugin: ENTRY.name.into(), limit, lack }))
    }

    /// A queue gives while it has more than it deserves of some resource that the preemptor's queue
    /// has a right to. In a tree its ancestors must have more as well, up to where its path and the
    /// preemptor's part.
    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        if preemptor.purpose != Purpose::Reclaim {
            return None;
        }
        let from = cluster.gangs[cluster.pods.gang[victim]?].queue;
        let to = cluster.gangs[preemptor.gang].queue;
        let mut levels = self.up_to_parting(cluster, from, to).iter();
        if preemptor.by_fair_share() {
            return levels.find_map(|&queue| guarded(cluster, victim, queue));
        }
        let shape = cluster.pods.shape[preemptor.pod];
        let missing = missing_after_nominations(&cluster.gangs[preemptor.gang], true).total;
        let (giver, lacking) = ((from, cluster.pods.shape[victim]), i64::from(missing.max(1)));
        let open: Vec<ResourceId> = self.open_to(cluster, from, to, (shape, 1)).collect();
        if open.is_empty() {
            return Some(DESERVED);
        }
        levels
            .find_map(|&queue| guarded(cluster, victim, queue))
            .or_else(|| self.keeps_from(cluster, giver, (to, &open), (shape, 1), lacking))
    }

    fn vetoes_gang_loss(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        gang: GangId,
    ) -> Option<&'static str> {
        let keeps =
            preemptor.purpose == Purpose::Reclaim && self.keeps_share(cluster, preemptor, gang);
        keeps.then_some(SHARE)
    }

    /// No reclaim that would be undone: a queue may not exceed what it deserves in a resource, or
    /// exceed it further, while a waiting gang of another queue could reclaim that. Gangs that were
    /// just evicted for it wait too.
    fn rejects_outcome(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        had: &Amounts,
        gone: &[PodId],
    ) -> Option<Reason> {
        if preemptor.purpose != Purpose::Reclaim {
            return None;
        }
        if preemptor.by_fair_share() {
            let within = self.has_stayed_within_share(cluster, preemptor, had);
            let outdoes = || self.outdoes_a_sibling(cluster, preemptor, gone);
            return within
                .err()
                .or_else(outdoes)
                .or_else(|| self.gives_back(cluster, preemptor, had, gone));
        }
        let queue = cluster.gangs[preemptor.gang].queue;
        let row = &cluster.queues[queue];
        let deserved = |resource| row.deserved.get(resource).unwrap_or(0);
        let resources =
            (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&id| id != PODS);
        let grown: Vec<ResourceId> =
            resources.filter(|&id| row.taken(id) > deserved(id).max(had.get(id))).collect();
        if grown.is_empty() || !row.reclaimable {
            return None;
        }
        let first_waiting = |&id: &GangId| {
            let gang = &cluster.gangs[id];
            let missing = i64::from(gang.missing(true).total);
            let pending = |pod: &PodId| cluster.pods.state[*pod] == PodState::Pending;
            let first = gang.pods.iter().copied().find(pending);
            Some((first.filter(|_| gang.admitted() && missing > 0)?, missing))
        };
        let waiting = cluster.gangs.waiting().iter().filter_map(first_waiting);
        let resource =
            waiting.chain(gone.iter().map(|&pod| (pod, 1))).find_map(|(pod, pods)| {
                let (to, shape) =
                    (cluster.gangs[cluster.pods.gang[pod]?].queue, cluster.pods.shape[pod]);
                if to == queue {
                    return None;
                }
                let open: Vec<ResourceId> =
                    self.open_to(cluster, queue, to, (shape, pods)).collect();
                let mut grown_there = open.iter().copied().filter(|id| grown.contains(id));
                let lost = grown_there.find(|&id| is_scarce(cluster, shape, id, pods))?;
                let giver = (queue, cluster.pods.shape[preemptor.pod]);
                let kept = self.keeps_from(cluster, giver, (to, &open), (shape, pods), pods);
                kept.is_none().then_some(lost)
            })?;
        let (used, limit) = (had.get(resource), deserved(resource));
        let lack = Lack { resource, want: row.taken(resource) - used, used, limit };
        Some(Reason::OverLimit {
            plugin: ENTRY.name.into(),
            limit: Limit::Deserved(row.name.clone()),
            lack,
        })
    }

    fn queue_gives_first(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        a: QueueId,
        b: QueueId,
    ) -> Ordering {
        if preemptor.by_fair_share() {
            return self.gives_first(cluster, preemptor, a, b);
        }
        let own = &cluster.queues[cluster.gangs[preemptor.gang].queue].lineage;
        let common = |queue: QueueId| {
            let up = &cluster.queues[queue].lineage;
            own.iter().rev().zip(up.iter().rev()).take_while(|(own, other)| own == other).count()
        };
        if self.tree { common(b).cmp(&common(a)) } else { Ordering::Equal }
    }

    fn measure_by_fair_shares(&mut self) {
        self.by_shares = true;
    }

    fn has_queue_tree(&self) -> bool {
        self.tree
    }

    fn fairness(&self) -> Option<Rules> {
        Some(self.rules)
    }

    fn fair_share_of(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        self.by_shares.then(|| self.share_of(cluster, queue))
    }

    fn deserves(&self, cluster: &Cluster, queue: QueueId) -> Option<(Amounts, Share)> {
        if self.by_shares {
            return Some(self.share_of(cluster, queue));
        }
        let mut deserved = Amounts::default();
        deserved.add_all(&cluster.queues[queue].deserved, 1);
        let share = if self.deserves_nothing(cluster, queue) {
            Share::ZERO
        } else {
            self.share(cluster, queue)
        };
        Some((deserved, share))
    }
}
