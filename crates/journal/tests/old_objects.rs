//! Custom resources in journals of earlier versions carry their kind and have times as text.

use muster_api::kinds::Object;
use muster_api::{PodGroup, Time};
use muster_engine::Event;
use muster_journal::codec;
use serde_json::json;

#[test]
fn custom_resources_of_old_journals_are_read() {
    let group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": "ring",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "creationTimestamp": "2026-11-15T08:30:00Z",
            "managedFields": [{ "manager": "kubectl", "time": "2026-11-15T08:30:00Z" }],
            "annotations": { "a": "b" },
        },
        "spec": { "minMember": 2, "queue": "default" },
        "status": { "phase": "Running", "running": 2, "succeeded": 0, "failed": 0 },
    });
    let mut bytes = Vec::new();
    codec::encode(&mut bytes, &json!({ "PodGroup": group })).expect("it can be written");
    let event: Event = codec::decode(&bytes).expect("it can be read");
    let Event::Object(Object::PodGroup(group)) = event else { panic!("{event:?}") };
    let PodGroup { metadata, spec, status } = *group;
    assert_eq!(metadata.key(), "default/ring");
    assert_eq!(metadata.uid, "u");
    assert_eq!(metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(metadata.creation_timestamp, Time::parse("2026-11-15T08:30:00Z").ok());
    assert_eq!(metadata.annotations["a"], "b");
    assert_eq!(spec.min_member, 2);
    assert_eq!(status.expect("it has one").running, 2);
}
