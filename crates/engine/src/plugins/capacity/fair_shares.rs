//! Queues measured by their fair shares (`shares.rs`), for mode `scenario`. A queue may reclaim as
//! long as it stays within its share; another queue gives while it has more than its own, or more
//! than it deserves if the first has less; and afterwards the preemptor's queue may not have more
//! of its share than the queues that gave, so that nothing is reclaimed back.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId, QueueId, ResourceId};
use crate::base::resources::{Amounts, PODS, Share, Sparse};
use crate::decision::reason::{Lack, Limit, Reason};
use crate::model::Cluster;
use crate::model::gangs::missing::{Missing, missing_after_nominations, required};
use crate::model::queues::Queue;
use crate::plugins::capacity::{Capacity, ENTRY};
use crate::policy::preemptor::Preemptor;
use crate::shares::deserved::by_quota;
use crate::shares::fair::Shares;

/// The rule that protects what a queue has.
pub const SHARE: &str = "its queue's fair share";

/// One, in parts per million.
const ONE: i128 = 1_000_000;

/// Which queue is served first; the smaller goes first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    over_share: bool,
    within_deserved: Reverse<bool>,
    priority: Reverse<i32>,
    /// It would use resources of which it has no share.
    without_share: bool,
    share_after: Share,
    share: Share,
}

impl Capacity {
    fn with_shares<R>(&self, cluster: &Cluster, read: impl FnOnce(&Shares) -> R) -> R {
        self.shares.with(cluster, |cluster| Shares::of(cluster, self.tree, self.rules.k_ppm), read)
    }

    pub(super) fn fair_share(
        &self,
        cluster: &Cluster,
        queue: QueueId,
        resource: ResourceId,
    ) -> i64 {
        self.with_shares(cluster, |shares| shares.fair(queue, resource))
    }

    fn allocatable(&self, cluster: &Cluster, queue: QueueId, resource: ResourceId) -> i64 {
        self.with_shares(cluster, |shares| shares.allocatable(cluster, queue, resource))
    }

    /// Whether a queue stays within its fair share with everything that a gang lacks, in all
    /// resources that it requests.
    pub(super) fn stays_within_share(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
    ) -> Result<(), Reason> {
        let wanted = wanted(cluster, preemptor.gang);
        let mut asked = wanted.iter().filter(|&(id, want)| id != PODS && want > 0);
        asked.try_for_each(|(id, want)| self.is_within_share(cluster, preemptor, (id, want), 0))
    }

    /// Whether it has stayed within it with everything that the gang was given: subgroups are
    /// placed as a whole.
    pub(super) fn has_stayed_within_share(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        had: &Amounts,
    ) -> Result<(), Reason> {
        let row = &cluster.queues[cluster.gangs[preemptor.gang].queue];
        let given = |id| row.taken(id) - had.get(id);
        asked(cluster, preemptor.gang)
            .try_for_each(|id| self.is_within_share(cluster, preemptor, (id, given(id)), given(id)))
    }

    /// Whether the preemptor's queue may have this much more of a resource; `given` is not counted
    /// of what it uses.
    fn is_within_share(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        (resource, want): (ResourceId, i64),
        given: i64,
    ) -> Result<(), Reason> {
        let queue = cluster.gangs[preemptor.gang].queue;
        let row = &cluster.queues[queue];
        let (used, limit) =
            (row.taken(resource) - given, self.fair_share(cluster, queue, resource));
        if want <= 0 || used + want <= limit {
            return Ok(());
        }
        let lack = Lack { resource, want, used, limit };
        let limit = Limit::FairShare(row.name.clone());
        Err(Reason::OverLimit { plugin: ENTRY.name.into(), limit, lack })
    }

    /// Whether a queue keeps what one of its gangs would lose now. Where the paths of the two
    /// queues part, the giving branch has more than its share of some requested resource; or more
    /// than it deserves, and the preemptor's branch stays within what it deserves.
    pub(super) fn keeps_share(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        gang: GangId,
    ) -> bool {
        let (to, from) =
            self.parting(cluster, cluster.gangs[preemptor.gang].queue, cluster.gangs[gang].queue);
        let (giver, taker) = (&cluster.queues[from], &cluster.queues[to]);
        let above_share = asked(cluster, preemptor.gang)
            .any(|id| giver.taken(id) > self.allocatable(cluster, from, id));
        let above_deserved =
            || asked(cluster, preemptor.gang).any(|id| giver.taken(id) > by_quota(giver, id));
        let entitled = || {
            let wanted = wanted(cluster, preemptor.gang);
            within_deserved(taker, asked(cluster, preemptor.gang), |id| {
                taker.taken(id) + wanted.get(id)
            })
        };
        !(above_share || above_deserved() && entitled())
    }

