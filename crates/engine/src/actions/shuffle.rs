//! Evicts pods from nodes where they should not run, without a preemptor: plugins say which.

use crate::base::ids::PodId;
use crate::base::purpose::Method;
use crate::decision::cause::Cause;
use crate::decision::decisions::Eviction;
use crate::model::txn::Txn;
use crate::order::session::{Action, Session};
use crate::policy::plugin::Unwanted;

pub static ACTION: Action = Action {
    name: "shuffle",
    summary: "evict pods from nodes where plugins no longer want them (`tdm`: in zones whose \
              window has closed)",
    arguments: &[],
    configure: |_, _| {},
    makes_room: None,
    run,
};

fn run(session: &mut Session) {
    let Unwanted { pods, next } = session.policy.pods_to_shuffle(session.cluster);
    session.plan.wake_at_any(next);
    let mut leaving: Vec<(PodId, Cause)> = Vec::new();
    let mut txn = Txn::begin(session.cluster);
    for (pod, cause) in pods {
        if let Some(until) =
            txn.eviction_refused.get(&pod).copied().filter(|until| *until > session.now)
        {
            session.plan.wake_at(until);
        } else if session
            .policy
            .protects(&txn, pod)
            .or_else(|| session.policy.vetoes_shuffle(&txn, pod))
            .is_none()
        {
            txn.evict(pod);
            leaving.push((pod, cause));
        }
    }
    let moves = txn.commit();
    if moves.is_empty() {
        return;
    }
    for (step, (pod, cause)) in moves.iter().zip(leaving) {
        assert_eq!(step.pod, pod, "each leaves once, in order");
        let node = step.from.node().expect("it runs");
        let (action, method) = (ACTION.name, Method::Evict);
        session.plan.evictions.push(Eviction { pod, node, action, preemptor: None, cause, method });
    }
    session.cluster.shuffled = Some(session.now);
    // Searches for room that failed may succeed now.
    session.cluster.freed += 1;
    session.plan.wake_at_any(session.policy.pods_to_shuffle(session.cluster).next);
}
