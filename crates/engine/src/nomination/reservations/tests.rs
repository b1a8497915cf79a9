//! Pods that move, on clusters in the short form of `tests/support/lines.rs`.

use std::collections::BTreeMap;

use muster_api::kinds::Kind;
use muster_api::manifest::Object;
use muster_api::{PodGroup, core};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::Engine;
use crate::config::Config;
use crate::model::event::Event;
use crate::model::pods::PodState;
use crate::report::plan::{Placement, Plan};
use lines::Line;

#[path = "../../../tests/support/lines.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod lines;
#[path = "../../../tests/support/mod.rs"]
mod support;

const START: Time = Time(1_767_571_200_000);
const LIMIT_MS: i64 = 300_000;
const CONFIG: &str = "actions: \"enqueue, allocate, stalegangeviction\"\nconfigurations:\n- name: stalegangeviction\n  \
                      arguments: {defaultStalenessGracePeriod: 5s}\ntiers:\n- plugins: [{name: priority}, {name: gang}, \
                      {name: predicates}, {name: capacity}, {name: network-topology-aware}]\n";

/// A gang of two on one node, and room for one of them on another.
const PAIR: &str = "
    node a b   gpu=2
    gang ring  x2 gpu=1 on=a
    gang other x1 gpu=1 on=b";

struct Bench {
    engine: Engine,
    now: Time,
    serial: u64,
    pods: BTreeMap<String, core::Pod>,
    groups: BTreeMap<String, PodGroup>,
    others: Vec<Object>,
}

impl Bench {
    fn new(lines: &str) -> Bench {
        let (pods, groups, others) = Default::default();
        let mut bench = Bench { engine: engine(), now: START, serial: 0, pods, groups, others };
        bench.add(lines);
        bench
    }

    fn add(&mut self, lines: &str) {
        for line in lines.lines().filter_map(Line::parse) {
            self.serial += 1;
            let born = self.now.plus_ms(self.serial as i64).to_string();
            for object in support::objects(&line.manifests(&born, self.serial)) {
                match object.clone() {
                    Object::Pod(pod) => drop(self.pods.insert(object.key(), *pod)),
                    Object::PodGroup(group) => drop(self.groups.insert(object.key(), *group)),
                    other => self.others.push(other),
                }
                self.apply(Event::from(object));
            }
        }
    }

    fn apply(&mut self, event: Event) {
        self.engine.apply(event);
        self.engine.cluster.audit().expect("sums follow from states and reservations");
    }

    fn pod(&self, name: &str) -> PodId {
        self.engine.cluster.pods.find(&key(name)).unwrap_or_else(|| panic!("no pod {name}"))
    }

    fn gang(&self, name: &str) -> GangId {
        self.engine.cluster.gangs.find(&key(name)).unwrap_or_else(|| panic!("no gang {name}"))
    }

    /// What `consolidate` does: evicts a pod and reserves room for its successor.
    fn moves(&mut self, pod: &str, node: &str) {
        let (name, pod) = (pod, self.pod(pod));
        let cluster = &mut self.engine.cluster;
        let (gang, node) =
            (cluster.pods.gang[pod].expect("ours"), cluster.nodes.find(node).expect("a node"));
        let mut txn = Txn::begin(cluster);
        txn.evict(pod);
        txn.reserve(gang, pod, node, self.now.plus_ms(LIMIT_MS));
        let _ = txn.commit();
        cluster.audit().expect("a reservation is in every sum");
        let now = self.now;
        self.pods.entry(key(name)).and_modify(|pod| pod.metadata.deletion_timestamp = Some(now));
    }

