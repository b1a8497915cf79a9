//! What the files of a journal contain, and what happens if they are damaged.

mod tampering;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use muster_api::Time;
use muster_api::core::{Container, Meta, Node, NodeStatus, Pod, PodSpec, Resources};
use muster_api::kinds::Kind;
use muster_api::manifest::Found;
use muster_api::{Quantity, ResourceList};
use muster_engine::config::Config;
use muster_engine::{Engine, Event, Plan};
use muster_journal::{
    Configuration, Journal, Limits, Record, ReplayError, Segment, Summary, replay,
};

const NOW: Time = Time(1_800_000_000_000);

fn meta(name: &str) -> Meta {
    Meta {
        name: name.into(),
        namespace: "default".into(),
        uid: format!("uid-{name}"),
        ..Meta::default()
    }
}

fn cpu(units: i64) -> ResourceList {
    ResourceList::from([("cpu".to_owned(), Quantity::from_units(units))])
}

fn node(name: &str) -> Event {
    let allocatable = ResourceList::from([("pods".to_owned(), Quantity::from_units(110))]);
    let allocatable = cpu(8).into_iter().chain(allocatable).collect();
    let status = NodeStatus { allocatable, ..NodeStatus::default() };
    Event::from(Node { metadata: meta(name), status, ..Node::default() })
}

fn pod(name: &str) -> Event {
    let resources = Resources { requests: cpu(1), ..Resources::default() };
    let containers = vec![Container { name: "main".into(), resources, ..Container::default() }];
    let spec = PodSpec { scheduler_name: "volcano".into(), containers, ..PodSpec::default() };
    Event::from(Pod { metadata: meta(name), spec, ..Pod::default() })
}

/// A scheduler with a journal.
struct Run {
    engine: Engine,
    journal: Journal,
    now: Time,
}

impl Run {
    fn start(folder: &Path, limits: Limits) -> Run {
        let names = vec!["volcano".to_owned()];
        let journal =
            Journal::create(folder, limits, names.clone(), Configuration::builtin()).unwrap();
        Run { engine: Engine::new(Config::builtin(), names), journal, now: NOW }
    }

    fn tell(&mut self, event: Event) {
        if self.journal.wants_checkpoint() {
            self.journal.checkpoint(self.engine.checkpoint());
        }
        self.journal.event(&event);
        self.engine.apply(event);
    }

    fn cycle(&mut self) -> Plan {
        self.now = self.now.plus_ms(1000);
        let plan = self.engine.cycle(self.now);
        self.journal.cycle(self.now, &plan);
        plan
    }

    /// A node, and pods that are bound to it one by one.
    fn some(&mut self, pods: usize) {
        self.tell(node("n0"));
        for index in 0..pods {
            self.tell(pod(&format!("p{index}")));
            self.cycle();
        }
    }
}

fn journal_of(pods: usize) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    Run::start(folder.path(), Limits::default()).some(pods);
    let path = folder.path().join(Segment::name(1));
    (folder, path)
}

fn replayed(folder: &Path) -> Result<Summary, ReplayError> {
    replay(folder, 0, |_| {}, |_| {})
}

#[test]
fn records_are_read_back() {
    let (folder, _) = journal_of(3);
    let segments = Segment::list(folder.path()).unwrap();
    let records: Vec<Record> = segments[0].open().unwrap().map(Result::unwrap).collect();
    let [Record::Header(header), Record::Checkpoint(_), Record::Event(first), ..] = &records[..]
    else {
        panic!("{records:?}");
    };
    assert_eq!(
        (header.config.name.as_str(), &header.scheduler_names[..]),
        ("builtin", &["volcano".to_owned()][..])
    );
    assert_eq!(format!("{first:?}"), format!("{:?}", node("n0")));
    let Some(Record::Cycle(cycle)) =
        records.iter().rfind(|record| matches!(record, Record::Cycle(_)))
    else {
        panic!("no cycle in {records:?}");
    };
    assert_eq!(cycle.now, NOW.plus_ms(3000));
    assert_eq!(cycle.plan.lines(), ["bind default/p2 (uid uid-p2) to n0"]);
    let summary = replayed(folder.path()).unwrap();
    assert_eq!((summary.events, summary.cycles, summary.binds), (4, 3, 3));
    assert_eq!((summary.from, summary.to), (Some(NOW.plus_ms(1000)), Some(NOW.plus_ms(3000))));
}

