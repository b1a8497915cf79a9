//! Dominant resource fairness: gangs with the smallest dominant share go first; with
//! `enableHierarchy` queues too, by their path and weights.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::ids::{GangId, PodId, QueueId};
use crate::base::purpose::Purpose;
use crate::base::resources::{Amounts, PODS, Share, Sparse};
use crate::decision::reason::Reason;
use crate::model::Cluster;
use crate::model::queues::ROOT;
use crate::policy::plugin::{Entry, Plugin, answers};
use crate::policy::preemptor::Preemptor;

pub static ENTRY: Entry = Entry {
    name: "drf",
    summary: "gangs with the smallest dominant share first; queues too, by path and weight, with \
              enableHierarchy",
    arguments: &[],
    differs: "Nominations count. Shares are compared exactly, so equal shares are equal.",
    build: |_, switches| {
        Box::new(Drf { hierarchical: switches.hierarchy, tree: RefCell::default() })
    },
};

struct Drf {
    hierarchical: bool,
    /// The tree of queue paths, as of the given generation.
    tree: RefCell<Option<(u64, Branch)>>,
}

/// A queue, or the common part of several queues' paths.
#[derive(Default)]
struct Branch {
    weight: i64,
    children: BTreeMap<Arc<str>, Branch>,
    used: Amounts,
    /// No gang below it requests more.
    saturated: bool,
    share: Option<Share>,
}

fn gang_share(cluster: &Cluster, gang: GangId) -> Share {
    let gang = &cluster.gangs[gang];
    if gang.held.is_zero() && gang.nominated.is_zero() {
        return Share::ZERO;
    }
    let mut taken = gang.held.clone();
    taken.add_amounts(&gang.nominated, 1);
    Share::dominant(&taken, |resource| cluster.total.get(resource))
}

impl Branch {
    fn weighted(&self) -> Share {
        let share = self.share.unwrap_or(Share::ZERO);
        // Weights are thousandths; a share is small, so multiply the whole.
        Share { part: share.part, whole: share.whole.saturating_mul(self.weight.max(1)) }
    }

    /// Shares from the leaves up: children count as if each had only the share of the smallest of
    /// them, so that one that can't be served doesn't block its siblings.
    fn settle(&mut self, cluster: &Cluster) {
        if self.children.is_empty() {
            self.share = Some(Share::dominant(&self.used, |resource| cluster.total.get(resource)));
            return;
        }
        for child in self.children.values_mut() {
            child.settle(cluster);
        }
        self.saturated = self.children.values().all(|child| child.saturated);
        let hungry = |child: &&Branch| !child.saturated && !child.used.is_zero();
        let least = self.children.values().filter(hungry).map(Branch::weighted).min();
        self.used = Amounts::default();
        for child in self.children.values() {
            let own = child.weighted();
            for (resource, amount) in child.used.iter() {
                let scaled = match least {
                    Some(least) if hungry(&child) => scale(amount, least, own),
                    _ => amount,
                };
                self.used.add(resource, scaled);
            }
        }
        self.share = Some(Share::dominant(&self.used, |resource| cluster.total.get(resource)));
    }
}

/// `amount × least / own`, where least is not above own.
fn scale(amount: i64, least: Share, own: Share) -> i64 {
    // Parts per million keep the product within bounds; this shapes an order between branches only.
    match own.ppm() {
        0 => amount,
        own => (i128::from(amount) * i128::from(least.ppm()) / i128::from(own)) as i64,
    }
}

/// The tree as it is, or as it would be if some queues had more or less.
fn grow(cluster: &Cluster, changes: &[(QueueId, &Sparse, i64)]) -> Branch {
    let mut root = Branch { weight: 1000, ..Branch::default() };
    for (id, queue) in
        cluster.queues.iter().filter(|(_, queue)| queue.exists && !queue.hierarchy.is_empty())
    {
        let mut at = &mut root;
        for (name, weight) in &queue.hierarchy {
            at = at.children.entry(name.clone()).or_default();
            at.weight = *weight;
        }
        at.used.add_amounts(&queue.held, 1);
        at.used.add_amounts(&queue.nominated, 1);
        at.used.add_amounts(&queue.awaited, 1);
        for (_, request, sign) in changes.iter().filter(|(changed, ..)| *changed == id) {
            at.used.add_all(request, *sign);
        }
        // Fully served in some resource, or in need of one that is used up.
        let spent = |resource| cluster.queues[ROOT].taken(resource) >= cluster.total.get(resource);
        let served = |resource, asked| queue.taken(resource) > 0 && queue.taken(resource) >= asked;
        let mut asked =
            queue.requested.iter().filter(|&(resource, asked)| resource != PODS && asked > 0);
        at.saturated = asked.any(|(resource, asked)| served(resource, asked) || spent(resource));
    }
    root.settle(cluster);
    root
}

