//! What a queue could take back from others, told by the rules that decide it.

use super::{Errand, Taker, starves};
use crate::actions::Session;
use crate::config::Mode;
use crate::ids::{GangId, PodId, QueueId};
use crate::model::Cluster;
use crate::model::pods::PodState;
use crate::policy::{Claim, Policy};
use crate::reason::Reason;
use crate::victims::{Verdict, concerns, consider_one};

/// Whether a queue may take back for the first of its gangs that lacks room, and who would give.
#[derive(Clone, Debug)]
pub struct TakingBack {
    /// The name of the action.
    pub action: &'static str,
    pub gang: GangId,
    /// Why it may not.
    pub refused: Option<Reason>,
    /// The other queues of which something runs, those that would give first.
    pub givers: Vec<Giver>,
}

#[derive(Copy, Clone, Debug)]
pub struct Giver {
    pub queue: QueueId,
    /// The rule that keeps what it has.
    pub keeps: Option<&'static str>,
}

pub fn taking_back(session: &Session, queue: QueueId, errand: Errand) -> Option<TakingBack> {
    let (cluster, policy) = (&*session.cluster, session.policy);
    let below = |gang: &GangId| cluster.queues[cluster.gangs[*gang].queue].lineage.contains(&queue);
    let waiting = cluster.gangs.waiting().iter().copied();
    let gang = waiting
        .filter(|gang| below(gang) && starves(session, *gang))
        .min_by(|&a, &b| policy.gang_order(cluster, a, b))?;
    let pending = |pod: &PodId| cluster.pods.state[*pod] == PodState::Pending;
    let first = cluster.gangs[gang].pods.iter().copied().find(pending)?;
    let claim = Taker::new(session, gang, errand, None).claim_for(first);
    let refused = policy.may_reclaim(cluster, &claim).err().flatten();
    let mut givers: Vec<Giver> = Vec::new();
    for (other, row) in cluster.gangs.iter().filter(|(_, row)| row.counts.running > 0) {
        if row.queue == cluster.gangs[gang].queue {
            continue;
        }
        let keeps = keeps(cluster, policy, &claim, other);
        match givers.iter_mut().find(|giver| giver.queue == row.queue) {
            Some(giver) if keeps.is_none() => giver.keeps = None,
            Some(_) => {}
            None => givers.push(Giver { queue: row.queue, keeps }),
        }
    }
    givers.sort_by(|a, b| {
        let order = policy.victim_order(cluster, &claim, a.queue, b.queue);
        let name = |giver: &Giver| &cluster.queues[giver.queue].name;
        a.keeps.is_some().cmp(&b.keeps.is_some()).then(order).then_with(|| name(a).cmp(name(b)))
    });
    Some(TakingBack { action: errand.action, gang, refused, givers })
}

/// The rule that keeps all of a gang, as things are.
fn keeps(cluster: &Cluster, policy: &Policy, claim: &Claim, gang: GangId) -> Option<&'static str> {
    if !concerns(cluster, claim, gang) {
        return Some("being out of reach");
    }
    if claim.mode == Mode::Scenario
        && let Some(rule) = policy.withholds(cluster, claim, gang)
    {
        return Some(rule);
    }
    let mut rule = None;
    for &pod in &cluster.gangs[gang].pods {
        let found = match consider_one(cluster, policy, claim, pod) {
            Verdict::NoConcern => continue,
            Verdict::Kept(shield) => Some(shield.rule),
            Verdict::Free => policy.restrains(cluster, claim, pod).map(|shield| shield.rule),
        };
        rule = Some(found?);
    }
    rule.or(Some("having nothing that runs"))
}
