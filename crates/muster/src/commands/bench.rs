//! `muster bench`

mod quality;

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};
use muster_bench::speed::{self, Figures, memory};

use crate::failure::Failure;
use crate::terminal;

#[derive(Args)]
#[command(
    after_help = "Figures are ratios to a scan of the cluster or to one move of a pod, so that they mean the same on \
every machine. Use a release build: cargo run --release -- bench

With --quality it is not about time: on small clusters everything is tried, and what the engine \
chose in mode gang is compared with the best there is; and a working day is played in each mode.

Examples:
  muster bench --check                  (exits with 1 if a bar is missed)
  muster bench --quality --plot quality.svg
  muster bench --quality --seed 3       (one of the small clusters, in words)"
)]
pub struct BenchArgs {
    /// How often each case is run; the best counts [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "quality")]
    rounds: Option<u32>,
    /// Fail if a figure is over its bar, or could not be measured
    #[arg(long, conflicts_with = "quality")]
    check: bool,
    /// Measure how good the choice of victims is, instead of how fast
    #[arg(long)]
    quality: bool,
    /// How many small clusters are tried [default: 2000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), requires = "quality")]
    clusters: Option<u64>,
    /// Explain only this small cluster, in words
    #[arg(long, value_name = "N", requires = "quality", conflicts_with_all = ["clusters", "plot"])]
    seed: Option<u64>,
    /// Draw the working day into this SVG file
    #[arg(long, value_name = "FILE", requires = "quality")]
    plot: Option<PathBuf>,
    /// Only print how many bytes of memory a large cluster uses; the command runs itself with this
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
        Format::Table => write!(std::io::stdout(), "{figures}")?,
        Format::Json => terminal::print_json(&figures)?,
    }
    conclude(&figures, args.check)
}

fn conclude(figures: &Figures, check: bool) -> Result<(), Failure> {
    match figures.check() {
        Err(missed) if check => Err(Failure::Work(format!("missed\n{missed}"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use muster_bench::speed::Figure;

    use super::*;
    use crate::failure::exit;

    #[test]
    fn a_missed_bar_fails_only_the_check() {
        let ends = |value, check| {
            let at_most = Some(2.0);
            let figure = Figure { name: "a gang", value, unit: "times", at_most, nanos: None };
            let figures = Figures { figures: vec![figure], ..Figures::default() };
            format!("{:?}", exit(conclude(&figures, check)))
        };
        let [fine, failed] = [ExitCode::SUCCESS, ExitCode::from(1)].map(|code| format!("{code:?}"));
        assert_eq!(ends(1.0, true), fine);
        assert_eq!(ends(2.1, false), fine);
        assert_eq!(ends(2.1, true), failed);
    }
}
