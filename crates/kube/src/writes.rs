//! Sends the scheduler's writes to the API server: binds first and many at once, nominations and
//! notes before the evictions that depend on them, patches one per object with the newest winning,
//! events when there is time. The engine does not wait for a write; the outcome of a bind, a
//! nomination or an eviction comes back as news.

mod bind;
mod connections;
mod evict;
mod nomination;
mod patch;
mod record;
mod usage;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use http::Request;
use kube::Client;
use muster_api::core::Pod;
use muster_engine::Event;
use muster_write_order::{
    AnnotationWrite, Dropped, EvictionGroup, Freed, Outcome, RefusedNomination, WriteOrder,
};
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tracing::info;

use crate::clock::wall_clock;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::news::News;
use crate::podgroup_status::PodGroupStatusPath;

pub use bind::Bind;
pub use evict::Evict;
pub use patch::{Patch, Target};
pub use record::{Record, write_rest};
pub use usage::Usage;

/// Binds under way at once. The API server of a small test machine is fastest from about 16 on;
/// more keeps a large one busy over a slower network.
const BINDS: usize = 64;
/// Nominations under way at once.
const NOMINATIONS: usize = 32;
/// Evictions under way at once. An API server takes 100 ms and more for each, most of it waiting
/// until it has seen all budgets, and many at once as fast as one.
const EVICTIONS: usize = 128;
/// Patches under way at once, and while binds or evictions wait. Each costs an API server as much
/// as a bind.
const PATCHES: usize = 16;
const PATCHES_MEANWHILE: usize = 2;
/// Events under way at once, how many may wait, and how many may be written in a second.
const RECORDS: usize = 2;
const RECORDS_WAITING: usize = 1_000;
const RECORDS_PER_SECOND: usize = 50;

/// How many writes are taken from the channel at once.
const BATCH: usize = 1_024;

/// After the last decision: how long writes that wait are still sent, and how long those under way
/// may take, binds excepted. Another replica waits for the lease.
const LAST_STARTS: Duration = Duration::from_millis(1_000);
const LAST_WRITES: Duration = Duration::from_millis(1_300);
/// How often that is checked.
const CHECK: Duration = Duration::from_millis(20);

/// The outcome of a request that takes longer is unknown.
const LIMIT: Duration = Duration::from_secs(10);
/// The first pause before a write is tried again; it doubles up to the maximum.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How often a bind or an eviction is sent to a busy server before the engine is told that it
/// failed.
const ATTEMPTS: u32 = 6;

#[derive(Debug)]
pub enum Write {
    Bind(Bind),
    Annotate(AnnotationWrite),
    /// Evictions, and the writes that they wait for.
    Evict(EvictionGroup<Evict>),
    Patch(Patch),
    Record(Record),
    Usage(Usage),
    /// Finish what is under way, then end.
    Finish,
}

/// What every write needs.
pub struct WriteContext {
    pub client: Client,
    pub leadership: Arc<Leadership>,
    pub metrics: Arc<Metrics>,
    pub podgroup_status: PodGroupStatusPath,
    /// The namespace of our own objects.
    pub namespace: String,
    /// Our name, in events.
    pub identity: String,
    /// How many events were written, so that each gets a name of its own.
    pub records: AtomicU64,
}

/// Executes writes until it is told to finish. Returns the events that were not written.
pub async fn execute(
    context: Arc<WriteContext>,
    mut writes: UnboundedReceiver<Write>,
    news: Sender<News>,
) -> Vec<Record> {
    let connections = tokio::spawn(connections::keep_open(context.clone()));
    let mut queue = WriteQueue::new(context);
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut arrived = Vec::new();
    while !queue.is_finished() {
        queue.start();
        tokio::select! {
            count = writes.recv_many(&mut arrived, BATCH), if queue.last_decision.is_none() => {
                if count == 0 {
                    queue.finish();
                }
                for write in arrived.drain(..) {
                    queue.take(write);
                }
            }
            Some(event) = queue.binding.next() => tell(&news, event).await,
            Some(event) = queue.evicting.next() => tell(&news, event).await,
            Some((write, outcome)) = queue.nominating.next() => queue.order.done(write, outcome),
            Some((target, again)) = queue.patching.next() => queue.patched(target, again),
            Some(()) = queue.recording.next() => {}
            Some(()) = queue.remembering.next() => {}
            _ = second.tick() => queue.recorded = 0,
            () = tokio::time::sleep(CHECK), if queue.last_decision.is_some() => {}
        }
        for event in queue.release() {
            tell(&news, Some(event)).await;
        }
        queue.show();
    }
    connections.abort();
    queue.context.metrics.dropped_events.inc_by(queue.recording.len() as u64);
    queue.records.into()
}