    /// On the path up from the preemptor's queue, no queue may have more of its share than a
    /// sibling that gave keeps of its own.
    pub(super) fn outdoes_a_sibling(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        gone: &[PodId],
    ) -> Option<Reason> {
        let own = cluster.gangs[preemptor.gang].queue;
        let mut givers: Vec<(QueueId, QueueId)> = Vec::new();
        for &pod in gone {
            let Some(gang) = cluster.pods.gang[pod] else { continue };
            givers.push(self.parting(cluster, own, cluster.gangs[gang].queue));
        }
        givers.sort_by(|a, b| cluster.queues[a.1].name.cmp(&cluster.queues[b.1].name));
        givers.dedup();
        let involved = self.involved(cluster, preemptor, gone);
        givers.into_iter().find_map(|(to, from)| {
            let (taker, giver) = (&cluster.queues[to], &cluster.queues[from]);
            involved.iter().find_map(|&resource| {
                let (fair, sibling_fair) = (
                    self.fair_share(cluster, to, resource),
                    self.fair_share(cluster, from, resource),
                );
                let (after, left) = (taker.taken(resource), giver.taken(resource));
                // after × multiplier / fair ≥ left / sibling's fair
                let mine = (i128::from(after) * self.saturation, i128::from(fair) * ONE);
                let theirs = (i128::from(left), i128::from(sibling_fair));
                let better_off = || fair <= 0 || compare_ratios(mine, theirs).is_ge();
                let refused = after > 0 && after > fair && sibling_fair > 0 && better_off();
                refused.then(|| Reason::OutdoesSibling {
                    queue: taker.name.clone(),
                    sibling: giver.name.clone(),
                    resource,
                    after,
                    fair,
                    left,
                    sibling_fair,
                })
            })
        })
    }

    /// No reclaim that would be undone: the case that a gang of a queue that gave, waiting or just
    /// evicted, would stay within its queue's share, finds no free room, and the preemptor's queue
    /// would have to give to it.
    pub(super) fn gives_back(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        had: &Amounts,
        gone: &[PodId],
    ) -> Option<Reason> {
        let own = cluster.gangs[preemptor.gang].queue;
        let mut left: Vec<GangId> = gone.iter().filter_map(|&pod| cluster.pods.gang[pod]).collect();
        left.sort_unstable();
        left.dedup();
        let queue = |gang: &GangId| cluster.gangs[*gang].queue;
        let mut givers: Vec<QueueId> =
            left.iter().map(queue).filter(|&queue| queue != own).collect();
        givers.sort_unstable();
        givers.dedup();
        let waits = |gang: &&GangId| {
            let row = &cluster.gangs[**gang];
            row.admitted() && missing_after_nominations(row, true).total > 0 && !left.contains(gang)
        };
        let waiting = cluster.gangs.waiting().iter().filter(waits).chain(&left);
        let back = waiting.filter(|gang| givers.contains(&queue(gang)));
        let resource = back.filter_map(|&gang| self.takes_from(cluster, gang, own)).min()?;
        let row = &cluster.queues[own];
        let (used, limit) = (had.get(resource), row.deserved.get(resource).unwrap_or(0));
        let lack = Lack { resource, want: row.taken(resource) - used, used, limit };
        Some(Reason::OverLimit {
            plugin: ENTRY.name.into(),
            limit: Limit::Deserved(row.name.clone()),
            lack,
        })
    }

    /// What a waiting gang could reclaim from a queue by the rules, if it finds no free room.
    fn takes_from(&self, cluster: &Cluster, gang: GangId, own: QueueId) -> Option<ResourceId> {
        let queue = cluster.gangs[gang].queue;
        let (to, from) = self.parting(cluster, queue, own);
        let (taker, giver) = (&cluster.queues[to], &cluster.queues[from]);
        let wanted = wanted(cluster, gang);
        let asked = || wanted.iter().filter(|&(id, want)| id != PODS && want > 0);
        let within = |(id, want)| {
            cluster.queues[queue].taken(id) + want <= self.fair_share(cluster, queue, id)
        };
        let entitled = || {
            within_deserved(taker, asked().map(|(id, _)| id), |id| taker.taken(id) + wanted.get(id))
        };
        let above_share =
            |&(id, _): &(ResourceId, i64)| giver.taken(id) > self.allocatable(cluster, from, id);
        let above_deserved = |&(id, _): &(ResourceId, i64)| giver.taken(id) > by_quota(giver, id);
        if !asked().all(within) {
            return None;
        }
        let open = asked()
            .find(above_share)
            .or_else(|| asked().find(above_deserved).filter(|_| entitled()));
        open.map(|(id, _)| id).filter(|_| !has_room(cluster, gang, &wanted))
    }

