//! The journal's own thread: takes encoded records, compresses them, writes them into segments and
//! deletes the oldest segments. The disk may be slow or full; no other thread waits for it.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use muster_engine::Checkpoint;

use crate::frame;
use crate::journal::Limits;
use crate::record::{Header, Kind};
use crate::segment::{FORMAT, Segment, title_of};

pub enum Message {
    /// Begin a new segment.
    Segment(Header, Box<Checkpoint>),
    /// Encoded records, to be written soon.
    Records(Vec<u8>),
}

/// State that the two threads share.
#[derive(Default)]
pub struct Shared {
    /// Bytes of records that wait to be written.
    pub queued: AtomicUsize,
    /// The segment has reached its size.
    pub full: AtomicBool,
    /// Writing failed; records are lost until a new segment begins.
    pub failed: AtomicBool,
    pub error: Mutex<Option<String>>,
    pub written: AtomicU64,
}

impl Shared {
    pub fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_error(&self, error: Option<String>) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

pub struct Writer<'s> {
    pub folder: PathBuf,
    pub limits: Limits,
    pub shared: &'s Shared,
    /// The number of the next segment.
    pub next: u64,
    /// Created by the caller that starts the journal, so that it hears at once if that fails.
    pub first: Option<File>,
    open: Option<Open>,
}

/// The segment that is being written.
struct Open {
    stream: GzEncoder<File>,
    /// The checksum of all records so far.
    chain: Crc,
    /// Its bytes after header and checkpoint.
    begun: u64,
}

impl Open {
    /// Writes what every segment starts with.
    fn begin(file: File, header: &Header, checkpoint: &Checkpoint) -> io::Result<Open> {
        let stream = GzEncoder::new(file, Compression::fast());
        let mut open = Open { stream, chain: Crc::new(), begun: 0 };
        let title = title_of(FORMAT);
        open.stream.write_all(title.as_bytes())?;
        open.chain.update(title.as_bytes());
        frame::write(&mut open.stream, Kind::Header, header, &mut open.chain)?;
        frame::write(&mut open.stream, Kind::Checkpoint, checkpoint, &mut open.chain)?;
        open.begun = open.flush()?;
        Ok(open)
    }

    fn write(&mut self, records: &mut [u8]) -> io::Result<()> {
        frame::seal(records, &mut self.chain);
        self.stream.write_all(records)
    }

    /// How long the file is with everything that it was given.
    fn flush(&mut self) -> io::Result<u64> {
        self.stream.flush()?;
        self.stream.get_ref().stream_position()
    }

    fn close(mut self) -> io::Result<()> {
        frame::write(&mut self.stream, Kind::End, &(), &mut self.chain)?;
        self.stream.finish().map(drop)
    }
}

impl<'s> Writer<'s> {
    pub fn new(
        folder: PathBuf,
        limits: Limits,
        shared: &'s Shared,
        first: (u64, File),
    ) -> Writer<'s> {
        Writer { folder, limits, shared, next: first.0, first: Some(first.1), open: None }
    }

    /// Until the other side hangs up.
    pub fn run(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            let mut done = self.take(message);
            // Writes everything that waits, then flushes once.
            while let (Ok(()), Ok(message)) = (&done, messages.try_recv()) {
                done = self.take(message);
            }
            if let Err(error) = done.and_then(|()| self.flush()) {
                self.fail(&error);
            }
        }
        if let Err(error) = self.close() {
            self.fail(&error);
        }
    }

    fn take(&mut self, message: Message) -> io::Result<()> {
        match message {
            Message::Segment(header, checkpoint) => self.begin(&header, &checkpoint),
            Message::Records(mut bytes) => {
                let done = self.open.as_mut().map_or(Ok(()), |open| open.write(&mut bytes));
                self.shared.queued.fetch_sub(bytes.len(), Ordering::Relaxed);
                done
            }
        }
    }

    fn begin(&mut self, header: &Header, checkpoint: &Checkpoint) -> io::Result<()> {
        self.close()?;
        let path = self.folder.join(Segment::name(self.next));
        let file = self.first.take().map_or_else(|| File::create_new(&path), Ok)?;
        self.next += 1;
        match Open::begin(file, header, checkpoint) {
            Ok(open) => {
                self.open = Some(open);
                self.shared.full.store(false, Ordering::Relaxed);
                // An old segment that can't be deleted is no reason to stop writing.
                self.shared.set_error(self.forget_oldest().err().map(|error| causes(&error)));
                Ok(())
            }
            Err(error) => {
                // Without its checkpoint it is of no use, and the disk may be full.
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let bytes = open.flush()?;
        self.shared.written.store(bytes, Ordering::Relaxed);
        // At least as many bytes of records as of checkpoint, or a small limit would lead to
        // nothing but checkpoints.
        let full = bytes >= self.limits.segment_bytes && bytes >= 2 * open.begun;
        self.shared.full.store(full, Ordering::Relaxed);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), Open::close)
    }

    fn fail(&mut self, error: &io::Error) {
        self.open = None;
        self.shared.failed.store(true, Ordering::Relaxed);
        self.shared.set_error(Some(causes(error)));
    }

    fn forget_oldest(&self) -> io::Result<()> {
        let segments = Segment::list(&self.folder)?;
        let old = segments.len().saturating_sub(self.limits.segments.max(1));
        segments[..old].iter().try_for_each(|segment| fs::remove_file(&segment.path))
    }
}

fn causes(error: &io::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn Error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<String>>().join(": ")
}
