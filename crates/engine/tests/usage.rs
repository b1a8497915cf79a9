//! Shares that go by what queues have used of late.

#[path = "support/lines.rs"]
mod lines;
mod support;

use std::collections::BTreeMap;

use lines::Line;
use muster_api::Time;
use muster_api::kinds::Kind;
use muster_engine::config::Config;
use muster_engine::model::usage::Record;
use muster_engine::shares::Shares;
use muster_engine::{Engine, Event};

const START: Time = Time(1_767_571_200_000);
const HOUR: i64 = 3_600_000;

/// Queue a has used everything for as long as usage is known; b has just come.
const CLUSTER: [&str; 5] = [
    "node n gpu=16",
    "queue a",
    "queue b",
    "gang a x16 min=1 gpu=1 queue=a on=n",
    "gang b x16 gpu=1 queue=b",
];

fn config(arguments: &str) -> Config {
    let text = format!(
        "actions: allocate\ntiers: [{{plugins: [{{name: gang}}, {{name: predicates}}, {{name: capacity, arguments: {{{arguments}}}}}]}}]"
    );
    Config::parse("test", &text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn engine(arguments: &str) -> Engine {
    let mut engine = Engine::new(config(arguments), vec!["volcano".into()]);
    tell(&mut engine, &CLUSTER);
    engine
}

fn tell(engine: &mut Engine, script: &[&str]) {
    for (line, serial) in script.iter().filter_map(|line| Line::parse(line)).zip(0..) {
        let objects = support::objects(&line.manifests(&START.to_string(), serial));
        objects.into_iter().for_each(|object| engine.apply(Event::from(object)));
    }
}

/// What a and b should have of the sixteen GPUs.
fn shares(engine: &Engine) -> [i64; 2] {
    let cluster = engine.cluster();
    let k_ppm = engine.policy().fairness().expect("there is capacity").k_ppm;
    let shares = Shares::of(cluster, false, k_ppm);
    let gpu = cluster.dimensions.find("nvidia.com/gpu").expect("nodes have it");
    ["a", "b"].map(|name| shares.fair(cluster.queues.find(name).expect("it is there"), gpu))
}

#[test]
fn a_queue_that_has_used_everything_yields() {
    let mut engine = engine("usageWindow: 8h");
    engine.cycle(START);
    assert_eq!(shares(&engine), [8, 8], "no usage is known yet");
    engine.cycle(START.plus_ms(HOUR));
    assert_eq!(shares(&engine), [0, 16]);
}

#[test]
fn usage_is_forgotten_with_time() {
    let mut engine = engine("usageWindow: 8h");
    engine.cycle(START);
    engine.cycle(START.plus_ms(2 * HOUR));
    (0..16).for_each(|pod| {
        engine.apply(Event::gone(Kind::Pod, format!("default/a-{pod}")));
    });
    tell(&mut engine, &["gang a2 x16 gpu=1 queue=a", "node n gpu=16 cordoned"]);
    let mut after = |hours: i64| {
        engine.cycle(START.plus_ms(hours * HOUR));
        shares(&engine)
    };
    // What was held when the last cycle ended counts up to the next.
    assert_eq!(after(3), [0, 16]);
    assert_eq!(after(6), [5, 11], "a used all of three hours of six");
    assert_eq!(after(9), [7, 9], "two of the last eight");
    assert_eq!(after(11), [8, 8], "three hours out of sight");
}

#[test]
fn a_half_life_alone_is_enough_and_k_says_how_much_it_matters() {
    let after_an_hour = |arguments: &str| {
        let mut engine = engine(arguments);
        engine.cycle(START);
        engine.cycle(START.plus_ms(HOUR));
        shares(&engine)
    };
    assert_eq!(after_an_hour("usageHalfLife: 1h"), [0, 16]);
    assert_eq!(after_an_hour("usageHalfLife: 1h, kValue: 0.5"), [4, 12]);
    assert_eq!(after_an_hour("usageHalfLife: 1h, kValue: 0"), [8, 8]);
    assert_eq!(after_an_hour("kValue: 5"), [8, 8], "nothing is remembered");
    assert_eq!(after_an_hour(""), [8, 8]);
}

#[test]
fn a_cluster_at_rest_wakes_once_a_minute_if_use_is_remembered() {
    let mut remembering = engine("usageWindow: 8h");
    let settled = remembering.cycle(START.plus_ms(500));
    assert_eq!(settled.wake, Some(START.plus_ms(60_500)));
    assert!(remembering.cycle(START.plus_ms(1_000)).is_empty());
    let later = remembering.cycle(START.plus_ms(61_000));
    assert_eq!(later.wake, Some(START.plus_ms(121_000)));
    let forgetful = engine("").cycle(START).wake;
    assert!(forgetful.is_none_or(|wake| wake > START.plus_ms(120_000)), "{forgetful:?}");
}

#[test]
fn an_engine_that_is_restored_remembers() {
    let mut engine = engine("usageHalfLife: 1h");
    engine.cycle(START);
    engine.cycle(START.plus_ms(HOUR));
    let mut restored = Engine::restore(config("usageHalfLife: 1h"), engine.checkpoint());
    assert_eq!(shares(&restored), [0, 16]);
    for hours in 2..5 {
        let now = START.plus_ms(hours * HOUR);
        let (first, second) = (engine.cycle(now), restored.cycle(now));
        assert_eq!(first.wake, second.wake);
        assert_eq!(engine.cluster().usage_record(), restored.cluster().usage_record());
        assert_eq!(shares(&engine), shares(&restored));
    }
}

#[test]
fn usage_recorded_by_an_earlier_process_counts() {
    let mut before = engine("usageWindow: 8h");
    before.cycle(START);
    before.cycle(START.plus_ms(HOUR));
    let record = before.cluster().usage_record();
    assert!(record.spans.len() > 1);
    let mut next = engine("usageWindow: 8h");
    next.apply(Event::Usage(Box::new(record.clone())));
    next.cycle(START.plus_ms(HOUR + 1_000));
    assert_eq!(shares(&next), [0, 16]);
    // Once it counts itself, it knows better.
    next.apply(Event::Usage(Box::new(record.clone())));
    next.cycle(START.plus_ms(HOUR + 2_000));
    let known = next.cluster().usage_record().spans;
    assert_eq!(
        (&known[..record.spans.len()], known.len()),
        (&record.spans[..], record.spans.len() + 1)
    );
}

#[test]
fn a_record_that_makes_no_sense_does_no_harm() {
    let hour = |at: i64| START.plus_ms(at * HOUR);
    let column = |values: &[i64]| BTreeMap::from([("nvidia.com/gpu".to_owned(), values.to_vec())]);
    let record = Record {
        // Twice the same, one that ends before it begins, and one without numbers.
        spans: vec![(hour(0), hour(1)), (hour(0), hour(1)), (hour(2), hour(1)), (hour(2), hour(3))],
        total: column(&[16, 16, 16]),
        queues: BTreeMap::from([
            ("a".to_owned(), column(&[16])),
            ("none".to_owned(), column(&[-5, 1, 1])),
        ]),
    };
    let mut engine = engine("usageWindow: 8h");
    engine.apply(Event::Usage(Box::new(record)));
    engine.cycle(START.plus_ms(3 * HOUR));
    assert_eq!(shares(&engine), [0, 16]);
    assert_eq!(engine.cluster().usage_record().spans, [(hour(0), hour(1)), (hour(2), hour(3))]);
    engine.cluster().audit().expect("every sum is as it should be");
}

#[test]
fn without_a_memory_nothing_is_kept() {
    let mut engine = engine("usageWindow: 8h");
    engine.cycle(START);
    engine.cycle(START.plus_ms(HOUR));
    engine.configure(config(""));
    engine.cycle(START.plus_ms(HOUR + 1_000));
    assert_eq!(engine.cluster().usage_record(), Record::default());
    assert_eq!(shares(&engine), [8, 8]);
}
