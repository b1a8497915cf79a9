//! `muster simulate`

mod journal;
mod what_if;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use muster_api::Time;
use muster_api::keys::SCHEDULER_NAMES;
use muster_api::kinds::Kind;
use muster_api::manifest::Object;
use muster_engine::Engine;
use muster_journal::Configuration;
use muster_sim::curves::Curves;
use muster_sim::{Options, Simulation, Until, World, chaos};

use super::embedded::scheduler_names;
use crate::failure::Failure;
use crate::input::{Collection, InputArgs, parse_again, wall_clock};
use crate::{render, terminal};
use journal::Recorder;

#[derive(Args)]
#[command(after_help = "Examples:
  muster simulate -f examples/first-gang
  muster simulate -f examples/mpi-job (a Job from its first pod to its end)
  muster simulate -f cluster.yaml -f jobs.yaml --until-stable
  muster simulate                     (the cluster of the default kubeconfig)
  muster simulate --what-if new-job.yaml (which gangs would wait or be evicted?)
  muster simulate -f cluster.yaml --what-if larger-queue.yaml --until-stable
  kubectl get nodes,pods,podgroups,queues -A -o yaml | muster simulate -f -
  muster generate cluster --nodes 100 --to c.yaml
  muster generate workload --gangs 200 --to w.yaml
  muster simulate -f c.yaml -f w.yaml --arrivals --now 2026-01-05T00:00:00Z
  muster simulate -f examples/first-gang --journal /tmp/journal")]
pub struct SimulateArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Show what would change if these manifests were added now: a file, a folder or -; may be
    /// given several times
    #[arg(long, value_name = "FILE|DIR|-", conflicts_with_all = ["chaos", "events"])]
    what_if: Vec<String>,
    /// How many cycles to run, one second apart [default: 1, or until the end if there are Jobs;
    /// with --what-if 10, so that evicted pods have left]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "until_stable")]
    cycles: Option<u64>,
    /// Run until nothing is planned any more and no pod will end
    #[arg(long)]
    until_stable: bool,
    /// The time of the first cycle, for example 2026-11-15T00:00:00Z [default: the wall clock]
    #[arg(long, value_name = "TIME", value_parser = Time::parse)]
    now: Option<Time>,
    /// Objects with a creationTimestamp after --now are created then, instead of being there from
    /// the start
    #[arg(long)]
    arrivals: bool,
    /// Also draw the use, fair share and past usage of queues over time into this SVG file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chaos", "what_if"])]
    usage_curves: Option<PathBuf>,
    /// Record every event and plan in this folder, so that `muster replay` can repeat all decisions
    #[arg(long, value_name = "DIR", conflicts_with_all = ["chaos", "what_if"])]
    journal: Option<PathBuf>,
    /// Evicted pods take their own grace period to terminate (terminationGracePeriodSeconds, else
    /// 30 seconds), instead of a second
    #[arg(long, conflicts_with = "chaos")]
    grace: bool,
    /// Evicted pods are not recreated as pending
    #[arg(long)]
    no_recreate: bool,
    /// Also show what happens to each gang and pod
    #[arg(long)]
    events: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Run a seeded history of arrivals, deletions, node losses, faulty events and writes, and
    /// restarts on these manifests (or on a small cluster of its own), and check every invariant
    /// after every step
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
    /// The story, then gangs, queues and a map, as wide as the terminal; in a pipe nothing is cut
    Table,
    /// The same with more columns
    Wide,
    Json,
    Yaml,
}

