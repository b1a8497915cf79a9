//! The thread that owns the engine: applies news, decides when there is something to decide, and
//! hands the decisions on. It never waits for the API server or the disk.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::model::gangs::Origin;
use muster_engine::plan::Eviction;
use muster_engine::{Engine, Event, Plan};
use muster_journal::Journal;
use muster_write_order::{AnnotationWrite, EvictionGroup, Nominations};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tracing::{error, info, warn};

use crate::clock::wall_clock;
use crate::debug_page;
use crate::decision_log;
use crate::metrics::{Metrics, in_ms};
use crate::news::News;
use crate::report::Reporter;
use crate::usage::UsageWriteTimes;
use crate::writes::{Bind, Evict, Write};

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
        self.nominations.hear(&self.engine, &event);
        if let Event::Bound { key, uid, node } = &event
            && let Some(known) = self.engine.pod(key)
        {
            let waited = wall_clock().0 - known.created.0;
            self.metrics.pod.observe(waited as f64);
            if known.gang.is_some_and(|gang| gang.origin == Origin::Solo) {
                self.reporter.bound(key, uid, node);
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
            journal.cycle(self.now, &plan);
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
        decision_log::log(&self.engine, plan, |pod| self.nominations.nominates(pod));
        let cluster = self.engine.cluster();
        for place in &plan.binds {
            let cards = plan.card_note(&place.pod).iter().cloned();
            let bind = Bind {
                pod: place.pod.to_string(),
                uid: place.uid.to_string(),
                node: place.node.to_string(),
                annotations: cards.chain(self.nominations.end_with_bind(place)).collect(),
            };
            let _ = self.writes.send(Write::Bind(bind));
        }
        let nominations = self.nominations.compare(&self.engine, plan);
        let notes = plan.notes.iter().map(AnnotationWrite::group);
        for write in nominations.into_iter().chain(notes) {
            let _ = self.writes.send(Write::Annotate(write));
        }
        self.metrics.took(&plan.search_counters, &cluster.dimensions);
        self.metrics.nominated(&plan.nomination_counters, cluster.nominated_count);
        if self.metrics.guarded(cluster.guards) {
            error!(guards = ?cluster.guards, "a sum of requests would have gone below zero: this is a bug, please report it");
        }
        self.evict(plan);
        let now = Instant::now();
        let gangs = self.reporter.tell(&self.engine, now);
        let shared = self.reporter.look_around(&self.engine, &self.metrics, now);
        self.recall = [gangs, shared].into_iter().flatten().min();
    }

    fn evict(&self, plan: &Plan) {
        for eviction in &plan.evictions {
            let Eviction { place, action, cause, .. } = eviction;
            self.metrics.evicted(action);
            self.reporter.evicted(&place.pod, &place.uid, cause.clone());
        }
        for group in &plan.eviction_groups {
            let group = EvictionGroup::of(group, |at| Evict::of(&plan.evictions[at]));
            let _ = self.writes.send(Write::Evict(group));
        }
    }
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