/// A stopped engine receives no news; its decisions are still written.
async fn tell(news: &Sender<News>, event: Option<Event>) {
    if let Some(event) = event {
        let _ = news.send(News::Event(event)).await;
    }
}

/// What is queued, and what is under way.
struct WriteQueue {
    context: Arc<WriteContext>,
    binds: VecDeque<Bind>,
    binding: FuturesUnordered<BoxFuture<'static, Option<Event>>>,
    order: WriteOrder<Evict>,
    nominating: FuturesUnordered<BoxFuture<'static, (AnnotationWrite, Outcome)>>,
    evictions: VecDeque<Evict>,
    evicting: FuturesUnordered<BoxFuture<'static, Option<Event>>>,
    /// In the order of the requests; the newest patch for each object is in `newest`.
    patches: VecDeque<Target>,
    newest: HashMap<Target, Patch>,
    under_way: HashSet<Target>,
    patching: FuturesUnordered<BoxFuture<'static, (Target, Option<Patch>)>>,
    records: VecDeque<Record>,
    recording: FuturesUnordered<BoxFuture<'static, ()>>,
    /// In this second.
    recorded: usize,
    remembering: FuturesUnordered<BoxFuture<'static, ()>>,
    /// When it was told to finish.
    last_decision: Option<Instant>,
}

impl WriteQueue {
    fn new(context: Arc<WriteContext>) -> WriteQueue {
        WriteQueue {
            context,
            binds: VecDeque::new(),
            binding: FuturesUnordered::new(),
            order: WriteOrder::default(),
            nominating: FuturesUnordered::new(),
            evictions: VecDeque::new(),
            evicting: FuturesUnordered::new(),
            patches: VecDeque::new(),
            newest: HashMap::new(),
            under_way: HashSet::new(),
            patching: FuturesUnordered::new(),
            records: VecDeque::new(),
            recording: FuturesUnordered::new(),
            recorded: 0,
            remembering: FuturesUnordered::new(),
            last_decision: None,
        }
    }

    /// Queues a write.
    fn take(&mut self, write: Write) {
        match write {
            Write::Bind(bind) => {
                // The reason why the pod waited no longer matters.
                self.newest.remove(&Target::Pod(bind.pod.clone()));
                self.order.bind(&bind.pod);
                self.binds.push_back(bind);
            }
            Write::Annotate(write) => self.order.write(write),
            Write::Evict(group) => self.order.evict(group),
            Write::Patch(patch) => {
                let target = patch.target.clone();
                let waits = self.newest.insert(target.clone(), patch).is_some();
                if !waits && !self.under_way.contains(&target) {
                    self.patches.push_back(target);
                }
            }
            Write::Record(record) => {
                if self.records.len() < RECORDS_WAITING {
                    self.records.push_back(record);
                } else {
                    self.context.metrics.dropped_events.inc();
                }
            }
            Write::Usage(usage) => {
                self.remembering.push(Box::pin(usage.send(self.context.clone())))
            }
            Write::Finish => self.finish(),
        }
    }

    fn finish(&mut self) {
        self.last_decision.get_or_insert_with(Instant::now);
    }

    /// Whether more writes may be sent. After the last decision only for a while: the next leader
    /// reads what is written, plans again what is missing, and tells what is to be told.
    fn may_start(&self) -> bool {
        self.last_decision.is_none_or(|time| time.elapsed() < LAST_STARTS)
    }

