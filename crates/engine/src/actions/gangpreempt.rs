//! `preempt` in its mode `gang`, under the name that Volcano gives it.

use crate::base::purpose::Purpose;
use crate::eviction::arguments::BY_GANG;
use crate::eviction::turns;
use crate::order::session::{Action, MakesRoom};

pub static ACTION: Action = Action {
    name: "gangpreempt",
    summary: "evict whole gangs of lower priority in the same queue: preempt in mode gang",
    arguments: BY_GANG,
    configure: |args, settings| settings.gangpreempt = args.eviction_settings_by_gang(),
    makes_room: Some(MakesRoom {
        purpose: Purpose::Preempt,
        settings: |settings| &settings.gangpreempt,
        mode: None,
    }),
    run: |session| turns::run(session, &ACTION),
};
