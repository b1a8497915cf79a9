//! Evicts the rest of a gang that has been broken for too long and cannot be completed. Since when
//! is written on its PodGroup (`status.rs`), so that a restart doesn't give it more time.

use muster_api::Time;

use crate::base::ids::{GangId, PodId};
use crate::base::purpose::Method;
use crate::decision::cause::Cause;
use crate::decision::decisions::Eviction;
use crate::model::Cluster;
use crate::model::gangs::broken::{is_stale, time_staleness, torn};
use crate::model::gangs::{Gang, Role};
use crate::model::pods::PodState;
use crate::model::txn::Txn;
use crate::order::session::{Action, Session};
use crate::policy::answers::Policy;
use crate::settings::actions::Settings;
use crate::settings::args::Args;
use crate::settings::argument::Argument;

const GRACE: &str = "defaultStalenessGracePeriod";
const SHORT_NAME: &str = "gracePeriod";

pub static ACTION: Action = Action {
    name: "stalegangeviction",
    summary: "evict the remaining pods of a gang that has been below its minimum for too long",
    arguments: &[
        Argument {
            name: GRACE,
            default: "60s",
            meaning: "how long a gang may run below its minimum; negative: for ever. The \
                      annotation `volcano.sh/staleness-grace-period` of a PodGroup takes \
                      precedence",
        },
        Argument { name: SHORT_NAME, default: "", meaning: "the same under its first name" },
    ],
    configure,
    makes_room: None,
    run,
};

fn configure(args: &mut Args, settings: &mut Settings) {
    // All negative values mean the same.
    let mut read = |key| args.signed_duration_ms(key).map(|span| span.max(-1));
    let (grace, short) = (read(GRACE), read(SHORT_NAME));
    if grace.is_some() && short.is_some() && grace != short {
        let message = format!("{SHORT_NAME} and {GRACE} are the same argument, and they disagree");
        args.problem(SHORT_NAME, message, format!("remove {SHORT_NAME}"));
    }
    settings.stale_after_ms = grace.or(short).unwrap_or(settings.stale_after_ms);
}

/// How long a gang may be stale, in milliseconds; `None` for ever.
pub fn grace(gang: &Gang, settings: &Settings) -> Option<i64> {
    let own = gang.rare.as_ref().and_then(|rare| rare.staleness_grace);
    Some(own.unwrap_or(settings.stale_after_ms)).filter(|grace| *grace >= 0)
}

fn run(session: &mut Session) {
    let (policy, now) = (session.policy, session.now);
    let whole = policy.enforces_minimum();
    for gang in session.cluster.gangs.changed() {
        time_staleness(session.cluster, gang, whole, now);
    }
    let is_due = |&(gang, since): &(GangId, Time)| {
        let grace = grace(&session.cluster.gangs[gang], session.settings);
        grace.is_some_and(|grace| since.plus_ms(grace) <= now)
            && may_leave(session.cluster, policy, gang)
    };
    let mut gangs: Vec<(GangId, Time)> = session.cluster.gangs.broken().filter(is_due).collect();
    gangs.sort_by(|(a, _), (b, _)| {
        session.cluster.gangs[*a].key.cmp(&session.cluster.gangs[*b].key)
    });
    for (gang, since) in gangs {
        let eviction_refused = |pod: &PodId| {
            session.cluster.eviction_refused.get(pod).is_some_and(|until| *until > now)
        };
        let mut leave = leaving(session.cluster, gang, whole);
        let cause = cause(&session.cluster.gangs[gang], whole, &leave, now.0 - since.0);
        leave.pods.retain(|pod| !eviction_refused(pod));
        let mut txn = Txn::begin(session.cluster);
        leave.pods.iter().for_each(|&pod| txn.evict(pod));
        for step in txn.commit() {
            let node = step.from.node().expect("it runs");
            let (pod, action, method) = (step.pod, ACTION.name, Method::Evict);
            let eviction = Eviction { pod, node, action, preemptor: None, cause, method };
            session.plan.evictions.push(eviction);
            // Waiting gangs may be nominated to the node.
            session.cluster.freed += 1;
        }
    }
}

/// It is still stale, and nothing vetoes its eviction.
fn may_leave(cluster: &Cluster, policy: &Policy, id: GangId) -> bool {
    is_stale(&cluster.gangs[id], policy.enforces_minimum(), true)
        && kept(cluster, policy, id).is_none()
}

