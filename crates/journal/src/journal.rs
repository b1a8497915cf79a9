//! The scheduler's side of a journal: it is told of every event, cycle and configuration as it
//! happens, on the thread of the engine. It encodes records and hands them over; it never waits for
//! the disk. When the disk can't keep up, the journal leaves a gap and goes on with a new segment.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use muster_api::Time;
use muster_engine::{Checkpoint, Event, Plan};
use serde::Serialize;

use crate::frame;
use crate::record::{Configuration, Cycle, Header, Kind};
use crate::segment::Segment;
use crate::writer::{Message, Shared, Writer};

/// With more bytes than these waiting to be written, the disk can't keep up.
const MOST_QUEUED: usize = 64 << 20;
/// Events are handed over with the next cycle, or as soon as there are this many bytes of them.
const BATCH: usize = 64 << 10;
/// The pause after a failure, such as a full disk.
const RETRY: Duration = Duration::from_secs(10);

/// How much of the disk a journal may use.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A segment that has become longer than this is followed by a new one.
    pub segment_bytes: u64,
    /// If all segments together are larger than this, the oldest are deleted.
    pub segments: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { segment_bytes: 64 << 20, segments: 16 }
    }
}

pub struct Journal {
    header: Header,
    /// Encoded, but not handed over yet.
    batch: Vec<u8>,
    sender: Option<Sender<Message>>,
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    /// Nothing is recorded before a checkpoint.
    recording: bool,
    retry_at: Option<Instant>,
    gaps: u64,
    /// When a cycle at rest would change something by time alone. Set if the last recorded cycle
    /// planned nothing, and nothing has happened since.
    rests: Option<Option<Time>>,
    most_queued: usize,
}

/// The state of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How often records were lost because the disk was slow or full.
    pub gaps: u64,
    /// Why nothing is written at present.
    pub error: Option<String>,
    /// Bytes of the current segment so far.
    pub segment_bytes: u64,
}

impl Journal {
    /// Begins a new segment in the folder, after the existing ones.
    pub fn create(
        folder: &Path,
        limits: Limits,
        scheduler_names: Vec<String>,
        config: Configuration,
    ) -> io::Result<Journal> {
        fs::create_dir_all(folder)?;
        let next = Segment::list(folder)?.last().map_or(1, |last| last.number + 1);
        let first = (next, File::create_new(folder.join(Segment::name(next)))?);
        let (sender, messages) = channel();
        let shared = Arc::new(Shared::default());
        let (folder, its_shared): (PathBuf, _) = (folder.into(), shared.clone());
        let writer = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || Writer::new(folder, limits, &its_shared, first).run(&messages))?;
        let header = Header { muster: env!("CARGO_PKG_VERSION").into(), scheduler_names, config };
        Ok(Journal {
            header,
            batch: Vec::new(),
            sender: Some(sender),
            shared,
            writer: Some(writer),
            recording: false,
            retry_at: None,
            gaps: 0,
            rests: None,
            most_queued: MOST_QUEUED,
        })
    }

    /// Whether a new segment should begin: there is none yet, the current one is long enough, or
    /// records were lost.
    pub fn wants_checkpoint(&self) -> bool {
        if self.recording {
            return self.shared.full.load(Ordering::Relaxed);
        }
        let caught_up = self.shared.queued.load(Ordering::Relaxed) <= self.most_queued / 4;
        caught_up && self.retry_at.is_none_or(|time| time <= Instant::now())
    }

    /// Begins a segment. The engine must have applied exactly the events that the journal was told.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) {
        self.hand_over();
        // A failure of the old segment says nothing about this one.
        self.shared.failed.store(false, Ordering::Relaxed);
        self.shared.full.store(false, Ordering::Relaxed);
        self.recording = true;
        self.retry_at = None;
        self.send(Message::Segment(self.header.clone(), Box::new(checkpoint)));
    }

    /// The engine is about to apply an event.
    pub fn event(&mut self, event: &Event) {
        self.rests = None;
        self.record(Kind::Event, event);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// The engine has run a cycle.
    pub fn cycle(&mut self, now: Time, plan: &Plan) {
        // An engine at rest returns at once and changes nothing, so a replay can do without.
        let rests = |wake: Option<Time>| plan.is_empty() && wake.is_none_or(|wake| now < wake);
        if self.rests.is_some_and(rests) {
            return;
        }
        self.rests = plan.is_empty().then_some(plan.wake);
        if self.recording {
            self.record(Kind::Cycle, &Cycle { now, plan });
            self.hand_over();
        }
    }

    /// The engine continues with another configuration.
    pub fn config(&mut self, name: &str, text: &str) {
        self.rests = None;
        self.header.config = Configuration { name: name.into(), text: text.into() };
        let config = self.header.config.clone();
        self.record(Kind::Config, &config);
    }

    pub fn health(&self) -> Health {
        Health {
            gaps: self.gaps,
            error: self.shared.error(),
            segment_bytes: self.shared.written.load(Ordering::Relaxed),
        }
    }

    fn record(&mut self, kind: Kind, value: &impl Serialize) {
        if self.recording && frame::append(&mut self.batch, kind, value).is_err() {
            self.leave_gap();
        }
    }

    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if self.shared.failed.load(Ordering::Relaxed) {
            self.retry_at = Some(Instant::now() + RETRY);
            return self.leave_gap();
        }
        let queued = self.shared.queued.fetch_add(self.batch.len(), Ordering::Relaxed);
        let batch = std::mem::take(&mut self.batch);
        self.batch.reserve(batch.len());
        self.send(Message::Records(batch));
        if queued > self.most_queued {
            self.leave_gap();
        }
    }

    /// Records that are lost until the next checkpoint.
    fn leave_gap(&mut self) {
        self.batch.clear();
        self.recording = false;
        self.gaps += 1;
    }

    fn send(&self, message: Message) {
        // The writer only ends when this side hangs up. If it panicked, its message is on the
        // terminal already.
        let _ = self.sender.as_ref().map(|sender| sender.send(message));
    }
}

