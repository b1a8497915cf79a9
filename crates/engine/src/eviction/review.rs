//! Undoes evictions of the plan that turn out not to be needed.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::ids::{GangId, NodeId, PodId, ResourceId};
use crate::decision::cause::Cause;
use crate::decision::decisions::{Bind, Eviction};
use crate::eviction::fit::StillFits;
use crate::eviction::give_back::give_back;
use crate::eviction::order::importance_order;
use crate::model::Cluster;
use crate::model::txn::Txn;
use crate::nomination::still_fit::{limits_still_hold, nominations_still_fit};
use crate::order::session::Session;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;

/// Undoes evictions that are not needed: room was made for one gang after the other, and the
/// victims of a later gang may make earlier ones unnecessary. A whole bundle is given back all
/// together or not at all, surplus pod by pod or by subgroup.
pub fn review(session: &mut Session) {
    let mut preemptors = session.plan.evictions.iter().filter_map(|eviction| eviction.preemptor);
    let first = preemptors.next();
    let one_search = session.plan.searches.iter().filter(|search| search.found).count() < 2;
    // After a move another eviction may not be needed any more.
    let moves =
        session.plan.evictions.iter().any(|eviction| matches!(eviction.cause, Cause::Moved { .. }));
    if one_search && !moves && preemptors.all(|preemptor| Some(preemptor) == first) {
        return;
    }
    let mut single: Vec<Vec<Victim>> = Vec::new();
    let mut whole: BTreeMap<GangId, Vec<Victim>> = BTreeMap::new();
    let mut safe: Vec<(GangId, Victim)> = Vec::new();
    let mut moved: Vec<(GangId, Victim)> = Vec::new();
    let stale: BTreeSet<GangId> = stale(session).collect();
    for &Eviction { pod, preemptor, cause, .. } in &session.plan.evictions {
        let (Some(preemptor), Some(gang)) = (preemptor, session.cluster.pods.gang[pod]) else {
            continue;
        };
        if stale.contains(&gang) {
            continue;
        }
        let victim = (pod, preemptor);
        match cause {
            Cause::Bundle { whole: true, .. } => whole.entry(gang).or_default().push(victim),
            Cause::Bundle { .. } => safe.push((gang, victim)),
            Cause::Moved { .. } => moved.push((gang, victim)),
            _ => single.push(vec![victim]),
        }
    }
    let (policy, rankings) = (session.policy, &mut *session.rankings);
    let binds = session.plan.binds.clone();
    let mut txn = Txn::begin(session.cluster);
    let mut given_back = give_back_by_importance(&mut txn, rankings, policy, &binds, single);
    let sets = whole.values().cloned();
    given_back += give_back_by_importance(&mut txn, rankings, policy, &binds, sets);
    // Surplus is of no use to a gang that stays broken.
    whole.retain(|_, victims| {
        victims.iter().any(|&(pod, _)| txn.pods.state[pod].leaving().is_some())
    });
    safe.retain(|(gang, _)| !whole.contains_key(gang));
    let safe = by_subgroup(&txn, safe);
    given_back += give_back_by_importance(&mut txn, rankings, policy, &binds, safe);
    session.plan.search_counters.reprieved += given_back;
    let given_back_pods: BTreeSet<PodId> = txn.commit().into_iter().map(|step| step.pod).collect();
    session.plan.evictions.retain(|eviction| !given_back_pods.contains(&eviction.pod));
    if !given_back_pods.is_empty() {
        session.cluster.freed += 1;
        recount(session);
    }
    review_moves(session, moved);
}

/// Gangs that are evicted as stale: giving back some of their pods would be of no use.
fn stale(session: &Session) -> impl Iterator<Item = GangId> {
    let stale = session
        .plan
        .evictions
        .iter()
        .filter(|eviction| matches!(eviction.cause, Cause::Stale { .. }));
    stale.filter_map(|eviction| session.cluster.pods.gang[eviction.pod])
}

