//! `muster bench --quality`

use std::io::Write;
use std::path::Path;

use muster_bench::quality::{self, Gaps, Load, LoadSpec};
use serde::Serialize;

use super::{BenchArgs, Format};
use crate::failure::Failure;
use crate::{render, terminal};

const CLUSTERS: u64 = 2_000;
/// Progress is printed every so many clusters.
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
    // A file that can't be written is reported at once, not after the work.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    let clusters = args.clusters.unwrap_or(CLUSTERS);
    let bar = render::progress::Bar::new(true);
    terminal::say("measuring: small clusters");
    let gaps = quality::gaps(clusters, |done| {
        if done > 0 && done.is_multiple_of(TOLD_AFTER) {
            terminal::say(format_args!("measuring: small clusters, {done} of {clusters}"));
        }
    });
    let mut told = "";
    let load = quality::load(&LoadSpec::default(), |mode, progress| {
        if told != mode {
            told = mode;
            terminal::say(format_args!("measuring: a working day in mode {mode}"));
        }
        bar.show(&progress);
    });
    bar.done();
    if let Some(plot) = &mut plot {
        plot.write_all(render::plot::load(&load).as_bytes())?;
    }
    match args.output {
        Format::Json => Ok(terminal::print_json(&Quality { gaps, load })?),
        Format::Table => render::quality::print(&gaps, &load),
    }
}

fn one(seed: u64, output: Format) -> Result<(), Failure> {
    if output == Format::Json {
        let problem = "a single small cluster is explained in words only: leave out -o json";
        return Err(Failure::input(problem));
    }
    Ok(terminal::print(&quality::describe(seed))?)
}

fn create(path: &Path) -> Result<std::fs::File, Failure> {
    let refused = |error| Failure::input(format_args!("--plot {}: {error}", path.display()));
    std::fs::File::create(path).map_err(refused)
}
