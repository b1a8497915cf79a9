//! Records as bytes: length and checksum, four bytes each, little-endian; then the kind in one
//! byte, and the value as MessagePack with the names of its fields.

use std::io::{self, Read, Write};

use flate2::Crc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::record::Kind;

const HEAD: usize = 8;

/// A plan for a hundred thousand pods is shorter. A record that claims to be longer, and isn't a
/// checkpoint, is damaged.
const LONGEST: u32 = 1 << 26;

fn encode(out: &mut impl Write, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    out.write_all(&[kind as u8])?;
    value
        .serialize(&mut rmp_serde::Serializer::new(out).with_struct_map())
        .map_err(io::Error::other)
}

fn head(length: usize, checksum: u32) -> io::Result<[u8; HEAD]> {
    let length =
        u32::try_from(length).map_err(|_| io::Error::other("a record is longer than 4 GiB"))?;
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&checksum.to_le_bytes());
    Ok(head)
}

/// Appends a record; if it fails, the buffer is unchanged.
pub fn append(buffer: &mut Vec<u8>, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    let start = buffer.len();
    buffer.extend([0; HEAD]);
    let done = encode(buffer, kind, value).and_then(|()| {
        let payload = &buffer[start + HEAD..];
        let mut crc = Crc::new();
        crc.update(payload);
        head(payload.len(), crc.sum())
    });
    match done {
        Ok(head) => buffer[start..start + HEAD].copy_from_slice(&head),
        Err(_) => buffer.truncate(start),
    }
    done.map(drop)
}

/// Writes a record without holding all its bytes in memory: it is measured first.
pub fn write(out: &mut impl Write, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    let mut measure = Measure::default();
    encode(&mut measure, kind, value)?;
    out.write_all(&head(measure.length, measure.crc.sum())?)?;
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    encode(&mut out, kind, value)?;
    out.flush()
}

#[derive(Default)]
struct Measure {
    length: usize,
    crc: Crc,
}

impl Write for Measure {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len();
        self.crc.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes next in a segment.
pub enum Next {
    /// A record. Its value is in the buffer.
    Record(Kind),
    /// The end of a segment that was closed properly.
    End,
    /// The end of a segment whose writer was stopped early.
    CutShort,
    Damaged(String),
}

/// Reads the value of a record into the buffer.
pub fn read(input: &mut impl Read, buffer: &mut Vec<u8>) -> io::Result<Next> {
    buffer.clear();
    // The kind is read with the head, but the checksum covers it too.
    match input.take(HEAD as u64 + 1).read_to_end(buffer) {
        Ok(0) => return Ok(Next::End),
        Ok(read) if read == HEAD + 1 => {}
        other => return broken_off(other),
    }
    let number = |at: usize| u32::from_le_bytes(buffer[at..at + 4].try_into().expect("four bytes"));
    let (length, checksum, kind) = (number(0), number(4), buffer[HEAD]);
    let Some(kind) = Kind::of(kind).filter(|kind| *kind == Kind::Checkpoint || length <= LONGEST)
    else {
        return Ok(Next::Damaged(format!("no record is of kind {kind} and {length} bytes long")));
    };
    buffer.clear();
    let rest = u64::from(length).saturating_sub(1);
    match input.take(rest).read_to_end(buffer) {
        Ok(read) if read as u64 == rest => {}
        other => return broken_off(other),
    }
    let mut crc = Crc::new();
    crc.update(&[kind as u8]);
    crc.update(buffer);
    match crc.sum() == checksum {
        true => Ok(Next::Record(kind)),
        false => Ok(Next::Damaged("its checksum is wrong".into())),
    }
}

/// The compressed stream tells whether it merely stops or is damaged.
fn broken_off(read: io::Result<usize>) -> io::Result<Next> {
    match read {
        Ok(_) => Ok(Next::Damaged("the segment ends inside it".into())),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Next::CutShort),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) =>
        {
            Ok(Next::Damaged(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    rmp_serde::from_slice(bytes).map_err(|error| error.to_string())
}
