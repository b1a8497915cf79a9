//! `muster topology check`

use clap::Args;
use muster_facts::topology::{self, Finding};
use muster_text::counted;

use crate::failure::Failure;
use crate::input::SourceArgs;
use crate::terminal;

#[derive(Args)]
#[command(after_help = "Examples:
  muster topology check               (the cluster of the default kubeconfig)
  muster topology check -f nodes.yaml -f hypernodes.yaml
  muster topology generate --from file racks.txt > hypernodes.yaml
  muster topology check -f hypernodes.yaml --context production

Errors are HyperNodes that the scheduler leaves out and gangs that can never start; the exit code is then 2, as that \
of muster check. What may be meant so is a note; with notes only the exit code is 0.")]
pub struct CheckArgs {
    #[command(flatten)]
    source: SourceArgs,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    let collection = args.source.read()?;
    let (errors, notes): (Vec<Finding>, Vec<Finding>) =
        topology::all(&collection.objects).into_iter().partition(|finding| finding.error);
    let tell = |finding: &Finding| finding.tell(|kind, key| collection.title(kind, key));
    let mut out = terminal::stdout();
    for note in collection.notes().into_iter().chain(notes.iter().map(tell)) {
        writeln!(out, "note: {note}")?;
    }
    out.flush()?;
    if !errors.is_empty() {
        return Err(Failure::Input(errors.iter().map(tell).collect()));
    }
    let count = |kind: &str| collection.counts.get(kind).copied().unwrap_or(0) as u64;
    let hypers = counted(count("HyperNode"), "HyperNode");
    Ok(writeln!(out, "no errors: {hypers}, {}", counted(count("Node"), "node"))?)
}
