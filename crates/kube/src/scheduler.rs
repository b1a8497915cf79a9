//! `muster scheduler`: everything that runs beside the engine, from the first connection to the
//! last write.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::Request;
use kube::Client;
use muster_api::keys::{DEFAULT_QUEUE, ROOT_QUEUE};
use muster_api::kinds::{Kind, Resource, WithType};
use muster_engine::config::{BUILTIN, Class, Config, Diagnostic};
use muster_engine::{Engine, Event};
use muster_journal::{Configuration, Journal, Limits};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::client::{Address, ConnectError};
use crate::decide::Decider;
use crate::lease::{Elector, Leadership, LeaseOptions};
use crate::logging::LogLevel;
use crate::metrics::Metrics;
use crate::news::News;
use crate::podgroup_status::PodGroupStatusPath;
use crate::server::{Pages, serve};
use crate::usage;
use crate::watch::watch;
use crate::writes::{Record, Write, WriteContext, execute, write_rest};

/// How many news may wait for the engine; beyond that watches wait, and the API server with them.
const NEWS: usize = 16_384;
/// How often the configuration file is checked.
const CONFIG_POLL: Duration = Duration::from_secs(1);
/// How long writes may take after the process was told to stop.
const LAST_WRITES: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_secs(2);
/// How long each answer before the first write may take.
const ANSWER: Duration = Duration::from_secs(10);

pub struct Options {
    pub address: Address,
    pub scheduler_names: Vec<String>,
    pub period: Duration,
    pub listen: SocketAddr,
    pub config: Option<PathBuf>,
    pub lease: LeaseOptions,
    pub journal: Option<(PathBuf, Limits)>,
    pub log_level: LogLevel,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the configuration has errors")]
    Config(Vec<String>),
    #[error("listening on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("the journal in {}: {source}", folder.display())]
    Journal { folder: PathBuf, source: std::io::Error },
    #[error("the lease was lost; another replica takes over")]
    LeaseLost,
    #[error("the thread that decides has ended: this is a bug, please report it with the log")]
    EngineDied,
    #[error("{0}")]
    System(std::io::Error),
}

/// Logs what was found in a configuration that can be used.
fn tell(found: &[Diagnostic]) {
    for found in found {
        match found.class {
            Class::Advice => info!("{found}"),
            Class::Error | Class::Warning => warn!("{found}"),
        }
    }
}

