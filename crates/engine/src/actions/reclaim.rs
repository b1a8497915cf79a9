//! Reclaims for a queue what it deserves, from queues that have more than they deserve.

use crate::actions::{GANG_AWARE_ENABLE, PREDICATE_ERROR_CACHE_ENABLE};
use crate::base::purpose::Purpose;
use crate::eviction::arguments::{
    ALLOW_CONSOLIDATING_RECLAIM, ALLOW_WHOLE_BUNDLE, EVICT_BROKEN_GANG, EVICTION_METHOD,
    MAX_DOMAINS, MAX_STEPS, MAX_STEPS_PER_GANG, MODE, ORDER, ROI_THRESHOLD,
};
use crate::eviction::turns;
use crate::order::session::{Action, MakesRoom};
use crate::settings::argument::Argument;

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
        ALLOW_CONSOLIDATING_RECLAIM,
        MAX_STEPS_PER_GANG,
        MAX_STEPS,
        GANG_AWARE_ENABLE,
        Argument { name: "reclaim.gangAwareEnable", default: "false", meaning: "the same" },
        PREDICATE_ERROR_CACHE_ENABLE,
    ],
    configure: |args, settings| settings.reclaim = args.eviction_settings(),
    makes_room: Some(MakesRoom {
        purpose: Purpose::Reclaim,
        settings: |settings| &settings.reclaim,
        mode: Some(|settings| &mut settings.reclaim.mode),
    }),
    run: |session| turns::run(session, &ACTION),
};
