//! Events as they are written in files: in the current form, and in the form of older journals.

use std::path::Path;

use muster_api::kinds::Kind;
use muster_engine::Event;
use muster_journal::{Record, Segment, Summary, codec, replay};
use serde_json::json;

#[test]
fn events_are_read_as_they_were_written() {
    for written in [
        json!({ "Node": { "metadata": { "name": "n" } } }),
        json!({ "Gone": { "kind": "Pod", "key": "d/p", "uid": "u" } }),
        json!({ "Bound": { "key": "d/p", "uid": "u", "node": "n" } }),
    ] {
        let event: Event = serde_json::from_value(written.clone()).expect("an event");
        assert_eq!(serde_json::to_value(&event).expect("JSON"), written);
        let mut bytes = Vec::new();
        codec::encode(&mut bytes, &event).expect("bytes");
        let event: Event = codec::decode(&bytes).expect("an event");
        assert_eq!(serde_json::to_value(&event).expect("JSON"), written);
    }
}

#[test]
fn unknown_events_are_rejected_by_name() {
    let read = serde_json::from_value::<Event>(json!({ "TeapotGone": "t" }));
    let error = read.expect_err("there are no teapots").to_string();
    assert!(error.contains("TeapotGone"), "{error}");
}

/// Recorded by muster at commit ca9a505, when each kind had its own event for deleted objects. An
/// object of every kind is created and deleted, and every answer to a write occurs once.
fn old_journal() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/old_events"))
}

#[test]
fn an_old_journal_replays_without_a_difference() {
    let done = replay(old_journal(), 0, |_| {}, |_| {}).expect("no difference");
    let Summary { events, cycles, binds, .. } = done;
    assert_eq!((events, cycles, binds), (35, 4, 4));
}

#[test]
fn deleted_objects_of_old_journals_are_read_by_kind_and_key() {
    let segments = Segment::list(old_journal()).expect("a folder");
    let records = segments[0].open().expect("a segment");
    let mut gone: Vec<(Kind, String, String)> = records
        .filter_map(|record| match record.expect("a record") {
            Record::Event(event) => match *event {
                Event::Gone { kind, key, uid } => Some((kind, key, uid)),
                _ => None,
            },
            _ => None,
        })
        .collect();
    gone.sort();
    let expected = [
        (Kind::PriorityClass, "high", ""),
        (Kind::Namespace, "other", ""),
        (Kind::ResourceQuota, "team/q", ""),
        (Kind::PersistentVolume, "v", ""),
        (Kind::PersistentVolumeClaim, "team/c", ""),
        (Kind::PodDisruptionBudget, "team/b", ""),
        (Kind::Queue, "blue", ""),
        (Kind::HyperNode, "leaf", ""),
        (Kind::Node, "n2", ""),
        (Kind::PodGroup, "team/empty", "uid-empty"),
        (Kind::Pod, "team/late", "uid-of-another"),
        (Kind::Pod, "team/low", "uid-low"),
    ];
    let expected = expected.map(|(kind, key, uid)| (kind, key.to_owned(), uid.to_owned()));
    assert_eq!(gone, expected);
}
