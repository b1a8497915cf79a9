//! A plugin may say which bundles leave where whole gangs are evicted. Its answer replaces the
//! usual order and nothing else.

#[path = "support/lines.rs"]
mod lines;
mod support;

use std::collections::BTreeMap;

use lines::Line;
use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::model::Cluster;
use muster_engine::plan::Eviction;
use muster_engine::{
    Bundle, ConfiguredPlugin, Engine, Event, Needed, Plugin, Policy, Preemptor, Switches, answers,
};

const CONFIG: &str = r#"
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
  - name: predicates
configurations:
- name: preempt
  arguments: {mode: gang}
"#;

/// Three pairs on a node, the lowest priority first, and a pair that wants the room of one of them.
const CLUSTER: &str = "
    node a cpu=6
    gang low x2 cpu=1 prio=1 on=a
    gang mid x2 cpu=1 prio=2 on=a label=app:mid
    gang high x2 cpu=1 prio=3 on=a
    gang urgent x2 cpu=1 prio=10";

/// Names the gangs that leave, in order, or has no opinion.
struct Chooser(Option<&'static [&'static str]>);

#[answers]
impl Plugin for Chooser {
    fn order_bundles(
        &self,
        cluster: &Cluster,
        _: &Preemptor,
        needed: &Needed,
        bundles: &[Bundle],
    ) -> Option<Vec<usize>> {
        assert!(needed.iter().all(|&(_, amount)| amount > 0), "what is lacking is told");
        let place = |name: &&str| {
            let named = |bundle: &Bundle| cluster.gangs[bundle.gang].key.ends_with(name);
            // One that isn't there has no place.
            bundles.iter().position(named).unwrap_or(bundles.len())
        };
        Some(self.0?.iter().map(place).collect())
    }
}

/// The pods that leave, with these plugins asked after the others.
fn victims_of(cluster: &str, choosers: Vec<Chooser>) -> Vec<String> {
    let mut config = Config::parse("test", CONFIG).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut plugins = std::mem::take(&mut config.policy.plugins);
    plugins.extend(choosers.into_iter().map(|chooser| ConfiguredPlugin {
        name: "chooser",
        tier: 0,
        plugin: Box::new(chooser),
        switches: Switches::default(),
        arguments: BTreeMap::new(),
    }));
    config.policy = Policy::new(plugins);
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    for (line, serial) in cluster.lines().filter_map(Line::parse).zip(0..) {
        let text = line.manifests("2026-01-05T00:00:00Z", serial);
        support::objects(&text).into_iter().for_each(|object| engine.apply(Event::from(object)));
    }
    let plan = engine.cycle(Time(1_800_000_000_000));
    let name = |eviction: &Eviction| eviction.place.pod.trim_start_matches("default/").to_owned();
    plan.evictions.iter().map(name).collect()
}

#[test]
fn without_an_opinion_the_lowest_priority_leaves() {
    assert_eq!(victims_of(CLUSTER, vec![]), ["low-1", "low-0"]);
    assert_eq!(victims_of(CLUSTER, vec![Chooser(None)]), ["low-1", "low-0"]);
}

#[test]
fn the_first_plugin_with_an_opinion_names_the_victims() {
    let choosers = vec![Chooser(None), Chooser(Some(&["mid", "low"])), Chooser(Some(&["high"]))];
    assert_eq!(victims_of(CLUSTER, choosers), ["mid-1", "mid-0"]);
}

#[test]
fn a_gang_that_is_not_named_stays() {
    assert_eq!(victims_of(CLUSTER, vec![Chooser(Some(&[]))]), [""; 0]);
    let large = CLUSTER.replace("urgent x2", "urgent x4");
    assert_eq!(victims_of(&large, vec![Chooser(Some(&["high"]))]), [""; 0]);
}

#[test]
fn a_gang_that_is_named_twice_leaves_once_and_one_that_is_not_there_never() {
    let large = CLUSTER.replace("urgent x2", "urgent x4");
    let chooser = Chooser(Some(&["none", "high", "high", "mid"]));
    assert_eq!(victims_of(&large, vec![chooser]), ["high-1", "high-0", "mid-1", "mid-0"]);
}

#[test]
fn what_a_rule_keeps_stays_whatever_it_says() {
    let kept = format!("{CLUSTER}\n budget b label=app:mid min=1 allowed=1");
    assert_eq!(victims_of(&kept, vec![Chooser(Some(&["mid", "high"]))]), ["high-1", "high-0"]);
}
