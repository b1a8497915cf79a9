//! Repeats every decision and compares.

use std::io::{self, ErrorKind::NotFound};
use std::path::{Path, PathBuf};

use muster_api::Time;
use muster_engine::Engine;
use muster_engine::config::Config;
use serde::Serialize;

use crate::difference::Difference;
use crate::record::{Configuration, Cycle, Header, Record};
use crate::segment::{ReadError, Records, Segment, Torn};

/// What was replayed without a difference.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub segments: Vec<Played>,
    pub events: u64,
    pub cycles: u64,
    pub binds: u64,
    /// The first and the last cycle.
    pub from: Option<Time>,
    pub to: Option<Time>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Played {
    pub segment: String,
    /// The version of muster that recorded it.
    pub muster: String,
    pub events: u64,
    pub cycles: u64,
    pub binds: u64,
    pub from: Option<Time>,
    pub to: Option<Time>,
    /// Its writer was stopped before it could close the segment; what was written has been
    /// replayed.
    pub cut_short: bool,
    /// If so, where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torn: Option<Torn>,
}

/// How far a replay has got.
#[derive(Copy, Clone, Debug)]
pub struct Progress {
    pub segment: u64,
    pub bytes: u64,
    pub of_bytes: u64,
    pub cycles: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("{0}")]
    Difference(Box<Difference>),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("reading the folder {}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("no segment of a journal in {}: expected files like {}", folder.display(), Segment::name(1))]
    Empty { folder: PathBuf },
    #[error("{segment}, record {record}: this version rejects the recorded configuration: {what}")]
    Config { segment: String, record: u64, what: String },
    #[error("{segment}, record {record}: {what}")]
    Disorder { segment: String, record: u64, what: &'static str },
}

/// Replays the segments of a folder, from a number on, each from its own checkpoint. Stops at the
/// first difference. Segments that are deleted by a running scheduler meanwhile are skipped.
pub fn replay(
    folder: &Path,
    from: u64,
    mut progress: impl FnMut(Progress),
    mut played: impl FnMut(&Played),
) -> Result<Summary, ReplayError> {
    let listed = Segment::list(folder);
    let mut segments =
        listed.map_err(|source| ReplayError::Folder { folder: folder.into(), source })?;
    segments.retain(|segment| segment.number >= from);
    if segments.is_empty() {
        return Err(ReplayError::Empty { folder: folder.into() });
    }
    let of_bytes = segments.iter().map(|segment| segment.bytes).sum();
    let mut summary = Summary::default();
    let mut before = 0;
    for segment in &segments {
        let cycles = summary.cycles;
        let told = |bytes, more| {
            progress(Progress {
                segment: segment.number,
                bytes: before + bytes,
                of_bytes,
                cycles: cycles + more,
            })
        };
        let done = match play(segment, told) {
            Err(ReplayError::Read(ReadError::Io { source, .. })) if source.kind() == NotFound => {
                continue;
            }
            done => done?,
        };
        before += segment.bytes;
        played(&done);
        summary.add(done);
    }
    Ok(summary)
}

impl Summary {
    fn add(&mut self, played: Played) {
        self.events += played.events;
        self.cycles += played.cycles;
        self.binds += played.binds;
        self.from = self.from.or(played.from);
        self.to = played.to.or(self.to);
        self.segments.push(played);
    }
}

fn play(segment: &Segment, mut progress: impl FnMut(u64, u64)) -> Result<Played, ReplayError> {
    let name = Segment::name(segment.number);
    let mut records = segment.open()?;
    let mut played = Played { segment: name, ..Played::default() };
    if let Some((header, mut engine)) = begin(&mut records, &played.segment)? {
        played.muster = header.muster;
        while let Some(record) = records.next().transpose()? {
            let at = records.number();
            match record {
                Record::Event(event) => {
                    played.events += 1;
                    engine.apply(*event);
                }
                Record::Config(config) => engine.configure(parse(&config, &played.segment, at)?),
                Record::Cycle(cycle) => decide(&mut engine, cycle, &mut played, at)?,
                Record::Header(_) | Record::Checkpoint(_) => {
                    return Err(disorder(&played.segment, at, "a second start of the segment"));
                }
            }
            if at % 256 == 0 {
                progress(records.bytes(), played.cycles);
            }
        }
    }
    played.torn = records.torn();
    played.cut_short = played.torn.is_some();
    Ok(played)
}

/// The engine as it was at the start of the segment; `None` if the writer was stopped before it had
/// written that.
fn begin(records: &mut Records, name: &str) -> Result<Option<(Header, Engine)>, ReplayError> {
    let header = match records.next().transpose()? {
        Some(Record::Header(header)) => header,
        Some(_) => {
            return Err(disorder(
                name,
                records.number(),
                "the segment doesn't start with its header",
            ));
        }
        None => return Ok(None),
    };
    let checkpoint = match records.next().transpose()? {
        Some(Record::Checkpoint(checkpoint)) => checkpoint,
        Some(_) => {
            return Err(disorder(name, records.number(), "no checkpoint follows the header"));
        }
        None => return Ok(None),
    };
    let config = parse(&header.config, name, 1)?;
    Ok(Some((header, Engine::restore(config, *checkpoint))))
}

fn decide(
    engine: &mut Engine,
    cycle: Cycle,
    played: &mut Played,
    at: u64,
) -> Result<(), ReplayError> {
    let Cycle { now, plan: recorded } = cycle;
    let computed = engine.cycle(now).recorded();
    if recorded != computed {
        let (segment, muster) = (played.segment.clone(), played.muster.clone());
        let found = Difference { segment, record: at, now, muster, recorded, computed };
        return Err(ReplayError::Difference(Box::new(found)));
    }
    played.cycles += 1;
    played.binds += recorded.binds.len() as u64;
    played.from.get_or_insert(now);
    played.to = Some(now);
    Ok(())
}

fn parse(config: &Configuration, segment: &str, record: u64) -> Result<Config, ReplayError> {
    Config::parse(&config.name, &config.text).map_err(|errors| {
        let what: Vec<String> = errors.iter().map(ToString::to_string).collect();
        ReplayError::Config { segment: segment.into(), record, what: what.join("; ") }
    })
}

fn disorder(segment: &str, record: u64, what: &'static str) -> ReplayError {
    ReplayError::Disorder { segment: segment.into(), record, what }
}