    /// Deletes the pod and creates it again, as its controller would; `line` describes it if it
    /// changed.
    fn comes_back(&mut self, name: &str, line: Option<&str>) {
        let mut pod = self.pods.remove(&key(name)).expect("it was there");
        self.apply(Event::Gone { kind: Kind::Pod, key: key(name), uid: pod.metadata.uid.clone() });
        if let Some(line) = line {
            return self.add(line);
        }
        self.serial += 1;
        pod.metadata.uid = format!("{}.{}", pod.metadata.uid, self.serial);
        pod.metadata.deletion_timestamp = None;
        pod.metadata.annotations.retain(|key, _| !key.contains("pipelined"));
        pod.spec.node_name = None;
        pod.status = Default::default();
        self.pods.insert(key(name), pod.clone());
        self.apply(Event::from(pod));
    }

    /// Runs a cycle and carries out its plan.
    fn cycle(&mut self) -> Plan {
        let plan = self.engine.cycle(self.now);
        self.engine.cluster.audit().expect("sums follow from states and reservations");
        let mut events = Vec::new();
        for note in &plan.notes {
            let group = self.groups.get_mut(&*note.gang).expect("a PodGroup");
            let annotations = &mut group.metadata.annotations;
            for (key, text) in &note.annotations {
                match text {
                    Some(text) => drop(annotations.insert(key.to_string(), text.clone())),
                    None => drop(annotations.remove(&**key)),
                }
            }
            events.push(Event::from(group.clone()));
        }
        for bind in &plan.binds {
            let pod = self.pods.get_mut(&*bind.pod).expect("a pod");
            pod.spec.node_name = Some(bind.node.to_string());
            pod.status.phase = "Running".into();
            pod.status.start_time = Some(self.now);
            events.push(Event::from(pod.clone()));
        }
        events.into_iter().for_each(|event| self.apply(event));
        plan
    }

    /// Another process, which knows only what the objects say.
    fn restart(&mut self) {
        self.engine = engine();
        let groups: Vec<Object> = self.groups.values().cloned().map(Object::from).collect();
        let pods: Vec<Object> = self.pods.values().cloned().map(Object::from).collect();
        let all = pods.into_iter().chain(self.others.clone()).chain(groups);
        all.for_each(|object| self.apply(Event::from(object)));
    }

    fn says(&self, group: &str) -> Option<&str> {
        let annotations = &self.groups[&key(group)].metadata.annotations;
        annotations.get(muster_api::keys::RESERVATIONS).map(String::as_str)
    }

    fn reserved(&self) -> usize {
        let gangs = self.engine.cluster.gangs.iter();
        gangs.map(|(_, gang)| gang.reserved().len()).sum()
    }
}

fn places(plan: &Plan) -> Vec<String> {
    let place =
        |bind: &Placement| format!("{} -> {}", bind.pod.trim_start_matches("default/"), bind.node);
    plan.binds.iter().map(place).collect()
}

fn engine() -> Engine {
    Engine::new(
        Config::parse("test", CONFIG).expect("a good configuration"),
        vec!["volcano".into()],
    )
}

fn key(name: &str) -> String {
    format!("default/{name}")
}

#[test]
fn only_the_next_pod_of_the_gang_gets_reserved_room() {
    let mut bench = Bench::new(PAIR);
    bench.cycle();
    bench.moves("ring-1", "b");
    bench.add("gang hungry x1 gpu=1");
    let plan = bench.cycle();
    assert!(plan.binds.is_empty(), "what is kept on b is not free");
    let text = bench.says("ring").expect("it is noted").to_owned();
    assert!(
        text.starts_with(
            r#"[{"node":"b","requests":{"nvidia.com/gpu":"1"},"until":"2026-01-05T00:05:00Z","pods":["#
        ),
        "{text}"
    );
    assert_eq!(plan.wake, Some(START.plus_ms(LIMIT_MS)));

    bench.comes_back("ring-1", None);
    let plan = bench.cycle();
    assert_eq!(places(&plan), ["ring-1 -> b", "hungry-0 -> a"]);
    assert_eq!((bench.reserved(), bench.says("ring")), (0, None));
    let plan = bench.cycle();
    assert!(plan.binds.is_empty() && plan.nominations.is_empty() && plan.notes.is_empty());
}

