//! `muster snapshot`: what scheduling needs of a cluster, in one file, so that a problem can be
//! looked at elsewhere.

use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use muster_api::{Pseudonyms, anonymise, manifest};
use muster_engine::explain::grouped;

use crate::failure::Failure;
use crate::input::{Collection, SourceArgs, wall_clock};

#[derive(Args)]
#[command(after_help = "Examples:
  muster snapshot -o cluster.yaml
  muster snapshot --context production --anonymize -o cluster.yaml --names names.tsv
  muster snapshot -f manifests/ --anonymize > anonymous.yaml
  muster simulate -f cluster.yaml; muster explain ring -f cluster.yaml

The cluster is only read. Environment, arguments and secrets of containers are never read; see docs/snapshot.md.")]
pub struct SnapshotArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Give every name a pseudonym; decisions stay the same
    #[arg(long, alias = "anonymise")]
    anonymize: bool,
    /// Also write which pseudonym stands for which name, to keep for yourself
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    names: Option<PathBuf>,
}

pub fn run(args: SnapshotArgs) -> Result<(), Failure> {
    let mut collection = args.source.read()?;
    for note in collection.notes() {
        anstream::eprintln!("note: {note}");
    }
    let mut text = header(&collection, args.source.is_live()).into_bytes();
    manifest::trim(&mut collection.objects);
    if args.anonymize {
        let pseudonyms = anonymise(&mut collection.objects);
        if let Some(path) = &args.names {
            put(path, table(&pseudonyms).as_bytes())?;
        }
    }
    manifest::write(&collection.objects, &mut text)?;
    match args.output.filter(|path| path != Path::new("-")) {
        Some(path) => {
            put(&path, &text)?;
            anstream::eprintln!("wrote {}: {}", path.display(), counts(&collection));
        }
        None => {
            let mut out = std::io::stdout().lock();
            out.write_all(&text)?;
            out.flush()?;
        }
    }
    Ok(())
}

/// What it is, and how to use it at the moment that it shows.
fn header(collection: &Collection, live: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut header = format!("# Written by muster {version}: {}\n", counts(collection));
    if live {
        let now = wall_clock();
        let _ = writeln!(
            header,
            "# Read at {now}; as it was then: muster simulate --now {now} -f THIS-FILE"
        );
    }
    header
}

fn counts(collection: &Collection) -> String {
    let counts = collection.counts.iter();
    let parts: Vec<String> =
        counts.map(|(kind, count)| format!("{} × {kind}", grouped(*count as u64))).collect();
    if parts.is_empty() { "no objects".to_owned() } else { parts.join(", ") }
}

/// A line for each pseudonym, with a tab before the name that it stands for.
fn table(pseudonyms: &Pseudonyms) -> String {
    let mut table = String::new();
    for (pseudonym, name) in pseudonyms.iter() {
        let _ = writeln!(table, "{pseudonym}\t{name}");
    }
    table
}

fn put(path: &Path, text: &[u8]) -> Result<(), Failure> {
    fs::write(path, text)
        .map_err(|error| Failure::Work(format!("writing {}: {error}", path.display())))
}