/// Runs until it is told to stop, or has to.
pub async fn run(options: Options) -> Result<(), RunError> {
    let (name, text, config) = read_config(options.config.as_deref()).map_err(RunError::Config)?;
    tell(&config.warnings);
    let client = options.address.connect().await?;
    let listener = TcpListener::bind(options.listen)
        .await
        .map_err(|source| RunError::Listen { address: options.listen, source })?;
    let journal = open_journal(&options, Configuration { name, text: text.clone() })?;
    let (news, heard) = channel(NEWS);
    let (writes, asked) = unbounded_channel();
    let metrics = Arc::new(Metrics::new());
    let leadership = Arc::new(Leadership::none());
    let stopping = Arc::new(AtomicBool::new(false));

    let remembers = usage::remembers(&config);
    let engine = Engine::new(config, options.scheduler_names.clone());
    let mut decider =
        Decider::new(engine, journal, metrics.clone(), options.period, writes.clone());
    start_watches(&client, &news, &metrics, &mut decider);
    let pages = Pages {
        metrics: metrics.clone(),
        leadership: leadership.clone(),
        heartbeat: decider.heartbeat.clone(),
        stopping: stopping.clone(),
        news: news.clone(),
        log_level: options.log_level,
    };
    let address = listener.local_addr().map_err(RunError::System)?;
    info!(%address, schedulers = ?options.scheduler_names, "started");
    tokio::spawn(serve(listener, pages));
    if let Some(path) = options.config {
        let refuse = Refused {
            metrics: metrics.clone(),
            writes: writes.clone(),
            lease: options.lease.clone(),
        };
        tokio::spawn(follow_config(path, text, news.clone(), refuse));
    }
    let (thread, mut engine_ended) = start_engine(decider, heard).map_err(RunError::System)?;

    let context = Arc::new(WriteContext {
        client: client.clone(),
        leadership: leadership.clone(),
        metrics: metrics.clone(),
        podgroup_status: PodGroupStatusPath::default(),
        namespace: options.lease.namespace.clone(),
        identity: options.lease.identity.clone(),
        records: AtomicU64::new(0),
    });
    let mut elector = Elector::new(client.clone(), options.lease);
    let mut terminate = signal(SignalKind::terminate()).map_err(RunError::System)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(RunError::System)?;
    let mut writer: Option<JoinHandle<Vec<Record>>> = None;
    let lead = async {
        elector.acquire(&leadership).await;
        tokio::select! {
            () = prepare(&context, remembers.then_some(&news)) => {}
            () = elector.renew(&leadership) => return,
        }
        writer = Some(tokio::spawn(execute(context.clone(), asked, news.clone())));
        if news.send(News::Lead).await.is_ok() {
            elector.renew(&leadership).await;
        }
    };
    let outcome = tokio::select! {
        () = lead => Err(RunError::LeaseLost),
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
        _ = &mut engine_ended => Err(RunError::EngineDied),
    };
    leadership_over(&outcome, &leadership);
    let signal = outcome?;
    info!(signal, "stopping: no more decisions, finishing writes");
    stopping.store(true, Ordering::Relaxed);
    metrics.leading.set(0);
    let events = finish(&news, writer, &mut elector, &leadership).await;
    write_rest(events, &context).await;
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    info!("stopped");
    Ok(())
}

fn open_journal(options: &Options, config: Configuration) -> Result<Option<Journal>, RunError> {
    let Some((folder, limits)) = &options.journal else { return Ok(None) };
    let journal = Journal::create(folder, *limits, options.scheduler_names.clone(), config);
    let journal = journal.map_err(|source| RunError::Journal { folder: folder.clone(), source });
    journal.map(Some)
}

/// The thread that decides, and a channel that closes when it ends.
fn start_engine(
    decider: Decider,
    heard: Receiver<News>,
) -> std::io::Result<(std::thread::JoinHandle<()>, oneshot::Receiver<()>)> {
    let runtime = Handle::current();
    let (ended, engine_ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("engine".into()).spawn(move || {
        decider.run(heard, &runtime);
        drop(ended);
    });
    Ok((thread?, engine_ended))
}

/// After losing the lease it stops writing at once.
fn leadership_over(outcome: &Result<&'static str, RunError>, leadership: &Leadership) {
    if outcome.is_err() {
        leadership.end();
    }
}

/// The engine stops, the writes under way are finished, and the lease is released. Returns the
/// events that were not written.
async fn finish(
    news: &Sender<News>,
    writer: Option<JoinHandle<Vec<Record>>>,
    elector: &mut Elector,
    leadership: &Arc<Leadership>,
) -> Vec<Record> {
    let _ = news.send(News::Stop).await;
    let mut events = Vec::new();
    if let Some(writer) = writer {
        // We may only write while the lease is ours.
        let last = tokio::time::timeout(LAST_WRITES, async {
            tokio::select! {
                written = writer => events = written.unwrap_or_default(),
                () = elector.renew(leadership) => {}
            }
        });
        if last.await.is_err() {
            warn!("some writes were not finished in time");
        }
    }
    elector.release(leadership).await;
    events
}

fn start_watches(
    client: &Client,
    news: &Sender<News>,
    metrics: &Arc<Metrics>,
    decider: &mut Decider,
) {
    for kind in Kind::of_scheduler() {
        decider.unread.insert(kind);
        kind.with_type(StartWatch { client, news, metrics });
    }
}

struct StartWatch<'w> {
    client: &'w Client,
    news: &'w Sender<News>,
    metrics: &'w Arc<Metrics>,
}

