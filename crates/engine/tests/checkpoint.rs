//! An engine that is restored from a checkpoint decides as the one that went on, whatever that one
//! has worked out before.

mod support;

use std::fmt::Write;

use muster_api::Time;
use muster_engine::config::Config;
use muster_engine::{Engine, Event};
use support::objects;

const CONFIG: &str = r#"
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: drf
    enableHierarchy: true
  - name: overcommit
  - name: predicates
"#;

const NOW: Time = Time(1_800_000_000_000);

fn config() -> Config {
    Config::parse("test", CONFIG).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn tell(engine: &mut Engine, text: &str) {
    objects(text).into_iter().for_each(|object| engine.apply(Event::from(object)));
}

/// A gang whose pod fits nowhere.
fn gang(name: &str, queue: &str, min_cpu: u32) -> String {
    format!(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {{name: {name}, namespace: default}}\n\
         spec: {{minMember: 1, queue: {queue}, minResources: {{cpu: {min_cpu}}}}}\n---\napiVersion: v1\nkind: Pod\n\
         metadata: {{name: {name}-0, namespace: default, annotations: {{scheduling.k8s.io/group-name: {name}}}}}\n\
         spec: {{schedulerName: volcano, containers: [{{name: main, resources: {{requests: {{cpu: 3}}}}}}]}}\n---\n"
    )
}

/// The gangs that were admitted.
fn admitted(engine: &Engine) -> Vec<String> {
    let gangs = engine.cluster().gangs.iter().filter(|(_, gang)| gang.admitted());
    let mut names: Vec<String> = gangs.map(|(_, gang)| gang.key.to_string()).collect();
    names.sort();
    names
}

#[test]
fn the_order_of_queues_follows_each_admission() {
    let mut engine = Engine::new(config(), vec!["volcano".into()]);
    let mut text = String::new();
    for index in 0..4 {
        writeln!(text, "apiVersion: v1\nkind: Node\nmetadata: {{name: n{index}}}\nstatus: {{allocatable: {{cpu: 2, pods: 9}}}}\n---").unwrap();
    }
    for queue in ["a", "b"] {
        writeln!(
            text,
            "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {{name: {queue}, annotations: \
             {{volcano.sh/hierarchy: root/{queue}, volcano.sh/hierarchy-weights: 1/1}}}}\nspec: {{}}\n---"
        )
        .unwrap();
    }
    tell(&mut engine, &text);
    // There is admission for 9 cpu. The first gang of b is admitted; later one of a, and then no
    // other.
    tell(&mut engine, &gang("b-old", "b", 3));
    engine.cycle(NOW);
    tell(
        &mut engine,
        &[gang("a-large", "a", 5), gang("a-next", "a", 3), gang("b-next", "b", 3)].concat(),
    );
    engine.cycle(NOW.plus_ms(100_000));
    assert_eq!(admitted(&engine), ["default/a-large", "default/b-old"]);

    let mut restored = Engine::restore(config(), engine.checkpoint());
    // The first gives its admission back; queue b has less than queue a now.
    let late = NOW.plus_ms(300_000);
    engine.cycle(late);
    restored.cycle(late);
    assert_eq!(admitted(&restored), admitted(&engine));
    assert_eq!(admitted(&engine), ["default/a-large", "default/b-next"]);
}
