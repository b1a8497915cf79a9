//! `muster topology check`

use clap::Args;
use muster_facts::topology::{self, Class, Finding};
use muster_text::counted;

use crate::failure::Failure;
use crate::input::{Remark, SourceArgs, Verdict};

#[derive(Args)]
#[command(after_help = "Examples:
  muster topology check               (the cluster of the default kubeconfig)
  muster topology check -f nodes.yaml -f hypernodes.yaml
  muster topology generate --from file racks.txt > hypernodes.yaml
  muster topology check -f hypernodes.yaml --context production

Errors are HyperNodes that the scheduler leaves out and gangs that can never start; the exit code is then 2, as that \
of muster check. Warnings are members and limits that have no effect; the exit code is 0, with --strict 1. What may be \
meant so is a note and never changes the exit code.")]
pub struct CheckArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Exit with code 1 if there are warnings
    #[arg(long)]
    strict: bool,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    let collection = args.source.read()?;
    let tell = |finding: &Finding| finding.tell(|kind, key| collection.title(kind, key));
    let (mut errors, mut remarks) = (Vec::new(), collection.remarks());
    for finding in topology::all(&collection.objects) {
        match finding.class {
            Class::Error => errors.push(tell(&finding)),
            Class::Warning => remarks.push(Remark::warning(tell(&finding))),
            Class::Note => remarks.push(Remark::note(tell(&finding))),
        }
    }
    let count = |kind: &str| collection.counts.get(kind).copied().unwrap_or(0) as u64;
    let hypers = counted(count("HyperNode"), "HyperNode");
    let checked = format!("{hypers}, {}", counted(count("Node"), "node"));
    Verdict { errors, remarks, checked }.tell(args.strict)
}
