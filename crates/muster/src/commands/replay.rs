//! `muster replay`

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use muster_engine::explain::counted;
use muster_journal::{Played, ReadError, Record, ReplayError, Segment, Summary, Torn, replay};
use muster_text::grouped;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::render::progress::Bar;
use crate::terminal::{self, print_json};

#[derive(Args)]
#[command(after_help = "Examples:
  muster scheduler --journal /var/lib/muster/journal
  muster replay /var/lib/muster/journal
  muster simulate -f examples/first-gang --journal /tmp/journal
  muster replay journal/ --from 12 --show | jq 'select(.cycle.plan.binds)'")]
pub struct ReplayArgs {
    /// The folder that was given to muster scheduler or muster simulate as --journal
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The number of the first segment
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// Print the records as JSON, one a line, instead of replaying them
    #[arg(long, conflicts_with = "output")]
    show: bool,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Copy, Clone, PartialEq, ValueEnum)]
enum Format {
    Table,
    Json,
}

pub fn run(args: ReplayArgs) -> Result<(), Failure> {
    if args.show {
        return show(&args.folder, args.from);
    }
    let bar = Bar::new(args.output == Format::Table);
    let mut played = Vec::new();
    let result = replay(
        &args.folder,
        args.from,
        |progress| {
            let percent = progress.bytes * 100 / progress.of_bytes.max(1);
            bar.say(format!(
                "{percent} %, segment {}, {}",
                progress.segment,
                counted(progress.cycles, "cycle")
            ));
        },
        |segment| played.push(segment.clone()),
    );
    bar.done();
    match (&result, args.output) {
        (Ok(summary), Format::Json) => print_json(summary)?,
        (Err(ReplayError::Difference(found)), Format::Json) => {
            print_json(&json!({ "difference": found }))?
        }
        (_, Format::Json) => {}
        (_, Format::Table) => print_segments(&played)?,
    }
    match result {
        Ok(summary) if args.output == Format::Table => print_summary(&summary),
        Ok(_) => Ok(()),
        Err(ReplayError::Difference(found)) => Err(Failure::Work(found.to_string())),
        Err(error) => Err(Failure::input(advice(&args.folder, error))),
    }
}

fn print_segments(played: &[Played]) -> Result<(), Failure> {
    let mut out = terminal::stdout();
    for Played { segment, events, cycles, binds, from, to, torn, .. } in played {
        write!(out, "{segment}: {}", amounts(*events, *cycles, *binds))?;
        if let (Some(from), Some(to)) = (from, to) {
            write!(out, ", {from} to {to}")?;
        }
        writeln!(
            out,
            "{}",
            torn.map(|torn| format!(" ({})", not_closed(torn))).unwrap_or_default()
        )?;
    }
    Ok(())
}

fn not_closed(torn: Torn) -> String {
    let why = "not closed: its writer was stopped or still writes";
    let Torn { record, offset, bytes } = torn;
    if bytes == 0 {
        return why.to_owned();
    }
    let (record, offset) = (grouped(record), grouped(offset));
    let bytes = counted(bytes, "byte");
    format!(
        "{why}; record {record} is incomplete and left out: {bytes} from byte {offset} of the \
         uncompressed stream"
    )
}

fn print_summary(summary: &Summary) -> Result<(), Failure> {
    let Summary { segments, events, cycles, binds, from, to } = summary;
    let mut out = terminal::stdout();
    if let (Some(from), Some(to)) = (from, to) {
        let segments = counted(segments.len() as u64, "segment");
        writeln!(out, "{segments}: {}, {from} to {to}", amounts(*events, *cycles, *binds))?;
    }
    Ok(writeln!(out, "every plan was reproduced")?)
}

fn amounts(events: u64, cycles: u64, binds: u64) -> String {
    [counted(events, "event"), counted(cycles, "cycle"), counted(binds, "bind")].join(", ")
}

/// The error, with advice.
fn advice(folder: &Path, error: ReplayError) -> String {
    let expected = "write the folder that was given to muster scheduler --journal";
    match error {
        ReplayError::Folder { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{}: no such folder: {expected}", folder.display())
            }
            std::io::ErrorKind::NotADirectory => {
                format!("{} is a file: {expected}", folder.display())
            }
            _ => format!("{}: {source}", folder.display()),
        },
        ReplayError::Empty { .. } => format!("{error}; {expected}"),
        ReplayError::Read(ReadError::Io { name, source }) => format!("{name}: {source}"),
        ReplayError::Read(ReadError::Damaged { .. }) => {
            format!("{error}; later segments can be replayed with --from")
        }
        other => other.to_string(),
    }
}

fn show(folder: &Path, from: u64) -> Result<(), Failure> {
    let refuse = |error: ReplayError| Failure::input(advice(folder, error));
    let segments = Segment::list(folder)
        .map_err(|source| refuse(ReplayError::Folder { folder: folder.into(), source }))?;
    let mut segments = segments.iter().filter(|segment| segment.number >= from).peekable();
    if segments.peek().is_none() {
        return Err(refuse(ReplayError::Empty { folder: folder.into() }));
    }
    let mut out = terminal::json();
    for segment in segments {
        let mut records = segment.open().map_err(|error| refuse(error.into()))?;
        while let Some(record) = records.next() {
            let record = record.map_err(|error| refuse(error.into()))?;
            let (kind, value) = readable(&record);
            let line =
                json!({ "segment": segment.number, "record": records.number(), kind: value });
            writeln!(out, "{line}")?;
        }
        if let Some(torn) = records.torn() {
            terminal::note(format_args!("{}: {}", Segment::name(segment.number), not_closed(torn)));
        }
    }
    Ok(out.flush()?)
}

/// A record as JSON. A checkpoint is only meant for the engine, so only its size is shown.
fn readable(record: &Record) -> (&'static str, Value) {
    match record {
        Record::Header(header) => ("header", json!(header)),
        Record::Checkpoint(checkpoint) => {
            let cluster = checkpoint.cluster();
            let (nodes, pods) = (cluster.nodes.live().count(), cluster.pods.live().count());
            let (gangs, queues) = (cluster.gangs.iter().count(), cluster.queues.len());
            (
                "checkpoint",
                json!({ "nodes": nodes, "pods": pods, "gangs": gangs, "queues": queues }),
            )
        }
        Record::Event(event) => ("event", json!(event)),
        Record::Cycle(cycle) => ("cycle", json!(cycle)),
        Record::Config(config) => ("config", json!(config)),
    }
}
