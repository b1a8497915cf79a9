//! `muster explain`: why a pod, gang or queue is in its state, after some cycles on the embedded
//! cluster.

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_facts::{Look, NODES_SHOWN, explain, find};

use super::embedded::after_cycles;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::{render, terminal};

#[derive(Args)]
#[command(after_help = "Examples:
  muster explain ring -f examples/first-gang
  muster explain gang/train -n research (the cluster of the default kubeconfig)
  muster explain pod/research/train-0 -f cluster.yaml --cycles 10
  kubectl get nodes,pods,podgroups,queues -A -o yaml > cluster.yaml
  muster explain queue/research -f cluster.yaml -o json

Of a live cluster it says what a scheduler that starts now would decide. \
What the running one last decided: kubectl describe podgroup, or its /debug/gangs/NAMESPACE/NAME.")]
pub struct ExplainArgs {
    /// What to explain: name or namespace/name, with pod/, gang/ or queue/ before it if it is
    /// ambiguous
    #[arg(value_name = "POD|GANG|QUEUE")]
    name: String,
    /// The namespace of the pod or gang
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    #[command(flatten)]
    input: InputArgs,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    /// How many cycles to run first, one second apart
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cycles: u64,
    /// Show every node or domain on which evictions could make room, not only the most promising
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
    loaded.say_remarks();
    let mut simulation = after_cycles(loaded, args.now, args.cycles)?;
    let name = match &args.namespace {
        Some(namespace) => muster_facts::within(namespace, &args.name),
        None => args.name.clone(),
    };
    let target = find(simulation.engine.cluster(), &name).map_err(Failure::input)?;
    let nodes = if args.all { usize::MAX } else { NODES_SHOWN };
    let world = &simulation.world;
    let look = Look { now: world.now, nodes, find_pod: &|key| world.pods.get(key) };
    let explanation = explain(&mut simulation.engine, target, &look);
    match args.output {
        Format::Json => Ok(terminal::print_json(&explanation)?),
        Format::Text => render::explanation::print(&explanation),
    }
}
