//! How fast the engine is, in units that mean the same on every machine: a *scan* is one pass over
//! four columns of idle amounts, a *move* one change of a pod's state with all its sums. Both sides
//! of a ratio run in turn in one process, and the best of several rounds counts.

mod evictions;
mod figures;
mod gang_evictions;
pub mod memory;
mod scenarios;
mod topology;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use memory::MemoryError;
use muster_api::core::{Container, Meta, Node, NodeStatus, Pod, PodSpec, PodStatus, Resources};
use muster_api::keys::{DEFAULT_QUEUE, GROUP_NAME};
use muster_api::{
    PodGroup, PodGroupPhase, PodGroupSpec, PodGroupStatus, Quantity, ResourceList, Time,
};
use muster_engine::config::Config;
use muster_engine::ids::{NodeId, PodId, ResourceId};
use muster_engine::model::Cluster;
use muster_engine::{Engine, Event, Txn};

pub use figures::{BARS, Figure, Figures, Missed};

const NOW: Time = Time(1_800_000_000_000);
const GPU: &str = "nvidia.com/gpu";

/// Takes a figure: its name, value, unit, and the time behind it.
type Add<'a> = dyn FnMut(&'static str, f64, &'static str, Option<f64>) + 'a;

/// Runs all cases. `rounds` is how often each is repeated; `memory` runs a process of its own that
/// calls [`memory::peak_with_large_cluster`]; `told` is called with the progress.
pub fn run(
    rounds: u32,
    memory: impl FnOnce() -> Result<u64, MemoryError>,
    mut told: impl FnMut(&str),
) -> Figures {
    let mut figures = Figures::default();
    let mut add = |name, value, unit, nanos| figures.add(name, value, unit, nanos);

    told("one large gang on 5,000 and on 20,000 nodes");
    let Large { scan, pod } = large_gang(rounds, &mut add);
    told("many gangs, many shapes");
    many_gangs(rounds, pod, &mut add);
    told("a cycle with nothing to do, an event");
    little_to_do(rounds, scan, &mut add);
    told("network topology");
    topology::run(rounds, &mut add);
    told("evictions");
    evictions::run(rounds, &mut add);
    gang_evictions::run(rounds, &mut add);
    scenarios::run(rounds, &mut add);

    told("memory");
    let name = "peak memory of a process with 20,000 nodes and 160,000 pods";
    match memory() {
        Ok(bytes) => figures.add(name, bytes as f64 / 1e6, "MB", None),
        Err(error) => figures.unmeasured.push(format!("{name}: {}", causes(&error))),
    }
    figures
}

/// The time of a large gang in nanoseconds, with which others are compared.
struct Large {
    scan: f64,
    pod: f64,
}

fn large_gang(rounds: u32, add: &mut Add) -> Large {
    let mut large = [f64::MAX; 2];
    let mut scan = [f64::MAX; 2];
    for _ in 0..rounds {
        for (side, nodes) in [5_000, 20_000].into_iter().enumerate() {
            let mut engine = cluster(nodes);
            gang(&mut engine, "big", 3_000, 3_000, 8, 1_000);
            scan[side] = scan[side].min(scan_nanos(engine.cluster()));
            large[side] = large[side].min(cycle_nanos(&mut engine, 3_000));
        }
    }
    add("scan of 5,000 nodes", scan[0] / 1000.0, "µs", Some(scan[0]));
    let scans = large[0] / scan[0];
    add("allocate, 3,000-pod gang, 8 GPUs per pod, 5,000 nodes", scans, "scans", Some(large[0]));
    let name = "allocate, 3,000-pod gang: 20,000 nodes relative to 5,000";
    add(name, large[1] / large[0], "times", Some(large[1]));
    Large { scan: scan[0], pod: large[0] / 3_000.0 }
}

fn many_gangs(rounds: u32, pod_of_large: f64, add: &mut Add) {
    let (mut gangs, mut shapes) = (f64::MAX, f64::MAX);
    for _ in 0..rounds {
        let mut engine = cluster(5_000);
        for index in 0..500 {
            gang(&mut engine, &format!("g{index:03}"), 10, 10, 8, 1_000);
        }
        gangs = gangs.min(cycle_nanos(&mut engine, 5_000));
        let mut engine = cluster(5_000);
        for index in 0..5_000 {
            gang(&mut engine, &format!("s{index:04}"), 1, 1, 1, 1_000 + index % 50);
        }
        shapes = shapes.min(cycle_nanos(&mut engine, 5_000));
    }
    let (gangs, shapes) = (gangs / 5_000.0, shapes / 5_000.0);
    let name = "allocate, 500 gangs of 10: time per pod relative to the 3,000-pod gang";
    add(name, gangs / pod_of_large, "times", Some(gangs));
    let name = "allocate, 5,000 pods of 50 shapes: time per pod relative to the 3,000-pod gang";
    add(name, shapes / pod_of_large, "times", Some(shapes));
}

