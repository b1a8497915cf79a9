//! The thread that owns the engine: applies news, decides when there is something to decide, and
//! hands the decisions on. It never waits for the API server or the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::ids::{GangId, PodId};
use muster_engine::model::Cluster;
use muster_engine::model::gangs::Origin;
use muster_engine::model::pods::PodState;
use muster_engine::{Engine, Event, Plan, explain};
use muster_journal::Journal;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tracing::{debug, error, info, warn};

use crate::clock::wall_clock;
use crate::debug_page;
use crate::metrics::{Metrics, in_ms};
use crate::news::News;
use crate::nominations::Nominations;
use crate::report::Reporter;
use crate::usage::UsageWriteTimes;
use crate::writes::{Bearer, Bind, Evict, EvictionGroup, NominationWrite, Write};

/// How many news are applied before anything else is done.
const BATCH: usize = 4_096;
/// The thread records that it is alive at least this often.
const HEARTBEAT: Duration = Duration::from_secs(5);

pub struct Decider {
    pub engine: Engine,
    pub journal: Option<Journal>,
    pub metrics: Arc<Metrics>,
    pub period: Duration,
    /// When the thread was last alive, in milliseconds of the wall clock.
    pub heartbeat: Arc<AtomicI64>,
    /// Kinds whose objects have not all been read.
    pub unread: BTreeSet<Kind>,
    writes: UnboundedSender<Write>,
    reporter: Reporter,
    nominations: Nominations,
    write_times: UsageWriteTimes,
    leading: bool,
    now: Time,
    /// Whether something has happened since the last cycle.
    stirred: bool,
    last_cycle: Option<Instant>,
    journal_error: Option<String>,
    /// The time at which the plan asked for another cycle.
    wake: Option<Time>,
    /// When the reporter wants to be called again.
    recall: Option<Instant>,
}

impl Decider {
    pub fn new(
        engine: Engine,
        journal: Option<Journal>,
        metrics: Arc<Metrics>,
        period: Duration,
        writes: UnboundedSender<Write>,
    ) -> Decider {
        Decider {
            engine,
            journal,
            metrics,
            period,
            heartbeat: Arc::new(AtomicI64::new(wall_clock().0)),
            unread: BTreeSet::new(),
            reporter: Reporter::new(writes.clone()),
            nominations: Nominations::default(),
            write_times: UsageWriteTimes::default(),
            writes,
            leading: false,
            now: wall_clock(),
            stirred: true,
            last_cycle: None,
            journal_error: None,
            wake: None,
            recall: None,
        }
    }

    /// Runs until it is told to stop.
    pub fn run(mut self, mut news: Receiver<News>, runtime: &Handle) {
        let mut batch = Vec::new();
        loop {
            self.heartbeat.store(wall_clock().0, Ordering::Relaxed);
            let patience = self.patience();
            if !patience.is_zero() {
                let heard = async {
                    tokio::time::timeout(patience, news.recv_many(&mut batch, BATCH)).await
                };
                if runtime.block_on(heard) == Ok(0) {
                    return;
                }
            } else {
                while batch.len() < BATCH
                    && let Ok(next) = news.try_recv()
                {
                    batch.push(next);
                }
            }
            for next in batch.drain(..) {
                if self.hear(next).is_stop() {
                    return;
                }
            }
            if self.may_decide() && self.patience().is_zero() {
                self.decide();
            }
        }
    }

    fn may_decide(&self) -> bool {
        self.leading && self.unread.is_empty()
    }

    /// How long nothing needs to be done unless there is news.
    fn patience(&self) -> Duration {
        if !self.may_decide() {
            return HEARTBEAT;
        }
        let now = Instant::now();
        let rest = self
            .last_cycle
            .map_or(Duration::ZERO, |last| (last + self.period).saturating_duration_since(now));
        if self.stirred {
            return rest;
        }
        let alarm = self
            .wake
            .map(|wake| Duration::from_millis(wake.0.saturating_sub(wall_clock().0).max(0) as u64));
        let recall = self.recall.map(|time| time.saturating_duration_since(now));
        let next = [alarm, recall].into_iter().flatten().min().unwrap_or(HEARTBEAT);
        next.max(rest).min(HEARTBEAT)
    }

    fn hear(&mut self, news: News) -> Heard {
        match news {
            News::Event(event) => self.apply(event),
            News::InSync(kind) => {
                self.unread.remove(&kind);
                if self.unread.is_empty() {
                    self.metrics.in_sync.set(1);
                    let cluster = self.engine.cluster();
                    info!(
                        nodes = cluster.nodes.live().count(),
                        pods = cluster.pods.live().count(),
                        "in sync"
                    );
                }
            }
            News::Lead => {
                self.leading = true;
                self.metrics.leading.set(1);
            }
            News::Config { name, text, config } => {
                if let Some(journal) = &mut self.journal {
                    journal.config(&name, &text);
                }
                self.engine.configure(*config);
                self.stirred = true;
            }
            News::Ask { gang, answer } => {
                let _ = answer.send(debug_page::gang(&mut self.engine, self.now, &gang));
            }
            News::Stop => {
                if self.may_decide() {
                    self.write_usage(true);
                }
                // After the last decision, so that all writes of a gang go out.
                let _ = self.writes.send(Write::Finish);
                return Heard::Stop;
            }
        }
        Heard::Go
    }