pub fn run(args: SimulateArgs) -> Result<(), Failure> {
    if !args.what_if.is_empty() {
        return what_if::run(&args);
    }
    let loaded = if args.chaos { args.input.load_any()? } else { args.input.load()? };
    loaded.say_remarks();
    if !args.chaos {
        note_if_nothing_is_ours(&loaded.collection);
    }
    let text = loaded.text.clone();
    let has_jobs = loaded.collection.objects.iter().any(makes_pods);
    let (mut world, config) = loaded.world(args.now.unwrap_or_else(wall_clock));
    world.grace = args.grace;
    if args.chaos {
        return run_chaos(&args, world, &text);
    }
    let recorder = args.recorder(text)?;
    let witness = recorder.as_ref().map(Recorder::witness);
    let engine = Engine::new(config, scheduler_names());
    let mut simulation = Simulation::before(witness, world, engine, args.options(1, has_jobs));
    if args.usage_curves.is_some() {
        let resource = render::scarce(simulation.engine.cluster());
        simulation.curves = Some(Curves::new(resource, simulation.world.now));
    }
    let bar =
        render::progress::Bar::new(args.output != Format::Json && args.output != Format::Yaml);
    let result = simulation.run(|progress| bar.show(&progress));
    bar.done();
    result.map_err(Failure::work)?;
    if let (Some(recorder), Some(folder)) = (&recorder, &args.journal) {
        recorder.conclude(folder)?;
    }
    if let Some(path) = &args.usage_curves {
        draw_curves(&simulation, path)?;
    }
    match args.output {
        Format::Json => Ok(terminal::print_json(&simulation.report)?),
        Format::Yaml => print_yaml(&simulation.report),
        Format::Table => render::story::print(&simulation, false),
        Format::Wide => render::story::print(&simulation, true),
    }
}

/// Whether controllers make pods of the object.
fn makes_pods(object: &Object) -> bool {
    matches!(object.kind(), Kind::Job | Kind::JobFlow)
}

/// A run without a pod for us shows nothing, and the reason is easily overlooked.
fn note_if_nothing_is_ours(collection: &Collection) {
    let is_ours = |object: &Object| match object {
        Object::Pod(pod) => SCHEDULER_NAMES.contains(&pod.spec.scheduler_name.as_str()),
        _ => false,
    };
    let is_work = |object: &Object| is_ours(object) || makes_pods(object);
    if !collection.objects.iter().any(is_work) {
        let names = SCHEDULER_NAMES.join(" or ");
        terminal::note(format_args!("nothing to schedule: no pod has schedulerName {names}"));
    }
}

fn draw_curves(simulation: &Simulation, path: &Path) -> Result<(), Failure> {
    let rules = simulation.engine.policy().fairness();
    if rules.and_then(|rules| rules.memory).is_none() {
        terminal::note(
            "what queues use is not remembered: write usageHalfLife: 24h under the arguments of capacity",
        );
    }
    let curves = simulation.curves.as_ref().expect("they were asked for");
    let picture = render::curves::svg(curves, simulation.engine.cluster());
    std::fs::write(path, picture)
        .map_err(|error| Failure::Work(format!("writing {}: {error}", path.display())))
}

impl SimulateArgs {
    fn recorder(&self, config: Configuration) -> Result<Option<Recorder>, Failure> {
        let Some(folder) = &self.journal else { return Ok(None) };
        Recorder::create(folder, config).map(Some)
    }

    /// How to run: for this many cycles unless another option, or a Job, says how long.
    fn options(&self, cycles: u64, has_jobs: bool) -> Options {
        Options {
            until: match (self.until_stable, self.cycles) {
                (true, _) => Until::Stable,
                (false, Some(cycles)) => Until::Cycles(cycles),
                // The story of a Job takes as long as the Job.
                (false, None) if has_jobs => Until::Stable,
                (false, None) => Until::Cycles(cycles),
            },
            recreate: !self.no_recreate,
            events: self.events,
            arrivals: self.arrivals,
            check: false,
        }
    }
}

fn run_chaos(args: &SimulateArgs, world: World, text: &Configuration) -> Result<(), Failure> {
    let config = || parse_again(text);
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
        Format::Json => Ok(terminal::print_json(&history)?),
        Format::Yaml => print_yaml(&history),
        _ => Ok(terminal::print(&history.to_string())?),
    }
}

pub fn print_yaml(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_saphyr::to_string(value).map_err(Failure::work)?;
    Ok(terminal::print(&text)?)
}