#[test]
fn a_gang_whose_pods_move_is_neither_broken_nor_stale() {
    let mut bench = Bench::new(PAIR);
    bench.cycle();
    bench.moves("ring-1", "b");
    let plan = bench.cycle();
    bench.pods.remove(&key("ring-1"));
    bench.apply(Event::gone(Kind::Pod, key("ring-1")));
    bench.now = bench.now.plus_ms(60_000);
    assert!(plan.notes.iter().all(|note| note.annotations.len() == 1), "{:?}", plan.notes);
    assert!(
        bench.cycle().evictions.is_empty(),
        "its pod has not come back yet, but its place is there"
    );
    bench.now = bench.now.plus_ms(LIMIT_MS);
    bench.cycle();
    assert_eq!(bench.reserved(), 0);
    bench.now = bench.now.plus_ms(5_000);
    assert_eq!(bench.cycle().evictions.len(), 1, "now it is stale");
}

#[test]
fn unclaimed_reservations_expire() {
    let mut bench = Bench::new(PAIR);
    bench.moves("ring-1", "b");
    bench.add("gang hungry x1 gpu=1 select=only:b");
    bench.add("node b gpu=2 label=only:b");
    assert!(bench.cycle().binds.is_empty());
    bench.now = START.plus_ms(LIMIT_MS - 1);
    assert!(bench.cycle().binds.is_empty());
    bench.now = START.plus_ms(LIMIT_MS);
    let plan = bench.cycle();
    assert_eq!(places(&plan), ["hungry-0 -> b"]);
    assert_eq!((bench.reserved(), bench.says("ring")), (0, None));
}

/// Whether the reservation of a pair, one of which is about to move, is kept after something
/// happens.
fn kept_after(happens: impl FnOnce(&mut Bench)) -> bool {
    let mut bench = Bench::new(PAIR);
    bench.cycle();
    bench.moves("ring-1", "b");
    bench.cycle();
    happens(&mut bench);
    bench.cycle();
    bench.reserved() > 0
}

#[test]
fn a_reservation_ends_when_it_is_of_no_use() {
    assert!(kept_after(|_| {}));
    assert!(kept_after(|bench| bench.add("node b gpu=3")));
    assert!(!kept_after(|bench| bench.add("node b gpu=1")), "there is no room");
    assert!(!kept_after(|bench| bench.add("node b gpu=2 notready")), "the node is not ready");
    assert!(!kept_after(|bench| bench.apply(Event::gone(Kind::Node, "b"))), "the node is gone");
    let gone = Event::gone(Kind::PodGroup, key("ring"));
    assert!(!kept_after(|bench| bench.apply(gone)), "the gang is gone");
    let refused = |bench: &mut Bench| {
        let uid = bench.pods[&key("ring-1")].metadata.uid.clone();
        let (cause, at) = ("refused".to_owned(), bench.now);
        bench.apply(Event::EvictionRefused { key: key("ring-1"), uid, cause, at });
    };
    assert!(!kept_after(refused), "its pod stays");
    let another = |bench: &mut Bench| {
        let mut group = bench.groups[&key("ring")].clone();
        group.metadata.uid = "another".into();
        bench.groups.insert(key("ring"), group.clone());
        bench.apply(Event::from(group));
    };
    assert!(!kept_after(another), "another gang has its name");
    assert!(!kept_after(|bench| bench.comes_back("ring-1", None)), "it was taken up");
    let larger = "pod ring-1 gang=ring gpu=2";
    assert!(!kept_after(|bench| bench.comes_back("ring-1", Some(larger))), "another came instead");
}