    /// Whether the lease may go. A bind under way is always finished: otherwise the next leader
    /// could give its room to another pod.
    fn is_finished(&self) -> bool {
        let Some(time) = self.last_decision else { return false };
        let queued = self.binds.len() + self.evictions.len() + self.newest.len();
        let under_way = self.evicting.len() + self.patching.len() + self.remembering.len();
        let idle = queued + under_way == 0 && self.order.is_empty() && self.recording.is_empty();
        self.binding.is_empty() && (idle || time.elapsed() > LAST_WRITES)
    }

    /// Sends as many writes as the limits allow.
    fn start(&mut self) {
        if !self.may_start() {
            return;
        }
        while self.binding.len() < BINDS
            && let Some(bind) = self.binds.pop_front()
        {
            self.binding.push(Box::pin(bind.send(self.context.clone())));
        }
        while self.nominating.len() < NOMINATIONS
            && let Some(write) = self.order.next_write()
        {
            self.nominating.push(Box::pin(nomination::send(write, self.context.clone())));
        }
        while self.evicting.len() < EVICTIONS
            && let Some(eviction) = self.evictions.pop_front()
        {
            self.evicting.push(Box::pin(eviction.send(self.context.clone())));
        }
        // Binds and evictions go first: while any wait, few statuses and no events are written.
        let calm = self.binds.is_empty() && self.evictions.is_empty();
        let patches = if calm { PATCHES } else { PATCHES_MEANWHILE };
        while self.patching.len() < patches
            && let Some(target) = self.patches.pop_front()
        {
            let Some(patch) = self.newest.remove(&target) else { continue };
            self.under_way.insert(target);
            self.patching.push(Box::pin(patch.send(self.context.clone())));
        }
        // Nor are events written while another replica waits for the lease.
        while calm
            && self.last_decision.is_none()
            && self.recording.len() < RECORDS
            && self.recorded < RECORDS_PER_SECOND
            && let Some(record) = self.records.pop_front()
        {
            self.recorded += 1;
            self.recording.push(Box::pin(record.send(self.context.clone())));
        }
    }

    /// Queues the evictions that need not wait any more. Says what the engine must hear of the
    /// others.
    fn release(&mut self) -> Vec<Event> {
        let Freed { evictions, dropped, refused } = self.order.take_freed();
        self.evictions.extend(evictions);
        let mut events = Vec::new();
        for Dropped { evictions, cause } in dropped {
            info!(pods = evictions.len(), cause, "pods that were to be evicted stay");
            events.extend(evictions.into_iter().map(|Evict { pod, uid, .. }| {
                let (cause, at) = (cause.clone(), wall_clock());
                Event::EvictionRefused { key: pod, uid, cause, at }
            }));
        }
        let refused = refused.into_iter().map(|RefusedNomination { pod, uid, cause }| {
            Event::NominationRefused { key: pod, uid, cause, at: wall_clock() }
        });
        events.extend(refused);
        events
    }

    /// A patch is written, or must be tried again unless there is a newer one.
    fn patched(&mut self, target: Target, again: Option<Patch>) {
        self.under_way.remove(&target);
        if let Some(patch) = again {
            self.newest.entry(target.clone()).or_insert(patch);
        }
        if self.newest.contains_key(&target) {
            self.patches.push_back(target);
        }
    }

    fn show(&self) {
        self.context.metrics.bind_queue.set((self.binds.len() + self.binding.len()) as i64);
        let patches = self.newest.len() + self.patching.len() + self.order.len();
        self.context.metrics.status_queue.set(patches as i64);
    }
}

impl WriteContext {
    /// Sends a request with a time limit if we lead. The error says whether the server may have
    /// received it.
    async fn send(&self, request: Request<Vec<u8>>) -> Result<String, Refusal> {
        if !self.leadership.holds() {
            return Err(Refusal::Deposed);
        }
        self.send_anyway(request).await
    }

