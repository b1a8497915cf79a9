//! `muster explain`: why a pod, gang or queue is as it is, after some cycles on the embedded
//! cluster.

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_engine::Engine;
use muster_facts::{Look, NODES_SHOWN, explain, find};
use muster_sim::{Options, Simulation, Until};

use super::simulate::{print_json, scheduler_names};
use crate::failure::Failure;
use crate::input::{InputArgs, wall_clock};
use crate::render;

#[derive(Args)]
#[command(after_help = "Examples:
  muster explain ring -f examples/first-gang
  muster explain gang/research/train                  (in the cluster of the default kubeconfig)
  muster explain pod/research/train-0 -f cluster.yaml --cycles 10
  kubectl get nodes,pods,podgroups,queues -A -o yaml | muster explain queue/research -f - -o json

Of a live cluster it says what a scheduler that starts now would decide. What the running one last decided:
kubectl describe podgroup, or its /debug/gangs/NAMESPACE/NAME.")]
pub struct ExplainArgs {
    /// What to explain: name or namespace/name, with pod/, gang/ or queue/ before it where that is
    /// not clear
    #[arg(value_name = "POD|GANG|QUEUE")]
    name: String,
    #[command(flatten)]
    input: InputArgs,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    /// How many cycles to run before, one second apart
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cycles: u64,
    /// Show every node or domain in which others could be asked to leave, not only the most
    /// promising
    #[arg(long)]
    all: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn run(args: ExplainArgs) -> Result<(), Failure> {
    let loaded = args.input.load()?;
    for note in &loaded.notes {
        anstream::eprintln!("note: {note}");
    }
    let options = Options {
        until: Until::Cycles(args.cycles),
        recreate: true,
        events: false,
        arrivals: false,
        check: false,
    };
    let (world, config) = loaded.world(args.now.unwrap_or_else(wall_clock));
    let engine = Engine::new(config, scheduler_names());
    let mut simulation = Simulation::new(world, engine, options);
    simulation.run(|_| {}).map_err(Failure::Work)?;
    let target = find(simulation.engine.cluster(), &args.name)
        .map_err(|problem| Failure::Input(vec![problem]))?;
    let nodes = if args.all { usize::MAX } else { NODES_SHOWN };
    let world = &simulation.world;
    let look = Look { now: world.now, nodes, find_pod: &|key| world.pods.get(key) };
    let explanation = explain(&mut simulation.engine, target, &look);
    match args.output {
        Format::Json => print_json(&explanation),
        Format::Text => render::explanation::print(&explanation),
    }
}
