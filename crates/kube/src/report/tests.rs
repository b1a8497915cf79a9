use muster_api::core::Node;
use muster_api::{Queue, Time};
use muster_engine::config::Config;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;

const CONFIG: &str = "actions: allocate, preempt
configurations:
- name: preempt
  arguments: {mode: gang}
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]
";
const PODS: usize = 4;

/// A scheduler without a cluster, in which gang `high` preempts the running gang `low`.
struct Bench {
    engine: Engine,
    reporter: Reporter,
    writes: UnboundedReceiver<Write>,
    clock: Instant,
    now: Time,
}

impl Bench {
    fn new() -> Bench {
        let config = Config::parse("test", CONFIG).expect("a good configuration");
        let (writes, sent) = unbounded_channel();
        let mut bench = Bench {
            engine: Engine::new(config, vec!["volcano".to_owned()]),
            reporter: Reporter::new(writes),
            writes: sent,
            clock: Instant::now(),
            // No reason is too young to be written.
            now: wall_clock().plus_ms(-3_600_000),
        };
        bench.hear::<Queue>(json!({ "metadata": { "name": "default" } }));
        let ready = json!([{ "type": "Ready", "status": "True" }]);
        for at in 0..PODS {
            let status =
                json!({ "allocatable": { "cpu": "1", "pods": "10" }, "conditions": ready });
            let name = json!({ "name": format!("n{at}") });
            bench.hear::<Node>(json!({ "metadata": name, "status": status }));
        }
        bench.gang("low", 1, true);
        bench.cycle();
        bench.gang("high", 9, false);
        bench.cycle();
        assert_eq!(bench.engine.decisions().evictions.len(), PODS);
        bench.statuses("d/low");
        bench
    }

    fn hear<T>(&mut self, object: Value)
    where
        T: serde::de::DeserializeOwned,
        Event: From<T>,
    {
        let event = Event::from(serde_json::from_value::<T>(object).expect("an object"));
        self.reporter.hear(&event);
        self.engine.apply(event);
    }

    fn gang(&mut self, name: &str, priority: i32, runs: bool) {
        self.hear::<PodGroup>(json!({
            "metadata": { "name": name, "namespace": "d", "uid": name },
            "spec": { "minMember": PODS, "queue": "default" },
        }));
        let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "1" } } }]);
        for at in 0..PODS {
            let node = runs.then(|| format!("n{at}"));
            self.hear::<Pod>(json!({
                "metadata": {
                    "name": format!("{name}-{at}"), "namespace": "d", "uid": format!("{name}-{at}"),
                    "annotations": { "scheduling.k8s.io/group-name": name },
                },
                "spec": {
                    "schedulerName": "volcano", "priority": priority, "nodeName": node,
                    "containers": containers,
                },
                "status": { "phase": if runs { "Running" } else { "Pending" } },
            }));
        }
    }

    fn leaves(&mut self, at: usize) {
        let name = format!("low-{at}");
        let gone = Event::Gone { kind: Kind::Pod, key: format!("d/{name}"), uid: name };
        self.reporter.hear(&gone);
        self.engine.apply(gone);
    }

    /// A cycle, long after the last one.
    fn cycle(&mut self) {
        self.now = self.now.plus_ms(2_000);
        self.clock += Duration::from_secs(2);
        self.engine.cycle(self.now);
        self.reporter.tell(&self.engine, self.clock);
    }

    /// The statuses of a PodGroup that were written since the last call.
    fn statuses(&mut self, group: &str) -> Vec<Value> {
        let mut found = Vec::new();
        while let Ok(write) = self.writes.try_recv() {
            if let Write::Patch(Patch { target: Target::PodGroup(key), status, .. }) = write {
                found.extend((key == group).then_some(status));
            }
        }
        found
    }
}

#[test]
fn one_status_says_that_all_evicted_pods_of_a_gang_have_left() {
    let mut bench = Bench::new();
    for at in 0..PODS {
        assert_eq!(bench.statuses("d/low"), [] as [Value; 0], "{at} have left");
        bench.leaves(at);
        bench.cycle();
    }
    let written = bench.statuses("d/low");
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0]["running"].as_i64().unwrap_or_default(), 0);
    bench.cycle();
    assert_eq!(bench.statuses("d/low"), [] as [Value; 0]);
}

#[test]
fn a_gang_whose_pods_take_long_to_leave_is_told_of_now_and_then() {
    let mut bench = Bench::new();
    bench.leaves(0);
    let cycles = 2 * LEAVING.as_secs() / 2;
    (0..cycles).for_each(|_| bench.cycle());
    let written = bench.statuses("d/low");
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0]["running"], PODS - 1);
}
