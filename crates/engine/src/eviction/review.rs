//! Lets those stay whom the plan asks to leave without need.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId};
use crate::decision::cause::Cause;
use crate::decision::decisions::Eviction;
use crate::eviction::fit::StillFits;
use crate::eviction::give_back::give_back;
use crate::eviction::lower_nominations::nominations_still_fit;
use crate::eviction::order::worth_order;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;

/// Lets those stay whom the plan asks to leave without need, since room was made for one gang after
/// the other. A gang that breaks stays or goes together; of what others can lose each pod does, or
/// a subgroup.
pub fn review(session: &mut Session) {
    let mut preemptors = session.plan.evictions.iter().filter_map(|eviction| eviction.preemptor);
    let first = preemptors.next();
    let at_once = session.plan.searches.iter().filter(|search| search.found).count() < 2;
    // Where one has gone to another place, another may find that it need not.
    let moves =
        session.plan.evictions.iter().any(|eviction| matches!(eviction.cause, Cause::Moved { .. }));
    if at_once && !moves && preemptors.all(|preemptor| Some(preemptor) == first) {
        return;
    }
    let mut single: Vec<Vec<Leaver>> = Vec::new();
    let mut whole: BTreeMap<GangId, Vec<Leaver>> = BTreeMap::new();
    let mut safe: Vec<(GangId, Leaver)> = Vec::new();
    let mut moved: Vec<(GangId, Leaver)> = Vec::new();
    let stale: BTreeSet<GangId> = stale(session).collect();
    for &Eviction { pod, preemptor, cause, .. } in &session.plan.evictions {
        let (Some(preemptor), Some(gang)) = (preemptor, session.cluster.pods.gang[pod]) else {
            continue;
        };
        if stale.contains(&gang) {
            continue;
        }
        let leaver = (pod, preemptor);
        match cause {
            Cause::Bundle { whole: true, .. } => whole.entry(gang).or_default().push(leaver),
            Cause::Bundle { .. } => safe.push((gang, leaver)),
            Cause::Moved { .. } => moved.push((gang, leaver)),
            _ => single.push(vec![leaver]),
        }
    }
    let (policy, rankings) = (session.policy, &mut *session.rankings);
    let mut txn = Txn::begin(session.cluster);
    let mut reprieved = give_back_by_worth(&mut txn, rankings, policy, single);
    reprieved += give_back_by_worth(&mut txn, rankings, policy, whole.values().cloned());
    // What a gang could spare is of no use to it once it is broken.
    whole.retain(|_, gone| gone.iter().any(|&(pod, _)| txn.pods.state[pod].leaving().is_some()));
    safe.retain(|(gang, _)| !whole.contains_key(gang));
    let safe = by_subgroup(&txn, safe);
    reprieved += give_back_by_worth(&mut txn, rankings, policy, safe);
    session.plan.search_counters.reprieved += reprieved;
    let eviction_refused: BTreeSet<PodId> = txn.commit().into_iter().map(|step| step.pod).collect();
    session.plan.evictions.retain(|eviction| !eviction_refused.contains(&eviction.pod));
    if !eviction_refused.is_empty() {
        recount(session);
    }
    review_moves(session, moved);
}

/// Gangs that leave because they can't go on: what would stay of them would be of no use.
fn stale(session: &Session) -> impl Iterator<Item = GangId> {
    let stale =
        session.plan.evictions.iter().filter(|gone| matches!(gone.cause, Cause::Stale { .. }));
    stale.filter_map(|gone| session.cluster.pods.gang[gone.pod])
}

/// The same for those who would move. Who is to be near others stays or goes with them.
fn review_moves(session: &mut Session, moved: Vec<(GangId, Leaver)>) {
    let mut sets: Vec<(GangId, Vec<Leaver>)> = Vec::new();
    for (gang, leaver) in moved {
        let row = &session.cluster.gangs[gang];
        let together = row.topology_rules.is_some() || !row.rules().is_empty();
        match sets.iter_mut().find(|(of, _)| together && *of == gang) {
            Some((_, set)) => set.push(leaver),
            None => sets.push((gang, vec![leaver])),
        }
    }
    for (gang, set) in sets {
        let pods: Vec<PodId> = set.iter().map(|&(pod, _)| pod).collect();
        let mut txn = Txn::begin(session.cluster);
        txn.end_reservations_for(gang, &pods);
        let stay = give_back_by_worth(&mut txn, session.rankings, session.policy, [set]);
        if stay == 0 {
            continue;
        }
        txn.commit();
        session.cluster.freed += 1;
        session.plan.search_counters.reprieved += stay;
        session.plan.evictions.retain(|eviction| !pods.contains(&eviction.pod));
    }
}

