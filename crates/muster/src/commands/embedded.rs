//! The embedded cluster for commands: what was read, after some scheduling cycles.

use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_engine::Engine;
use muster_sim::{Options, Simulation, Until};

use crate::failure::Failure;
use crate::input::{Loaded, wall_clock};

pub fn scheduler_names() -> Vec<String> {
    SCHEDULER_NAMES.iter().map(ToString::to_string).collect()
}

/// Runs this many cycles, the first of them now; with none everything stays as it is.
pub fn after_cycles(loaded: Loaded, now: Option<Time>, cycles: u64) -> Result<Simulation, Failure> {
    let options = Options {
        until: Until::Cycles(cycles),
        recreate: true,
        events: false,
        arrivals: false,
        check: false,
    };
    let (world, config) = loaded.world(now.unwrap_or_else(wall_clock));
    let mut simulation = Simulation::new(world, Engine::new(config, scheduler_names()), options);
    if cycles > 0 {
        simulation.run(|_| {}).map_err(Failure::work)?;
    }
    Ok(simulation)
}