#[test]
fn segments_are_bounded_and_each_replays_alone() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 2000, segments: 3 };
    let mut run = Run::start(folder.path(), limits);
    run.tell(node("n0"));
    let newest = || Segment::list(folder.path()).unwrap().last().unwrap().number;
    for round in 0.. {
        if newest() >= 6 {
            break;
        }
        let Event::Object(mut object) = pod("p") else { unreachable!() };
        object.meta_mut().uid = format!("uid-{round}");
        run.tell(Event::from(object));
        run.cycle();
    }
    drop(run);
    let segments = Segment::list(folder.path()).unwrap();
    assert_eq!(segments.len(), 3, "{segments:?}");
    for segment in &segments {
        let summary = replay(folder.path(), segment.number, |_| {}, |_| {}).unwrap();
        assert_eq!(summary.segments[0].segment, Segment::name(segment.number));
    }
}

#[test]
fn a_new_process_begins_a_new_segment() {
    let (folder, path) = journal_of(2);
    let before = fs::read(&path).unwrap();
    Run::start(folder.path(), Limits::default()).some(1);
    assert_eq!(fs::read(&path).unwrap(), before, "what is there is left as it is");
    let summary = replayed(folder.path()).unwrap();
    let events: Vec<u64> = summary.segments.iter().map(|played| played.events).collect();
    assert_eq!(events, [3, 2]);
}

#[test]
fn a_killed_process_leaves_every_cycle_that_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), Limits::default());
    run.some(3);
    while replayed(folder.path()).is_ok_and(|summary| summary.cycles < 3) {
        std::thread::yield_now();
    }
    let summary = replayed(folder.path()).unwrap();
    assert!(summary.segments[0].cut_short, "it was not closed");
    std::mem::forget(run);
}

fn write_segment(path: &Path, text: &str) {
    let mut file = GzEncoder::new(fs::File::create(path).unwrap(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

#[test]
fn other_formats_and_other_files_are_rejected_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(Segment::name(1));
    let refusal = || replayed(folder.path()).unwrap_err().to_string();
    assert!(refusal().contains("expected files like muster-000001.journal"), "{}", refusal());
    write_segment(&path, "muster journal 99\n…");
    assert!(
        refusal().ends_with("reads formats 1 and 2: use the muster that wrote it"),
        "{}",
        refusal()
    );
    write_segment(&path, "a diary\n");
    assert!(refusal().ends_with("is not a journal of muster"), "{}", refusal());
    fs::write(&path, "plain text").unwrap();
    assert!(refusal().ends_with("is not a journal of muster"), "{}", refusal());
}

#[test]
fn a_plan_that_was_not_decided_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), Limits::default());
    run.some(2);
    run.tell(node("n1"));
    run.tell(pod("last"));
    run.now = run.now.plus_ms(1000);
    let mut plan = run.engine.cycle(run.now);
    plan.binds[0].node = "n1".into();
    run.journal.cycle(run.now, &plan);
    drop(run);
    let Err(ReplayError::Difference(found)) = replayed(folder.path()) else {
        panic!("it went unnoticed")
    };
    assert_eq!(
        (found.segment.as_str(), found.record, found.now),
        ("muster-000001.journal", 10, NOW.plus_ms(3000))
    );
    let report = "muster-000001.journal, record 10: the cycle at 2027-01-15T08:00:03Z decides differently\n\
                  only in the recorded plan:\n  bind default/last (uid uid-last) to n1\n\
                  only in the plan of now:\n  bind default/last (uid uid-last) to n0\n\
                  the same in both: 0";
    assert_eq!(found.to_string(), report);
}

