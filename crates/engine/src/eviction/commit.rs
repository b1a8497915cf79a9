//! Carries out what was decided.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, NodeId, PodId};
use crate::decision::cause::Cause;
use crate::decision::plan::Eviction;
use crate::decision::reason::Reason;
use crate::eviction::causes::{Causes, cause};
use crate::eviction::request::Errand;
use crate::model::nominations::Promise;
use crate::model::pods::PodState;
use crate::model::txn::Move;
use crate::order::session::Session;

pub fn carry_out(
    session: &mut Session,
    gang: GangId,
    errand: Errand,
    moves: &[Move],
    causes: &Causes,
) {
    let Errand { action, purpose, taking } = errand;
    let (moves, moved) = keep_places(session, moves);
    let moves = &moves;
    session.plan.record(moves);
    session.cluster.freed += 1;
    for step in moves {
        let (PodState::Running(node), PodState::Releasing(_)) = (step.from, step.to) else {
            continue;
        };
        let kept = moved.get(&step.pod).map(|&to| Cause::Moved { to });
        let known = kept.or_else(|| causes.get(&step.pod).copied());
        let cause = known.unwrap_or_else(|| cause(session, gang, purpose, step.pod));
        let method = taking.method;
        let eviction =
            Eviction { pod: step.pod, node, action, claimant: Some(gang), cause, method };
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
            let promise = Promise { node, since: session.now, turn: 0, evicted: true, told: false };
            session.cluster.promised.insert(step.pod, promise);
        }
    }
    let places = session.cluster.gangs[gang].counts.nominated;
    session.cluster.gangs.explain(gang, vec![Reason::Promised { places }]);
    // Who lost a promise waits again.
    for step in moves.iter().filter(|step| step.to == PodState::Pending) {
        if let Some(other) = session.cluster.pods.gang[step.pod] {
            session.cluster.gangs[other].hopeless = None;
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
