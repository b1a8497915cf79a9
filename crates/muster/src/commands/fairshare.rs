//! `muster fairshare`: what each queue should have, and how that comes about.

use std::io::Write;

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_engine::ids::ResourceId;
use muster_engine::model::Cluster;
use muster_engine::{Engine, shares};
use muster_facts::fair_shares;
use muster_sim::{Options, Simulation, Until};

use super::simulate::{print_json, scheduler_names};
use crate::failure::Failure;
use crate::input::{InputArgs, wall_clock};
use crate::render;

#[derive(Args)]
#[command(after_help = "Examples:
  muster fairshare                                    (the cluster of the default kubeconfig)
  muster fairshare -f examples/fairshare --config examples/fairshare/scheduler.conf
  muster fairshare --resource nvidia.com/gpu -o svg > shares.svg
  muster fairshare -f cluster.yaml --cycles 10        (after ten cycles on an embedded copy)

What the words mean, and the JSON, is in docs/fairshare.md.")]
pub struct FairshareArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Only this resource; may be given several times [default: all that some queue wants]
    #[arg(long, value_name = "NAME")]
    resource: Vec<String>,
    /// Show what is there after so many scheduling cycles on an embedded copy
    #[arg(long, value_name = "N", default_value_t = 0)]
    cycles: u64,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    /// Each queue's share, and step by step where it comes from, in 80 columns
    Table,
    Json,
    /// A picture
    Svg,
}

pub fn run(args: FairshareArgs) -> Result<(), Failure> {
    let loaded = args.input.load()?;
    for note in &loaded.notes {
        anstream::eprintln!("note: {note}");
    }
    if loaded.config.policy.fairness().is_none() {
        anstream::eprintln!(
            "note: these shares have no effect: name the plugin capacity in the configuration's tiers"
        );
    }
    let options = Options {
        until: Until::Cycles(args.cycles),
        recreate: true,
        events: false,
        arrivals: false,
        check: false,
    };
    let (world, config) = loaded.world(args.now.unwrap_or_else(wall_clock));
    let mut simulation = Simulation::new(world, Engine::new(config, scheduler_names()), options);
    if args.cycles > 0 {
        simulation.run(|_| {}).map_err(Failure::Work)?;
    }
    simulation.engine.settle();
    let engine = &simulation.engine;
    let resources = resources(engine.cluster(), &args.resource).map_err(Failure::Input)?;
    let shares = fair_shares(engine, &resources);
    match args.output {
        Format::Json => print_json(&shares),
        Format::Table => {
            print(&render::fairshare::lines(&shares, &engine.cluster().dimensions).join("\n"))
        }
        Format::Svg => print(&render::fairshare::svg(&shares, &engine.cluster().dimensions)),
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// Those that were named, or all that some queue wants or deserves; scarce ones first.
fn resources(cluster: &Cluster, named: &[String]) -> Result<Vec<ResourceId>, Vec<String>> {
    let mut divided: Vec<ResourceId> = shares::divided(cluster).collect();
    divided.sort_by(|&a, &b| cluster.dimensions.by_scarcity(a, b));
    if named.is_empty() {
        let matters = |resource: &ResourceId| {
            cluster
                .queues
                .iter()
                .any(|(_, queue)| queue.exists && queue.requested.get(*resource) > 0)
        };
        divided.retain(matters);
        return Ok(divided);
    }
    let find = |name: &String| {
        let known = cluster.dimensions.find(name).filter(|resource| divided.contains(resource));
        known.ok_or_else(|| unknown(cluster, &divided, name))
    };
    let (found, problems): (Vec<_>, Vec<_>) = named.iter().map(find).partition(Result::is_ok);
    match problems.is_empty() {
        true => Ok(found.into_iter().flatten().collect()),
        false => Err(problems.into_iter().filter_map(Result::err).collect()),
    }
}

fn unknown(cluster: &Cluster, divided: &[ResourceId], name: &str) -> String {
    let names: Vec<&str> =
        divided.iter().map(|&resource| cluster.dimensions.name(resource)).collect();
    match name {
        "pods" => format!("pods are not divided among queues: name one of {}", names.join(", ")),
        _ => {
            format!(
                "no node, queue or pod here names the resource {name}: name one of {}",
                names.join(", ")
            )
        }
    }
}
