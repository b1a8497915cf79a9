//! `muster simulate`

mod what_if;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_engine::Engine;
use muster_sim::curves::Curves;
use muster_sim::{Options, Simulation, Until, chaos};

use crate::failure::Failure;
use crate::input::{InputArgs, wall_clock};
use crate::render;

#[derive(Args)]
#[command(after_help = "Examples:
  muster simulate -f examples/first-gang
  muster simulate -f cluster.yaml -f jobs.yaml --until-stable
  muster simulate                                     (the cluster of the default kubeconfig)
  muster simulate --what-if new-job.yaml              (who would start, wait or be evicted there?)
  muster simulate -f cluster.yaml --what-if larger-queue.yaml --until-stable
  kubectl get nodes,pods,podgroups,queues -A -o yaml | muster simulate -f - -o json
  muster generate cluster --nodes 100 > c.yaml; muster generate workload --gangs 200 > w.yaml
  muster simulate -f c.yaml -f w.yaml --arrivals --now 2026-01-05T00:00:00Z --until-stable")]
pub struct SimulateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Show what would be otherwise if these manifests came now, a file, a folder or -; may be
    /// given several times
    #[arg(long, value_name = "FILE|DIR|-", conflicts_with_all = ["chaos", "events"])]
    what_if: Vec<String>,
    /// How many cycles to run, one second apart [default: 1, with --what-if 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "until_stable")]
    cycles: Option<u64>,
    /// Run until nothing is planned any more and no pod will end
    #[arg(long)]
    until_stable: bool,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    /// Objects with a creationTimestamp after --now arrive then, instead of being there from the
    /// start
    #[arg(long)]
    arrivals: bool,
    /// Also draw what queues use, should have and have used of late over time, into this SVG file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chaos", "what_if"])]
    usage_curves: Option<PathBuf>,
    /// Evicted pods are not recreated as pending
    #[arg(long)]
    no_recreate: bool,
    /// Also show what happens to each gang and pod
    #[arg(long)]
    events: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Run a seeded history of arrivals, deletions, node losses, faulty events and writes, and
    /// restarts on these manifests (or on a small cluster of its own), and check every
    /// invariant after every step
    #[arg(long, conflicts_with_all = ["until_stable", "arrivals", "no_recreate", "events"])]
    chaos: bool,
    /// The seed of the history
    #[arg(long, value_name = "N", default_value_t = 1, requires = "chaos")]
    seed: u64,
    /// How many steps the history has
    #[arg(long, value_name = "M", default_value_t = 200, requires = "chaos", value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
pub enum Format {
    /// The story, then gangs, queues and a map, in 80 columns
    Table,
    /// The same with more columns, as wide as the terminal
    Wide,
    Json,
    Yaml,
}

pub fn scheduler_names() -> Vec<String> {
    SCHEDULER_NAMES.iter().map(ToString::to_string).collect()
}

pub fn run(args: SimulateArgs) -> Result<(), Failure> {
    if !args.what_if.is_empty() {
        return what_if::run(&args);
    }
    let loaded = if args.chaos { args.input.load_any()? } else { args.input.load()? };
    for note in &loaded.notes {
        anstream::eprintln!("note: {note}");
    }
    let (world, config) = loaded.world(args.now.unwrap_or_else(wall_clock));
    if args.chaos {
        return run_chaos(&args, world);
    }
    let options = args.options(1);
    let engine = Engine::new(config, scheduler_names());
    let mut simulation = Simulation::new(world, engine, options);
    if args.usage_curves.is_some() {
        let resource = render::scarce(simulation.engine.cluster());
        simulation.curves = Some(Curves::new(resource, simulation.world.now));
    }
    let bar =
        render::progress::Bar::new(args.output != Format::Json && args.output != Format::Yaml);
    let result = simulation.run(|progress| bar.show(&progress));
    bar.done();
    result.map_err(Failure::Work)?;
    if let Some(path) = &args.usage_curves {
        draw_curves(&simulation, path)?;
    }
    match args.output {
        Format::Json => print_json(&simulation.report),
        Format::Yaml => print_yaml(&simulation.report),
        Format::Table => render::story::print(&simulation, false),
        Format::Wide => render::story::print(&simulation, true),
    }
}

fn draw_curves(simulation: &Simulation, path: &Path) -> Result<(), Failure> {
    let rules = simulation.engine.policy().fairness();
    if rules.and_then(|rules| rules.memory).is_none() {
        anstream::eprintln!(
            "note: what queues use is not remembered: write usageHalfLife: 24h under the arguments of capacity"
        );
    }
    let curves = simulation.curves.as_ref().expect("they were asked for");
    let picture = render::curves::svg(curves, simulation.engine.cluster());
    std::fs::write(path, picture)
        .map_err(|error| Failure::Work(format!("writing {}: {error}", path.display())))
}

impl SimulateArgs {
    /// How to run, for so many cycles unless something else was said.
    fn options(&self, cycles: u64) -> Options {
        Options {
            until: match self.until_stable {
                true => Until::Stable,
                false => Until::Cycles(self.cycles.unwrap_or(cycles)),
            },
            recreate: !self.no_recreate,
            events: self.events,
            arrivals: self.arrivals,
            check: false,
        }
    }
}

fn run_chaos(args: &SimulateArgs, world: muster_sim::World) -> Result<(), Failure> {
    let input = args.input.clone();
    let config = move || input.reload_config();
    let bar = render::progress::Bar::new(true);
    let history = chaos::run(world, &config, args.seed, args.steps, |progress| bar.show(&progress));
    bar.done();
    let history = history.map_err(|broken| {
        Failure::Work(format!(
            "seed {}, step {}: {}\nrun it again with the same files and: --chaos --seed {} --steps {}",
            args.seed, broken.step, broken.what, args.seed, broken.step
        ))
    })?;
    match args.output {
        Format::Json => print_json(&history),
        Format::Yaml => print_yaml(&history),
        _ => Ok(writeln!(anstream::stdout(), "{history}")?),
    }
}

pub fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let done = if std::io::stdout().is_terminal() {
        serde_json::to_writer_pretty(&mut out, value)
    } else {
        serde_json::to_writer(&mut out, value)
    };
    done.map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

pub fn print_yaml(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_saphyr::to_string(value).map_err(|error| Failure::Work(error.to_string()))?;
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
