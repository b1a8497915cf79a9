//! What is read of a segment that was cut, or in which bytes or records were changed: every record
//! in front of the damage, and a message that says where that is.

use std::fs;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use muster_journal::{Damage, ReadError, Record, Segment, Torn};

use super::{journal_of, replayed};

/// A segment of a few records, uncompressed.
struct Small {
    folder: tempfile::TempDir,
    file: Vec<u8>,
    stream: Vec<u8>,
    /// Where its records are, the end included.
    records: Vec<Range<usize>>,
    /// Their values, the end not included.
    values: Vec<String>,
}

/// What was read, and how that ended.
type Outcome = (Vec<String>, Result<Option<Torn>, ReadError>);

impl Small {
    fn of(folder: tempfile::TempDir) -> Small {
        let path = folder.path().join(Segment::name(1));
        let file = fs::read(&path).unwrap();
        let mut stream = Vec::new();
        GzDecoder::new(&file[..]).read_to_end(&mut stream).unwrap();
        let mut records = Vec::new();
        let mut start = stream.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        while start < stream.len() {
            let length = u32::from_le_bytes(stream[start..start + 4].try_into().unwrap());
            let end = start + 8 + length as usize;
            records.push(start..end);
            start = end;
        }
        let (values, Ok(None)) = read(folder.path()) else { panic!("it is whole") };
        Small { folder, file, stream, records, values }
    }

    fn recorded() -> Small {
        Small::of(journal_of(2).0)
    }

    /// In the format before this one.
    fn old() -> Small {
        let folder = tempfile::tempdir().unwrap();
        let old = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old_events/muster-000001.journal");
        fs::copy(old, folder.path().join(Segment::name(1))).unwrap();
        Small::of(folder)
    }

    fn read_file(&self, bytes: &[u8]) -> Outcome {
        fs::write(self.folder.path().join(Segment::name(1)), bytes).unwrap();
        read(self.folder.path())
    }

    /// Reads a segment that was closed with this content, or whose process was killed.
    fn read_stream(&self, content: &[u8], closed: bool) -> Outcome {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(content).unwrap();
        out.flush().unwrap();
        let killed = out.get_ref().clone();
        self.read_file(&if closed { out.finish().unwrap() } else { killed })
    }

    /// The title, and the records of these numbers, from 0.
    fn rewritten(&self, order: impl IntoIterator<Item = usize>) -> Vec<u8> {
        let mut content = self.stream[..self.records[0].start].to_vec();
        for number in order {
            content.extend(&self.stream[self.records[number].clone()]);
        }
        content
    }

    /// Its last record says that it was closed.
    fn last(&self) -> usize {
        self.records.len() - 1
    }

    /// Exactly the records in front of this one were read, and the damage was found in it.
    #[track_caller]
    fn assert_damaged(&self, outcome: Outcome, number: usize, offset: usize, what: &str) {
        let (read, Err(ReadError::Damaged { record, offset: found, .. })) = outcome else {
            panic!("{what}: {:?}", outcome.1)
        };
        assert_eq!((record as usize, found as usize), (number + 1, offset), "{what}");
        assert_eq!(read, self.values[..number], "{what}");
    }
}

fn read(folder: &Path) -> Outcome {
    let mut values = Vec::new();
    let mut records = match Segment::list(folder).unwrap()[0].open() {
        Ok(records) => records,
        Err(error) => return (values, Err(error)),
    };
    for record in records.by_ref() {
        match record {
            Ok(Record::Checkpoint(_)) => values.push("checkpoint".to_owned()),
            Ok(record) => values.push(format!("{record:?}")),
            Err(error) => return (values, Err(error)),
        }
    }
    (values, Ok(records.torn()))
}

#[test]
fn a_changed_byte_is_found_in_its_record() {
    let small = Small::recorded();
    for (number, record) in small.records.iter().enumerate() {
        for at in record.clone() {
            for (bit, closed) in [(0x01, true), (0x80, false)] {
                let mut content = small.stream.clone();
                content[at] ^= bit;
                let outcome = small.read_stream(&content, closed);
                let what = format!("byte {at}, bit {bit}");
                small.assert_damaged(outcome, number, record.start, &what);
            }
        }
    }
}

#[test]
fn a_changed_title_is_refused() {
    let small = Small::recorded();
    for at in 0..small.records[0].start {
        let mut content = small.stream.clone();
        content[at] ^= 1;
        let (read, end) = small.read_stream(&content, true);
        let error = end.expect_err("it is refused");
        let is_told = matches!(
            error,
            ReadError::Foreign { .. }
                | ReadError::Format { .. }
                | ReadError::Damaged { record: 1, .. }
        );
        assert!(is_told && read.is_empty(), "byte {at}: {error}");
    }
}

#[test]
fn records_out_of_order_are_found() {
    let small = Small::recorded();
    for first in 0..small.last() {
        for second in first + 1..=small.last() {
            let mut order: Vec<usize> = (0..=small.last()).collect();
            order.swap(first, second);
            let outcome = small.read_stream(&small.rewritten(order), true);
            let offset = small.records[first].start;
            small.assert_damaged(outcome, first, offset, &format!("{first} for {second}"));
        }
    }
}

