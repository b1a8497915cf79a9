//! The plan of a cycle by names, and queries by name.

#[path = "support/lines.rs"]
mod lines;
mod support;

use lines::Line;
use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::config::Config;
use muster_engine::plan::EvictionGroup;
use muster_engine::{Engine, Event, Plan, Standing};

const NOW: Time = Time(1_767_571_200_000);
const CONSOLIDATE: &str = "actions: allocate, consolidate\ntiers: [{plugins: [{name: priority}, {name: gang}, \
                           {name: predicates}, {name: capacity}, {name: binpack}]}]";
const STALE: &str = "actions: allocate, stalegangeviction\nconfigurations: [{name: stalegangeviction, \
                     arguments: {defaultStalenessGracePeriod: 5s}}]\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]";

fn engine(config: &str, script: &str) -> Engine {
    let config = Config::parse("test", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    for (line, serial) in script.lines().filter_map(Line::parse).zip(0..) {
        let born = NOW.plus_ms(serial as i64 - 1_000_000).to_string();
        let objects = support::objects(&line.manifests(&born, serial));
        objects.into_iter().for_each(|object| engine.apply(Event::from(object)));
    }
    engine
}

/// For each group: which pods are evicted, and after which writes.
fn groups(plan: &Plan) -> Vec<String> {
    let group = |EvictionGroup { evictions, nominated, reserving }: &EvictionGroup| {
        let pods: Vec<&str> = evictions.iter().map(|&at| &*plan.evictions[at].place.pod).collect();
        format!("{pods:?} after {nominated:?} {reserving:?}")
    };
    plan.eviction_groups.iter().map(group).collect()
}

#[test]
fn moves_wait_for_the_nomination_and_for_the_reservations() {
    let mut engine = engine(
        CONSOLIDATE,
        "node a b gpu=4\nnode c gpu=2\ngang large x1 gpu=2 on=a\ngang small x1 gpu=1 on=b\n\
         gang fixed x1 gpu=2 on=b preemptable=false\ngang other x1 gpu=1 on=c preemptable=false\n\
         gang wide x1 gpu=4",
    );
    let plan = engine.cycle(NOW);
    assert_eq!(
        groups(&plan),
        [
            r#"["default/large-0", "default/small-0"] after ["default/wide-0"] ["default/large", "default/small"]"#
        ]
    );
    let targets: Vec<_> = plan.evictions.iter().map(|eviction| &eviction.moves_to).collect();
    assert_eq!(targets, [&Some("b".into()), &Some("c".into())]);
    let standing = engine.pod("default/wide-0").expect("it is known").standing;
    assert_eq!(standing, Standing::Nominated { node: &"a".into(), needs_evictions: true });
    assert_eq!(engine.pod("default/large-0").expect("it is known").standing, Standing::Placed);
}

/// A scheduler that starts now cannot know the earlier PodGroup (fault simulator, "without enqueue",
/// seed 94).
#[test]
fn a_pod_group_that_is_created_again_has_all_its_grace() {
    let mut engine = engine(STALE, "node a cpu=4\ngang ring x2 min=2 cpu=1 on=a");
    engine.apply(Event::gone(Kind::Pod, "default/ring-1"));
    engine.cycle(NOW);
    engine.apply(Event::gone(Kind::PodGroup, "default/ring"));
    let again = Line::parse("gang ring min=2").expect("a gang");
    let again = again.manifests(&NOW.plus_ms(4_000).to_string(), 9);
    let groups = support::objects(&again).into_iter();
    let groups = groups.filter(|object| object.kind() == Kind::PodGroup);
    groups.for_each(|object| engine.apply(Event::from(object)));
    assert!(engine.cycle(NOW.plus_ms(6_000)).evictions.is_empty(), "its grace begins now");
    assert_eq!(engine.cycle(NOW.plus_ms(11_000)).evictions.len(), 1);
}

#[test]
fn a_stale_gang_waits_for_no_write() {
    let mut engine = engine(STALE, "node a cpu=4\ngang ring x2 min=2 cpu=1 on=a");
    engine.apply(Event::gone(Kind::Pod, "default/ring-1"));
    engine.cycle(NOW);
    let plan = engine.cycle(NOW.plus_ms(60_000));
    assert_eq!(groups(&plan), [r#"["default/ring-0"] after [] []"#]);
}
