//! Records as bytes: length and checksum, four bytes each, little-endian; then the kind in one
//! byte, and the value as MessagePack with the names of its fields.
//!
//! The checksum of a record continues that of the record before it, and the first one that of the
//! title. So a record that is missing, repeated or out of order is found like a wrong byte. In
//! format 1 the checksum of each record stood alone.

use std::io::{self, Read, Write};

use flate2::Crc;
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::codec::{self, DecodeError};
use crate::record::Kind;

const HEAD: usize = 8;

/// A plan for a hundred thousand pods is shorter. A record that claims to be longer, and isn't a
/// checkpoint, is damaged.
const LONGEST: u32 = 1 << 26;

/// The last format in which the checksum of each record stood alone.
const UNCHAINED: u32 = 1;

fn encode(out: &mut dyn Write, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    out.write_all(&[kind as u8])?;
    codec::encode(out, value)
}

fn length_bytes(length: usize) -> io::Result<[u8; 4]> {
    let length =
        u32::try_from(length).map_err(|_| io::Error::other("a record is longer than 4 GiB"))?;
    Ok(length.to_le_bytes())
}

/// Appends a record whose checksum [`seal`] will write; on error the buffer is as it was.
pub fn append(buffer: &mut Vec<u8>, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    let start = buffer.len();
    buffer.extend([0; HEAD]);
    let done = encode(buffer, kind, value).and_then(|()| length_bytes(buffer.len() - start - HEAD));
    match done {
        Ok(length) => buffer[start..start + 4].copy_from_slice(&length),
        Err(_) => buffer.truncate(start),
    }
    done.map(drop)
}

/// Writes the checksums of appended records.
pub fn seal(mut records: &mut [u8], chain: &mut Crc) {
    while !records.is_empty() {
        let (head, rest) = records.split_at_mut(HEAD);
        let (payload, following) = rest.split_at_mut(number(head, 0) as usize);
        chain.update(payload);
        head[4..].copy_from_slice(&chain.sum().to_le_bytes());
        records = following;
    }
}

/// Writes a record without holding all its bytes in memory: it is measured first.
pub fn write(
    out: &mut impl Write,
    kind: Kind,
    value: &impl Serialize,
    chain: &mut Crc,
) -> io::Result<()> {
    let mut measure = Measure { length: 0, chain };
    encode(&mut measure, kind, value)?;
    out.write_all(&length_bytes(measure.length)?)?;
    out.write_all(&chain.sum().to_le_bytes())?;
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    encode(&mut out, kind, value)?;
    out.flush()
}

struct Measure<'c> {
    length: usize,
    chain: &'c mut Crc,
}

impl Write for Measure<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        self.chain.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes next in a segment.
pub enum Next {
    /// [`Reader::value`] decodes it.
    Record(Kind),
    /// It was closed in order.
    Closed,
    /// Its writer was stopped before it could close it, and left so many bytes of a record.
    Torn(u64),
    Damaged(Damage),
}

/// What is wrong with a record.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error("no record is of kind {kind} and {length} bytes long")]
    Head { kind: u8, length: u32 },
    #[error("its value ends before the length that it states")]
    Length,
    #[error("its checksum is wrong: it was changed, or it is not the record that came next")]
    Checksum,
    #[error("its value is of another form: {0}")]
    Value(#[from] DecodeError),
    #[error("the compressed data makes no sense: {0}")]
    Compression(io::Error),
    #[error("the segment ends there, but something follows it")]
    Overlong,
}

/// Reads records one after the other.
pub struct Reader<R> {
    pub input: R,
    format: u32,
    chain: Crc,
    value: Vec<u8>,
    offset: u64,
}

impl<R: Read> Reader<R> {
    /// Of a segment whose title was read already.
    pub fn new(input: R, format: u32, title: &[u8]) -> Reader<R> {
        let mut chain = Crc::new();
        chain.update(title);
        Reader { input, format, chain, value: Vec::new(), offset: title.len() as u64 }
    }

    /// Where the next record begins, in the uncompressed stream.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn value<T: DeserializeOwned>(&self) -> Result<T, Damage> {
        Ok(codec::decode(&self.value)?)
    }

    pub fn next(&mut self) -> io::Result<Next> {
        // The kind is read with the head, but the checksum covers it.
        match fill(&mut self.input, HEAD as u64 + 1, &mut self.value)? {
            Filled::Whole => {}
            Filled::Ended if self.value.is_empty() && self.format == UNCHAINED => {
                return Ok(Next::Closed);
            }
            Filled::Ended | Filled::CutOff => return Ok(Next::Torn(self.value.len() as u64)),
            Filled::Nonsense(error) => return Ok(Next::Damaged(Damage::Compression(error))),
        }
        let (length, checksum, kind) =
            (number(&self.value, 0), number(&self.value, 4), self.value[HEAD]);
        let Some(kind) =
            Kind::of(kind).filter(|kind| *kind == Kind::Checkpoint || length <= LONGEST)
        else {
            return Ok(Next::Damaged(Damage::Head { kind, length }));
        };
        let rest = u64::from(length).saturating_sub(1);
        match fill(&mut self.input, rest, &mut self.value)? {
            Filled::Whole => {}
            Filled::Nonsense(error) => return Ok(Next::Damaged(Damage::Compression(error))),
            // A value that was cut off is not whole, so the length of this one is wrong.
            Filled::Ended | Filled::CutOff if self.value::<IgnoredAny>().is_ok() => {
                return Ok(Next::Damaged(Damage::Length));
            }
            Filled::Ended | Filled::CutOff => {
                return Ok(Next::Torn((HEAD + 1 + self.value.len()) as u64));
            }
        }
        if self.format == UNCHAINED {
            self.chain.reset();
        }
        self.chain.update(&[kind as u8]);
        self.chain.update(&self.value);
        if self.chain.sum() != checksum {
            return Ok(Next::Damaged(Damage::Checksum));
        }
        self.offset += (HEAD + 1) as u64 + rest;
        match kind {
            Kind::End => self.end(),
            kind => Ok(Next::Record(kind)),
        }
    }

    /// Behind the last record there is only the checksum of the compressed stream.
    fn end(&mut self) -> io::Result<Next> {
        Ok(match fill(&mut self.input, 1, &mut self.value)? {
            Filled::Whole => Next::Damaged(Damage::Overlong),
            Filled::Ended => Next::Closed,
            Filled::CutOff => Next::Torn(0),
            Filled::Nonsense(error) => Next::Damaged(Damage::Compression(error)),
        })
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub enum Filled {
    Whole,
    /// The compressed stream was closed before there were so many bytes.
    Ended,
    /// The file ends in the middle of the compressed stream.
    CutOff,
    /// The compressed stream is damaged.
    Nonsense(io::Error),
}

/// Reads so many bytes into the emptied buffer, or as many as there are.
pub fn fill(input: &mut impl Read, bytes: u64, buffer: &mut Vec<u8>) -> io::Result<Filled> {
    buffer.clear();
    match input.take(bytes).read_to_end(buffer) {
        Ok(read) if read as u64 == bytes => Ok(Filled::Whole),
        Ok(_) => Ok(Filled::Ended),
        Err(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(Filled::CutOff),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Ok(Filled::Nonsense(error)),
            _ => Err(error),
        },
    }
}
