//! Takes back for a queue what it deserves, from queues that have more than they deserve.

use crate::actions::{Action, Session};
use crate::claims::{
    ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, EVICTION_METHOD, Errand, MAX_DOMAINS, MODE, ORDER, ROI_THRESHOLD,
    serve_all,
};
use crate::plugins::Argument;
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "reclaim",
    summary: "evict from queues that have more than they deserve, for gangs of queues that have less",
    arguments: &[
        MODE,
        EVICTION_METHOD,
        MAX_DOMAINS,
        ALLOW_WHOLE_BUNDLE,
        EVICT_BROKEN_GANG,
        ROI_THRESHOLD,
        ORDER,
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
