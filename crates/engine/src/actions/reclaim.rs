//! Takes back for a queue what it deserves, from queues that have more than they deserve.

use crate::actions::{Action, Session};
use crate::claims::serve_all;
use crate::config::Mode;
use crate::plugins::Argument;
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "reclaim",
    summary: "evict from queues that have more than they deserve, for gangs of queues that have less",
    arguments: &[
        Argument {
            name: "mode",
            default: "task",
            meaning: "task: pod by pod, exactly as many as needed on the cheapest node (gang and scenario are not built yet)",
        },
        Argument {
            name: "evictionMethod",
            default: "eviction",
            meaning: "eviction: through the Eviction API, no PodDisruptionBudget is broken; delete: pods are deleted, and budgets \
                      are broken where nobody else could make room",
        },
        Argument { name: "gangAwareEnable", default: "false", meaning: "the same as mode: gang" },
        Argument { name: "reclaim.gangAwareEnable", default: "false", meaning: "the same" },
        Argument { name: "predicateErrorCacheEnable", default: "true", meaning: "accepted, always on" },
    ],
    configure: |args, settings| {
        settings.reclaim = args.mode();
        settings.reclaim_method = args.eviction_method();
    },
    run,
};

fn run(session: &mut Session) {
    if session.settings.reclaim != Mode::Task {
        return;
    }
    serve_all(session, Purpose::Reclaim, ACTION.name);
}
