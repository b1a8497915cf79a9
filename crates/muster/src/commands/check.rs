//! `muster check`

use std::io::Write;

use clap::Args;
use muster_engine::explain::grouped;
use muster_facts::topology::faults;

use crate::failure::Failure;
use crate::input::{ConfigArgs, FileArgs};

#[derive(Args)]
#[command(after_help = "Examples:
  muster check -f manifests/
  muster check -f jobs.yaml --config volcano-scheduler.conf

The exit code is 2 if there are errors; notes are no errors. More about HyperNodes: muster topology check.")]
pub struct CheckArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    let loaded = args.files.load(&args.config)?;
    let collection = &loaded.collection;
    let mut out = anstream::stdout();
    for note in &loaded.notes {
        writeln!(out, "note: {note}")?;
    }
    out.flush()?;
    let faults = faults(&collection.objects);
    if !faults.is_empty() {
        return Err(Failure::Input(
            faults
                .iter()
                .map(|fault| fault.tell(|kind, key| collection.title(kind, key)))
                .collect(),
        ));
    }
    let counts = collection.counts.iter();
    let objects: Vec<String> =
        counts.map(|(kind, count)| format!("{} × {kind}", grouped(*count as u64))).collect();
    let objects = if objects.is_empty() { "no objects".into() } else { objects.join(", ") };
    Ok(writeln!(out, "no errors: {objects}")?)
}