    fn apply(&mut self, event: Event) {
        self.metrics.events.inc();
        if let Some(journal) = &mut self.journal {
            journal.event(&event);
        }
        self.reporter.hear(&event);
        self.nominations.hear(&event);
        if let Event::Bound { key, uid, node } = &event {
            let cluster = self.engine.cluster();
            self.reporter.bound(cluster, key, uid, node);
            if let Some(pod) = cluster.pods.find(key) {
                let waited = wall_clock().0 - cluster.pods.fact[pod].created.0;
                self.metrics.pod.observe(waited as f64);
            }
        }
        self.engine.apply(event);
        self.stirred = true;
    }

    fn decide(&mut self) {
        // For the engine time never goes back, whatever the machine's clock does.
        self.now = self.now.max(wall_clock());
        if let Some(journal) = &mut self.journal
            && journal.wants_checkpoint()
        {
            journal.checkpoint(self.engine.checkpoint());
        }
        let begin = Instant::now();
        let mut last = begin;
        let metrics = &self.metrics;
        let plan = self.engine.cycle_with(self.now, &mut |action| {
            metrics.action(action, last.elapsed());
            last = Instant::now();
        });
        self.metrics.cycle.observe(in_ms(begin.elapsed()));
        if let Some(journal) = &mut self.journal {
            journal.cycle(self.now, &plan, &self.engine);
            let health = journal.health();
            self.metrics
                .journal_gaps
                .inc_by(health.gaps.saturating_sub(self.metrics.journal_gaps.get()));
            if health.error != self.journal_error {
                if let Some(cause) = &health.error {
                    warn!(%cause, "the journal can't be written; it will be tried again");
                }
                self.journal_error = health.error;
            }
        }
        self.stirred = !plan.is_empty();
        self.wake = plan.wake;
        self.last_cycle = Some(begin);
        self.execute(&plan);
        self.write_usage(false);
    }

    fn write_usage(&mut self, end: bool) {
        if let Some(usage) = self.write_times.entry(&self.engine, self.now, end) {
            let _ = self.writes.send(Write::Usage(usage));
        }
    }

    fn execute(&mut self, plan: &Plan) {
        let cluster = self.engine.cluster();
        if !plan.binds.is_empty() {
            debug!(binds = plan.binds.len(), "decided");
        }
        for bind in &plan.binds {
            let pod = &cluster.pods.fact[bind.pod];
            let node = cluster.nodes.name[bind.node].to_string();
            let (key, uid) = (pod.key.to_string(), pod.uid.to_string());
            let bind = Bind { pod: key, uid, node, annotations: plan.note_of(bind.pod).to_vec() };
            let _ = self.writes.send(Write::Bind(bind));
        }
        self.nominations.tell(cluster, plan, &self.writes);
        for note in &plan.group_notes {
            let gang = &cluster.gangs[note.gang];
            let note = NominationWrite::note(
                gang.key.to_string(),
                gang.uid.to_string(),
                &note.annotations,
            );
            let _ = self.writes.send(Write::NominationWrite(note));
        }
        self.metrics.took(&plan.search_counters, &cluster.dimensions);
        self.metrics.nominated(&plan.nomination_counters, cluster.nominated_count);
        if self.metrics.guarded(cluster.guards) {
            error!(guards = ?cluster.guards, "a sum of requests would have gone below zero: this is a bug, please report it");
        }
        let mut by_preemptor: BTreeMap<Option<GangId>, EvictionGroup> = BTreeMap::new();
        for eviction in &plan.evictions {
            let pod = &cluster.pods.fact[eviction.pod];
            let cause = explain::cause(cluster, eviction);
            info!(pod = %pod.key, action = eviction.action, %cause, "evicting");
            self.metrics.evicted(eviction.action);
            self.reporter.evicted(&pod.key, &pod.uid, cause);
            let (pod, uid) = (pod.key.to_string(), pod.uid.to_string());
            let evict = Evict { pod, uid, method: eviction.method };
            let reserving = reserving(cluster, eviction.pod);
            if eviction.preemptor.is_none() && reserving.is_none() {
                let _ = self.writes.send(Write::Evict(evict));
                continue;
            }
            let leaving = by_preemptor.entry(eviction.preemptor).or_insert_with(|| EvictionGroup {
                nominated: eviction.preemptor.map_or(Vec::new(), |gang| nominated(cluster, gang)),
                evictions: Vec::new(),
            });
            leaving.evictions.push(evict);
            leaving.nominated.extend(reserving.filter(|group| !leaving.nominated.contains(group)));
        }
        for leaving in by_preemptor.into_values() {
            let _ = self.writes.send(Write::EvictionGroup(leaving));
        }
        let now = Instant::now();
        let gangs = self.reporter.tell(&self.engine, plan, now);
        let shared = self.reporter.look_around(&self.engine, &self.metrics, now);
        self.recall = [gangs, shared].into_iter().flatten().min();
    }
}

/// The PodGroup of a pod that is evicted, if the plan writes reservations on it.
fn reserving(cluster: &Cluster, pod: PodId) -> Option<Bearer> {
    let gang = &cluster.gangs[cluster.pods.gang[pod]?];
    let says = gang.origin == Origin::Group && !gang.reserved().is_empty();
    says.then(|| Bearer::Group(gang.key.to_string()))
}

/// The nominated pods of a gang.
fn nominated(cluster: &Cluster, gang: GangId) -> Vec<Bearer> {
    let waits = |pod: &&_| matches!(cluster.pods.state[**pod], PodState::Nominated(_));
    let bearer = |&pod: &_| Bearer::Pod(cluster.pods.name(pod).to_string());
    cluster.gangs[gang].pods.iter().filter(waits).map(bearer).collect()
}

enum Heard {
    Go,
    Stop,
}

impl Heard {
    fn is_stop(&self) -> bool {
        matches!(self, Heard::Stop)
    }
}
