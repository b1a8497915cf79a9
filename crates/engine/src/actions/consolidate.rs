//! Makes room by moving pods: for a gang for which there is enough free room in total, but in
//! pieces. A pod is evicted only if the same plan places it on another node.

use crate::base::purpose::Purpose;
use crate::eviction::arguments::{EVICTION_METHOD, MAX_DOMAINS, MAX_STEPS, MAX_STEPS_PER_GANG};
use crate::eviction::turns;
use crate::order::session::{Action, MakesRoom};
use crate::settings::argument::Argument;

pub static ACTION: Action = Action {
    name: "consolidate",
    summary: "move pods to other nodes, so that fragmented room becomes usable for a gang",
    arguments: &[
        Argument {
            name: "maxMoves",
            default: "64",
            meaning: "how many pods are moved for one gang at most (0: none)",
        },
        Argument {
            name: "reservationLimit",
            default: "5m",
            meaning: "how long room is reserved for the pod that replaces one that was moved",
        },
        EVICTION_METHOD,
        MAX_DOMAINS,
        MAX_STEPS_PER_GANG,
        MAX_STEPS,
    ],
    configure: |args, settings| {
        settings.consolidate = args.eviction_settings_by_moves();
        let limit = args.duration_ms("reservationLimit", Some(settings.reservation_limit_ms));
        settings.reservation_limit_ms = limit.unwrap_or(settings.reservation_limit_ms);
    },
    makes_room: Some(MakesRoom {
        purpose: Purpose::Consolidate,
        settings: |settings| &settings.consolidate,
        mode: None,
    }),
    run: |session| turns::run(session, &ACTION),
};
