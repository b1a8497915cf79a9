//! `muster bench`

mod quality;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};
use muster_bench::speed::{self, memory};

use crate::failure::Failure;
use crate::terminal;

#[derive(Args)]
#[command(
    after_help = "Figures are ratios to a scan of the cluster or to one move of a pod, so that they mean the same on \
every machine. Use a release build: cargo run --release -- bench

With --quality it is not about time: on small clusters everything is tried, and what the engine \
chose in mode gang is compared with the best there is; and a working day is played in each mode.

Examples:
  muster bench --quality --plot quality.svg
  muster bench --quality --seed 3       (one of the small clusters, in words)"
)]
pub struct BenchArgs {
    /// How often each case is run; the best counts [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "quality")]
    rounds: Option<u32>,
    /// How good the choice of those who leave is, instead of how fast
    #[arg(long)]
    quality: bool,
    /// How many small clusters are tried [default: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), requires = "quality")]
    clusters: Option<u64>,
    /// Only this small cluster, in words
    #[arg(long, value_name = "N", requires = "quality", conflicts_with_all = ["clusters", "plot"])]
    seed: Option<u64>,
    /// Draw how the working day went, into this SVG file
    #[arg(long, value_name = "FILE", requires = "quality")]
    plot: Option<PathBuf>,
    /// Only print how many bytes of memory a large cluster takes; the command runs itself with this
    #[arg(long, hide = true)]
    memory: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
}

pub fn run(args: BenchArgs) -> Result<(), Failure> {
    if args.quality {
        return quality::run(&args);
    }
    if args.memory {
        let bytes = memory::peak_with_large_cluster();
        let bytes = bytes.map_err(|error| Failure::Work(error.to_string()))?;
        return Ok(writeln!(std::io::stdout(), "{bytes}")?);
    }
    let rounds = args.rounds.unwrap_or(7);
    let muster = std::env::current_exe()
        .map_err(|error| Failure::Work(format!("finding this program: {error}")))?;
    let memory = || memory::of_child(Command::new(muster).args(["bench", "--memory"]));
    let figures = speed::run(rounds, memory, |what| {
        terminal::say(format_args!("measuring: {what}"));
    });
    match args.output {
        Format::Table => Ok(write!(std::io::stdout(), "{figures}")?),
        Format::Json => Ok(terminal::print_json(&figures)?),
    }
}