#[test]
fn a_change_of_configuration_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), Limits::default());
    run.tell(node("n0"));
    run.tell(pod("p0"));
    let text = "actions: \"enqueue\"\ntiers:\n- plugins:\n  - name: gang\n";
    run.journal.config("only enqueue", text);
    run.engine.configure(Config::parse("only enqueue", text).ok().unwrap());
    assert!(run.cycle().binds.is_empty());
    let builtin = Configuration::builtin();
    run.journal.config(&builtin.name, &builtin.text);
    run.engine.configure(Config::builtin());
    assert_eq!(run.cycle().binds.len(), 1);
    drop(run);
    assert_eq!(replayed(folder.path()).unwrap().binds, 1);
}

const OBJECTS: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: g, namespace: team, uid: u1, resourceVersion: '7', creationTimestamp: 2026-11-15T08:30:00Z, labels: {a: b}, annotations: {sla-waiting-time: 1h}}
spec: {minMember: 3, minTaskMember: {lead: 1}, queue: red, priorityClassName: high, minResources: {cpu: 1500m, memory: 2Gi}, networkTopology: {mode: soft, highestTierAllowed: 2}}
status: {phase: Inqueue, conditions: [{type: Unschedulable, status: 'True', lastTransitionTime: 2026-11-15T08:30:01Z, reason: x, message: y}], running: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: red, creationTimestamp: 2026-11-15T08:30:00Z}
spec: {weight: 3, capability: {cpu: 10}, guarantee: {resource: {cpu: 1}}, deserved: {cpu: 4}, parent: root, dequeueStrategy: fifo}
status: {state: Closing, allocated: {cpu: 500m}}
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: leaf}
spec: {tier: 1, members: [{type: Node, selector: {exactMatch: {name: n0}}}, {type: Node, selector: {regexMatch: {pattern: 'n[0-9]'}}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b, namespace: team}
spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: c, namespace: team}
spec: {maxUnavailable: 1}
status: {disruptionsAllowed: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team, uid: u2, creationTimestamp: 2026-11-15T08:30:00.123Z, deletionTimestamp: 2026-11-15T08:31:00Z}
spec:
  schedulerName: volcano
  nodeName: n0
  containers: [{name: main, image: i, resources: {requests: {cpu: 100m, memory: 1e9}}, ports: [{hostPort: 80, protocol: UDP}]}]
  initContainers: [{name: side, restartPolicy: Always}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: In, values: [a]}]}]}}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, podAffinityTerm: {topologyKey: z, namespaceSelector: {}}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule, minDomains: 2}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]
  overhead: {cpu: 10m}
status: {phase: Running, startTime: 2026-11-15T08:30:02Z}
---
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {z: a}}
spec: {unschedulable: true, taints: [{key: k, effect: NoSchedule}]}
status: {allocatable: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 4}, images: [{names: [i], sizeBytes: 100}], conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
globalDefault: true
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: team}
spec: {hard: {requests.cpu: 10}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: v}
spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}}}
";

#[test]
fn objects_of_every_kind_are_read_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::start(folder.path(), Limits::default());
    let mut told = Vec::new();
    muster_api::manifest::read("test", OBJECTS.as_bytes(), &mut |found| match found {
        Found::Object { object, problems, .. } => {
            assert!(problems.is_empty(), "{problems:?}");
            let event = Event::from(object);
            told.push(format!("{event:?}"));
            run.tell(event);
        }
        Found::Error(error) => panic!("{error}"),
        Found::Skipped { kind, .. } => panic!("{kind}"),
    });
    for gone in [
        Event::Gone { kind: Kind::Pod, key: "team/p".into(), uid: "u2".into() },
        Event::Bound { key: "team/p".into(), uid: "u2".into(), node: "n0".into() },
        Event::BindFailed { key: "team/p".into(), uid: "u2".into(), cause: "no".into(), at: NOW },
        Event::gone(Kind::Node, "n0"),
    ] {
        told.push(format!("{gone:?}"));
        run.tell(gone);
    }
    drop(run);
    let records = Segment::list(folder.path()).unwrap()[0].open().unwrap();
    let read: Vec<String> = records
        .filter_map(|record| match record.unwrap() {
            Record::Event(event) => Some(format!("{event:?}")),
            _ => None,
        })
        .collect();
    assert_eq!(read, told);
}