#[test]
fn a_missing_record_is_found_by_the_next() {
    let small = Small::recorded();
    for missing in 0..small.last() {
        let order = (0..=small.last()).filter(|&number| number != missing);
        let outcome = small.read_stream(&small.rewritten(order), true);
        let offset = small.records[missing].start;
        small.assert_damaged(outcome, missing, offset, &format!("without {missing}"));
    }
}

#[test]
fn a_repeated_record_is_found() {
    let small = Small::recorded();
    for twice in 0..small.last() {
        let order = (0..=twice).chain(twice..=small.last());
        let outcome = small.read_stream(&small.rewritten(order), true);
        let offset = small.records[twice].end;
        small.assert_damaged(outcome, twice + 1, offset, &format!("{twice} twice"));
    }
}

#[test]
fn nothing_may_follow_the_end() {
    let small = Small::recorded();
    let offset = small.records[small.last()].start;
    let more = small.rewritten((0..=small.last()).chain([small.last()]));
    small.assert_damaged(small.read_stream(&more, true), small.last(), offset, "a record");
    let more = [&small.file[..], &small.file[..]].concat();
    small.assert_damaged(small.read_file(&more), small.last(), offset, "a second stream");
}

/// Where a content of this length ends, and how many of its records are whole.
fn expected(small: &Small, length: usize) -> (usize, Torn) {
    let whole = small.records.iter().take_while(|record| record.end <= length).count();
    let offset = match whole {
        0 if length < small.records[0].start => 0,
        _ => small.records[whole].start,
    };
    let bytes = (length - offset) as u64;
    (whole, Torn { record: whole as u64 + 1, offset: offset as u64, bytes })
}

#[test]
fn a_content_that_ends_early_is_read_up_to_there() {
    for (small, closed) in [
        (Small::recorded(), true),
        (Small::recorded(), false),
        // An old segment that ends between two records and was closed can't be told from a whole one.
        (Small::old(), false),
    ] {
        for length in 0..small.stream.len() {
            let (read, end) = small.read_stream(&small.stream[..length], closed);
            let (whole, torn) = expected(&small, length);
            assert_eq!(end.unwrap(), Some(torn), "cut at {length}");
            assert_eq!(read, small.values[..whole], "cut at {length}");
        }
    }
}

#[test]
fn a_file_that_was_cut_is_read_up_to_there_and_replays() {
    for small in [Small::recorded(), Small::old()] {
        let mut most = 0;
        for length in 0..small.file.len() {
            let (read, end) = small.read_file(&small.file[..length]);
            let torn = end.unwrap_or_else(|error| panic!("cut at {length}: {error}"));
            assert!(torn.is_some(), "cut at {length}");
            assert!(small.values.starts_with(&read) && read.len() >= most, "cut at {length}");
            most = read.len();
            if length % 16 == 0 {
                let summary = replayed(small.folder.path()).expect("no difference");
                assert_eq!(summary.segments[0].torn, torn, "cut at {length}");
            }
        }
        assert_eq!(most, small.values.len(), "nothing but the end of the file is missing");
    }
}

#[test]
fn a_changed_byte_of_the_file_is_told_or_changes_nothing() {
    let small = Small::recorded();
    for at in 0..small.file.len() {
        let mut file = small.file.clone();
        file[at] ^= 0x10;
        let (read, end) = small.read_file(&file);
        assert!(small.values.starts_with(&read), "byte {at}");
        match end {
            Err(ReadError::Damaged { .. }) | Ok(Some(_)) => {}
            // Only a file that begins otherwise is taken to be something else.
            Err(ReadError::Foreign { .. }) if at < small.file.len() / 2 => {}
            Err(error) => panic!("byte {at}: {error}"),
            // Some bits of a gzip stream mean nothing: a time in its head, padding after a flush.
            Ok(None) => assert_eq!(read, small.values, "byte {at}"),
        }
    }
}

#[test]
fn old_records_are_checked_one_by_one() {
    let small = Small::old();
    let mut content = small.stream.clone();
    let changed = &small.records[5];
    content[changed.end - 1] ^= 1;
    small.assert_damaged(small.read_stream(&content, true), 5, changed.start, "a wrong byte");
}

#[test]
fn the_messages_say_where_the_damage_is() {
    let small = Small::recorded();
    let damaged = &small.records[3];
    let mut content = small.stream.clone();
    content[damaged.end - 1] ^= 1;
    let (_, end) = small.read_stream(&content, true);
    let error = end.unwrap_err();
    assert!(matches!(error, ReadError::Damaged { damage: Damage::Checksum, .. }), "{error:?}");
    let expected = format!(
        "muster-000001.journal: record 4, at byte {} of the uncompressed stream, is damaged: its \
         checksum is wrong: it was changed, or it is not the record that came next",
        damaged.start
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
}
