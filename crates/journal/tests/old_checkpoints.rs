//! Checkpoints of earlier versions.

use muster_api::Time;
use muster_api::manifest::{Found, read};
use muster_engine::config::Config;
use muster_engine::{Checkpoint, Engine, Event};
use muster_journal::codec;

const CONFIG: &str = "actions: allocate, preempt
configurations: [{name: preempt, arguments: {mode: scenario}}]
tiers:
- plugins: [{name: priority}, {name: gang}, {name: predicates}]";

/// No eviction makes room for `high`, which wants more than the node has.
const CLUSTER: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n}, status: {allocatable: {cpu: 8, pods: 9}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: low, namespace: default},
 spec: {schedulerName: volcano, nodeName: n, containers: [{name: main, resources: {requests: {cpu: 8}}}]},
 status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: high, namespace: default},
 spec: {schedulerName: volcano, priority: 5, containers: [{name: main, resources: {requests: {cpu: 9}}}]}}
";

fn encode(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(&mut bytes, checkpoint).expect("a checkpoint can be written");
    bytes
}

/// A checkpoint as versions wrote it in which the failed searches were a field of the model. It is
/// a map of two fields then, and the model has one more.
fn as_older_versions_wrote_it(bytes: &[u8]) -> Vec<u8> {
    let field = b"\xaffailed_searches";
    let at = bytes.windows(field.len()).rposition(|window| window == field).expect("it is last");
    let (rest, failed_searches) = (&bytes[..at], &bytes[at + field.len()..]);
    assert_ne!(failed_searches, b"\x80", "a search has failed");
    let rest = rest.strip_prefix(b"\x83\xa7cluster\xde").expect("a map of three, and one of many");
    let fields = u16::from_be_bytes([rest[0], rest[1]]) + 1;
    [
        b"\x82\xa7cluster\xde".as_slice(),
        &fields.to_be_bytes(),
        b"\xa9",
        b"fruitless",
        failed_searches,
        &rest[2..],
    ]
    .concat()
}

#[test]
fn failed_searches_are_read_where_older_versions_kept_them() {
    let config = Config::parse("test", CONFIG).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut engine = Engine::new(config, vec!["volcano".into()]);
    read("test", CLUSTER.as_bytes(), &mut |found| match found {
        Found::Object { object, .. } => engine.apply(Event::from(object)),
        Found::Error(error) => panic!("{error}"),
        Found::Skipped { kind, .. } => panic!("unknown kind {kind}"),
    });
    engine.cycle(Time(1_800_000_000_000));
    let bytes = encode(&engine.checkpoint());
    let old = as_older_versions_wrote_it(&bytes);
    let read: Checkpoint = codec::decode(&old).expect("older versions wrote it so");
    assert!(encode(&read) == bytes, "something was lost");
}