/// A gang's dominant share with (or without) this many more pods like this one.
fn share_after(cluster: &Cluster, gang: GangId, pod: PodId, times: i64) -> Share {
    let row = &cluster.gangs[gang];
    let mut taken = row.held.clone();
    taken.add_amounts(&row.nominated, 1);
    taken.add_all(&cluster.shapes[cluster.pods.shape[pod]].request, times);
    Share::dominant(&taken, |resource| cluster.total.get(resource))
}

/// The preemptor's share with its request: one pod, or as many like it as its gang lacks.
fn share_wanted(cluster: &Cluster, preemptor: &Preemptor) -> Share {
    let row = &cluster.gangs[preemptor.gang];
    let lacks = row.minimum.saturating_sub(row.counts.ready() + row.counts.nominated).max(1);
    share_after(
        cluster,
        preemptor.gang,
        preemptor.pod,
        if preemptor.by_gang() { i64::from(lacks) } else { 1 },
    )
}

/// Compares two queues where their paths part: which is served first.
fn compare(cluster: &Cluster, root: &Branch, a: QueueId, b: QueueId) -> Ordering {
    let (mut at_a, mut at_b) = (root, root);
    for ((name_a, _), (name_b, _)) in
        cluster.queues[a].hierarchy.iter().zip(&cluster.queues[b].hierarchy)
    {
        let (Some(a), Some(b)) = (at_a.children.get(name_a), at_b.children.get(name_b)) else {
            break;
        };
        if name_a != name_b {
            return a.saturated.cmp(&b.saturated).then_with(|| a.weighted().cmp(&b.weighted()));
        }
        (at_a, at_b) = (a, b);
    }
    Ordering::Equal
}

#[answers]
impl Plugin for Drf {
    fn gang_order(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        gang_share(cluster, a).cmp(&gang_share(cluster, b))
    }

    fn queue_order(&self, cluster: &Cluster, a: QueueId, b: QueueId) -> Ordering {
        if !self.hierarchical {
            return Ordering::Equal;
        }
        let mut kept = self.tree.borrow_mut();
        if kept.as_ref().is_none_or(|(generation, _)| *generation != cluster.generation) {
            *kept = Some((cluster.generation, grow(cluster, &[])));
        }
        let (_, root) = kept.as_ref().expect("just grown");
        compare(cluster, root, a, b)
    }

    /// Preempt evicts gangs that have more than the preemptor would have.
    fn outranks(&self, cluster: &Cluster, preemptor: &Preemptor, victim: PodId) -> Option<bool> {
        let other = cluster.pods.gang[victim].filter(|_| preemptor.purpose == Purpose::Preempt)?;
        let preemptor = share_wanted(cluster, preemptor);
        Some(preemptor <= share_after(cluster, other, victim, -1))
    }

    fn may_reclaim(&self, _: &Cluster, _: &Preemptor) -> Option<Result<(), Reason>> {
        self.hierarchical.then_some(Ok(()))
    }

    /// Reclaim evicts from a branch that would still be served after the preemptor's, even if it
    /// had given the pod.
    fn vetoes_after(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        victim: PodId,
    ) -> Option<&'static str> {
        let from = cluster.gangs[cluster.pods.gang[victim]?].queue;
        if !self.hierarchical || preemptor.purpose != Purpose::Reclaim {
            return None;
        }
        let to = cluster.gangs[preemptor.gang].queue;
        let request = |pod: PodId| &cluster.shapes[cluster.pods.shape[pod]].request;
        let root = grow(cluster, &[(to, request(preemptor.pod), 1), (from, request(victim), -1)]);
        compare(cluster, &root, to, from).is_ge().then_some("its queue's share in the hierarchy")
    }
}
