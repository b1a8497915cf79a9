//! Takes back for a queue what it deserves, from queues that have more than they deserve.

use crate::actions::{Action, Session};
use crate::claims::{Errand, serve_all};
use crate::plugins::Argument;
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "reclaim",
    summary: "evict from queues that have more than they deserve, for gangs of queues that have less",
    arguments: &[
        Argument {
            name: "mode",
            default: "task",
            meaning: "task: pod by pod, exactly as many as needed on the cheapest node; gang: by what gangs can lose, then whole gangs \
                      (scenario is not built yet)",
        },
        Argument {
            name: "evictionMethod",
            default: "eviction",
            meaning: "eviction: through the Eviction API, no PodDisruptionBudget is broken; delete: pods are deleted, and budgets \
                      are broken where nobody else could make room",
        },
        Argument {
            name: "maxDomains",
            default: "8",
            meaning: "mode gang: how many domains are tried for a gang",
        },
        Argument { name: "allowWholeBundle", default: "true", meaning: "mode gang: gangs may be broken" },
        Argument {
            name: "evictBrokenGang",
            default: "false",
            meaning: "mode gang: what is left elsewhere of a gang that is broken leaves too",
        },
        Argument {
            name: "roiThreshold",
            default: "0.05",
            meaning: "mode gang: returns that differ by no more than this are equal",
        },
        Argument {
            name: "order",
            default: "safe-first",
            meaning: "mode gang, preempt: safe-first takes what breaks nobody before anything else, priority-first goes by the \
                      gang's priority first",
        },
        Argument { name: "gangAwareEnable", default: "false", meaning: "the same as mode: gang" },
        Argument { name: "reclaim.gangAwareEnable", default: "false", meaning: "the same" },
        Argument { name: "predicateErrorCacheEnable", default: "true", meaning: "accepted, always on" },
    ],
    configure: |args, settings| settings.reclaim = args.taking(),
    run,
};

fn run(session: &mut Session) {
    let taking = &session.settings.reclaim;
    let errand = Errand { action: ACTION.name, purpose: Purpose::Reclaim, taking };
    serve_all(session, errand);
}
