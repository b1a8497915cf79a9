//! `muster bench --quality`

use std::io::Write;
use std::path::Path;

use muster_bench::quality::{self, Gaps, Load, LoadSpec};
use serde::Serialize;

use super::{BenchArgs, Format};
use crate::commands::simulate::print_json;
use crate::failure::Failure;
use crate::render;

const CLUSTERS: u64 = 2_000;
/// Whoever waits hears of every so many clusters.
const TOLD_AFTER: u64 = 1_000;

#[derive(Serialize)]
struct Quality {
    gaps: Gaps,
    load: Load,
}

pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    if let Some(seed) = args.seed {
        return one(seed, args.output);
    }
    // A file that can't be written is known at once, not after the work.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    let clusters = args.clusters.unwrap_or(CLUSTERS);
    let bar = render::progress::Bar::new(true);
    anstream::eprintln!("measuring: small clusters");
    let gaps = quality::gaps(clusters, |done| {
        if done > 0 && done.is_multiple_of(TOLD_AFTER) {
            anstream::eprintln!("measuring: small clusters, {done} of {clusters}");
        }
    });
    let mut told = "";
    let load = quality::load(&LoadSpec::default(), |mode, progress| {
        if told != mode {
            told = mode;
            anstream::eprintln!("measuring: a working day in mode {mode}");
        }
        bar.show(&progress);
    });
    bar.done();
    if let Some(plot) = &mut plot {
        plot.write_all(render::plot::load(&load).as_bytes())?;
    }
    match args.output {
        Format::Json => print_json(&Quality { gaps, load }),
        Format::Table => render::quality::print(&gaps, &load),
    }
}

fn one(seed: u64, output: Format) -> Result<(), Failure> {
    if output == Format::Json {
        let problem = "a single small cluster is told in words only: leave out -o json";
        return Err(Failure::Input(vec![problem.to_owned()]));
    }
    Ok(write!(anstream::stdout(), "{}", quality::describe(seed))?)
}

fn create(path: &Path) -> Result<std::fs::File, Failure> {
    let refused = |error| Failure::Input(vec![format!("--plot {}: {error}", path.display())]);
    std::fs::File::create(path).map_err(refused)
}
