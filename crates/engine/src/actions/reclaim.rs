//! Takes back for a queue what it deserves, from queues that have more than they deserve.

use crate::actions::{Action, Session};
use crate::claims::{Fruitless, serve, starves};
use crate::config::Mode;
use crate::line::Line;
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
        Argument { name: "gangAwareEnable", default: "false", meaning: "the same as mode: gang" },
        Argument { name: "reclaim.gangAwareEnable", default: "false", meaning: "the same" },
        Argument { name: "predicateErrorCacheEnable", default: "true", meaning: "accepted, always on" },
    ],
    configure: |args, settings| settings.reclaim = args.mode(),
    run,
};

fn run(session: &mut Session) {
    if session.settings.reclaim != Mode::Task {
        return;
    }
    let waiting = session.cluster.gangs.waiting().to_vec();
    let starving = waiting.into_iter().filter(|&gang| starves(session, gang)).collect::<Vec<_>>();
    let mut line = Line::new(session.cluster, session.policy, starving);
    let mut fruitless = Fruitless::default();
    while let Some((_, gang)) = line.next(session.cluster, session.policy) {
        let served = serve(session, gang, Purpose::Reclaim, ACTION.name, &mut fruitless);
        if served && starves(session, gang) {
            line.put_back(session.cluster, session.policy, gang);
        }
    }
}
