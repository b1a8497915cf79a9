//! `preempt` in its mode `gang`, under the name that Volcano gives it.

use crate::actions::{Action, Session};
use crate::claims::{Errand, serve_all};
use crate::plugins::Argument;
use crate::policy::Purpose;

pub static ACTION: Action = Action {
    name: "gangpreempt",
    summary: "evict what matters less in the same queue by whole gangs: preempt in mode gang",
    arguments: &[
        Argument { name: "maxDomains", default: "8", meaning: "how many domains are tried for a gang" },
        Argument { name: "allowWholeBundle", default: "true", meaning: "gangs may be broken" },
        Argument {
            name: "evictBrokenGang",
            default: "false",
            meaning: "what is left elsewhere of a gang that is broken leaves too",
        },
        Argument {
            name: "roiThreshold",
            default: "0.05",
            meaning: "returns that differ by no more than this are equal",
        },
        Argument {
            name: "order",
            default: "safe-first",
            meaning: "preempt: safe-first takes what breaks nobody before anything else, priority-first goes by the \
                      gang's priority first",
        },
        Argument { name: "evictionMethod", default: "eviction", meaning: "as for preempt" },
    ],
    configure: |args, settings| settings.gangpreempt = args.taking_by_gang(),
    run,
};

fn run(session: &mut Session) {
    let taking = &session.settings.gangpreempt;
    let errand = Errand { action: ACTION.name, purpose: Purpose::Preempt, taking };
    serve_all(session, errand);
}
