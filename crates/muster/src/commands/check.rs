//! `muster check`

use clap::Args;
use muster_engine::explain::grouped;
use muster_facts::topology::faults;

use crate::failure::Failure;
use crate::input::{ConfigArgs, FileArgs, InputError, Reading};
use crate::terminal;

#[derive(Args)]
#[command(after_help = "Examples:
  muster check -f manifests/
  muster check --config volcano-scheduler.conf
  muster check -f jobs.yaml --config volcano-scheduler.conf

The exit code is 2 if there are errors; notes are no errors. More about HyperNodes: muster topology check.")]
pub struct CheckArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    config: ConfigArgs,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    if args.files.files.is_empty() && args.config.config.is_none() {
        return Err(Failure::input(InputError::NothingToCheck));
    }
    let reading = Reading::of(&args.files.files, &args.config);
    let collection = &reading.collection;
    let mut out = terminal::stdout();
    for note in reading.notes() {
        writeln!(out, "note: {note}")?;
    }
    out.flush()?;
    let mut problems: Vec<String> = reading.errors.iter().map(ToString::to_string).collect();
    let title = |kind, key: &str| collection.title(kind, key);
    problems.extend(faults(&collection.objects).iter().map(|fault| fault.tell(title)));
    if !problems.is_empty() {
        return Err(Failure::Input(problems));
    }
    Ok(writeln!(out, "no errors: {}", checked(&args, &reading))?)
}

/// What was read without errors.
fn checked(args: &CheckArgs, reading: &Reading) -> String {
    let mut checked: Vec<String> = Vec::new();
    checked.extend(args.config.config.as_ref().map(|path| path.display().to_string()));
    let counts = reading.collection.counts.iter();
    checked.extend(counts.map(|(kind, count)| format!("{} × {kind}", grouped(*count as u64))));
    if !args.files.files.is_empty() && reading.collection.objects.is_empty() {
        checked.push("no objects".to_owned());
    }
    checked.join(", ")
}
