//! Objects for tests, from the manifests that a user would write.

#![allow(dead_code, reason = "each test uses its part")]

use muster_api::manifest::{Found, Object, read};
use muster_engine::Event;

pub fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    read("test", text.as_bytes(), &mut |found| match found {
        Found::Object { object, .. } => objects.push(object),
        Found::Error(error) => panic!("{error} in\n{text}"),
        Found::Skipped { kind, .. } => panic!("unknown kind {kind} in\n{text}"),
    });
    objects
}

pub fn event(object: Object) -> Event {
    match object {
        Object::Node(node) => Event::Node(Box::new(node)),
        Object::Pod(pod) => Event::Pod(Box::new(pod)),
        Object::PodGroup(group) => Event::PodGroup(Box::new(group)),
        Object::Queue(queue) => Event::Queue(Box::new(queue)),
        Object::PriorityClass(class) => Event::PriorityClass(class),
        Object::Namespace(namespace) => Event::Namespace(namespace),
        Object::ResourceQuota(quota) => Event::ResourceQuota(quota),
        Object::PersistentVolume(volume) => Event::PersistentVolume(volume),
        Object::PersistentVolumeClaim(claim) => Event::PersistentVolumeClaim(claim),
        Object::HyperNode(_) | Object::PodDisruptionBudget(_) => panic!("not an event yet"),
    }
}
