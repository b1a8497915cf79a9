//! What evictions cost the victims.

use std::collections::BTreeSet;

use crate::base::ids::{GangId, PodId, ResourceId};
use crate::decision::cause::Cause;
use crate::model::pods::PodState;
use crate::order::session::Session;

/// Counts the gangs that the plan breaks for other gangs, and the accelerator time that is lost
/// with the victims and with all pods of these gangs.
pub fn count_losses(session: &mut Session) {
    let (cluster, plan) = (&*session.cluster, &mut *session.plan);
    let mut victims: Vec<PodId> = Vec::new();
    let mut broken: BTreeSet<GangId> = BTreeSet::new();
    for eviction in plan.evictions.iter().filter(|eviction| eviction.preemptor.is_some()) {
        victims.push(eviction.pod);
        let was_broken = matches!(eviction.cause, Cause::Bundle { broken: true, .. });
        broken.extend(
            cluster.pods.gang[eviction.pod]
                .filter(|&gang| !was_broken && !cluster.gangs[gang].ready(true)),
        );
    }
    for &gang in &broken {
        let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
        victims.extend(cluster.gangs[gang].pods.iter().copied().filter(runs));
    }
    victims.sort_unstable();
    victims.dedup();
    plan.search_counters.broken += broken.len() as u32;
    let dimensions = (0..cluster.dimensions.len()).map(ResourceId::from);
    let accelerators: Vec<ResourceId> =
        dimensions.filter(|&resource| cluster.dimensions.name(resource).contains('/')).collect();
    for pod in victims {
        let Some(started) = cluster.pods.fact[pod].started else { continue };
        let seconds = (session.now.0 - started.0).max(0) / 1000;
        for &resource in &accelerators {
            let amount = cluster.request_of(cluster.pods.shape[pod], resource);
            if amount > 0 {
                let sum = plan.search_counters.wasted_seconds.entry(resource).or_default();
                *sum = sum.saturating_add(amount.saturating_mul(seconds));
            }
        }
    }
}
