//! `muster topology show`

use clap::{Args, ValueEnum};
use muster_api::Time;

use crate::commands::embedded::after_cycles;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::render::screen::Screen;
use crate::render::topology;
use crate::terminal::{print, print_json};

#[derive(Args)]
#[command(after_help = "Examples:
  muster topology show                (the cluster of the default kubeconfig)
  muster topology show -f examples/topology --cycles 1
  muster topology show --context production -o svg > network.svg
  muster topology show -f cluster.yaml -o dot | dot -Tpdf > network.pdf

The JSON is described in docs/topology-show.md.")]
pub struct ShowArgs {
    #[command(flatten)]
    input: InputArgs,
    /// How many cycles to run first on an embedded copy, one second apart; 0 shows the present
    /// state
    #[arg(long, value_name = "N", default_value_t = 0)]
    cycles: u64,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    #[arg(short, long, value_enum, default_value_t = Format::Tree)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    /// A tree as wide as the terminal; large clusters are summarised
    Tree,
    /// The same with a line for every node and all names
    Wide,
    Json,
    /// A picture
    Svg,
    /// For Graphviz
    Dot,
}

pub fn run(args: ShowArgs) -> Result<(), Failure> {
    let loaded = args.input.load()?;
    loaded.say_remarks();
    let mut simulation = after_cycles(loaded, args.now, args.cycles)?;
    simulation.engine.settle();
    let cluster = simulation.engine.cluster();
    Ok(match args.output {
        Format::Tree => print(&topology::lines(cluster, false, Screen::of_output()).join("\n")),
        Format::Wide => print(&topology::lines(cluster, true, Screen::of_output()).join("\n")),
        Format::Json => print_json(&topology::network(cluster)),
        Format::Svg => print(&topology::svg(cluster)),
        Format::Dot => print(&topology::dot(cluster)),
    }?)
}
