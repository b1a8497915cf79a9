//! How much is asked to take whole gangs: counted, never timed.

#[path = "support/lines.rs"]
mod lines;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lines::Line;
use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::ids::PodId;
use muster_engine::model::Cluster;
use muster_engine::{Engine, Event, Plugin, answers};

const NOW: Time = Time(1_767_571_200_000);
const CONFIG: &str = "actions: allocate, gangpreempt\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}, \
                      {name: predicates}]}]";

/// Protects no pod, and counts how often it is asked.
struct Counter(Arc<AtomicUsize>);

#[answers]
impl Plugin for Counter {
    fn protects(&self, _: &Cluster, _: PodId) -> Option<&'static str> {
        self.0.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// An engine, and how often it has asked whether a pod is protected.
fn counting(script: &str) -> (Engine, Arc<AtomicUsize>) {
    let mut config = Config::parse("test", CONFIG).unwrap_or_else(|errors| panic!("{errors:?}"));
    let count = Arc::new(AtomicUsize::new(0));
    let configured = config
        .policy
        .plugins
        .iter_mut()
        .find(|configured| configured.name == "conformance")
        .expect("its seat");
    configured.plugin = Box::new(Counter(count.clone()));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    for (line, serial) in script.lines().filter_map(Line::parse).zip(0..) {
        let born = NOW.plus_ms(serial as i64 - 1_000_000).to_string();
        let objects = support::objects(&line.manifests(&born, serial));
        objects.into_iter().for_each(|object| engine.apply(Event::from(object)));
    }
    (engine, count)
}

/// So many domains of four nodes, each full of one gang of sixteen; and a gang that wants a domain
/// of its own.
fn full(domains: usize, pods_are: &str) -> String {
    let mut script = String::new();
    for domain in 0..domains {
        let nodes: Vec<String> = (0..4).map(|node| format!("n{domain:02}-{node}")).collect();
        script += &format!(
            "domain s{domain:02} tier=1 nodes={}\nnode {} cpu=4\n",
            nodes.join(","),
            nodes.join(" ")
        );
        script += &format!("gang g{domain:02} min=16\n");
        for (at, node) in nodes.iter().enumerate() {
            let pods: Vec<String> =
                (0..4).map(|pod| format!("g{domain:02}-{}", at * 4 + pod)).collect();
            script += &format!(
                "pod {} gang=g{domain:02} cpu=1 prio=1 on={node} {pods_are}\n",
                pods.join(" ")
            );
        }
    }
    format!("{script}gang preemptor x16 cpu=1 close=hard:1 prio=10\n")
}

#[test]
fn no_more_is_asked_where_there_are_more_domains() {
    let asked = |domains: usize| {
        let (mut engine, count) = counting(&full(domains, ""));
        let plan = engine.cycle(NOW);
        assert_eq!(plan.evictions.len(), 16, "one gang leaves");
        count.load(Ordering::Relaxed)
    };
    let few = asked(8);
    assert_eq!(asked(64), few, "eight domains are tried, however many there are");
    // What can be spared is looked for first, then whole gangs.
    assert!((16..=2 * 8 * 16).contains(&few), "{few} questions about 8 domains of 16 pods");
}

#[test]
fn a_failed_search_is_not_repeated_before_something_changes() {
    let (mut engine, count) = counting(&full(8, "preemptable=false"));
    assert!(engine.cycle(NOW).evictions.is_empty(), "all are protected");
    // The first cycle has changed what is said of gangs; the second comes to rest.
    assert!(engine.cycle(NOW.plus_ms(1000)).is_empty());
    assert!(count.swap(0, Ordering::Relaxed) > 0, "they were asked about");
    assert!(engine.cycle(NOW.plus_ms(2000)).is_empty());
    assert_eq!(count.load(Ordering::Relaxed), 0);
}
