//! The wall clock, as the engine counts time.

use std::time::{SystemTime, UNIX_EPOCH};

use muster_api::Time;

pub fn wall_clock() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
