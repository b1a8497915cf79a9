//! Carries out what was decided.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::decision::cause::Cause;
use crate::decision::decisions::Eviction;
use crate::decision::reason::Reason;
use crate::eviction::causes::{Causes, cause};
use crate::eviction::request::EvictionRequest;
use crate::model::nominations::Nomination;
use crate::model::pods::PodState;
use crate::model::txn::Move;
use crate::order::session::Session;

pub fn commit(
    session: &mut Session,
    gang: GangId,
    request: EvictionRequest,
    moves: &[Move],
    causes: &Causes,
) {
    let EvictionRequest { action, purpose, settings } = request;
    let (moves, moved) = keep_places(session, moves);
    let moves = &moves;
    session.record(moves);
    session.cluster.freed += 1;
    for step in moves {
        let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to) else {
            continue;
        };
        let kept = moved.get(&step.pod).map(|&to| Cause::Moved { to });
        let known = kept.or_else(|| causes.get(&step.pod).copied());
        let cause = known.unwrap_or_else(|| cause(session, gang, purpose, step.pod));
        let method = settings.method;
        let eviction =
            Eviction { pod: step.pod, node, action, preemptor: Some(gang), cause, method };
        session.plan.evictions.push(eviction);
    }
    let leaving = |step: &Move| step.to.node().filter(|&node| step.to == PodState::Releasing(node));
    let mut left: Vec<NodeId> = moves.iter().filter_map(leaving).collect();
    left.sort_unstable();
    left.dedup();
    for step in moves {
        if let PodState::Nominated(node) = step.to
            && left.binary_search(&node).is_ok()
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
    // Who lost a promise waits again.
    for step in moves.iter().filter(|step| step.to == PodState::Pending) {
        if let Some(other) = session.cluster.pods.gang[step.pod] {
            session.cluster.gangs[other].did_not_fit_at = None;
        }
    }
}

/// Those who leave and have another place leave like others. Their successors are not there yet, so
/// that the places are kept for them.
fn keep_places(session: &mut Session, moves: &[Move]) -> (Vec<Move>, BTreeMap<PodId, NodeId>) {
    let until = session.now.plus_ms(session.settings.reservation_limit_ms);
    let mut moved = BTreeMap::new();
    let mut kept = moves.to_vec();
    for step in &mut kept {
        let (PodState::Running(from), PodState::Nominated(to)) = (step.from, step.to) else {
            continue;
        };
        step.to = PodState::Releasing(from);
        session.cluster.set(step.pod, step.to);
        if let Some(gang) = session.cluster.pods.gang[step.pod] {
            session.cluster.reserve(gang, step.pod, to, until);
        }
        moved.insert(step.pod, to);
    }
    (kept, moved)
}