fn little_to_do(rounds: u32, scan: f64, add: &mut Add) {
    let mut still = [f64::MAX; 2];
    let mut stirred = [f64::MAX; 2];
    let (mut event, mut move_) = (f64::MAX, f64::MAX);
    for (side, nodes) in [5_000, 20_000].into_iter().enumerate() {
        let mut engine = busy(nodes, 40_000, 1_000);
        for round in 0..rounds.max(5) {
            still[side] = still[side].min(timed(|| engine.cycle(NOW)));
            engine.apply(running(&format!("late-{round}"), "n00000", 1));
            stirred[side] = stirred[side].min(timed(|| engine.cycle(NOW)));
        }
        if side == 0 {
            for _ in 0..rounds.max(5) {
                event = event.min(event_nanos(&mut engine));
                move_ = move_.min(move_nanos(&mut engine));
            }
        }
    }
    let idle = "idle cycle, 5,000 nodes, 1,000 waiting gangs";
    add(idle, still[0] / scan, "scans", Some(still[0]));
    add("idle cycle, 20,000 nodes, 1,000 waiting gangs", still[1] / scan, "scans", Some(still[1]));
    let busy_name = "cycle after one event that frees nothing, 5,000 nodes";
    add(busy_name, stirred[0] / scan, "scans", Some(stirred[0]));
    let name = "cycle after one event that frees nothing, 20,000 nodes";
    add(name, stirred[1] / scan, "scans", Some(stirred[1]));
    add("move", move_, "ns", Some(move_));
    add("one event applied", event / move_, "moves", Some(event));
}

/// An engine with an action that evicts, configured by these arguments.
fn engine_with(action: &str, arguments: &str) -> Engine {
    let text = format!(
        r#"
actions: "enqueue, allocate, backfill, {action}"
configurations:
- name: {action}
  arguments: {{{arguments}}}
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
    arguments: {{leastrequested.weight: 0}}
  - name: binpack
  - name: network-topology-aware
"#
    );
    let config = Config::parse("bench", &text).expect("a right configuration");
    Engine::new(config, vec!["volcano".into()])
}

/// An error with its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let begin = Instant::now();
    black_box(work());
    begin.elapsed().as_nanos() as f64
}

/// A cycle that must bind this many pods.
fn cycle_nanos(engine: &mut Engine, binds: usize) -> f64 {
    let mut bound = 0;
    let nanos = timed(|| bound = engine.cycle(NOW).binds.len());
    assert_eq!(bound, binds, "the case is built so that everything fits");
    nanos
}

/// The unit: four columns compared with a request, one byte of result per node.
fn scan_nanos(cluster: &Cluster) -> f64 {
    let columns: [&[i64]; 4] = [0, 1, 2, 4].map(|id| cluster.nodes.idle[ResourceId(id)].rows());
    let mut fits = vec![0u8; columns[0].len()];
    let request = black_box([1i64, 8_000, 1 << 36, 8]);
    let mut best = f64::MAX;
    for _ in 0..50 {
        best = best.min(timed(|| {
            let [a, b, c, d] = columns;
            for ((((fit, a), b), c), d) in fits.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                let all = (*a >= request[0])
                    & (*b >= request[1])
                    & (*c >= request[2])
                    & (*d >= request[3]);
                *fit = u8::from(all);
            }
            black_box(&mut fits);
        }));
    }
    best
}

fn move_nanos(engine: &mut Engine) -> f64 {
    let mut cluster = engine.cluster().clone();
    let pods: Vec<PodId> = cluster
        .pods
        .live()
        .filter(|&pod| cluster.pods.gang[pod].is_some() && cluster.pods.state[pod].node().is_none())
        .take(2_000)
        .collect();
    let nodes = cluster.nodes.name.len();
    let mut txn = Txn::begin(&mut cluster);
    let start = txn.mark();
    let nanos = timed(|| {
        for (index, &pod) in pods.iter().enumerate() {
            txn.nominate(pod, NodeId::from(index * 7 % nodes));
        }
        txn.rewind(start);
    });
    nanos / (2 * pods.len()) as f64
}

/// A running pod reports a status that changes its state: it is terminating.
fn event_nanos(engine: &mut Engine) -> f64 {
    let mut best = f64::MAX;
    for index in 0..200 {
        let name = format!("r{index:06}");
        let mut leaving = pod(&name, 1, 1_000, None);
        leaving.spec.node_name = Some("n00001".into());
        leaving.status.phase = "Running".into();
        leaving.metadata.deletion_timestamp = Some(NOW);
        let leaving = Event::from(leaving);
        best = best.min(timed(|| engine.apply(&leaving)));
    }
    best
}

/// The configuration in which the bars were measured. Without evictions no time goes into asking
/// what may be evicted.
const PLAIN: &str = "actions: enqueue, allocate, backfill
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder, arguments: \
  {leastrequested.weight: 0}}, {name: binpack}]
";

fn plain() -> Engine {
    let config = Config::parse("bench", PLAIN).unwrap_or_else(|errors| panic!("{errors:?}"));
    Engine::new(config, vec!["volcano".into()])
}

/// An engine that knows its nodes and has nothing to do yet.
fn cluster(nodes: usize) -> Engine {
    let mut engine = plain();
    for index in 0..nodes {
        engine.apply(Event::from(node(&format!("n{index:05}"))));
    }
    engine.cycle(NOW);
    engine
}

