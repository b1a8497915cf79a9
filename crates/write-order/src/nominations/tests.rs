use muster_api::Time;
use muster_api::core::Node;
use muster_api::keys::{EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS};
use muster_engine::config::Config;
use serde_json::{Value, json};

use super::*;

const CONFIG: &str =
    "actions: allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: predicates}]\n";

/// A scheduler without a cluster.
struct Bench {
    engine: Engine,
    nominations: Nominations,
    now: Time,
    /// When the last cycle wanted to be called again.
    wake: Option<Time>,
    /// What the binds of the last cycle write on pods to end nominations.
    with_binds: Vec<(&'static str, String)>,
}

impl Bench {
    /// One node with room for one pod.
    fn new() -> Bench {
        let config = Config::parse("test", CONFIG).expect("a good configuration");
        let engine = Engine::new(config, vec!["volcano".to_owned()]);
        let (nominations, now) = (Nominations::default(), Time(1_000_000));
        let with_binds = Vec::new();
        let mut bench = Bench { engine, nominations, now, wake: None, with_binds };
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        let room = json!({ "cpu": "1", "pods": "10" });
        let node = json!({ "metadata": { "name": "n" }, "status": { "allocatable": room, "conditions": ready } });
        bench.hear(Event::from(serde_json::from_value::<Node>(node).expect("a node")));
        bench
    }

    fn hear(&mut self, event: Event) {
        self.nominations.hear(&self.engine, &event);
        self.engine.apply(event);
    }

    /// A pod as the watch reports it; `more` is merged into the object.
    fn pod(&mut self, name: &str, priority: i32, version: u64, more: &Value) {
        let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "1" } } }]);
        let mut pod = json!({
            "metadata": { "name": name, "namespace": "d", "uid": format!("{name}-uid"), "resourceVersion": version.to_string() },
            "spec": { "schedulerName": "volcano", "priority": priority, "containers": containers },
            "status": { "phase": "Pending" },
        });
        for part in ["metadata", "spec", "status"] {
            let more = more[part].as_object().cloned().unwrap_or_default();
            pod[part].as_object_mut().expect("an object").extend(more);
        }
        self.hear(Event::from(serde_json::from_value::<Pod>(pod).expect("a pod")));
    }

    /// Runs a cycle and says what is to be written on which pod.
    fn cycle(&mut self) -> Vec<String> {
        self.now = self.now.plus_ms(20);
        let plan = self.engine.cycle(self.now);
        self.wake = plan.wake;
        self.with_binds.clear();
        for place in &plan.binds {
            self.with_binds.extend(self.nominations.end_with_bind(place));
        }
        let writes = self.nominations.compare(&self.engine, &plan).into_iter();
        let told = writes.map(|AnnotationWrite { object, desired, .. }| {
            let node = desired.annotations[PIPELINED_NODE].as_deref().unwrap_or("nothing");
            let evicts = if desired.nominated_node.is_some() { ", with evictions" } else { "" };
            format!("{} is nominated to {node}{evicts}", object.key())
        });
        told.collect()
    }
}

fn nominated(node: &str) -> Value {
    let annotations = json!({ PIPELINED_STATUS: "true", PIPELINED_NODE: node, EVICTION_OCCURRED: "true", "theirs": "x" });
    json!({ "metadata": { "annotations": annotations }, "status": { "nominatedNodeName": node } })
}

fn running() -> Value {
    json!({ "spec": { "nodeName": "n" }, "status": { "phase": "Running" } })
}

#[test]
fn a_nomination_is_written_once_and_ended_once() {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    assert!(bench.cycle().is_empty());
    // An older view of the pod, then its echo.
    bench.pod("high", 9, 3, &json!({}));
    assert!(bench.cycle().is_empty());
    bench.pod("high", 9, 4, &nominated("n"));
    assert!(bench.cycle().is_empty());
    bench.hear(Event::gone(Kind::Node, "n"));
    assert_eq!(bench.cycle(), ["d/high is nominated to nothing"]);
    bench.pod("high", 9, 5, &nominated("n"));
    assert!(bench.cycle().is_empty(), "its end is on the way");
    bench.pod("high", 9, 6, &json!({}));
    assert!(bench.cycle().is_empty());
    // Another writer restores the old object.
    bench.pod("high", 9, 7, &nominated("n"));
    assert_eq!(bench.cycle(), ["d/high is nominated to nothing"]);
}

#[test]
fn an_old_version_does_not_hide_what_a_pod_says_now() {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    bench.pod("high", 9, 3, &nominated("n"));
    bench.pod("high", 9, 2, &json!({}));
    bench.hear(Event::gone(Kind::Node, "n"));
    assert_eq!(bench.cycle(), ["d/high is nominated to nothing"]);
}

#[test]
fn a_nomination_is_ended_even_if_it_was_not_seen_yet() {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    bench.hear(Event::gone(Kind::Node, "n"));
    assert_eq!(bench.cycle(), ["d/high is nominated to nothing"]);
}

#[test]
fn a_bound_pod_says_nothing_of_nominations() {
    let mut bench = Bench::new();
    bench.pod("high", 9, 1, &json!({}));
    assert!(bench.cycle().is_empty(), "a bind needs no nomination");
    let (key, uid, node) = ("d/high".to_owned(), "high-uid".to_owned(), "n".to_owned());
    bench.hear(Event::Bound { key, uid, node });
    assert!(bench.cycle().is_empty());
}