/// Each alone, but those of a subgroup that goes.
fn by_subgroup(cluster: &Cluster, gone: Vec<(GangId, Leaver)>) -> Vec<Vec<Leaver>> {
    let mut sets: Vec<Vec<Leaver>> = Vec::new();
    let mut groups: BTreeMap<(GangId, u32), Vec<Leaver>> = BTreeMap::new();
    for (gang, leaver) in gone {
        let (row, place) = (&cluster.gangs[gang], cluster.pods.subgroup[leaver.0]);
        let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
        match group.is_some_and(|group| group.counts.ready() < row.size_of(group)) {
            true => groups.entry((gang, place)).or_default().push(leaver),
            false => sets.push(vec![leaver]),
        }
    }
    sets.extend(groups.into_values());
    sets
}

/// Bundles of which some stay say how many go.
fn recount(session: &mut Session) {
    let mut counts: BTreeMap<(Option<GangId>, Option<GangId>, bool), u32> = BTreeMap::new();
    let cluster = &*session.cluster;
    let key = |eviction: &Eviction, whole: bool| {
        (cluster.pods.gang[eviction.pod], eviction.preemptor, whole)
    };
    for eviction in &session.plan.evictions {
        if let Cause::Bundle { whole, .. } = eviction.cause {
            *counts.entry(key(eviction, whole)).or_default() += 1;
        }
    }
    for eviction in &mut session.plan.evictions {
        if let Cause::Bundle { whole, .. } = eviction.cause
            && let Some(&left) = counts.get(&key(eviction, whole))
            && let Cause::Bundle { pods, .. } = &mut eviction.cause
        {
            *pods = left;
        }
    }
}

/// A pod that is asked to leave, and for which gang.
pub type Leaver = (PodId, GangId);

/// The nominations of gangs that others were evicted for.
struct NominationsFit<'s> {
    policy: &'s Policy,
    preemptors: BTreeMap<PodId, GangId>,
}

impl StillFits for NominationsFit<'_> {
    /// There is no room for all of them beside what is nominated, as numbers go.
    fn surely_needs(&self, txn: &Txn, _: &mut Rankings, pods: &[PodId]) -> bool {
        let mut wanted: BTreeMap<(NodeId, ResourceId), i64> = BTreeMap::new();
        for &pod in pods {
            let Some(node) = txn.pods.state[pod].leaving() else { continue };
            for (resource, amount) in txn.shapes[txn.pods.shape[pod]].request.iter() {
                *wanted.entry((node, resource)).or_default() += amount;
            }
        }
        let lacks = |(&(node, resource), &amount): (&(NodeId, ResourceId), &i64)| {
            txn.nodes.future_idle(resource, node) < amount
        };
        wanted.iter().any(lacks)
    }

    fn still_fits(&mut self, txn: &mut Txn, _: &mut Rankings, pods: &[PodId]) -> bool {
        let place = |&pod: &PodId| Some((txn.pods.state[pod].node()?, *self.preemptors.get(&pod)?));
        let places: BTreeSet<(NodeId, GangId)> = pods.iter().filter_map(place).collect();
        places.into_iter().all(|(node, gang)| nominations_still_fit(txn, self.policy, gang, node))
    }
}

/// Lets those stay after all who are not needed, the most valuable first: the room that a pod left
/// may be there without it, since other pods went for the next preemptor. Each set stays or goes
/// together. Says how many stay.
pub fn give_back_by_worth(
    txn: &mut Txn,
    rankings: &mut Rankings,
    policy: &Policy,
    gone: impl IntoIterator<Item = Vec<Leaver>>,
) -> u32 {
    let mut preemptors = BTreeMap::new();
    let mut sets: Vec<(PodId, Vec<PodId>)> = Vec::new();
    for set in gone {
        let pods: Vec<PodId> = set.iter().map(|&(pod, _)| pod).collect();
        let dearest = pods.iter().copied().max_by(|&a, &b| worth_order(txn, a, b));
        sets.extend(dearest.map(|dearest| (dearest, pods)));
        preemptors.extend(set);
    }
    sets.sort_by(|a, b| worth_order(txn, b.0, a.0));
    let mut fit = NominationsFit { policy, preemptors };
    give_back(txn, rankings, &mut fit, sets.into_iter().map(|(_, pods)| pods))
}