    /// What the preemptor and its victims request.
    fn involved(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        gone: &[PodId],
    ) -> Vec<ResourceId> {
        let own = cluster.gangs[preemptor.gang].pods.iter().copied();
        let shapes = own.chain(gone.iter().copied()).map(|pod| cluster.pods.shape[pod]);
        let mut shapes: Vec<_> = shapes.collect();
        shapes.sort_unstable();
        shapes.dedup();
        let asked =
            |shape| cluster.shapes[shape].request.iter().map(|(id, _)| id).collect::<Vec<_>>();
        let mut involved: Vec<ResourceId> = shapes.into_iter().flat_map(asked).collect();
        involved.sort_unstable();
        involved.dedup();
        involved.retain(|&id| id != PODS);
        involved
    }

    /// Which of two queues gives first: where their paths part, the one that has more than its
    /// share, then the one that has more than it deserves, then lower priority, then the larger
    /// share.
    pub(super) fn gives_first(
        &self,
        cluster: &Cluster,
        preemptor: &Preemptor,
        a: QueueId,
        b: QueueId,
    ) -> Ordering {
        let standing = |queue: QueueId| {
            let row = &cluster.queues[queue];
            let asked = || asked(cluster, preemptor.gang);
            let over = asked().any(|id| row.taken(id) > self.allocatable(cluster, queue, id));
            let within = within_deserved(row, asked(), |id| row.taken(id));
            let share = asked()
                .map(|id| Share::of(row.taken(id), self.allocatable(cluster, queue, id)))
                .max();
            (!over, within, row.priority, Reverse(share))
        };
        let (a, b) = self.parting(cluster, a, b);
        standing(a).cmp(&standing(b))
    }

    /// Which of two queues is served first, given the gang that is next in each.
    pub(super) fn serves_first(&self, cluster: &Cluster, a: GangId, b: GangId) -> Ordering {
        let (top_a, top_b) = self.parting(cluster, cluster.gangs[a].queue, cluster.gangs[b].queue);
        self.standing(cluster, top_a, a).cmp(&self.standing(cluster, top_b, b))
    }

    fn standing(&self, cluster: &Cluster, queue: QueueId, gang: GangId) -> Standing {
        let row = &cluster.queues[queue];
        let next = next_turn(cluster, gang);
        let resources =
            || (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&id| id != PODS);
        let want = |id: ResourceId| next.get(id);
        let within_deserved = within_deserved(row, resources().filter(|&id| want(id) > 0), |id| {
            row.taken(id) + want(id)
        });
        let (mut over_share, mut without_share) = (false, false);
        let (mut share_after, mut share) = (Share::ZERO, Share::ZERO);
        self.with_shares(cluster, |shares| {
            for id in resources().filter(|&id| row.taken(id) > 0 || want(id) > 0) {
                let (taken, most) = (row.taken(id), shares.allocatable(cluster, queue, id));
                if want(id) > 0 {
                    over_share |= taken > shares.fair(queue, id);
                    without_share |= most == 0;
                }
                share_after = share_after.max(Share::of(taken + want(id), most));
                share = share.max(Share::of(taken, most));
            }
        });
        Standing {
            over_share,
            within_deserved: Reverse(within_deserved),
            priority: Reverse(row.priority),
            without_share,
            share_after,
            share,
        }
    }

    /// A queue's fair share, and how much of it the queue uses.
    pub(super) fn share_of(&self, cluster: &Cluster, queue: QueueId) -> (Amounts, Share) {
        let mut fair = Amounts::default();
        let mut share = Share::ZERO;
        for id in (0..cluster.dimensions.len()).map(ResourceId::from).filter(|&id| id != PODS) {
            let amount = self.fair_share(cluster, queue, id);
            fair.add(id, amount);
            share = share.max(Share::of(cluster.queues[queue].taken(id), amount));
        }
        (fair, share)
    }
}

/// Whether a queue's quotas cover a resource: all that they name, or everything if they name
/// nothing.
fn is_deserved(queue: &Queue, resource: ResourceId) -> bool {
    let named = |list: &Sparse| list.get(resource).is_some();
    let silent = queue.deserved.is_empty() && queue.guarantee.is_empty();
    silent || named(&queue.deserved) || named(&queue.guarantee)
}

/// Whether a queue deserves these amounts of the requested resources: of all that its quotas cover,
/// if there are any.
fn within_deserved(
    queue: &Queue,
    asked: impl Iterator<Item = ResourceId>,
    amount: impl Fn(ResourceId) -> i64,
) -> bool {
    let mut deserved = asked.filter(|&id| is_deserved(queue, id)).peekable();
    deserved.peek().is_some() && deserved.all(|id| amount(id) <= by_quota(queue, id))
}

