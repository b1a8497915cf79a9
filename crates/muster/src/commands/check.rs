//! `muster check`

use std::io::Write;

use clap::Args;
use muster_engine::explain::grouped;

use crate::failure::Failure;
use crate::input::{ConfigArgs, FileArgs};

#[derive(Args)]
#[command(after_help = "Examples:
  muster check -f manifests/
  muster check -f jobs.yaml --config volcano-scheduler.conf")]
pub struct CheckArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    let loaded = args.files.load(&args.config)?;
    let mut out = anstream::stdout();
    for note in &loaded.notes {
        writeln!(out, "note: {note}")?;
    }
    let objects: Vec<String> =
        loaded.counts.iter().map(|(kind, count)| format!("{} × {kind}", grouped(*count as u64))).collect();
    let objects = if objects.is_empty() { "no objects".into() } else { objects.join(", ") };
    Ok(writeln!(out, "no errors: {objects}")?)
}