/// What keeps a stale gang where it is.
pub fn kept(cluster: &Cluster, policy: &Policy, id: GangId) -> Option<&'static str> {
    if cluster.gangs[id].counts.allocated > 0 {
        return Some("binds under way, which may complete it");
    }
    let leaving = leaving(cluster, id, policy.enforces_minimum());
    leaving.pods.into_iter().find_map(|pod| policy.protects(cluster, pod))
}

/// Which pods of a stale gang are evicted.
pub struct Leaving {
    pods: Vec<PodId>,
    /// How many of its placed pods are in broken subgroups.
    torn: u32,
    /// Only these pods are evicted: the gang has its minimum without them.
    in_part: bool,
}

pub fn leaving(cluster: &Cluster, id: GangId, whole: bool) -> Leaving {
    let gang = &cluster.gangs[id];
    let runs = |pod: &PodId| matches!(cluster.pods.state[*pod], PodState::Running(_));
    let mut pods: Vec<PodId> = gang.pods.iter().copied().filter(runs).collect();
    let places: Vec<usize> = torn(gang, whole).collect();
    let is_torn = |pod: &PodId| places.contains(&(cluster.pods.subgroup[*pod] as usize));
    let of_role = |at: u32| {
        let of_role = |pod: &&PodId| cluster.pods.role[**pod] == at && is_torn(pod);
        pods.iter().filter(of_role).count() as u32
    };
    let roles = gang.roles.iter().zip(0..);
    let filled = |(role, at): (&Role, u32)| role.counts.ready() >= role.minimum + of_role(at);
    let torn = pods.iter().filter(|pod| is_torn(pod)).count() as u32;
    let in_part = gang.ready(whole)
        && gang.counts.ready() >= gang.minimum + torn
        && (!gang.enforces_roles() || roles.into_iter().all(filled));
    if in_part {
        pods.retain(is_torn);
    }
    Leaving { pods, torn, in_part }
}

/// The cause of their eviction.
pub fn cause(gang: &Gang, whole: bool, leaving: &Leaving, for_ms: i64) -> Cause {
    let of_torn = || {
        let groups = torn(gang, whole).map(|place| &gang.subgroups()[place]);
        let lacks =
            groups.map(|group| (gang.size_of(group) - group.counts.ready(), gang.size_of(group)));
        lacks.max().unwrap_or_default()
    };
    let useful = gang.counts.ready().saturating_sub(leaving.torn);
    let (lacks, minimum) = match gang.missing(whole).total {
        _ if leaving.in_part => of_torn(),
        0 if gang.ready(whole) => (gang.minimum.saturating_sub(useful).max(1), gang.minimum),
        0 => gang.missing_in_subgroups(),
        missing => (missing, gang.minimum),
    };
    // With enough pods in total, a role lacks some.
    let enough = gang.counts.ready() >= gang.minimum;
    let roles = gang.missing(whole).roles;
    let of_role = roles.iter().zip(&gang.roles).find(|(lacks, _)| enough && **lacks > 0);
    match of_role {
        Some((&lacks, role)) if !leaving.in_part => {
            Cause::Stale { subgroup: false, role: role.name, lacks, minimum: role.minimum, for_ms }
        }
        _ => Cause::Stale { subgroup: leaving.in_part, role: None, lacks, minimum, for_ms },
    }
}

/// When this action will have something to do, if nothing happens until then.
pub fn due<'c>(
    cluster: &'c Cluster,
    policy: &'c Policy,
    settings: &'c Settings,
) -> impl Iterator<Item = Time> + 'c {
    let stale = cluster.gangs.broken().filter(|(gang, _)| may_leave(cluster, policy, *gang));
    let due = stale.filter_map(|(gang, since)| {
        let grace = grace(&cluster.gangs[gang], settings)?;
        Some((gang, since.plus_ms(grace)))
    });
    due.flat_map(|(gang, due)| due_of(cluster, policy, gang, due))
}

/// When the pods of a gang that is due then are evicted; a veto may keep some of them longer.
pub fn due_of(
    cluster: &Cluster,
    policy: &Policy,
    gang: GangId,
    due: Time,
) -> impl Iterator<Item = Time> {
    let eviction_refused = |pod| cluster.eviction_refused.get(&pod).copied();
    let leaving = leaving(cluster, gang, policy.enforces_minimum());
    leaving
        .pods
        .into_iter()
        .map(move |pod| eviction_refused(pod).map_or(due, |until: Time| until.max(due)))
}
