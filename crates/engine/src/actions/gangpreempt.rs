//! `preempt` in its mode `gang`, under the name that Volcano gives it.

use crate::eviction::arguments::BY_GANG;
use crate::eviction::turns;
use crate::order::session::Action;

pub static ACTION: Action = Action {
    name: "gangpreempt",
    summary: "evict what matters less in the same queue by whole gangs: preempt in mode gang",
    arguments: BY_GANG,
    configure: |args, settings| settings.gangpreempt = args.eviction_settings_by_gang(),
    run: |session| turns::run(session, ACTION.name),
};