    /// The same, whether we lead or not.
    async fn send_anyway(&self, request: Request<Vec<u8>>) -> Result<String, Refusal> {
        match tokio::time::timeout(LIMIT, self.client.request_text(request)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(kube::Error::Api(status))) => Err(Refusal::from(*status)),
            Ok(Err(error)) => Err(Refusal::Unknown(error.to_string())),
            Err(_) => Err(Refusal::Unknown("no answer in time".to_owned())),
        }
    }

    /// A write was refused or its outcome is unknown: what state is the pod in? Asked until the
    /// server answers.
    async fn look(&self, pod: &str, uid: &str) -> Found {
        let path = pod_path(pod);
        let mut attempt = 0;
        loop {
            let request = Request::get(&path)
                .body(Vec::new())
                .expect("names of objects are valid in an address");
            match self.send(request).await {
                Ok(text) => {
                    let pod = serde_json::from_str::<Pod>(&text)
                        .ok()
                        .filter(|pod| pod.metadata.uid == uid);
                    return pod.map_or(Found::Gone, |pod| Found::There(Box::new(pod)));
                }
                Err(Refusal::Deposed) => return Found::Deposed,
                Err(Refusal::Answer { code: 404, .. }) => return Found::Gone,
                Err(again) => {
                    self.metrics.write_error("look", again.cause());
                    tokio::time::sleep(again.pause(attempt)).await;
                    attempt += 1;
                }
            }
        }
    }
}

/// The state of a pod on the API server.
enum Found {
    /// It was not asked: we no longer lead.
    Deposed,
    /// There is no such pod, or another pod of the same name.
    Gone,
    There(Box<Pod>),
}

/// The path of a pod on the API server, by `namespace/name`.
fn pod_path(pod: &str) -> String {
    let (namespace, name) = pod.split_once('/').unwrap_or(("default", pod));
    format!("/api/v1/namespaces/{namespace}/pods/{name}")
}

fn retry_after(status: &kube::core::Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)).min(LONGEST_PAUSE))
}

/// Why a write did not succeed.
#[derive(Debug)]
pub enum Refusal {
    /// We no longer lead; nothing was sent.
    Deposed,
    /// The server refused.
    Answer { code: u16, retry_after: Option<Duration>, text: String },
    /// A PodDisruptionBudget does not allow it now.
    Budget(String),
    /// It may have arrived or not.
    Unknown(String),
}

impl From<kube::core::Status> for Refusal {
    fn from(status: kube::core::Status) -> Refusal {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        if status.code == 429 && causes.into_iter().any(|cause| cause.reason == "DisruptionBudget")
        {
            return Refusal::Budget(status.message);
        }
        let retry_after = retry_after(&status);
        Refusal::Answer { code: status.code, retry_after, text: status.message }
    }
}

impl Refusal {
    /// Whether the server is busy and wants the request to be repeated.
    fn busy(&self) -> bool {
        matches!(self, Refusal::Answer { code: 429 | 500 | 503 | 504, .. })
    }

    /// In one word, for metrics.
    fn cause(&self) -> &'static str {
        match self {
            Refusal::Deposed => "deposed",
            Refusal::Unknown(_) => "unknown",
            Refusal::Budget(_) => "disruption_budget",
            Refusal::Answer { code: 404, .. } => "not_found",
            Refusal::Answer { code: 409, .. } => "conflict",
            Refusal::Answer { code: 429, .. } => "too_many_requests",
            Refusal::Answer { code: 500.., .. } => "server",
            Refusal::Answer { .. } => "refused",
        }
    }

    fn pause(&self, attempt: u32) -> Duration {
        let doubled = PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
        match self {
            Refusal::Answer { retry_after: Some(wait), .. } => doubled.max(*wait),
            _ => doubled,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Deposed => f.write_str("not the leader any more"),
            Refusal::Answer { code, text, .. } => write!(f, "{text} ({code})"),
            Refusal::Unknown(text) | Refusal::Budget(text) => f.write_str(text),
        }
    }
}