/// Compares two ratios of numbers above zero that are too large to be multiplied: by the whole
/// parts, then by the inverted remainders.
fn compare_ratios(a: (i128, i128), b: (i128, i128)) -> Ordering {
    let (whole_a, whole_b) = (a.0 / a.1, b.0 / b.1);
    let (left_a, left_b) = (a.0 % a.1, b.0 % b.1);
    whole_a.cmp(&whole_b).then_with(|| match (left_a, left_b) {
        (0, _) | (_, 0) => left_a.cmp(&left_b),
        _ => compare_ratios((b.1, left_b), (a.1, left_a)),
    })
}

/// What the pods of a gang request.
fn asked(cluster: &Cluster, gang: GangId) -> impl Iterator<Item = ResourceId> {
    let requested = cluster.gangs[gang].requested.iter();
    requested.filter(|&(id, amount)| id != PODS && amount > 0).map(|(id, _)| id)
}

/// What a gang below its minimum requests: all its missing pods; or one pod.
pub(super) fn wanted(cluster: &Cluster, gang: GangId) -> Amounts {
    let row = &cluster.gangs[gang];
    let mut missing = missing_after_nominations(row, true);
    if missing.total == 0 {
        missing = Missing::one(row.roles.len());
    }
    let homeless = |pod: &PodId| cluster.pods.state[*pod].is_homeless();
    let pods: Vec<PodId> = row.pods.iter().copied().filter(homeless).collect();
    let mut amounts = Amounts::default();
    for pod in with_company(cluster, gang, required(cluster, &pods, &missing), &pods) {
        amounts.add_all(&cluster.shapes[cluster.pods.shape[pod]].request, 1);
    }
    amounts
}

/// These pods, and those without which their subgroups would be incomplete.
fn with_company(
    cluster: &Cluster,
    gang: GangId,
    mut pods: Vec<PodId>,
    homeless: &[PodId],
) -> Vec<PodId> {
    let row = &cluster.gangs[gang];
    if row.rules().is_empty() {
        return pods;
    }
    let mut lacks: BTreeMap<u32, u32> = BTreeMap::new();
    for &pod in &pods {
        let place = cluster.pods.subgroup[pod];
        let Some(group) = row.subgroups().get(place as usize) else { continue };
        let lack = row.size_of(group).saturating_sub(group.counts.ready() + group.counts.nominated);
        let lack = lacks.entry(place).or_insert(lack);
        *lack = lack.saturating_sub(1);
    }
    for &pod in homeless {
        let lack = lacks.get_mut(&cluster.pods.subgroup[pod]).filter(|lack| **lack > 0);
        if let Some(lack) = lack.filter(|_| !pods.contains(&pod)) {
            *lack -= 1;
            pods.push(pod);
        }
    }
    pods
}

/// Whether there is room for what a gang wants, in places for pods like its first.
fn has_room(cluster: &Cluster, gang: GangId, wanted: &Amounts) -> bool {
    let homeless = |pod: &&PodId| cluster.pods.state[**pod].is_homeless();
    let Some(&first) = cluster.gangs[gang].pods.iter().find(homeless) else { return true };
    let request = &cluster.shapes[cluster.pods.shape[first]].request;
    let places = |node| {
        let of = |(id, amount): (ResourceId, i64)| {
            cluster.nodes.future_idle(id, node).max(0) / amount.max(1)
        };
        request.iter().filter(|&(_, amount)| amount > 0).map(of).min().unwrap_or(0)
    };
    cluster.nodes.live().map(places).sum::<i64>() >= wanted.get(PODS)
}

/// The same, with every pod counted like the first, which is cheaper.
fn next_turn(cluster: &Cluster, gang: GangId) -> Amounts {
    let row = &cluster.gangs[gang];
    let homeless = |pod: &&PodId| cluster.pods.state[**pod].is_homeless();
    let mut amounts = Amounts::default();
    if let Some(&first) = row.pods.iter().find(homeless) {
        let pods = i64::from(missing_after_nominations(row, true).total.max(1));
        amounts.add_all(&cluster.shapes[cluster.pods.shape[first]].request, pods);
    }
    amounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_large_numbers_are_compared_exactly() {
        let large = i128::from(i64::MAX) << 40;
        assert_eq!(compare_ratios((large, large - 1), (large + 1, large)), Ordering::Greater);
        assert_eq!(compare_ratios((large, 3), (2 * large, 6)), Ordering::Equal);
        assert_eq!(compare_ratios((0, large), (1, large)), Ordering::Less);
        assert_eq!(compare_ratios((18, 10), (7, 4)), Ordering::Greater);
        assert_eq!(compare_ratios((6, 4), (7, 4)), Ordering::Less);
    }
}
