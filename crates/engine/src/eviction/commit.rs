//! Puts a successful search into the plan and into the model.

use std::collections::BTreeMap;

use muster_api::Time;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::decision::cause::Cause;
use crate::decision::choice::NextChoice;
use crate::decision::decisions::Eviction;
use crate::decision::reason::Reason;
use crate::eviction::as_if_running::count_as_running;
use crate::eviction::causes::{Causes, cause};
use crate::eviction::request::EvictionRequest;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::model::txn::{Move, Txn};
use crate::order::session::Session;

pub fn commit(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    moves: &[Move],
    (causes, nexts): (&Causes, &BTreeMap<PodId, NextChoice>),
) {
    let EvictionRequest { action, purpose, settings } = request;
    session.record(moves);
    session.cluster.freed += 1;
    if moves.iter().any(|step| matches!(step.to, PodState::Releasing(_))) {
        session.cluster.served_now.insert(gang);
        // A gang that lost a nomination and gets the same node again has a new one.
        for step in moves.iter().filter(|step| matches!(step.to, PodState::Nominated(_))) {
            let nomination = session.cluster.nomination_ledger.get_mut(&step.pod);
            nomination.into_iter().for_each(|nomination| nomination.published = false);
        }
    }
    for step in moves {
        let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to) else {
            continue;
        };
        let known = causes.get(&step.pod).copied();
        let cause = known.unwrap_or_else(|| {
            cause(session, gang, purpose, (step.pod, nexts.get(&step.pod).copied()))
        });
        let method = settings.method;
        let eviction =
            Eviction { pod: step.pod, node, action, preemptor: Some(gang), cause, method };
        session.plan.evictions.push(eviction);
    }
    let leaving = |step: &Move| step.to.node().filter(|&node| step.to == PodState::Releasing(node));
    let mut vacated: Vec<NodeId> = moves.iter().filter_map(leaving).collect();
    vacated.sort_unstable();
    vacated.dedup();
    for step in moves {
        if let PodState::Nominated(node) = step.to
            && vacated.binary_search(&node).is_ok()
        {
            let nomination = Nomination {
                node,
                since: session.now,
                sequence: 0,
                needs_evictions: true,
                published: false,
            };
            session.cluster.nomination_ledger.insert(step.pod, nomination);
        }
    }
    let places = session.cluster.gangs[gang].counts.nominated;
    session.cluster.gangs.explain(gang, vec![Reason::Nominated { places }]);
    count_as_running(session, moves.iter().map(|step| step.pod));
}

/// Turns moves into evictions with reservations: the pod that moves is evicted like any other, and
/// as its successor does not exist yet, the room for it is reserved.
pub fn reserve_for_moved(txn: &mut Txn, causes: &mut Causes, until: Time) {
    for (pod, from, to) in txn.moved() {
        txn.evict_from(pod, from);
        if let Some(gang) = txn.pods.gang[pod] {
            txn.reserve(gang, pod, to, until);
        }
        causes.insert(pod, Cause::Moved { to });
    }
}
