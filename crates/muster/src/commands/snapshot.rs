//! `muster snapshot`: everything in a cluster that scheduling needs, in one file, so that a problem
//! can be studied elsewhere.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use muster_api::{Pseudonyms, anonymise, manifest};
use muster_engine::explain::grouped;

use super::manifests::{Format, JsonList, ManifestArgs, WriteError};
use crate::failure::Failure;
use crate::input::{Collection, Remark, SourceArgs, wall_clock};
use crate::terminal;

#[derive(Args)]
#[command(after_help = "Examples:
  muster snapshot --to cluster.yaml
  muster snapshot --anonymize --to cluster.yaml --names names.tsv
  muster snapshot -f manifests/ --anonymize > anonymous.yaml
  muster simulate -f cluster.yaml; muster explain ring -f cluster.yaml

The cluster is only read. Environment, arguments and secrets of containers are never read; see docs/snapshot.md.")]
pub struct SnapshotArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    to: ManifestArgs,
    /// Give every name a pseudonym; decisions stay the same
    #[arg(long, alias = "anonymise")]
    anonymize: bool,
    /// Also write which pseudonym replaces which name, to keep for yourself
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    names: Option<PathBuf>,
}

pub fn run(args: SnapshotArgs) -> Result<(), Failure> {
    args.to.check()?;
    let mut collection = args.source.read()?;
    collection.remarks().iter().for_each(Remark::say);
    manifest::trim(&mut collection.objects);
    if args.anonymize {
        let pseudonyms = anonymise(&mut collection.objects);
        if let Some(path) = &args.names {
            std::fs::write(path, table(&pseudonyms))
                .map_err(|source| Failure::work(WriteError { to: path.clone(), source }))?;
        }
    }
    let header = header(&collection, args.source.is_live());
    args.to.write(|out| match args.to.format() {
        Format::Yaml => {
            out.write_all(header.as_bytes())?;
            manifest::write(&collection.objects, out)
        }
        Format::Json => write_json(&collection, out),
    })?;
    if let Some(path) = args.to.file() {
        terminal::say(format_args!("wrote {}: {}", path.display(), counts(&collection)));
    }
    Ok(())
}

fn write_json(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let mut list = JsonList::begin(out)?;
    manifest::sorted(&collection.objects).into_iter().try_for_each(|object| list.add(object))?;
    list.end()
}

/// What the file is, and how to use it as of the time of the snapshot.
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

/// One line for each pseudonym, with a tab before the name that it replaces.
fn table(pseudonyms: &Pseudonyms) -> String {
    let mut table = String::new();
    for (pseudonym, name) in pseudonyms.iter() {
        let _ = writeln!(table, "{pseudonym}\t{name}");
    }
    table
}