/// A nominated pod whose room is free now, and is bound.
fn fulfilled() -> Bench {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    bench.pod("high", 9, 3, &nominated("n"));
    bench.hear(Event::Gone { kind: Kind::Pod, key: "d/low".into(), uid: "low-uid".into() });
    assert!(bench.cycle().is_empty());
    bench
}

fn bound(status: &str) -> Value {
    let mut pod = nominated("n");
    pod["metadata"]["annotations"][PIPELINED_STATUS] = json!(status);
    pod["spec"] = json!({ "nodeName": "n" });
    pod
}

#[test]
fn a_nomination_ends_with_the_bind_and_needs_no_write() {
    let mut bench = fulfilled();
    let ended: BTreeMap<&str, String> = bench.with_binds.iter().cloned().collect();
    let texts = [(EVICTION_OCCURRED, "false"), (PIPELINED_NODE, ""), (PIPELINED_STATUS, "false")];
    assert_eq!(ended, texts.map(|(key, text)| (key, text.to_owned())).into());
    let (key, uid, node) = ("d/high".to_owned(), "high-uid".to_owned(), "n".to_owned());
    bench.hear(Event::Bound { key, uid, node });
    assert!(bench.cycle().is_empty(), "the pod is not seen bound yet");
    bench.pod("high", 9, 4, &bound("false"));
    assert!(bench.cycle().is_empty());
    // A pod that was not nominated has nothing to end.
    let mut bench = Bench::new();
    bench.pod("high", 9, 1, &json!({}));
    assert!(bench.cycle().is_empty());
    assert_eq!(bench.with_binds, []);
}

#[test]
fn a_bound_pod_that_still_says_that_it_is_nominated_is_cleaned_up() {
    // Another scheduler was faster; or the nomination was on its way and arrived after the bind.
    for order in [["true", "true"], ["false", "true"]] {
        let mut bench = fulfilled();
        bench.pod("high", 9, 4, &bound(order[0]));
        bench.pod("high", 9, 5, &bound(order[1]));
        assert_eq!(bench.cycle(), ["d/high is nominated to nothing"], "{order:?}");
        assert!(bench.cycle().is_empty());
    }
}

#[test]
fn a_bind_that_failed_ends_no_nomination() {
    let mut bench = fulfilled();
    let (key, uid) = ("d/high".to_owned(), "high-uid".to_owned());
    bench.hear(Event::BindFailed { key, uid, cause: "no answer".to_owned(), at: bench.now });
    bench.hear(Event::gone(Kind::Node, "n"));
    assert_eq!(bench.cycle(), ["d/high is nominated to nothing"]);
}

#[test]
fn leftovers_of_a_crash_are_removed_from_our_pods_only() {
    let mut bench = Bench::new();
    let mut bound = nominated("n");
    bound["spec"] = json!({ "nodeName": "n" });
    bench.pod("ours", 1, 1, &bound);
    bound["spec"]["schedulerName"] = json!("another");
    bench.pod("theirs", 1, 2, &bound);
    let mut hint = json!({ "status": { "nominatedNodeName": "n" }, "spec": { "nodeName": "n" } });
    bench.pod("hint", 1, 3, &hint);
    assert_eq!(bench.cycle(), ["d/ours is nominated to nothing"]);
    assert!(bench.cycle().is_empty());
    // A hint by another for a pod that waits is nothing of ours; one from before our time was read
    // as a nomination.
    hint["spec"] = json!({});
    bench.pod("late", 1, 4, &json!({}));
    assert!(bench.cycle().is_empty());
    bench.pod("late", 1, 5, &hint);
    assert!(bench.cycle().is_empty());
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("early", 1, 2, &hint);
    assert_eq!(bench.cycle(), ["d/early is nominated to nothing"]);
}

#[test]
fn a_refused_nomination_is_written_again_when_it_is_decided_again() {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    let (uid, cause, at) = ("high-uid".to_owned(), "no".to_owned(), bench.now);
    bench.hear(Event::NominationRefused {
        key: "d/high".to_owned(),
        uid,
        cause: cause.clone(),
        at,
    });
    let uid = "low-uid".to_owned();
    bench.hear(Event::EvictionRefused { key: "d/low".to_owned(), uid, cause, at });
    assert!(bench.cycle().is_empty(), "nothing was written, so nothing is removed");
    // First the gang's backoff is over, then that of the pod that must leave.
    bench.now = bench.wake.expect("it is tried again");
    assert!(bench.cycle().is_empty());
    bench.now = bench.wake.expect("it is tried again");
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
}

#[test]
fn a_nomination_is_written_again_after_a_bind_that_failed() {
    let mut bench = Bench::new();
    bench.pod("low", 1, 1, &running());
    bench.pod("high", 9, 2, &json!({}));
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
    // The bind takes the place of the nomination that was still to be written.
    bench.hear(Event::Gone { kind: Kind::Pod, key: "d/low".into(), uid: "low-uid".into() });
    assert!(bench.cycle().is_empty());
    bench.pod("other", 9, 3, &running());
    let (key, uid) = ("d/high".to_owned(), "high-uid".to_owned());
    bench.hear(Event::BindFailed { key, uid, cause: "no answer".to_owned(), at: bench.now });
    bench.pod("other", 1, 4, &running());
    bench.now = bench.now.plus_ms(60_000);
    assert_eq!(bench.cycle(), ["d/high is nominated to n, with evictions"]);
}