#[test]
fn a_pod_that_fails_on_its_way_out_is_awaited_like_one_that_has_left() {
    let mut bench = Bench::new("node a b gpu=4\ngang ring x3 gpu=1 on=a");
    bench.cycle();
    bench.moves("ring-2", "b");
    bench.cycle();
    let failed = bench.pods.get_mut(&key("ring-2")).expect("it is leaving");
    failed.status.phase = "Failed".into();
    let event = Event::from(failed.clone());
    bench.apply(event);
    bench.moves("ring-1", "b");
    bench.cycle();
    assert_eq!(bench.reserved(), 2);
    bench.restart();
    bench.cycle();
    assert_eq!(bench.reserved(), 2, "a restart changes nothing");
}

#[test]
fn a_dropped_transaction_gives_reservations_back() {
    let mut bench = Bench::new("node a b gpu=4\ngang ring x3 gpu=1 on=a");
    bench.cycle();
    bench.moves("ring-1", "b");
    bench.moves("ring-2", "b");
    let (gang, pods) = (bench.gang("ring"), ["ring-1", "ring-2"].map(|name| bench.pod(name)));
    let stays = bench.pod("ring-0");
    let state = |cluster: &Cluster| {
        let size = cluster.gangs[gang].notes.as_ref().map_or(0, |notes| notes.size);
        let reserved = cluster.gangs[gang].reserved().to_vec();
        (cluster.sums(), (reserved, size), cluster.outlook_version())
    };
    let cluster = &mut bench.engine.cluster;
    let [a, b] = ["a", "b"].map(|name| cluster.nodes.find(name).expect("a node"));
    let before = state(cluster);
    let mut txn = Txn::begin(cluster);
    txn.end_reservations_for(gang, &pods);
    let ended = state(&txn);
    assert!(txn.gangs[gang].reserved().is_empty());
    assert_ne!(ended.2, before.2, "others may ask its pods to leave again");
    let mark = txn.mark();
    txn.keep_running(pods[0], a);
    txn.nominate(stays, b);
    txn.evict_from(stays, a);
    txn.reserve(gang, stays, b, START);
    assert_eq!(txn.audit(), Ok(()));
    txn.rewind(mark);
    assert_eq!(state(&txn), ended, "what was done before the mark is not undone");
    drop(txn);
    assert_eq!(state(cluster), before);
    cluster.audit().expect("sums follow from states and reservations");
}

#[test]
fn places_are_given_by_role_in_the_order_of_pods_and_nodes() {
    let mut bench = Bench::new(
        "node a b c  gpu=4
         gang ring   min=4 role=lead:1 role=work:3
         pod lead    gang=ring role=lead gpu=1 on=a
         pod w0 w1 w2 gang=ring role=work gpu=1 on=a",
    );
    bench.cycle();
    for (pod, node) in [("w2", "c"), ("lead", "c"), ("w0", "b")] {
        bench.moves(pod, node);
    }
    bench.cycle();
    let text = bench.says("ring").expect("it is noted");
    let read = Reserved::read(text).expect("it is fine");
    let roles: Vec<_> =
        read.iter().map(|place| (place.node.as_str(), place.role.as_deref())).collect();
    assert_eq!(roles, [("b", Some("work")), ("c", Some("lead")), ("c", Some("work"))]);
    // The pod that came first gets the first reservation, whichever pod it replaces.
    bench.comes_back("w2", None);
    bench.comes_back("w0", None);
    bench.comes_back("lead", None);
    let plan = bench.cycle();
    let mut places = places(&plan);
    places.sort();
    assert_eq!(places.len(), 3, "{places:?}");
    assert!(places.contains(&"lead -> c".to_owned()), "{places:?}");
}

#[test]
fn equal_places_are_written_once() {
    let mut bench = Bench::new(
        "node a b gpu=4\ngang ring x4 gpu=1 cpu=500m mem=1Gi on=a\nnode a b gpu=4 cpu=8 mem=9Gi",
    );
    bench.cycle();
    bench.moves("ring-1", "b");
    bench.moves("ring-3", "b");
    bench.cycle();
    let read = Reserved::read(bench.says("ring").expect("it is noted")).expect("it is fine");
    assert_eq!((read.len(), read[0].pods.len()), (1, 2));
    bench.restart();
    bench.cycle();
    assert_eq!(bench.reserved(), 2, "amounts come back as they were");
}

