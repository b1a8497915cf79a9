//! `muster check`

use clap::Args;
use muster_api::core::{SharedBudgets, shared_budgets};
use muster_engine::explain::grouped;
use muster_facts::topology::{faults, idle_policies};
use muster_text::counted;

use crate::failure::Failure;
use crate::input::{ConfigArgs, FileArgs, InputError, Reading, Remark, Verdict};

#[derive(Args)]
#[command(after_help = "Examples:
  muster check -f manifests/
  muster check --config volcano-scheduler.conf
  muster check --strict -f jobs.yaml --config volcano-scheduler.conf

An error cannot be used: the exit code is 2. A warning says that something has no effect, or another than it seems to \
have: the exit code is 0, with --strict 1. A note is advice and never changes the exit code. More about HyperNodes: \
muster topology check.")]
pub struct CheckArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    config: ConfigArgs,
    /// Exit with code 1 if there are warnings
    #[arg(long)]
    strict: bool,
}

pub fn run(args: CheckArgs) -> Result<(), Failure> {
    if args.files.files.is_empty() && args.config.config.is_none() {
        return Err(Failure::input(InputError::NothingToCheck));
    }
    let reading = Reading::of(&args.files.files, &args.config);
    let collection = &reading.collection;
    let mut errors: Vec<String> = reading.errors.iter().map(ToString::to_string).collect();
    let title = |kind, key: &str| collection.title(kind, key);
    errors.extend(faults(&collection.objects).iter().map(|fault| fault.tell(title)));
    let mut remarks = reading.remarks();
    remarks.extend(shared_budgets(&collection.objects).iter().map(|shared| {
        Remark::warning(format!("{}: {}", title("Pod", &shared.pod), refused(shared)))
    }));
    let idle = idle_policies(&collection.objects);
    remarks.extend(idle.iter().map(|idle| Remark::warning(idle.tell(title))));
    let checked = checked(&args, &reading);
    Verdict { errors, remarks, checked }.tell(args.strict)
}

/// Why a pod in several budgets, and others like it, can never be evicted.
fn refused(shared: &SharedBudgets) -> String {
    let names = shared.budgets.join(", ");
    let others = match shared.more {
        0 => String::new(),
        more => format!(", as are {}", counted(more, "other pod")),
    };
    format!(
        "is in several PodDisruptionBudgets ({names}){others}: the API server never evicts such a pod"
    )
}

/// What was read.
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
