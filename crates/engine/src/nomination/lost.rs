//! Says of gangs that lost nominations in this cycle that they did, and why.

use std::collections::BTreeMap;

use crate::base::ids::{GangId, PodId};
use crate::base::room::Room;
use crate::decision::reason::{Loss, Reason};
use crate::model::pods::PodState;
use crate::order::session::Session;
use crate::placement::fit::shortcoming;

/// Adds to the reasons of each gang that lost nominations in this cycle, and of no other, what
/// became of them. What was said when they still stood is not true any more.
pub fn explain_lost_nominations(session: &mut Session) {
    let lost = lost_nominations(session);
    let gangs = &session.cluster.gangs;
    let told_before = |gang: &GangId| gangs[*gang].reasons.first().is_some_and(is_loss);
    let mut changed: Vec<GangId> = gangs.waiting().iter().copied().filter(told_before).collect();
    changed.extend(lost.keys());
    changed.sort_unstable();
    changed.dedup();
    for gang in changed {
        let (row, pods) = (&session.cluster.gangs[gang], lost.get(&gang));
        let mut reasons = row.reasons.clone();
        reasons.retain(|reason| !is_loss(reason));
        if let Some(pods) = pods {
            reasons.retain(|reason| !matches!(reason, Reason::Nominated { .. }));
            let places = row.counts.nominated;
            reasons.extend((places > 0).then_some(Reason::Nominated { places }));
            let loss = Reason::NominationsLost {
                pods: pods.len() as u32,
                loss: loss(session, gang, pods),
            };
            // A write that failed is the cause, and said already.
            let failed = reasons.iter().any(|reason| matches!(reason, Reason::Backoff { .. }));
            reasons.splice(..0, (!failed).then_some(loss));
        }
        session.cluster.gangs.explain(gang, reasons);
    }
}

fn is_loss(reason: &Reason) -> bool {
    matches!(reason, Reason::NominationsLost { .. })
}

/// The pods of each gang that the cluster was told to be nominated, and that wait without a
/// nomination now.
fn lost_nominations(session: &Session) -> BTreeMap<GangId, Vec<PodId>> {
    let cluster = &*session.cluster;
    let told = cluster.nomination_ledger.iter().filter(|(_, nomination)| nomination.published);
    let told = told.map(|(&pod, _)| pod).chain(session.plan.withdrawn.iter().copied());
    let mut lost: BTreeMap<GangId, Vec<PodId>> = BTreeMap::new();
    for pod in told {
        let waits = matches!(cluster.pods.state[pod], PodState::Pending | PodState::Gated);
        if let Some(gang) = cluster.pods.gang[pod].filter(|_| waits) {
            lost.entry(gang).or_default().push(pod);
        }
    }
    for pods in lost.values_mut() {
        pods.sort_by(|&a, &b| cluster.pods.name(a).cmp(cluster.pods.name(b)));
        pods.dedup();
    }
    lost
}

/// Why a gang lost the nominations of these pods.
fn loss(session: &Session, gang: GangId, pods: &[PodId]) -> Loss {
    let cluster = &*session.cluster;
    if let Some(&stronger) = session.released_for.get(&gang) {
        let stronger = &cluster.gangs[stronger];
        return Loss::To { gang: stronger.key.clone(), priority: stronger.priority };
    }
    let unfit = |pod: &PodId| {
        let node = cluster.nomination_ledger.get(pod)?.node;
        let shape = cluster.pods.shape[*pod];
        let why = shortcoming(cluster, session.policy, shape, node, Room::FutureIdle)?;
        Some(Loss::Node { node: cluster.nodes.name[node].clone(), why })
    };
    pods.iter().find_map(unfit).unwrap_or(Loss::Unkept)
}
