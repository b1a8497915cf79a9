//! Rules between pods (affinity, anti-affinity, spread) matter as long as some pod carries them: an
//! engine that has seen such pods come and go knows of them what one knows that starts now.

#[path = "support/lines.rs"]
mod lines;
mod support;

use std::collections::BTreeMap;

use lines::Line;
use muster_api::kinds::{Kind, Object};
use muster_engine::config::Config;
use muster_engine::ids::{PodId, ShapeId};
use muster_engine::{Engine, Event};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const NODES: &str = "
node a label=zone:x cpu=8
node b label=zone:y cpu=8";

const RULES: [&str; 7] = [
    "",
    " apart=app:a/host",
    " apart=app:b/zone",
    " with=app:a/zone",
    " spread=app:b/zone",
    " apart=tier:t1/host",
    " with=tier:t2/zone spread=app:a/host",
];

fn engine() -> Engine {
    let config = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]";
    let config = Config::parse("rules", config).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    NODES.lines().for_each(|line| objects(line, 0).into_iter().for_each(|o| tell(&mut engine, o)));
    engine
}

fn objects(line: &str, serial: u64) -> Vec<Object> {
    let manifests = Line::parse(line).map(|line| line.manifests("2026-01-04T00:00:00Z", serial));
    manifests.map_or(Vec::new(), |text| support::objects(&text))
}

fn tell(engine: &mut Engine, object: Object) {
    engine.apply(Event::from(object));
}

/// Of each pod: whether other nodes matter to it, which pods are like it, and the labels that tell
/// it apart.
fn seen(engine: &Engine) -> BTreeMap<String, (bool, Vec<String>, usize)> {
    let cluster = engine.cluster();
    let alike = |shape: ShapeId| {
        let mut names: Vec<String> = cluster
            .pods
            .live()
            .filter(|&pod| cluster.pods.shape[pod] == shape)
            .map(|pod| cluster.pods.name(pod).to_string())
            .collect();
        names.sort();
        names
    };
    let of_pod = |pod: PodId| {
        let shape = cluster.pods.shape[pod];
        let seen =
            (cluster.depends_on_other_nodes(shape), alike(shape), cluster.shapes[shape].tags.len());
        (cluster.pods.name(pod).to_string(), seen)
    };
    cluster.pods.live().map(of_pod).collect()
}

fn pod() -> impl Strategy<Value = String> {
    let place = prop::sample::select(vec!["", " on=a", " on=b"]);
    let rule = prop::sample::select(RULES.to_vec());
    (0..6, 0..2usize, 0..3, rule, place).prop_map(|(name, app, tier, rule, place)| {
        let app = ["a", "b"][app];
        format!("pod p{name} cpu=1 label=app:{app} label=tier:t{tier}{rule}{place}")
    })
}

/// A pod comes or changes, or the one of this number goes.
fn step() -> impl Strategy<Value = Result<String, usize>> {
    prop_oneof![3 => pod().prop_map(Ok), 2 => (0..6usize).prop_map(Err)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(20_261_119),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_rules_of_pods_that_have_gone_are_forgotten(
        steps in prop::collection::vec((step(), prop::bool::ANY), 1..40)
    ) {
        let mut engine = engine();
        let mut there: BTreeMap<String, Object> = BTreeMap::new();
        for ((step, settles), serial) in steps.into_iter().zip(1..) {
            match step {
                Ok(line) => for object in objects(&line, serial) {
                    there.insert(object.key(), object.clone());
                    tell(&mut engine, object);
                },
                Err(number) => {
                    let key = format!("default/p{number}");
                    if there.remove(&key).is_some() {
                        engine.apply(Event::gone(Kind::Pod, key));
                    }
                }
            }
            if settles {
                engine.settle();
            }
            prop_assert_eq!(engine.cluster().audit(), Ok(()));
        }
        engine.settle();
        let mut fresh = self::engine();
        there.into_values().for_each(|object| tell(&mut fresh, object));
        fresh.settle();
        prop_assert_eq!(seen(&engine), seen(&fresh));
        prop_assert_eq!(engine.cluster().audit(), Ok(()));
    }
}
