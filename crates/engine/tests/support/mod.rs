//! Objects for tests, from the manifests that a user would write.

#![allow(dead_code, reason = "each test uses its part")]

use muster_api::manifest::{Found, Object, read};

pub fn objects(text: &str) -> Vec<Object> {
    let mut objects = Vec::new();
    read("test", text.as_bytes(), &mut |found| match found {
        Found::Object { object, .. } => objects.push(object),
        Found::Error(error) => panic!("{error} in\n{text}"),
        Found::Skipped { kind, .. } => panic!("unknown kind {kind} in\n{text}"),
    });
    objects
}
