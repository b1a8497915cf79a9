//! `muster bench`

use std::io::Write;

use clap::{Args, ValueEnum};
use muster_sim::bench;

use super::simulate::print_json;
use crate::failure::Failure;

#[derive(Args)]
#[command(
    after_help = "Figures are ratios to a scan of the cluster or to one move of a pod, so that they mean the
same on every machine. Use a release build: cargo run --release -- bench"
)]
pub struct BenchArgs {
    /// How often each case is run; the best counts
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Copy, Clone, ValueEnum)]
enum Format {
    Table,
    Json,
}

pub fn run(args: BenchArgs) -> Result<(), Failure> {
    let figures = bench::run(args.rounds, &|| Some(crate::ALLOCATED.current_usage()), |what| {
        anstream::eprintln!("measuring: {what}");
    });
    match args.output {
        Format::Table => Ok(write!(std::io::stdout(), "{figures}")?),
        Format::Json => print_json(&figures),
    }
}