impl WithType for StartWatch<'_> {
    type Output = ();

    fn call<T: Resource>(self) {
        let StartWatch { client, news, metrics } = self;
        tokio::spawn(watch::<T>(client.clone(), news.clone(), metrics.clone()));
    }
}

/// What must be done before the first write: we find out how a PodGroup's status is written, and
/// create the default queues. Where shares depend on past usage, we load the usage that the last
/// leader recorded.
async fn prepare(context: &WriteContext, remembers: Option<&Sender<News>>) {
    let trouble = "the API server does not say how a PodGroup's status is written";
    insist(trouble, async || context.podgroup_status.look(&context.client).await.map(drop)).await;
    for (name, reclaimable) in [(ROOT_QUEUE, false), (DEFAULT_QUEUE, true)] {
        let trouble = format!("the queue {name} could not be created");
        insist(&trouble, async || create_queue(&context.client, name, reclaimable).await).await;
    }
    if let Some(news) = remembers {
        let trouble = "the past usage of queues could not be read";
        let record =
            insist(trouble, async || usage::read(&context.client, &context.namespace).await).await;
        if let Some(record) = record {
            let _ = news.send(News::Event(Event::Usage(Box::new(record)))).await;
        }
    }
}

/// Asks until it succeeds. A request without an answer is repeated.
async fn insist<T>(trouble: &str, ask: impl AsyncFn() -> Result<T, kube::Error>) -> T {
    loop {
        match tokio::time::timeout(ANSWER, ask()).await {
            Ok(Ok(answer)) => return answer,
            Ok(Err(cause)) => warn!(%cause, "{trouble}, trying again"),
            Err(_) => warn!("{trouble}: no answer in time, trying again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn create_queue(client: &Client, name: &str, reclaimable: bool) -> Result<(), kube::Error> {
    let body = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": { "name": name },
        "spec": { "weight": 1, "reclaimable": reclaimable },
    });
    let request = Request::post("/apis/scheduling.volcano.sh/v1beta1/queues")
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    match client.request_text(request).await {
        Ok(_) => {
            info!(queue = name, "created");
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

/// The name and text of the configuration, and what it says.
fn read_config(path: Option<&std::path::Path>) -> Result<(String, String, Config), Vec<String>> {
    let Some(path) = path else {
        return Ok(("built in".to_owned(), BUILTIN.to_owned(), Config::builtin()));
    };
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| vec![format!("{name}: {error}")])?;
    let config = Config::parse(&name, &text);
    let config =
        config.map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<String>>())?;
    Ok((name, text, config))
}

/// Which object gets the event that a configuration was refused.
struct Refused {
    metrics: Arc<Metrics>,
    writes: UnboundedSender<Write>,
    lease: LeaseOptions,
}

impl Refused {
    fn tell(&self, problems: &[String]) {
        let problems = problems.join("; ");
        error!(%problems, "the new configuration is refused, the old one stays in use");
        self.metrics.refused_configs.inc();
        let record = Record {
            kind: "Lease",
            api_version: "coordination.k8s.io/v1",
            key: format!("{}/{}", self.lease.namespace, self.lease.name),
            uid: String::new(),
            warning: true,
            reason: "ConfigurationRefused",
            note: problems,
        };
        let _ = self.writes.send(Write::Record(record));
    }
}

/// Reads the file again when it has changed. A mounted ConfigMap changes by replacing a link, which
/// only reading detects reliably.
async fn follow_config(path: PathBuf, mut known: String, news: Sender<News>, refused: Refused) {
    loop {
        tokio::time::sleep(CONFIG_POLL).await;
        // A small file: reading it takes less time than handing it to another thread.
        let Ok(found) = std::fs::read_to_string(&path) else { continue };
        if found == known {
            continue;
        }
        known = found;
        match read_config(Some(&path)) {
            Ok((name, text, config)) => {
                info!(name, "the configuration has changed");
                tell(&config.warnings);
                if news.send(News::Config { name, text, config: Box::new(config) }).await.is_err() {
                    return;
                }
            }
            Err(problems) => refused.tell(&problems),
        }
    }
}
