//! The files of a journal: `muster-000001.journal`, `muster-000002.journal` … Each is one gzip
//! stream: a line with the version of the format, then records.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use serde::Serialize;

use crate::frame::{Damage, Next, Reader};
use crate::record::{Kind, Record};

/// The format that is written. Goes up when records change so that an older muster would misread
/// them; new fields and events don't count.
pub const FORMAT: u32 = 2;
/// The oldest format that is read: the one before.
const OLDEST: u32 = FORMAT - 1;
const TITLE: &str = "muster journal ";
const LONGEST_TITLE: u64 = 64;

/// The first line of a segment.
pub fn title_of(format: u32) -> String {
    format!("{TITLE}{format}\n")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub number: u64,
    pub path: PathBuf,
    pub bytes: u64,
}

impl Segment {
    pub fn name(number: u64) -> String {
        format!("muster-{number:06}.journal")
    }

    /// The segments of a folder in order; other files are left alone.
    pub fn list(folder: &Path) -> io::Result<Vec<Segment>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_prefix("muster-")?.strip_suffix(".journal"));
            if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
                // A running scheduler may delete the oldest meanwhile.
                match entry.metadata() {
                    Ok(data) => {
                        segments.push(Segment { number, path: entry.path(), bytes: data.len() })
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        segments.sort_by_key(|segment| segment.number);
        Ok(segments)
    }

    /// The records of a segment in order.
    pub fn open(&self) -> Result<Records, ReadError> {
        let name = self.path.display().to_string();
        let unread = |source| ReadError::Io { name: name.clone(), source };
        let file = File::open(&self.path).map_err(unread)?;
        let mut input = BufReader::new(GzDecoder::new(BufReader::new(file)));
        let mut title = Vec::new();
        let (format, torn) = match read_title(&mut input, &mut title).map_err(unread)? {
            Title::Format(format) => (format, None),
            Title::Torn => {
                let bytes = title.len() as u64;
                (FORMAT, Some(Torn { record: 1, offset: 0, bytes }))
            }
            Title::Unknown(found) => return Err(ReadError::Format { name, found }),
            Title::Foreign => return Err(ReadError::Foreign { name }),
            Title::Damaged(error) => {
                let damage = Damage::Compression(error);
                return Err(ReadError::Damaged { name, record: 1, offset: 0, damage });
            }
        };
        let input = Reader::new(input, format, &title);
        Ok(Records { name, input, number: 0, torn, ended: torn.is_some() })
    }
}

enum Title {
    Format(u32),
    /// The segment ends inside it.
    Torn,
    /// A format that this muster doesn't read.
    Unknown(u32),
    Foreign,
    /// The data after the head of the compressed file makes no sense.
    Damaged(io::Error),
}

fn read_title(
    input: &mut BufReader<GzDecoder<impl BufRead>>,
    title: &mut Vec<u8>,
) -> io::Result<Title> {
    match input.by_ref().take(LONGEST_TITLE).read_until(b'\n', title) {
        Ok(_) => {}
        Err(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof => return Ok(Title::Torn),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                let has_head = input.get_ref().header().is_some();
                return Ok(if has_head { Title::Damaged(error) } else { Title::Foreign });
            }
            _ => return Err(error),
        },
    }
    let Ok(title) = str::from_utf8(title) else { return Ok(Title::Foreign) };
    let begins = |format| title_of(format).starts_with(title);
    let is_torn = !title.ends_with('\n') && (OLDEST..=FORMAT).any(begins);
    Ok(match title.trim_end().strip_prefix(TITLE) {
        _ if is_torn => Title::Torn,
        Some(found) => match found.parse::<u32>() {
            Ok(format @ OLDEST..=FORMAT) => Title::Format(format),
            Ok(other) => Title::Unknown(other),
            Err(_) => Title::Foreign,
        },
        None => Title::Foreign,
    })
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("reading {name}")]
    Io { name: String, source: io::Error },
    #[error("{name} is not a journal of muster")]
    Foreign { name: String },
    #[error(
        "{name} is in format {found}, and this muster ({}) reads formats {OLDEST} and {FORMAT}: use the muster that wrote it",
        env!("CARGO_PKG_VERSION")
    )]
    Format { name: String, found: u32 },
    #[error(
        "{name}: record {record}, at byte {offset} of the uncompressed stream, is damaged: {damage}"
    )]
    Damaged { name: String, record: u64, offset: u64, damage: Damage },
}

/// How a segment ends that was not closed: its process was killed, the disk was full, the file was
/// cut, or its writer is still at work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Torn {
    /// The first record that is not whole, from 1.
    pub record: u64,
    /// Where it begins, in the uncompressed stream.
    pub offset: u64,
    /// How much of it is there: nothing, if the record before it is the end of the file.
    pub bytes: u64,
}

/// The records of a segment, as an iterator that ends after the first error.
pub struct Records {
    name: String,
    input: Reader<BufReader<GzDecoder<BufReader<File>>>>,
    number: u64,
    torn: Option<Torn>,
    ended: bool,
}

impl Records {
    /// The number of the record that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// After the last record: how the segment ends, if its writer didn't close it.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }

    /// How much of the file has been read.
    pub fn bytes(&self) -> u64 {
        let mut file = self.input.input.get_ref().get_ref().get_ref();
        file.stream_position().unwrap_or(0)
    }

    fn read(&mut self) -> Result<Option<Record>, ReadError> {
        let (record, offset) = (self.number + 1, self.input.offset());
        let name = || self.name.clone();
        let damaged = |damage| ReadError::Damaged { name: name(), record, offset, damage };
        let unread = |source| ReadError::Io { name: name(), source };
        let found = match self.input.next().map_err(unread)? {
            Next::Record(kind) => self.decode(kind).map_err(damaged)?,
            Next::Damaged(damage) => return Err(damaged(damage)),
            Next::Torn(bytes) => {
                self.torn = Some(Torn { record, offset, bytes });
                return Ok(None);
            }
            Next::Closed => {
                // A second stream behind the first one would not be read.
                let file = self.input.input.get_mut().get_mut();
                let is_over = file.fill_buf().map_err(unread)?.is_empty();
                return if is_over { Ok(None) } else { Err(damaged(Damage::Overlong)) };
            }
        };
        self.number = record;
        Ok(Some(found))
    }

    fn decode(&self, kind: Kind) -> Result<Record, Damage> {
        let input = &self.input;
        Ok(match kind {
            Kind::Header => Record::Header(input.value()?),
            Kind::Checkpoint => Record::Checkpoint(input.value()?),
            Kind::Event => Record::Event(input.value()?),
            Kind::Cycle => Record::Cycle(input.value()?),
            Kind::Config => Record::Config(input.value()?),
            Kind::End => unreachable!("the reader keeps it for itself"),
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Result<Record, ReadError>> {
        if self.ended {
            return None;
        }
        let record = self.read().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}
