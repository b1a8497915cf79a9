//! `preempt` in its mode `gang`, under the name that Volcano gives it.

use crate::actions::{Action, Session};
use crate::claims::{
    ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, EVICTION_METHOD, Errand, MAX_DOMAINS, ORDER, ROI_THRESHOLD,
    serve_all,
};
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "gangpreempt",
    summary: "evict what matters less in the same queue by whole gangs: preempt in mode gang",
    arguments: &[MAX_DOMAINS, ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, ROI_THRESHOLD, ORDER, EVICTION_METHOD],
    configure: |args, settings| settings.gangpreempt = args.taking_by_gang(),
    run,
};

fn run(session: &mut Session) {
    let taking = &session.settings.gangpreempt;
    let errand = Errand { action: ACTION.name, purpose: Purpose::Preempt, taking };
    serve_all(session, errand);
}
