//! `reclaim` in its mode `gang`, under the name that Volcano gives it.

use crate::actions::{Action, Session};
use crate::claims::{
    ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, EVICTION_METHOD, Errand, MAX_DOMAINS, ORDER, ROI_THRESHOLD,
    serve_all,
};
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "gangreclaim",
    summary: "evict from queues that have more than they deserve by whole gangs: reclaim in mode gang",
    arguments: &[MAX_DOMAINS, ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, ROI_THRESHOLD, ORDER, EVICTION_METHOD],
    configure: |args, settings| settings.gangreclaim = args.taking_by_gang(),
    run,
};

fn run(session: &mut Session) {
    let taking = &session.settings.gangreclaim;
    let errand = Errand { action: ACTION.name, purpose: Purpose::Reclaim, taking };
    serve_all(session, errand);
}
