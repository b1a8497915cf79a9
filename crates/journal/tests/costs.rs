//! What a journal costs. Figures, not limits: `cargo test --release -p muster-journal --test costs
//! -- --ignored --nocapture`

use std::time::Instant;

use muster_api::Time;
use muster_api::manifest::{Found, read};
use muster_engine::config::Config;
use muster_engine::{Engine, Event};
use muster_journal::{Configuration, Journal, Limits, Segment, replay};

const NOW: Time = Time(1_800_000_000_000);
const NODES: usize = 5_000;
const PODS: usize = 40_000;
/// Pods that arrive one by one while the journal records them.
const NEWS: usize = 50_000;

fn object(text: &str) -> Event {
    let mut found = None;
    read("costs", text.as_bytes(), &mut |object| match object {
        Found::Object { object, .. } => found = Some(object),
        Found::Error(error) => panic!("{error}"),
        Found::Skipped { kind, .. } => panic!("{kind}"),
    });
    found.expect("one object").into()
}

fn node(index: usize) -> Event {
    object(&format!(
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: gpu-node-{index:05}.example.com\n  resourceVersion: \"{index}\"\n  \
         labels: {{kubernetes.io/hostname: gpu-node-{index:05}, kubernetes.io/arch: amd64, kubernetes.io/os: linux, \
         topology.kubernetes.io/zone: z{}, node.kubernetes.io/instance-type: p5.48xlarge}}\nstatus:\n  allocatable: \
         {{cpu: 95500m, memory: 1007Gi, pods: 110, nvidia.com/gpu: 8, ephemeral-storage: 3500Gi}}\n  conditions: \
         [{{type: Ready, status: \"True\"}}]\n",
        index % 3
    ))
}

/// A bound pod of a Volcano job as the API server stores it, without the fields that are never
/// decoded.
fn pod(index: usize, node: &str) -> Event {
    // Real uids can't be compressed.
    let noise = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    object(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train-{:04}-worker-{}\n  namespace: team-{}\n  uid: {:08x}-{:04x}-4f0e-8a51-{:012x}\n  \
         resourceVersion: \"{}\"\n  creationTimestamp: 2027-01-15T08:00:00Z\n  labels: {{app: train, volcano.sh/job-name: train-{:04}, \
         volcano.sh/task-spec: worker, volcano.sh/task-index: \"{}\"}}\n  annotations: {{scheduling.k8s.io/group-name: train-{:04}, \
         volcano.sh/task-spec: worker, volcano.sh/queue-name: team}}\nspec:\n  schedulerName: volcano\n  priority: 100\n  priorityClassName: high\n{node}  \
         tolerations: [{{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}}, {{key: nvidia.com/gpu, operator: Exists}}]\n  \
         containers: [{{name: main, image: registry.example.com/team/train:v1.42, resources: {{requests: {{cpu: 8, memory: 64Gi, \
         nvidia.com/gpu: 1}}, limits: {{nvidia.com/gpu: 1}}}}}}]\nstatus:\n  phase: Pending\n  conditions: [{{type: PodScheduled, status: \"False\", reason: Unschedulable}}]\n",
        index / 64,
        index % 64,
        index / 640,
        noise >> 32,
        noise & 0xffff,
        noise.wrapping_mul(noise) >> 16,
        1_000_000 + index,
        index / 64,
        index % 64,
        index / 64
    ))
}

#[test]
#[ignore = "prints figures; for a release build"]
fn figures() {
    let folder = tempfile::tempdir().unwrap();
    let names = vec!["volcano".to_owned()];
    let mut engine = Engine::new(Config::builtin(), names.clone());
    (0..NODES).for_each(|index| engine.apply(node(index)));
    for index in 0..PODS {
        let place = format!("  nodeName: gpu-node-{:05}.example.com\n", index / 8);
        engine.apply(pod(index, &place));
    }
    engine.cycle(NOW);

    let mut journal =
        Journal::create(folder.path(), Limits::default(), names, Configuration::builtin()).unwrap();
    let start = Instant::now();
    let checkpoint = engine.checkpoint();
    println!(
        "a checkpoint of {NODES} nodes and {PODS} pods takes the engine's thread {:.1?}",
        start.elapsed()
    );
    let start = Instant::now();
    journal.checkpoint(checkpoint);
    while journal.health().segment_bytes == 0 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let begun = journal.health().segment_bytes;
    println!("it takes the journal's thread {:.1?} and {} KiB", start.elapsed(), begun >> 10);

    let news: Vec<Event> = (PODS..PODS + NEWS).map(|index| pod(index, "")).collect();
    let start = Instant::now();
    news.iter().for_each(|event| journal.event(event));
    println!(
        "an event takes the engine's thread {:.2} µs",
        start.elapsed().as_secs_f64() * 1e6 / NEWS as f64
    );
    news.into_iter().for_each(|event| engine.apply(event));
    let start = Instant::now();
    let plan = engine.cycle(NOW);
    println!(
        "a cycle takes {:.1?}: {} binds, {} updates",
        start.elapsed(),
        plan.binds.len(),
        plan.updates.len()
    );
    let start = Instant::now();
    journal.cycle(NOW, &plan);
    println!("its plan takes the engine's thread {:.1?}", start.elapsed());
    let start = Instant::now();
    assert_eq!(journal.health().gaps, 0);
    drop(journal);
    println!("the journal's thread is {:.1?} behind", start.elapsed());
    let bytes = Segment::list(folder.path()).unwrap()[0].bytes;
    println!("an event takes {:.0} bytes of the disk", (bytes - begun) as f64 / NEWS as f64);
    let start = Instant::now();
    let summary =
        replay(folder.path(), 0, |_| {}, |_| {}).unwrap_or_else(|error| panic!("{error}"));
    println!("{} events are replayed in {:.1?}", summary.events, start.elapsed());
}
