use muster_engine::config::Config;
use muster_sim::{World, chaos};
#[test]
fn one() {
    let text = r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: sla
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"#;
    for seed in [196] {
    let r = chaos::run(World::default(), &|| { let _ = text; Config::builtin() }, seed, 150, |_| {});
    match r { Ok(h) => println!("{h}"), Err(b) => println!("{seed} {} {}", b.step, b.what) }
    }
}
