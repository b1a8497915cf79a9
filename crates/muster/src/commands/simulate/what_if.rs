//! `muster simulate --what-if`: the same run with and without some objects, and the differences.

use muster_engine::Engine;
use muster_engine::config::Config;
use muster_sim::difference::compare;
use muster_sim::{Simulation, World};

use super::{Format, SimulateArgs, print_yaml};
use crate::commands::embedded::scheduler_names;
use crate::failure::Failure;
use crate::input::{parse_again, wall_clock};
use crate::render::{self, progress::Bar};
use crate::terminal::print_json;

/// Enough seconds for evicted pods to terminate, and for pods that are recreated after them.
const CYCLES: u64 = 10;

pub fn run(args: &SimulateArgs) -> Result<(), Failure> {
    let mut loaded = args.input.load_with(&args.what_if)?;
    loaded.say_remarks();
    let extra = std::mem::take(&mut loaded.extra);
    let text = loaded.text.clone();
    let (mut present, config) = loaded.world(args.now.unwrap_or_else(wall_clock));
    present.grace = args.grace;
    let mut future = present.clone();
    let mut replaced = Vec::new();
    for object in extra.objects {
        let title = format!("{} {}", object.kind(), object.key());
        if future.replace(object) {
            replaced.push(title);
        }
    }
    replaced.sort();
    let bar = Bar::new(matches!(args.output, Format::Table | Format::Wide));
    let without = simulated(args, present, config, &bar)?;
    let with = simulated(args, future, parse_again(&text), &bar)?;
    bar.done();
    let mut difference = compare(&without, &with);
    difference.objects = extra.counts;
    difference.replaced = replaced;
    match args.output {
        Format::Json => Ok(print_json(&difference)?),
        Format::Yaml => print_yaml(&difference),
        Format::Table | Format::Wide => render::difference::print(&difference, &with),
    }
}

fn simulated(
    args: &SimulateArgs,
    world: World,
    config: Config,
    bar: &Bar,
) -> Result<Simulation, Failure> {
    let engine = Engine::new(config, scheduler_names());
    let mut simulation = Simulation::new(world, engine, args.options(CYCLES, false));
    let result = simulation.run(|progress| bar.show(&progress));
    result.map(|()| simulation).map_err(|problem| {
        bar.done();
        Failure::work(problem)
    })
}