#[test]
fn a_restart_keeps_the_room() {
    let mut bench = Bench::new(PAIR);
    bench.cycle();
    bench.moves("ring-1", "b");
    bench.cycle();
    for gone in [false, true] {
        if gone {
            let pod = bench.pods.remove(&key("ring-1")).expect("it leaves");
            bench.apply(Event::Gone { kind: Kind::Pod, key: key("ring-1"), uid: pod.metadata.uid });
        }
        bench.restart();
        bench.add("gang hungry x1 gpu=1 select=only:b\nnode b gpu=2 label=only:b");
        let plan = bench.cycle();
        assert!(plan.binds.is_empty() && plan.evictions.is_empty(), "gone: {gone}");
        assert_eq!(bench.reserved(), 1, "gone: {gone}");
        assert!(bench.says("ring").is_some(), "gone: {gone}");
    }
    bench.add("pod ring-9 gang=ring gpu=1");
    let plan = bench.cycle();
    assert_eq!(places(&plan), ["ring-9 -> b"]);
    assert_eq!(bench.says("ring"), None);
}

#[test]
fn after_a_restart_only_what_makes_sense_is_kept() {
    let after = |change: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::new(PAIR);
        bench.cycle();
        bench.moves("ring-1", "b");
        bench.cycle();
        change(&mut bench);
        bench.restart();
        bench.cycle();
        (bench.reserved(), bench.says("ring").is_some())
    };
    assert_eq!(after(&|_| {}), (1, true));
    let never_sent = |bench: &mut Bench| {
        bench.pods.entry(key("ring-1")).and_modify(|pod| pod.metadata.deletion_timestamp = None);
    };
    assert_eq!(after(&never_sent), (0, false), "the eviction was never sent");
    assert_eq!(after(&|bench| bench.now = START.plus_ms(LIMIT_MS)), (0, false), "its time is over");
    assert_eq!(
        after(&|bench| bench.add("gang big x1 gpu=1 on=b")),
        (0, false),
        "others took the room"
    );
    assert_eq!(after(&|bench| drop(bench.others.remove(1))), (0, false), "the node is gone");
    let back = |bench: &mut Bench| bench.add("pod ring-1 gang=ring gpu=1 on=a");
    assert_eq!(after(&back), (0, false), "it has come back and has another place");
    let odd = |bench: &mut Bench| {
        let group = bench.groups.get_mut(&key("ring")).expect("a PodGroup");
        let annotations = &mut group.metadata.annotations;
        annotations.insert(muster_api::keys::RESERVATIONS.into(), "[odd]".into());
    };
    assert_eq!(after(&odd), (0, false), "what can't be read is taken off");
}

#[test]
fn what_is_written_later_is_no_reservation() {
    let mut bench = Bench::new(PAIR);
    bench.cycle();
    let mut group = bench.groups[&key("ring")].clone();
    let text = r#"[{"node":"b","requests":{"nvidia.com/gpu":"1"},"until":"2027-01-05T00:05:00Z","pods":["x"]}]"#;
    let note = (muster_api::keys::RESERVATIONS.to_owned(), text.to_owned());
    group.metadata.annotations.extend([note]);
    bench.groups.insert(key("ring"), group.clone());
    bench.apply(Event::from(group));
    bench.cycle();
    assert_eq!((bench.reserved(), bench.says("ring")), (0, None));
    assert_eq!(bench.engine.cluster.gangs[bench.gang("ring")].nominated.iter().count(), 0);
}