/// Waits until everything is written and the segment is closed.
impl Drop for Journal {
    fn drop(&mut self) {
        self.hand_over();
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_api::core::{Meta, Node, NodeStatus};
    use muster_api::{Quantity, ResourceList};
    use muster_engine::Engine;
    use muster_engine::config::Config;

    use super::*;
    use crate::replay;

    const NOW: Time = Time(1_800_000_000_000);

    fn node(index: i64) -> Event {
        let allocatable = ResourceList::from([("cpu".to_owned(), Quantity::from_units(8))]);
        Event::from(Node {
            metadata: Meta { name: format!("n{index}"), ..Meta::default() },
            status: NodeStatus { allocatable, ..NodeStatus::default() },
            ..Node::default()
        })
    }

    fn step(engine: &mut Engine, journal: &mut Journal, index: i64) {
        if journal.wants_checkpoint() {
            journal.checkpoint(engine.checkpoint());
        }
        let event = node(index);
        journal.event(&event);
        engine.apply(event);
        let now = NOW.plus_ms(index);
        let plan = engine.cycle(now);
        journal.cycle(now, &plan);
    }

    fn start(folder: &Path) -> (Engine, Journal) {
        let journal =
            Journal::create(folder, Limits::default(), Vec::new(), Configuration::builtin());
        (Engine::new(Config::builtin(), Vec::new()), journal.expect("a folder of our own"))
    }

    /// Events per segment.
    fn replayed(folder: &Path) -> Vec<u64> {
        let summary = replay(folder, 0, |_| {}, |_| {}).expect("no difference");
        summary.segments.iter().map(|played| played.events).collect()
    }

    #[test]
    fn a_disk_that_is_too_slow_causes_a_gap_and_a_new_segment() {
        let folder = tempfile::tempdir().unwrap();
        let (mut engine, mut journal) = start(folder.path());
        step(&mut engine, &mut journal, 0);
        journal.shared.queued.fetch_add(MOST_QUEUED + 1, Ordering::Relaxed);
        (1..4).for_each(|index| step(&mut engine, &mut journal, index));
        assert_eq!((journal.health().gaps, journal.wants_checkpoint()), (1, false));
        journal.shared.queued.fetch_sub(MOST_QUEUED + 1, Ordering::Relaxed);
        (4..6).for_each(|index| step(&mut engine, &mut journal, index));
        drop(journal);
        assert_eq!(
            replayed(folder.path()),
            [2, 2],
            "what was handed over before the gap, and what came after it"
        );
    }

    #[test]
    fn a_journal_without_its_folder_reports_it_and_resumes() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("journal");
        let (mut engine, mut journal) = start(&folder);
        step(&mut engine, &mut journal, 0);
        while journal.health().segment_bytes == 0 {
            std::thread::yield_now();
        }
        fs::remove_dir_all(&folder).unwrap();
        journal.checkpoint(engine.checkpoint());
        while journal.health().error.is_none() {
            std::thread::yield_now();
        }
        step(&mut engine, &mut journal, 1);
        assert_eq!(
            (journal.health().gaps, journal.wants_checkpoint()),
            (1, false),
            "it waits before it tries again"
        );
        fs::create_dir(&folder).unwrap();
        journal.retry_at = None;
        step(&mut engine, &mut journal, 2);
        drop(journal);
        assert_eq!(replayed(&folder), [1]);
    }

    #[test]
    fn cycles_at_rest_are_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let (mut engine, mut journal) = start(folder.path());
        step(&mut engine, &mut journal, 0);
        for later in 1..100 {
            let now = NOW.plus_ms(later);
            let plan = engine.cycle(now);
            journal.cycle(now, &plan);
        }
        drop(journal);
        let summary = replay(folder.path(), 0, |_| {}, |_| {}).expect("no difference");
        assert_eq!((summary.events, summary.cycles), (1, 1));
    }
}
