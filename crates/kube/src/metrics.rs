//! Metrics for operators. Names that start with `volcano_` mean what Volcano's users know under
//! them; ours start with `muster_`. Labels have few values: kinds, actions, stages, and queues,
//! never pods or gangs.

use std::time::Duration;

use muster_engine::model::Guards;
use muster_engine::{Dimensions, NominationCounters, SearchCounters};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// One label, with the name of what it distinguishes.
macro_rules! labels {
    ($($name:ident { $label:ident })*) => {$(
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        pub struct $name {
            pub $label: String,
        }
    )*};
}

labels! {
    ByAction { action }
    ByKind { kind }
    ByQueue { queue_name }
    ByResource { resource }
    ByResult { result }
    ByStage { stage }
    BySum { sum }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct QueueResource {
    pub queue_name: String,
    pub resource: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct WriteError {
    pub kind: String,
    pub cause: String,
}

#[derive(Clone)]
struct Milliseconds;

impl MetricConstructor<Histogram> for Milliseconds {
    fn new_metric(&self) -> Histogram {
        milliseconds()
    }
}

/// From a twentieth of a millisecond to about 27 minutes.
fn milliseconds() -> Histogram {
    Histogram::new(exponential_buckets(0.05, 2.0, 26))
}

pub struct Metrics {
    registry: Registry,
    pub cycle: Histogram,
    actions: Family<ByAction, Histogram, Milliseconds>,
    pub bind: Histogram,
    /// From the moment when a pod was first seen until its bind.
    pub pod: Histogram,
    attempts: Family<ByResult, Counter>,
    evictions: Family<ByAction, Counter>,
    searches: SearchMetrics,
    nominations: Family<ByResult, Counter>,
    nominations_held: Gauge,
    guards: Family<BySum, Counter>,
    pub bind_queue: Gauge,
    pub status_queue: Gauge,
    pub unschedulable: Gauge,
    pending: Family<ByStage, Gauge>,
    writes: Family<ByKind, Counter>,
    write_errors: Family<WriteError, Counter>,
    watch_errors: Family<ByKind, Counter>,
    pub relists: Counter,
    pub dropped_events: Counter,
    pub refused_configs: Counter,
    pub leading: Gauge,
    pub in_sync: Gauge,
    pub journal_gaps: Counter,
    pub events: Counter,
    pub queues: QueueMetrics,
}

/// The effort of searching for victims, and the cost of evicting them.
#[derive(Default)]
struct SearchMetrics {
    domains: Counter,
    scenarios: Family<ByResult, Counter>,
    simulations: Counter,
    victims: Family<ByResult, Counter>,
    broken: Counter,
    wasted: Family<ByResource, Counter>,
}

impl SearchMetrics {
    fn register(&self, registry: &mut Registry) {
        let help = "Domains in which evicting whole gangs was considered";
        registry.register("taking_domains", help, self.domains.clone());
        let help = "Sets of victims that were considered, and those that were rejected because they free too little";
        registry.register("taking_scenarios", help, self.scenarios.clone());
        let help = "How often it was simulated whether a gang fits once the victims are gone";
        registry.register("taking_simulations", help, self.simulations.clone());
        let help = "Victims that were evicted, and candidates that turned out not to be needed";
        registry.register("victims", help, self.victims.clone());
        let help =
            "Gangs that fell below their minimum because pods of theirs were evicted for others";
        registry.register("broken_gangs", help, self.broken.clone());
        let help = "Accelerator time lost by evictions: of the victims, and of all pods of gangs that broke";
        registry.register("wasted_accelerator_seconds", help, self.wasted.clone());
    }
}

/// What each queue has, by name and resource.
#[derive(Default)]
pub struct QueueMetrics {
    pub allocated: Amount,
    pub request: Amount,
    pub deserved: Amount,
    pub capacity: Amount,
    pub weight: Family<ByQueue, Gauge>,
    pub phases: [Family<ByQueue, Gauge>; 5],
}

/// An amount per queue: two resources have a metric of their own, the others share one.
#[derive(Default)]
pub struct Amount {
    milli_cpu: Family<ByQueue, Gauge>,
    memory_bytes: Family<ByQueue, Gauge>,
    scalar: Family<QueueResource, Gauge>,
}

impl Amount {
    /// `amount` in the units of the engine: thousandths of a CPU, bytes, or pieces.
    pub fn set(&self, queue: &str, resource: &str, amount: i64) {
        let queue_name = queue.to_owned();
        match resource {
            "cpu" => self.milli_cpu.get_or_create(&ByQueue { queue_name }).set(amount),
            "memory" => self.memory_bytes.get_or_create(&ByQueue { queue_name }).set(amount),
            _ => {
                let label = QueueResource { queue_name, resource: resource.to_owned() };
                self.scalar.get_or_create(&label).set(amount)
            }
        };
    }

    fn register(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(format!("{name}_milli_cpu"), help, self.milli_cpu.clone());
        registry.register(format!("{name}_memory_bytes"), help, self.memory_bytes.clone());
        registry.register(format!("{name}_scalar_resources"), help, self.scalar.clone());
    }

    fn clear(&self) {
        self.milli_cpu.clear();
        self.memory_bytes.clear();
        self.scalar.clear();
    }
}

impl QueueMetrics {
    /// Queues are created and deleted; metrics of deleted queues must disappear.
    pub fn clear(&self) {
        for amount in [&self.allocated, &self.request, &self.deserved, &self.capacity] {
            amount.clear();
        }
        self.weight.clear();
        self.phases.iter().for_each(Family::clear);
    }
}

/// The phases of PodGroups, in the order of [`QueueMetrics::phases`].
pub const PHASES: [&str; 5] = ["pending", "inqueue", "running", "unknown", "completed"];

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            cycle: milliseconds(),
            actions: Family::new_with_constructor(Milliseconds),
            bind: milliseconds(),
            pod: milliseconds(),
            attempts: Family::default(),
            evictions: Family::default(),
            searches: SearchMetrics::default(),
            nominations: Family::default(),
            nominations_held: Gauge::default(),
            guards: Family::default(),
            bind_queue: Gauge::default(),
            status_queue: Gauge::default(),
            unschedulable: Gauge::default(),
            pending: Family::default(),
            writes: Family::default(),
            write_errors: Family::default(),
            watch_errors: Family::default(),
            relists: Counter::default(),
            dropped_events: Counter::default(),
            refused_configs: Counter::default(),
            leading: Gauge::default(),
            in_sync: Gauge::default(),
            journal_gaps: Counter::default(),
            events: Counter::default(),
            queues: QueueMetrics::default(),
        };
        metrics.register_volcano();
        metrics.register_ours();
        metrics
    }

    /// The metrics that dashboards for Volcano use.
    fn register_volcano(&mut self) {
        let volcano = self.registry.sub_registry_with_prefix("volcano");
        let cycle = self.cycle.clone();
        volcano.register(
            "e2e_scheduling_latency_milliseconds",
            "How long a scheduling cycle takes",
            cycle,
        );
        let actions = self.actions.clone();
        volcano.register(
            "action_scheduling_latency_milliseconds",
            "How long each action takes",
            actions,
        );
        let help = "From the first time a pod was seen until its bind";
        volcano.register("task_scheduling_latency_milliseconds", help, self.pod.clone());
        let help = "Binds by result";
        volcano.register("schedule_attempts", help, self.attempts.clone());
        let help = "Gangs that can't be scheduled now";
        volcano.register("unschedule_job_count", help, self.unschedulable.clone());
        volcano.register("queue_weight", "The weight of each queue", self.queues.weight.clone());
        let queues = &self.queues;
        queues.allocated.register(volcano, "queue_allocated", "What the gangs of each queue use");
        queues.request.register(
            volcano,
            "queue_request",
            "What the gangs of each queue request in total",
        );
        queues.deserved.register(
            volcano,
            "queue_deserved",
            "What each queue deserves, if it sets that",
        );
        queues.capacity.register(
            volcano,
            "queue_capacity",
            "The most that each queue may use, if it sets that",
        );
        for (phase, family) in PHASES.iter().zip(&self.queues.phases) {
            let help = format!("PodGroups of each queue in phase {phase}");
            volcano.register(format!("queue_pod_group_{phase}_count"), help, family.clone());
        }
    }

    fn register_ours(&mut self) {
        let ours = self.registry.sub_registry_with_prefix("muster");
        let help = "From sending a bind to its result";
        ours.register("bind_latency_milliseconds", help, self.bind.clone());
        ours.register(
            "bind_queue_length",
            "Binds that are queued or under way",
            self.bind_queue.clone(),
        );
        let help = "Evicted pods, by the action that decided it";
        ours.register("evictions", help, self.evictions.clone());
        self.searches.register(ours);
        let help = "What became of nominations in each cycle, in pods";
        ours.register("nominations", help, self.nominations.clone());
        ours.register(
            "nominations_held",
            "Nominated pods, and room reserved for pods that will be recreated",
            self.nominations_held.clone(),
        );
        let help =
            "How often a sum of requests would have gone below zero and was held there: a bug";
        ours.register("accounting_guards", help, self.guards.clone());
        let help = "Status and condition patches that are queued or under way";
        ours.register("status_queue_length", help, self.status_queue.clone());
        let help = "Gangs that wait, by the step that stopped them";
        ours.register("pending_gangs", help, self.pending.clone());
        ours.register(
            "writes",
            "Writes that the API server accepted, by kind",
            self.writes.clone(),
        );
        ours.register(
            "write_errors",
            "Writes that failed, by kind and cause",
            self.write_errors.clone(),
        );
        ours.register("watch_errors", "Watches that broke, by kind", self.watch_errors.clone());
        ours.register("relists", "Watches that had to start over", self.relists.clone());
        let help = "Events that were not written, to spare the API server";
        ours.register("dropped_events", help, self.dropped_events.clone());
        let help = "Configuration files that were refused";
        ours.register("refused_configurations", help, self.refused_configs.clone());
        ours.register("leading", "1 while this replica holds the lease", self.leading.clone());
        ours.register("in_sync", "1 once all objects have been read", self.in_sync.clone());
        ours.register(
            "journal_gaps",
            "Times the journal could not keep up",
            self.journal_gaps.clone(),
        );
        ours.register("model_events", "Events that were applied to the model", self.events.clone());
        let build = Family::<Version, Gauge>::default();
        build.get_or_create(&Version { version: env!("CARGO_PKG_VERSION").to_owned() }).set(1);
        ours.register("build_info", "The version of this program", build);
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string can't fail");
        text
    }

    pub fn action(&self, name: &'static str, took: Duration) {
        self.actions.get_or_create(&ByAction { action: name.to_owned() }).observe(in_ms(took));
    }

    pub fn evicted(&self, action: &str) {
        self.evictions.get_or_create(&ByAction { action: action.to_owned() }).inc();
    }

    /// What a cycle did to evict pods.
    pub fn took(&self, work: &SearchCounters, dimensions: &Dimensions) {
        let SearchCounters {
            domains,
            scenarios,
            filtered,
            simulations,
            cut_short: _,
            selected,
            reprieved,
            broken,
            wasted_seconds,
        } = work;
        self.searches.domains.inc_by(u64::from(*domains));
        for (result, sets) in [("tried", *scenarios), ("filtered", *filtered)] {
            let label = ByResult { result: result.to_owned() };
            self.searches.scenarios.get_or_create(&label).inc_by(u64::from(sets));
        }
        self.searches.simulations.inc_by(u64::from(*simulations));
        for (result, pods) in [("selected", *selected), ("reprieved", *reprieved)] {
            let label = ByResult { result: result.to_owned() };
            self.searches.victims.get_or_create(&label).inc_by(u64::from(pods));
        }
        self.searches.broken.inc_by(u64::from(*broken));
        for (&resource, &seconds) in wasted_seconds {
            let label = ByResource { resource: dimensions.name(resource).to_owned() };
            self.searches.wasted.get_or_create(&label).inc_by(seconds.unsigned_abs());
        }
    }

    /// What a cycle did with nominations, and how many there are now.
    pub fn nominated(&self, outcome: &NominationCounters, held: u32) {
        let NominationCounters { hits, misses, voided, expired } = *outcome;
        for (result, pods) in
            [("hit", hits), ("miss", misses), ("voided", voided), ("expired", expired)]
        {
            let label = ByResult { result: result.to_owned() };
            self.nominations.get_or_create(&label).inc_by(u64::from(pods));
        }
        self.nominations_held.set(i64::from(held));
    }

    /// Updates the count of sums that would have gone below zero. True if there are new ones.
    pub fn guarded(&self, guards: Guards) -> bool {
        let Guards { gangs, queues, ancestors } = guards;
        let mut news = false;
        for (sum, count) in [("gang", gangs), ("queue", queues), ("ancestor", ancestors)] {
            let counter = self.guards.get_or_create(&BySum { sum: sum.to_owned() });
            let more = count.saturating_sub(counter.get());
            counter.inc_by(more);
            news |= more > 0;
        }
        news
    }

    pub fn attempt(&self, result: &str) {
        self.attempts.get_or_create(&ByResult { result: result.to_owned() }).inc();
    }

    pub fn pending(&self, stage: &str, gangs: i64) {
        self.pending.get_or_create(&ByStage { stage: stage.to_owned() }).set(gangs);
    }

    pub fn wrote(&self, kind: &str) {
        self.writes.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }

    pub fn write_error(&self, kind: &str, cause: &str) {
        let label = WriteError { kind: kind.to_owned(), cause: cause.to_owned() };
        self.write_errors.get_or_create(&label).inc();
    }

    pub fn watch_error(&self, kind: &str) {
        self.watch_errors.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Version {
    version: String,
}

pub fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_cycles_add_up() {
        let metrics = Metrics::new();
        let mut dimensions = Dimensions::default();
        let wasted_seconds = [(dimensions.intern("nvidia.com/gpu"), 3600)].into();
        let work = SearchCounters {
            domains: 2,
            scenarios: 6,
            filtered: 3,
            simulations: 5,
            cut_short: false,
            selected: 8,
            reprieved: 4,
            broken: 1,
            wasted_seconds,
        };
        metrics.took(&work, &dimensions);
        metrics.took(&work, &dimensions);
        let text = metrics.text();
        for line in [
            "muster_taking_domains_total 4",
            "muster_taking_scenarios_total{result=\"tried\"} 12",
            "muster_taking_scenarios_total{result=\"filtered\"} 6",
            "muster_taking_simulations_total 10",
            "muster_victims_total{result=\"selected\"} 16",
            "muster_victims_total{result=\"reprieved\"} 8",
            "muster_broken_gangs_total 2",
            "muster_wasted_accelerator_seconds_total{resource=\"nvidia.com/gpu\"} 7200",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn guards_match_the_model_and_are_reported_once() {
        let metrics = Metrics::new();
        assert!(!metrics.guarded(Guards::default()));
        let guards = Guards { ancestors: 2, ..Guards::default() };
        assert!(metrics.guarded(guards));
        assert!(!metrics.guarded(guards));
        let text = metrics.text();
        assert!(text.contains("muster_accounting_guards_total{sum=\"ancestor\"} 2"), "{text}");
    }
}
