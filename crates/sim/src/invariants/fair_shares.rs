//! What holds where queues take back by their fair shares, told from what they have in the end.
//! Only plans with one search for room, by reclaim, and without nominations for other gangs are
//! looked at, in which no pod was left unbound and no nomination withdrawn: what was there in
//! between can be told from them.

use std::collections::{BTreeMap, BTreeSet};

use muster_engine::ids::{GangId, QueueId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::model::queues::Queue;
use muster_engine::shares::Shares;
use muster_engine::{Amounts, Cause, Decisions, Engine, Eviction, Reason};

use super::facts::{gangs_of, has_queue_tree, is_by_scenario};
use crate::violation::{Invariant, Violation};

pub fn check(engine: &Engine, plan: &Decisions) -> Result<(), Violation> {
    let cluster = engine.cluster();
    let preemptors: BTreeSet<Option<GangId>> =
        plan.evictions.iter().map(|eviction| eviction.preemptor).collect();
    let reclaims = |eviction: &Eviction| {
        eviction.action == "reclaim" && is_by_scenario(engine, eviction.action)
    };
    let [Some(preemptor)] = preemptors.into_iter().collect::<Vec<_>>()[..] else { return Ok(()) };
    let lost =
        plan.evictions.iter().filter(|eviction| !matches!(eviction.cause, Cause::Moved { .. }));
    let lost: Vec<&Eviction> = lost.collect();
    let own = plan.nominations.iter().all(|bind| cluster.pods.gang[bind.pod] == Some(preemptor));
    // Pods that counted as running when the search began, and do not run after it.
    let withdrawn = |reason: &Reason| {
        matches!(reason, Reason::NotBound { .. } | Reason::NominationsLost { .. })
    };
    let whole = !cluster.gangs.iter().any(|(_, gang)| gang.reasons.iter().any(withdrawn));
    let once = plan.searches.iter().filter(|search| search.found).count() == 1;
    if !once || !own || !whole || !plan.evictions.iter().all(reclaims) || lost.is_empty() {
        return Ok(());
    }
    let tree = has_queue_tree(engine);
    let scales = Scales { cluster, shares: Shares::of(cluster, tree, 0), tree, preemptor };
    scales.preemptor_stays_within_its_share()?;
    // What goes at once is a gang, or one pod of it.
    let mut units: BTreeMap<(QueueId, QueueId), Vec<Amounts>> = BTreeMap::new();
    for gang in gangs_of(cluster, lost.iter().map(|eviction| eviction.pod)) {
        let gone = lost.iter().filter(|eviction| cluster.pods.gang[eviction.pod] == Some(gang));
        let together =
            |eviction: &&&Eviction| matches!(eviction.cause, Cause::Bundle { whole: true, .. });
        let at_once = gone.clone().any(|eviction| together(&eviction))
            || !cluster.gangs[gang].rules().is_empty();
        let mut amounts: Vec<Amounts> = Vec::new();
        for eviction in gone {
            if !at_once || amounts.is_empty() {
                amounts.push(Amounts::default());
            }
            let request = &cluster.shapes[cluster.pods.shape[eviction.pod]].request;
            amounts.last_mut().expect("one was pushed").add_all(request, 1);
        }
        units.entry(scales.parting(cluster.gangs[gang].queue)).or_default().extend(amounts);
    }
    units.iter().try_for_each(|(&(to, from), units)| {
        scales.giver_had_too_much(to, from, units)?;
        scales.preemptor_is_no_better_off(to, from)
    })
}

struct Scales<'s> {
    cluster: &'s Cluster,
    shares: Shares,
    tree: bool,
    preemptor: GangId,
}

impl Scales<'_> {
    fn asked(&self) -> impl Iterator<Item = ResourceId> + '_ {
        let requested = self.cluster.gangs[self.preemptor].requested.iter();
        let named = |id: &ResourceId| self.cluster.dimensions.name(*id) != "pods";
        requested.filter(|(_, amount)| *amount > 0).map(|(id, _)| id).filter(named)
    }

    /// Where the ways from the root to the preemptor's queue and to another part.
    fn parting(&self, other: QueueId) -> (QueueId, QueueId) {
        let own = self.cluster.gangs[self.preemptor].queue;
        if !self.tree {
            return (own, other);
        }
        let lines = |queue: QueueId| self.cluster.queues[queue].lineage.iter().rev().copied();
        lines(own).zip(lines(other)).find(|(one, other)| one != other).unwrap_or((own, other))
    }

    fn preemptor_stays_within_its_share(&self) -> Result<(), Violation> {
        let queue = self.cluster.gangs[self.preemptor].queue;
        let row = &self.cluster.queues[queue];
        match self.asked().find(|&id| row.taken(id) > self.shares.fair(queue, id)) {
            Some(id) => Invariant::FairShare.fails(format!(
                "{} takes back {} for {} of its share of {}",
                row.name,
                row.taken(id),
                self.cluster.gangs[self.preemptor].key,
                self.shares.fair(queue, id)
            )),
            None => Ok(()),
        }
    }

    /// Before the last pods left, the giver had more than its share; or more than it deserves, and
    /// the taker has no more than that.
    fn giver_had_too_much(
        &self,
        to: QueueId,
        from: QueueId,
        units: &[Amounts],
    ) -> Result<(), Violation> {
        let (taker, giver) = (&self.cluster.queues[to], &self.cluster.queues[from]);
        let had = |id: ResourceId| {
            giver.taken(id) + units.iter().map(|unit| unit.get(id)).max().unwrap_or(0)
        };
        let above_share =
            self.asked().any(|id| had(id) > self.shares.allocatable(self.cluster, from, id));
        let above_deserved = self.asked().any(|id| had(id) > deserved(giver, id));
        let mut about = self.asked().filter(|&id| names(taker, id)).peekable();
        let entitled =
            about.peek().is_some() && about.all(|id| taker.taken(id) <= deserved(taker, id));
        match above_share || above_deserved && entitled {
            true => Ok(()),
            false => Invariant::FairShare.fails(format!(
                "{} gives to {}, and had no more than its share",
                giver.name, taker.name
            )),
        }
    }

    /// Above its share, the preemptor's queue has less of it than the giver has left of its own.
    fn preemptor_is_no_better_off(&self, to: QueueId, from: QueueId) -> Result<(), Violation> {
        let (taker, giver) = (&self.cluster.queues[to], &self.cluster.queues[from]);
        let better_off = |id: ResourceId| {
            let (after, left) = (i128::from(taker.taken(id)), i128::from(giver.taken(id)));
            let (fair, other) = (self.shares.fair(to, id), self.shares.fair(from, id));
            let (fair, other) = (i128::from(fair), i128::from(other));
            after > fair && other > 0 && after * other >= left * fair
        };
        match self.asked().find(|&id| better_off(id)) {
            Some(_) => Invariant::FairShare.fails(format!(
                "{} is better off than {} now, which gave to it",
                taker.name, giver.name
            )),
            None => Ok(()),
        }
    }
}

/// What its quotas say that a queue should have in any case.
fn deserved(queue: &Queue, resource: ResourceId) -> i64 {
    [&queue.deserved, &queue.guarantee]
        .map(|list| list.get(resource).unwrap_or(0))
        .into_iter()
        .max()
        .unwrap_or(0)
}

/// Whether its quotas say anything of a resource, if they say anything at all.
fn names(queue: &Queue, resource: ResourceId) -> bool {
    let lists = [&queue.deserved, &queue.guarantee];
    lists.iter().all(|list| list.is_empty())
        || lists.iter().any(|list| list.get(resource).is_some())
}
