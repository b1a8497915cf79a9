//! The files of a journal: `muster-000001.journal`, `muster-000002.journal` … Each is one gzip
//! stream: a line with the version of the format, then records.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;

use crate::frame::{self, Next};
use crate::record::{Kind, Record};

/// Raised when records change so that an older muster would misread them. New fields and events
/// don't count.
pub const FORMAT: u32 = 1;
pub const TITLE: &str = "muster journal ";

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
        let file = File::open(&self.path)
            .map_err(|source| ReadError::Io { name: name.clone(), source })?;
        let input = BufReader::new(GzDecoder::new(BufReader::new(file)));
        let mut records = Records { name, input, buffer: Vec::new(), number: 0, cut_short: false };
        records.read_title()?;
        Ok(records)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("reading {name}")]
    Io { name: String, source: io::Error },
    #[error("{name} is not a journal of muster")]
    Foreign { name: String },
    #[error(
        "{name} is in format {found}, and this muster ({}) reads format {FORMAT}: use the muster that wrote it",
        env!("CARGO_PKG_VERSION")
    )]
    Format { name: String, found: String },
    #[error("{name}: record {record} is damaged: {what}")]
    Damaged { name: String, record: u64, what: String },
}

/// The records of a segment, as an iterator.
pub struct Records {
    name: String,
    input: BufReader<GzDecoder<BufReader<File>>>,
    buffer: Vec<u8>,
    number: u64,
    cut_short: bool,
}

impl Records {
    /// The number of the record that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// After the last record: whether the writer was stopped before it could close the segment.
    pub fn cut_short(&self) -> bool {
        self.cut_short
    }

    /// How much of the file has been read.
    pub fn bytes(&self) -> u64 {
        let mut file = self.input.get_ref().get_ref().get_ref();
        file.stream_position().unwrap_or(0)
    }

    fn read_title(&mut self) -> Result<(), ReadError> {
        let mut title = Vec::new();
        let read = self.input.by_ref().take(64).read_until(b'\n', &mut title);
        let name = self.name.clone();
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.cut_short = true;
                return Ok(());
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
                ) =>
            {
                return Err(ReadError::Foreign { name });
            }
            Err(source) => return Err(ReadError::Io { name, source }),
            Ok(_) => {}
        }
        let found =
            str::from_utf8(&title).ok().and_then(|title| title.trim_end().strip_prefix(TITLE));
        match found {
            Some(found) if found == FORMAT.to_string() => Ok(()),
            Some(found) => Err(ReadError::Format { name, found: found.to_owned() }),
            None => Err(ReadError::Foreign { name }),
        }
    }

    fn record(&self, kind: Kind) -> Result<Record, String> {
        let bytes = &self.buffer;
        Ok(match kind {
            Kind::Header => Record::Header(frame::decode(bytes)?),
            Kind::Checkpoint => Record::Checkpoint(frame::decode(bytes)?),
            Kind::Event => Record::Event(frame::decode(bytes)?),
            Kind::Cycle => Record::Cycle(frame::decode(bytes)?),
            Kind::Config => Record::Config(frame::decode(bytes)?),
        })
    }
}

impl Iterator for Records {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Result<Record, ReadError>> {
        if self.cut_short {
            return None;
        }
        let next = match frame::read(&mut self.input, &mut self.buffer) {
            Ok(next) => next,
            Err(source) => return Some(Err(ReadError::Io { name: self.name.clone(), source })),
        };
        let record = match next {
            Next::End => return None,
            Next::CutShort => {
                self.cut_short = true;
                return None;
            }
            Next::Record(kind) => self.record(kind),
            Next::Damaged(what) => Err(what),
        };
        self.number += 1;
        let (name, record_number) = (&self.name, self.number);
        Some(record.map_err(|what| ReadError::Damaged {
            name: name.clone(),
            record: record_number,
            what,
        }))
    }
}
