//! Makes room by evicting from gangs of lower priority in the same queue, and within a gang from
//! pods of lower priority.

use crate::actions::{GANG_AWARE_ENABLE, PREDICATE_ERROR_CACHE_ENABLE};
use crate::base::ids::{GangId, PodId};
use crate::base::purpose::{Mode, Purpose};
use crate::eviction::arguments::{
    ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, EVICTION_METHOD, MAX_DOMAINS, MAX_STEPS,
    MAX_STEPS_PER_GANG, MODE, ORDER, ROI_THRESHOLD,
};
use crate::eviction::attempt::serve_within;
use crate::eviction::request::EvictionRequest;
use crate::eviction::turns;
use crate::model::pods::PodState;
use crate::order::gates::gate;
use crate::order::session::{Action, MakesRoom, Session};
use crate::settings::argument::Argument;

pub static ACTION: Action = Action {
    name: "preempt",
    summary: "evict lower-priority pods in the same queue, for gangs that lack room",
    arguments: &[
        MODE,
        Argument {
            name: "enableTopologyAwarePreemption",
            default: "true",
            meaning: "accepted, always on",
        },
        Argument {
            name: "topologyAwarePreemptWorkerNum",
            default: "16",
            meaning: "accepted; one thread decides",
        },
        Argument {
            name: "minCandidateNodesPercentage",
            default: "10",
            meaning: "accepted; the 100 most promising nodes are compared",
        },
        Argument {
            name: "minCandidateNodesAbsolute",
            default: "1",
            meaning: "accepted, without effect",
        },
        Argument {
            name: "maxCandidateNodesAbsolute",
            default: "100",
            meaning: "accepted, without effect",
        },
        EVICTION_METHOD,
        MAX_DOMAINS,
        ALLOW_WHOLE_BUNDLE,
        EVICT_BROKEN_GANG,
        ROI_THRESHOLD,
        ORDER,
        MAX_STEPS_PER_GANG,
        MAX_STEPS,
        GANG_AWARE_ENABLE,
        Argument { name: "preempt.gangAwareEnable", default: "false", meaning: "the same" },
        PREDICATE_ERROR_CACHE_ENABLE,
    ],
    configure: |args, settings| {
        args.accept("topologyAwarePreemptWorkerNum", 1..=i64::MAX);
        args.accept("minCandidateNodesPercentage", 0..=100);
        args.accept("minCandidateNodesAbsolute", 0..=i64::MAX);
        args.accept("maxCandidateNodesAbsolute", 0..=i64::MAX);
        settings.preempt = args.eviction_settings();
    },
    makes_room: Some(MakesRoom {
        purpose: Purpose::Preempt,
        settings: |settings| &settings.preempt,
        mode: Some(|settings| &mut settings.preempt.mode),
    }),
    run,
};

fn run(session: &mut Session) {
    turns::run(session, &ACTION);
    let task = |request: &EvictionRequest| request.settings.mode == Mode::Task;
    let Some(request) = EvictionRequest::of(session.settings, &ACTION).filter(task) else { return };
    let mut gangs: Vec<GangId> = session.cluster.gangs.waiting().to_vec();
    gangs.sort_by(|&a, &b| session.policy.gang_order(session.cluster, a, b));
    for gang in gangs {
        while let Some(pod) = urgent(session, gang) {
            if !serve_within(session, gang, pod, request) {
                break;
            }
        }
    }
}

/// The first waiting pod of a gang that outranks one of its placed pods.
fn urgent(session: &Session, id: GangId) -> Option<PodId> {
    let (cluster, gang) = (&*session.cluster, &session.cluster.gangs[id]);
    if !gang.admitted() || gang.counts.running == 0 || gang.counts.pending == 0 {
        return None;
    }
    gate(cluster, session.policy, id, session.now).ok()?;
    let of = |wanted: fn(PodState) -> bool| {
        gang.pods.iter().copied().filter(move |&pod| wanted(cluster.pods.state[pod]))
    };
    let order = |pod: &PodId| cluster.pods.order[*pod];
    let least = of(|state| matches!(state, PodState::Running(_))).map(|pod| order(&pod)).min()?;
    let mut waiting: Vec<PodId> = of(|state| state == PodState::Pending).collect();
    session.policy.order_pods(cluster, &mut waiting);
    waiting.into_iter().next().filter(|pod| order(pod) > least)
}
