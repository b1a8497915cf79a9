use muster_engine::config::Config;
use muster_sim::{World, chaos};
#[test]
fn one() {
    let text = r#"
actions: "allocate, backfill"
configurations:
- name: allocate
  arguments: {traverseHeadWait: 30s}
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: binpack
"#;
    let r = chaos::run(World::default(), &|| Config::parse("b", text).ok().unwrap(), 22, 150, |_| {});
    match r {
        Ok(h) => println!("{h}"),
        Err(b) => println!("{} {}", b.step, b.what.lines().next().unwrap()),
    }
}
