//! `muster fairshare`: what each queue should have, and why.

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_engine::ids::ResourceId;
use muster_engine::model::Cluster;
use muster_engine::shares;
use muster_facts::fair_shares;

use super::embedded::after_cycles;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::render::screen::Screen;
use crate::{render, terminal};

#[derive(Args)]
#[command(after_help = "Examples:
  muster fairshare                    (the cluster of the default kubeconfig)
  muster fairshare -f cluster.yaml --config scheduler.conf
  muster fairshare --resource nvidia.com/gpu -o svg > shares.svg
  muster fairshare -f cluster.yaml --cycles 10 (after ten cycles on a copy)

What the words mean, and the JSON, is in docs/fairshare.md.")]
pub struct FairshareArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Only this resource; may be given several times [default: all that some queue wants]
    #[arg(long, value_name = "NAME")]
    resource: Vec<String>,
    /// How many cycles to run first on an embedded copy, one second apart; 0 shows the present
    /// state
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
    /// Each queue's share, and step by step where it comes from
    Table,
    Json,
    /// A picture
    Svg,
}

pub fn run(args: FairshareArgs) -> Result<(), Failure> {
    let loaded = args.input.load()?;
    loaded.say_remarks();
    if loaded.config.policy.fairness().is_none() {
        terminal::note(
            "these shares have no effect: name the plugin capacity in the configuration's tiers",
        );
    }
    let mut simulation = after_cycles(loaded, args.now, args.cycles)?;
    simulation.engine.settle();
    let engine = &simulation.engine;
    let resources = resources(engine.cluster(), &args.resource)?;
    let shares = fair_shares(engine, &resources);
    let dimensions = &engine.cluster().dimensions;
    match args.output {
        Format::Json => terminal::print_json(&shares)?,
        Format::Table => {
            let screen = Screen::of_output();
            terminal::print(&render::fairshare::lines(&shares, dimensions, screen).join("\n"))?
        }
        Format::Svg => terminal::print(&render::fairshare::svg(&shares, dimensions))?,
    }
    Ok(())
}

/// The named resources, or all that some queue wants or deserves; scarce ones first.
fn resources(cluster: &Cluster, named: &[String]) -> Result<Vec<ResourceId>, Failure> {
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
        false => Err(Failure::Input(problems.into_iter().filter_map(Result::err).collect())),
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
