//! Checks every nomination in each cycle and ends those that cannot be kept. A nomination takes
//! room like a bound pod, counts for its queue, and becomes a bind once the pods in its way have
//! left.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::room::Room;
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::model::topology::places::is_near_enough;
use crate::model::txn::{Mark, Txn};
use crate::nomination::held::{Held, nominated_gangs, nominations_of};
use crate::nomination::release::note_released;
use crate::order::gates::named;
use crate::order::session::Session;
use crate::placement::fit::fits;
use crate::placement::rankings::Rankings;
use crate::policy::answers::Policy;
use crate::settings::actions::Settings;

/// Releases nominations that cannot be kept: they are too old, the gang may not run any more, its
/// queue may not take it, or the node is unfit or full. All are released and made again one by one
/// in the order in which they were made: where pods have rules about each other, another order
/// could lose a nomination although nothing happened to it. If not all can be made again, they are
/// made gang by gang in the order of the gangs, and pod by pod in the order of a gang's pods: which
/// of them are lost then does not depend on when they were made, which a scheduler that starts now
/// could not know. A gang that loses some keeps the others for now: in this cycle it may find other
/// nodes near them.
pub fn reaffirm(session: &mut Session) {
    let gangs = nominated_gangs(session);
    let old = expired(session, &gangs);
    let mut txn = Txn::begin(session.cluster);
    let mut held: Vec<Held> = Vec::new();
    let made_at = |cluster: &Cluster, pod: PodId| {
        cluster
            .nomination_ledger
            .get(&pod)
            .map(|nomination| (nomination.since, nomination.sequence))
    };
    for &gang in &gangs {
        let mut pods: Vec<PodId> =
            nominations_of(&txn, gang).into_iter().map(|(pod, _)| pod).collect();
        session.policy.order_pods(&txn, &mut pods);
        for pod in pods {
            let PodState::Nominated(node) = txn.pods.state[pod] else { continue };
            txn.release(pod);
            held.push((gang, pod, node));
        }
    }
    held.retain(|(gang, ..)| !old.contains(gang));
    let mark = txn.mark();
    let mut in_order_made = held.clone();
    in_order_made.sort_by_cached_key(|&(_, pod, _)| made_at(&txn, pod));
    if !nominate_again(&mut txn, session.policy, session.rankings, in_order_made).is_empty() {
        txn.rewind(mark);
        nominate_again(&mut txn, session.policy, session.rankings, held);
    }
    // If the network has changed, nominated nodes may be too far apart for a gang whose pods must
    // be near each other.
    for &gang in &gangs {
        if txn.gangs[gang].topology_rules.is_some() && !is_near_enough(&txn, gang) {
            nominations_of(&txn, gang).into_iter().for_each(|(pod, _)| txn.release(pod));
        }
    }
    let lost = txn.commit();
    note_released(session.cluster, &lost);
}

/// Whether the nominations that a gang has just got could be made again, as they are in every
/// cycle.
pub fn would_be_reaffirmed(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    gang: GangId,
) -> bool {
    let mark = txn.mark();
    let mut held: Vec<Held> = Vec::new();
    for step in txn.since(Mark::START) {
        if let PodState::Nominated(node) = txn.pods.state[step.pod]
            && txn.pods.gang[step.pod] == Some(gang)
        {
            txn.release(step.pod);
            held.push((gang, step.pod, node));
        }
    }
    let fits = nominate_again(txn, policy, rankings, held).is_empty();
    txn.rewind(mark);
    fits
}

/// How many orders are tried for nominations that were restored from pods.
const ORDERS: usize = 16;

/// Puts nominations in an order in which all of them fit, except those that fit in no order. The
/// process that made them knew such an order, but the pods do not record it. Nominations that fail
/// come first in the next try. Leaves the transaction as it was.
pub fn order_that_fits(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    held: &[Held],
) -> Vec<Held> {
    let mark = txn.mark();
    let mut order = held.to_vec();
    // A nomination that fails alone fails in any order, unless it needs other pods nearby.
    let mut last: Vec<Held> = Vec::new();
    for _ in 0..ORDERS {
        let failed = nominate_again(txn, policy, rankings, order.clone());
        txn.rewind(mark);
        if failed.is_empty() {
            order.extend(last);
            return order;
        }
        let mut first: Vec<Held> = Vec::new();
        order.retain(|one| !failed.contains(one));
        for one in failed {
            let fits = nominate_again(txn, policy, rankings, vec![one]).is_empty();
            txn.rewind(mark);
            if fits { first.push(one) } else { last.push(one) }
        }
        first.append(&mut order);
        order = first;
    }
    held.to_vec()
}

/// Nominates pods again, one after the other, and returns those that do not fit.
fn nominate_again(
    txn: &mut Txn,
    policy: &Policy,
    rankings: &mut Rankings,
    mut held: Vec<Held>,
) -> Vec<Held> {
    // A pod that must be near others fits once those are nominated, so those that fail get another
    // round.
    loop {
        let before = held.len();
        held.retain(|&(gang, pod, node)| {
            let shape = txn.pods.shape[pod];
            let fits = named(txn, policy, gang).is_ok()
                && policy.gang_can_start(txn, gang).is_ok()
                && fits(txn, policy, rankings, (gang, shape, node), Room::FutureIdle);
            if fits {
                txn.nominate(pod, node);
            }
            !fits
        });
        if held.is_empty() || held.len() == before {
            return held;
        }
    }
}

/// The gangs that hold a nomination which is too old. If it is made again, its time starts again.
fn expired(session: &mut Session, gangs: &[GangId]) -> Vec<GangId> {
    let limit = session.settings.nomination_limit_ms;
    if limit == 0 {
        return Vec::new();
    }
    let cluster = &mut *session.cluster;
    let mut old = Vec::new();
    for &gang in gangs {
        let pods: Vec<PodId> =
            nominations_of(cluster, gang).into_iter().map(|(pod, _)| pod).collect();
        let since = pods
            .iter()
            .filter_map(|pod| cluster.nomination_ledger.get(pod))
            .map(|nomination| nomination.since);
        if since.min().is_some_and(|since| since.plus_ms(limit) <= session.now) {
            for pod in &pods {
                cluster
                    .nomination_ledger
                    .entry(*pod)
                    .and_modify(|nomination| nomination.since = session.now);
            }
            session.plan.nomination_counters.expired += pods.len() as u32;
            old.push(gang);
        }
    }
    old
}

/// When the next nomination is too old.
pub fn expiry(cluster: &Cluster, settings: &Settings) -> Option<Time> {
    let limit = Some(settings.nomination_limit_ms).filter(|&limit| limit > 0)?;
    cluster.nomination_ledger.values().map(|nomination| nomination.since.plus_ms(limit)).min()
}