/// A full cluster: running pods everywhere, and gangs that can't fit.
fn busy(nodes: usize, pods: usize, waiting: usize) -> Engine {
    let mut engine = cluster(nodes);
    for index in 0..pods {
        // Eight pods per node, so that its GPUs are used; nodes beyond these stay empty except for
        // one small pod.
        engine.apply(running(&format!("r{index:06}"), &format!("n{:05}", (index / 8) % nodes), 1));
    }
    for index in pods / 8..nodes {
        engine.apply(running(&format!("f{index:06}"), &format!("n{index:05}"), 1));
    }
    for index in 0..waiting {
        gang(&mut engine, &format!("w{index:04}"), 4, 4, 8, 1_000 + index as i64 % 10);
    }
    for _ in 0..3 {
        engine.cycle(NOW);
    }
    engine
}

fn amounts(list: &[(&str, Quantity)]) -> ResourceList {
    list.iter().map(|(name, quantity)| ((*name).to_owned(), *quantity)).collect()
}

fn node(name: &str) -> Node {
    let allocatable = amounts(&[
        ("cpu", Quantity::from_units(128)),
        ("memory", Quantity::from_units(1 << 40)),
        ("pods", Quantity::from_units(110)),
        (GPU, Quantity::from_units(8)),
    ]);
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), name.to_owned())]);
    Node {
        metadata: Meta { name: name.into(), labels, ..Meta::default() },
        status: NodeStatus { allocatable, ..NodeStatus::default() },
        ..Node::default()
    }
}

fn pod(name: &str, gpus: i64, milli_cpu: i64, gang: Option<&str>) -> Pod {
    let requests = amounts(&[
        ("cpu", Quantity::from_milli(milli_cpu)),
        ("memory", Quantity::from_units(8 << 30)),
        (GPU, Quantity::from_units(gpus)),
    ]);
    let annotations =
        gang.map(|gang| (GROUP_NAME[0].to_owned(), gang.to_owned())).into_iter().collect();
    Pod {
        metadata: Meta {
            name: name.into(),
            namespace: "default".into(),
            uid: name.into(),
            annotations,
            creation_timestamp: Some(NOW),
            ..Meta::default()
        },
        spec: PodSpec {
            scheduler_name: "volcano".into(),
            containers: vec![Container {
                name: "main".into(),
                image: "registry.local/train:1".into(),
                resources: Resources { requests, ..Resources::default() },
                ..Container::default()
            }],
            ..PodSpec::default()
        },
        status: PodStatus { phase: "Pending".into(), ..PodStatus::default() },
    }
}

fn running(name: &str, node: &str, gpus: i64) -> Event {
    let mut pod = pod(name, gpus, 1_000, None);
    pod.spec.node_name = Some(node.into());
    pod.status.phase = "Running".into();
    Event::from(pod)
}

/// A gang of whole nodes.
fn gang_of(engine: &mut Engine, name: &str, pods: usize, asks: topology::Asks) {
    Group { asks, ..Group::new(name, std::iter::repeat_n(8, pods)) }.create(engine);
}

fn gang(engine: &mut Engine, name: &str, pods: usize, minimum: i32, gpus: i64, milli_cpu: i64) {
    let mut group = Group { minimum, ..Group::new(name, []) };
    let pod = |index| pod(&format!("{name}-{index:04}"), gpus, milli_cpu, Some(name));
    group.pods.extend((0..pods).map(pod));
    group.create(engine);
}

/// A gang that is created, or is running already.
struct Group {
    name: String,
    queue: String,
    minimum: i32,
    asks: topology::Asks,
    pods: Vec<Pod>,
}

impl Group {
    /// All of them are needed; each wants this many GPUs.
    fn new(name: &str, gpus: impl IntoIterator<Item = i64>) -> Group {
        let pod = |(index, gpus)| pod(&format!("{name}-{index:04}"), gpus, 1_000, Some(name));
        let pods: Vec<Pod> = gpus.into_iter().enumerate().map(pod).collect();
        let (minimum, asks) = (pods.len() as i32, topology::Asks::default());
        Group { name: name.to_owned(), queue: DEFAULT_QUEUE.to_owned(), minimum, asks, pods }
    }

    fn in_queue(self, queue: &str) -> Group {
        Group { queue: queue.to_owned(), ..self }
    }

    fn create(self, engine: &mut Engine) {
        let Group { name, queue, minimum, asks, pods } = self;
        let spec = PodGroupSpec {
            min_member: minimum,
            queue,
            network_topology: asks.tier_limit(),
            sub_group_policy: asks.policies(),
            ..PodGroupSpec::default()
        };
        let mut group = PodGroup::new(&name, spec);
        group.metadata.namespace = "default".into();
        group.metadata.uid = name;
        group.status =
            Some(PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() });
        engine.apply(Event::from(group));
        for (index, mut pod) in pods.into_iter().enumerate() {
            pod.metadata.labels = asks.labels(index);
            engine.apply(Event::from(pod));
        }
    }
}