/// The same for moves. A gang whose pods must be near each other is given back as a whole.
fn review_moves(session: &mut Session, moved: Vec<(GangId, Victim)>) {
    let mut sets: Vec<(GangId, Vec<Victim>)> = Vec::new();
    for (gang, victim) in moved {
        let row = &session.cluster.gangs[gang];
        let together = row.topology_rules.is_some() || !row.rules().is_empty();
        match sets.iter_mut().find(|(of, _)| together && *of == gang) {
            Some((_, set)) => set.push(victim),
            None => sets.push((gang, vec![victim])),
        }
    }
    for (gang, set) in sets {
        let pods: Vec<PodId> = set.iter().map(|&(pod, _)| pod).collect();
        let mut txn = Txn::begin(session.cluster);
        txn.end_reservations_for(gang, &pods);
        let (rankings, binds) = (&mut *session.rankings, &session.plan.binds);
        let given_back = give_back_by_importance(&mut txn, rankings, session.policy, binds, [set]);
        if given_back == 0 {
            continue;
        }
        txn.commit();
        session.cluster.freed += 1;
        session.plan.search_counters.reprieved += given_back;
        session.plan.evictions.retain(|eviction| !pods.contains(&eviction.pod));
    }
}

/// Splits victims into sets that are given back together: the pods of a subgroup that lacks pods,
/// otherwise each pod alone.
fn by_subgroup(cluster: &Cluster, victims: Vec<(GangId, Victim)>) -> Vec<Vec<Victim>> {
    let mut sets: Vec<Vec<Victim>> = Vec::new();
    let mut groups: BTreeMap<(GangId, u32), Vec<Victim>> = BTreeMap::new();
    for (gang, victim) in victims {
        let (row, place) = (&cluster.gangs[gang], cluster.pods.subgroup[victim.0]);
        let group = row.subgroups().get(place as usize).filter(|group| group.rule.is_some());
        match group.is_some_and(|group| group.counts.ready() < row.size_of(group)) {
            true => groups.entry((gang, place)).or_default().push(victim),
            false => sets.push(vec![victim]),
        }
    }
    sets.extend(groups.into_values());
    sets
}

/// Corrects the number of pods in the causes of bundles that were given back in part.
pub fn recount(session: &mut Session) {
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

/// An evicted pod, and the gang that it was evicted for.
pub type Victim = (PodId, GangId);

/// The nominations of gangs that pods were evicted for.
struct NominationsFit<'s> {
    policy: &'s Policy,
    preemptors: BTreeMap<PodId, GangId>,
    /// What this cycle has bound.
    binds: &'s [Bind],
}

impl StillFits for NominationsFit<'_> {
    /// Whether nodes have too little room for these pods beside what is nominated, by amounts
    /// alone.
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
            && limits_still_hold(txn, self.policy, self.binds, pods)
    }
}

/// Undoes evictions that are not needed, those of the most important pods first: the room may be
/// there without them since other pods were evicted for the next preemptor. Each set is given back
/// all together or not at all. Returns how many pods run on.
pub fn give_back_by_importance(
    txn: &mut Txn,
    rankings: &mut Rankings,
    policy: &Policy,
    binds: &[Bind],
    victims: impl IntoIterator<Item = Vec<Victim>>,
) -> u32 {
    let mut preemptors = BTreeMap::new();
    let mut sets: Vec<(PodId, Vec<PodId>)> = Vec::new();
    for set in victims {
        let pods: Vec<PodId> = set.iter().map(|&(pod, _)| pod).collect();
        let most_important = pods.iter().copied().max_by(|&a, &b| importance_order(txn, a, b));
        sets.extend(most_important.map(|most_important| (most_important, pods)));
        preemptors.extend(set);
    }
    sets.sort_by(|a, b| importance_order(txn, b.0, a.0));
    let mut fit = NominationsFit { policy, preemptors, binds };
    give_back(txn, rankings, &mut fit, sets.into_iter().map(|(_, pods)| pods))
}
