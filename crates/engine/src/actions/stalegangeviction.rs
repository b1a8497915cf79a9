//! Takes back what a broken gang holds: fewer pods than it needs have had places for too long, and nobody can finish it.

use muster_api::Time;

use crate::actions::{Action, Session};
use crate::config::Settings;
use crate::ids::{GangId, PodId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::plan::{Cause, Eviction, Method};
use crate::plugins::Argument;
use crate::policy::Policy;
use crate::txn::Txn;

const GRACE: &str = "gracePeriod";

pub static ACTION: Action = Action {
    name: "stalegangeviction",
    summary: "evict what runs of a gang that has had less than its minimum for too long",
    arguments: &[Argument {
        name: GRACE,
        default: "60s",
        meaning: "how long a gang may hold places for less than its minimum, as far as this process has seen",
    }],
    configure: |args, settings| {
        settings.stale_after_ms =
            args.duration_ms(GRACE, Some(settings.stale_after_ms)).unwrap_or(settings.stale_after_ms);
    },
    run,
};

fn run(session: &mut Session) {
    let is_due = |&(gang, since): &(GangId, Time)| {
        since.plus_ms(session.settings.stale_after_ms) <= session.now
            && is_stale(session.cluster, session.policy, gang)
    };
    let mut gangs: Vec<(GangId, Time)> = session.cluster.gangs.broken().filter(is_due).collect();
    gangs.sort_by(|(a, _), (b, _)| session.cluster.gangs[*a].key.cmp(&session.cluster.gangs[*b].key));
    for (gang, since) in gangs {
        let row = &session.cluster.gangs[gang];
        let (lacks, minimum) = (row.missing(session.policy.gangs_are_whole()).total, row.minimum);
        let cause = Cause::Stale { lacks, minimum, for_ms: session.now.0 - since.0 };
        let spared = |pod: &PodId| session.cluster.spared.get(pod).is_some_and(|until| *until > session.now);
        let leave: Vec<PodId> = running(session.cluster, gang).filter(|pod| !spared(pod)).collect();
        let mut txn = Txn::begin(session.cluster);
        leave.iter().for_each(|&pod| txn.evict(pod));
        for step in txn.commit() {
            let node = step.from.node().expect("it runs");
            let (pod, action, method) = (step.pod, ACTION.name, Method::Evict);
            let eviction = Eviction { pod, node, action, claimant: None, cause, method };
            session.plan.evictions.push(eviction);
        }
    }
}

/// Still broken, with nothing to show for it and nothing that must stay. Binds under way may still complete it.
fn is_stale(cluster: &Cluster, policy: &Policy, id: GangId) -> bool {
    let gang = &cluster.gangs[id];
    gang.is_broken(policy.gangs_are_whole())
        && gang.counts.allocated == 0
        && gang.counts.succeeded == 0
        && running(cluster, id).all(|pod| policy.protects(cluster, pod).is_none())
}

fn running(cluster: &Cluster, gang: GangId) -> impl Iterator<Item = PodId> + '_ {
    let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
    cluster.gangs[gang].pods.iter().copied().filter(runs)
}

/// When this action will have something to do, if nothing happens until then.
pub fn due<'c>(
    cluster: &'c Cluster,
    policy: &'c Policy,
    settings: &'c Settings,
) -> impl Iterator<Item = Time> + 'c {
    let stale = cluster.gangs.broken().filter(|(gang, _)| is_stale(cluster, policy, *gang));
    stale.flat_map(|(gang, since)| {
        let due = since.plus_ms(settings.stale_after_ms);
        let spared = |pod| cluster.spared.get(&pod).copied();
        running(cluster, gang).map(move |pod| spared(pod).map_or(due, |until| until.max(due)))
    })
}
