//! `reclaim` in its mode `gang`, under the name that Volcano gives it.

use crate::base::purpose::Purpose;
use crate::eviction::arguments::BY_GANG;
use crate::eviction::turns;
use crate::order::session::{Action, MakesRoom};

pub static ACTION: Action = Action {
    name: "gangreclaim",
    summary: "evict whole gangs of queues that have more than they deserve: reclaim in mode gang",
    arguments: BY_GANG,
    configure: |args, settings| settings.gangreclaim = args.eviction_settings_by_gang(),
    makes_room: Some(MakesRoom {
        purpose: Purpose::Reclaim,
        settings: |settings| &settings.gangreclaim,
        mode: None,
    }),
    run: |session| turns::run(session, &ACTION),
};