#[derive(Clone, Debug)]
enum Step {
    Move(usize, usize),
    ComeBack(usize),
    Refuse(usize),
    Pass(i64),
    Node(usize, u32),
    Restart,
    Arrive,
    Regroup(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6usize, 0..3usize).prop_map(|(pod, node)| Step::Move(pod, node)),
        5 => (0..6usize).prop_map(Step::ComeBack),
        1 => (0..6usize).prop_map(Step::Refuse),
        2 => prop::sample::select(vec![1_000, 100_000, LIMIT_MS]).prop_map(Step::Pass),
        1 => (0..3usize, 0..5u32).prop_map(|(node, gpus)| Step::Node(node, gpus)),
        1 => Just(Step::Restart),
        1 => Just(Step::Arrive),
        1 => any::<bool>().prop_map(Step::Regroup),
    ]
}

impl Bench {
    fn act(&mut self, step: Step) {
        let name = |at: usize| format!("{}-{}", ["ring", "pair"][at / 3], at % 3);
        let node = |at: usize| ["a", "b", "c"][at];
        match step {
            Step::Move(pod, to) => {
                let (pod, cluster) = (name(pod), &self.engine.cluster);
                let Some(id) = cluster.pods.find(&key(&pod)) else { return };
                let PodState::Running(from) = cluster.pods.state[id] else { return };
                let Some(target) = cluster.nodes.find(node(to)).filter(|&target| target != from)
                else {
                    return;
                };
                let request = &cluster.shapes[cluster.pods.shape[id]].request;
                let room =
                    |(resource, amount)| cluster.nodes.future_idle(resource, target) >= amount;
                if cluster.nodes.fact[target].lets_go() && request.iter().all(room) {
                    self.moves(&pod, node(to));
                }
            }
            Step::ComeBack(pod) => {
                let leaves = |pod: &core::Pod| pod.metadata.deletion_timestamp.is_some();
                if self.pods.get(&key(&name(pod))).is_some_and(leaves) {
                    self.comes_back(&name(pod), None);
                }
            }
            Step::Refuse(pod) => {
                let key = key(&name(pod));
                let Some(object) = self.pods.get_mut(&key) else { return };
                object.metadata.deletion_timestamp = None;
                let (uid, cause, at) =
                    (object.metadata.uid.clone(), "refused".to_owned(), self.now);
                self.apply(Event::EvictionRefused { key, uid, cause, at });
            }
            Step::Pass(span) => self.now = self.now.plus_ms(span),
            Step::Node(at, gpus) => self.add(&format!("node {} gpu={gpus}", node(at))),
            Step::Restart => self.restart(),
            Step::Arrive => self.add(&format!("gang late{} x1 gpu=1", self.serial)),
            Step::Regroup(gone) => {
                let key = key("pair");
                let group = self.groups[&key].clone();
                let event = match gone {
                    true => Event::gone(Kind::PodGroup, key),
                    false => Event::from(group),
                };
                self.apply(event);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_261_116),
        ..ProptestConfig::default()
    })]

    /// Sums are compared with a recount after each step; a node never has less room than is
    /// reserved on it; and in the end nothing is left over.
    #[test]
    fn reservations_leave_no_trace(steps in prop::collection::vec(step(), 1..25)) {
        let mut bench = Bench::new(
            "node a b c gpu=4
             gang ring x3 min=2 gpu=1 on=a
             gang pair x3 gpu=1 on=b",
        );
        bench.cycle();
        for step in steps {
            bench.act(step);
            bench.cycle();
            let cluster = &bench.engine.cluster;
            for &gang in &cluster.reserving {
                for place in cluster.gangs[gang].reserved() {
                    let over = place.request.iter().any(|(resource, _)| cluster.nodes.future_idle(resource, place.node) < 0);
                    prop_assert!(!over, "more is reserved on {} than it has", cluster.nodes.name[place.node]);
                }
            }
        }
        bench.now = bench.now.plus_ms(LIMIT_MS);
        bench.cycle();
        prop_assert_eq!(bench.reserved(), 0);
        prop_assert!(bench.says("ring").is_none());
    }
}
